package feed

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/mirror"
)

// The notes in the file.
const (
	noteStarted  = "started"  // the positions of all tenants are stored
	noteComplete = "complete" // the rebuild has ended
	notePass     = "pass"     // the pass in progress, in JSON
	noteGap      = "gap/"     // begins the notes of tenants of which events were missed
)

// The kinds of passes.
const (
	passRebuild = "rebuild" // writes all rows
	passGap     = "gap"     // compares the rows of tenants of which events were missed
	passCheck   = "check"   // compares all rows, slowly
)

// The stages of a pass: the sets of the store, then the rows.
const (
	stageSets        = "sets"
	stageJobs        = "jobs"
	stageActivations = "activations"
)

const (
	// minRest and maxRest bound the time between two passes. Each that finds nothing doubles it.
	minRest = time.Minute
	maxRest = time.Hour
	// saveInterval is how often the position of a pass is stored.
	saveInterval = 5 * time.Second
	// maxPassing bounds the time of the steps of one turn of the loop.
	maxPassing = 100 * time.Millisecond
	// groupSize is how many queues or functions are examined by one command.
	groupSize = 64

	reasonAsked = "it was asked for"
)

// pass goes over the records of the store and over the rows. Its position is stored in the file, so
// that the next process goes on there.
type pass struct {
	Kind    string   `json:"kind"`
	Reason  string   `json:"reason,omitempty"`
	Tenants []string `json:"tenants,omitempty"` // none for all
	Stage   string   `json:"stage"`
	// Tenant and Name are the last place of the first stage, Row is the last row of the others.
	Tenant string `json:"tenant,omitempty"`
	Name   string `json:"name,omitempty"`
	Row    int64  `json:"row,omitempty"`

	next     func() (int, error, bool)
	stop     func()
	found    bool
	progress float64
	saved    time.Time
}

// parsePass parses the note of a pass, nil for none.
func parsePass(text string) *pass {
	p := &pass{}
	if text == "" || json.Unmarshal([]byte(text), p) != nil {
		return nil
	}
	return p
}

// beginPass begins a pass in place of the one in progress.
func (s *session) beginPass(ctx context.Context, p *pass) {
	if s.pass != nil {
		s.pass.stop()
		if s.pass.Kind == passGap { // it has not ended
			for _, tenant := range s.pass.Tenants {
				s.gaps[tenant] = struct{}{}
			}
		}
	}
	if p.Stage == "" {
		p.Stage = stageSets
	}
	s.pass = p
	p.saved = time.Time{} // stored with the first step
	w := &walk{s: s, p: p, ctx: ctx}
	p.next, p.stop = iter.Pull2(w.steps)
	s.showPass()
}

// showPass shows the progress of a rebuild in the status.
func (s *session) showPass() {
	if s.pass.Kind != passCheck {
		s.f.mirror.SetRebuilding(s.pass.Reason, s.pass.progress)
	}
}

// rate returns how many commands a second the pass may send now.
func (s *session) rate(now time.Time) float64 {
	switch {
	case s.pass.Kind != passCheck:
		return s.f.cfg.RebuildRate
	case s.f.hot.busy(now):
		return s.f.cfg.BusyRate
	}
	return s.f.cfg.IdleRate
}

// nextStep returns when the next step of a pass is possible.
func (s *session) nextStep(now time.Time) time.Time {
	if s.pass == nil {
		return s.next
	}
	return now.Add(s.passing.wait(now, s.rate(now)))
}

// advance makes the steps of the pass in progress that the budget allows, and begins the next pass
// when it is due.
func (s *session) advance(ctx context.Context) error {
	began := time.Now()
	switch {
	case len(s.gaps) > 0 && (s.pass == nil || s.pass.Kind == passCheck):
		tenants := slices.Sorted(maps.Keys(s.gaps))
		s.beginPass(ctx, &pass{Kind: passGap, Tenants: tenants, Reason: "events were no longer kept"})
		clear(s.gaps) // a gap from now on needs another pass
	case s.pass == nil && !began.Before(s.next):
		s.beginPass(ctx, &pass{Kind: passCheck})
	}
	for s.pass != nil {
		now := time.Now()
		if now.Sub(began) >= maxPassing || s.passing.wait(now, s.rate(now)) > 0 {
			return nil
		}
		commands, err, more := s.pass.next()
		if err != nil {
			return err
		}
		s.passing.spend(commands)
		s.f.m.commands.WithLabelValues(s.pass.Kind).Add(float64(commands))
		if !more {
			return s.endPass(ctx)
		}
		s.showPass()
		if err := s.savePass(ctx, now); err != nil {
			return err
		}
	}
	return nil
}

// savePass stores the position of the pass from time to time.
func (s *session) savePass(ctx context.Context, now time.Time) error {
	if now.Sub(s.pass.saved) < saveInterval {
		return nil
	}
	text, err := api.EncodeJSON(s.pass)
	if err != nil {
		return err
	}
	s.pass.saved = now
	_, err = s.f.mirror.Apply(ctx, &mirror.Batch{Notes: map[string]string{notePass: string(text)}})
	return err
}

// endPass notes the end of the pass.
func (s *session) endPass(ctx context.Context) error {
	p := s.pass
	notes := map[string]string{notePass: ""}
	if p.Kind == passRebuild {
		notes[noteComplete] = "yes"
	}
	if p.Kind == passGap {
		for _, tenant := range p.Tenants {
			if _, again := s.gaps[tenant]; !again {
				notes[noteGap+tenant] = ""
			}
		}
	}
	if _, err := s.f.mirror.Apply(ctx, &mirror.Batch{Notes: notes}); err != nil {
		return err
	}
	p.stop()
	s.pass, s.passing = nil, budget{}
	s.rest = min(2*s.rest, maxRest)
	if p.found {
		s.rest = minRest
	}
	s.next = time.Now().Add(s.rest)
	if p.Kind != passCheck {
		s.f.mirror.SetServing()
		s.f.cfg.Logger.Info("the mirror is complete", zap.String("pass", p.Kind))
	}
	return nil
}

// walk makes the steps of a pass.
type walk struct {
	s     *session
	p     *pass
	ctx   context.Context //nolint:containedctx // of the session
	yield func(int, error) bool
}

// step ends a step that sent commands. It returns false if the pass ends.
func (w *walk) step(commands int) bool { return w.yield(commands, nil) }

// fail ends the pass with an error.
func (w *walk) fail(err error) bool {
	w.yield(0, err)
	return false
}

// steps yields the number of commands of each step, and the error with which the pass ends.
func (w *walk) steps(yield func(int, error) bool) {
	w.yield = yield
	for _, stage := range []struct {
		name string
		walk func() bool
	}{{stageSets, w.sets}, {stageJobs, w.jobRows}, {stageActivations, w.activationRows}} {
		if w.p.Stage != stage.name {
			continue
		}
		if !stage.walk() {
			return
		}
		w.p.Tenant, w.p.Name, w.p.Row = "", "", 0
		w.p.Stage = map[string]string{stageSets: stageJobs, stageJobs: stageActivations}[stage.name]
	}
}

// sets walks over the sets of queues and the indexes of functions.
func (w *walk) sets() bool {
	tenants, commands := w.p.Tenants, 0
	if len(tenants) == 0 {
		var err error
		tenants, commands, err = w.s.f.tenants.All(w.ctx)
		if err != nil {
			return w.fail(err)
		}
	}
	if !w.step(commands) {
		return false
	}
	for i, tenant := range tenants {
		if tenant < w.p.Tenant {
			continue
		}
		if tenant != w.p.Tenant {
			w.p.Tenant, w.p.Name = tenant, ""
		}
		w.p.progress = 0.9 * float64(i) / float64(len(tenants))
		if !w.queues(tenant, 0.9/float64(len(tenants))) || !w.functions(tenant) {
			return false
		}
	}
	return true
}

// queues walks over the queues of a tenant. share is their part of the progress.
func (w *walk) queues(tenant string, share float64) bool {
	paths, commands, err := w.s.f.jobs.Queues(w.ctx, tenant)
	if err != nil {
		return w.fail(err)
	}
	if !w.step(commands) {
		return false
	}
	begin := w.p.progress
	for i := 0; i < len(paths); i += groupSize {
		group := paths[i:min(len(paths), i+groupSize)]
		if group[len(group)-1] <= w.p.Name {
			continue
		}
		for _, state := range api.JobStates() {
			if !w.queueGroup(tenant, group, state) {
				return false
			}
		}
		w.p.Name = group[len(group)-1]
		w.p.progress = begin + share*float64(i+len(group))/float64(len(paths))
	}
	return true
}
