package feed

import (
	"context"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/mirror"
)

const (
	// pageSize is how many members of a set, or rows, are compared at a time.
	pageSize = 500
	// visitPages is how many pages of a set a visit reads.
	visitPages = 4
	// maxVisiting bounds the time of the visits of one turn of the loop.
	maxVisiting = 100 * time.Millisecond
)

// visit visits the places that are due, as far as the budget goes.
func (s *session) visit(ctx context.Context) error {
	for began := time.Now(); ; {
		now := time.Now()
		p, due, _ := s.f.hot.due(now)
		if !due || now.Sub(began) >= maxVisiting || s.visits.wait(now, s.f.cfg.VisitRate) > 0 {
			return nil
		}
		var found bool
		var commands int
		var err error
		if p.kind == kindQueue {
			found, commands, err = s.visitQueue(ctx, p)
		} else {
			found, commands, err = s.function(ctx, p, visitPages, false, nil)
		}
		if err != nil {
			return err
		}
		s.visits.spend(commands)
		s.f.m.commands.WithLabelValues("visit").Add(float64(commands))
		s.f.hot.visited(p, found, time.Now())
	}
}

// nextVisit returns when the next visit is possible.
func (s *session) nextVisit(now time.Time) time.Time {
	_, _, next := s.f.hot.due(now)
	if next.IsZero() {
		return now.Add(maxWait)
	}
	if free := now.Add(s.visits.wait(now, s.f.cfg.VisitRate)); free.After(next) {
		return free
	}
	return next
}

// visitQueue compares the sets of a queue with the rows, from the highest scores downwards, and then
// the rows of its jobs that have not ended with their runs: an end is found by the set, a step within
// the same state by the run.
func (s *session) visitQueue(ctx context.Context, p place) (found bool, commands int, err error) {
	for _, state := range api.JobStates() {
		for _, set := range s.f.jobs.Sets(p.tenant, p.namespace, p.name, state) {
			some, n, err := s.set(ctx, p.tenant, set, state, visitPages, false, nil)
			found, commands = found || some, commands+n
			if err != nil {
				return found, commands, err
			}
		}
	}
	for _, state := range api.JobStates() {
		if state.Terminal() {
			continue
		}
		rows, err := s.f.mirror.QueueRows(ctx, p.tenant, p.namespace, p.name, state, 0, pageSize)
		if err != nil {
			return found, commands, err
		}
		changed, n, err := s.jobRows(ctx, rows)
		found, commands = found || changed, commands+n
		if err != nil {
			return found, commands, err
		}
	}
	return found, commands, nil
}

// set compares the members of a set of jobs of one state with the rows, and writes those that differ.
// It reads at most pages pages, all for 0. Of ended jobs it ends with the first page without a
// difference if pages are limited, since those that ended last come first. It calls step, unless that
// is nil, after each page with the number of commands, and ends if step returns false.
func (s *session) set(ctx context.Context, tenant, set string, state api.JobState, pages int, force bool, step func(commands int) bool) (found bool, commands int, err error) {
	for from, n := "", 1; ; n++ {
		ids, next, err := s.f.jobs.Before(ctx, set, from, pageSize)
		if err != nil {
			return found, commands, err
		}
		runs, err := s.f.mirror.JobRuns(ctx, tenant, ids)
		if err != nil {
			return found, commands, err
		}
		var differ []string
		for _, id := range ids {
			if !force && strings.HasPrefix(runs[id], string(state)+" ") {
				continue
			}
			differ = append(differ, id)
		}
		changed, err := s.load(ctx, tenant, differ, nil, force)
		if err != nil {
			return found, commands, err
		}
		found = found || changed
		commands += 1 + commandsOf(len(differ))
		if step != nil && !step(1+commandsOf(len(differ))) {
			return found, commands, nil
		}
		if next == "" || pages > 0 && (n >= pages || !changed && state.Terminal()) {
			return found, commands, nil
		}
		from = next
	}
}

// commandsOf returns about how many commands the read of so many records sends.
func commandsOf(records int) int { return 5 * records }

// jobRows compares rows of jobs with the runs of the store, and writes those that differ.
func (s *session) jobRows(ctx context.Context, rows []mirror.Row) (changed bool, commands int, err error) {
	if len(rows) == 0 {
		return false, 0, nil
	}
	runs, commands, err := s.f.jobs.Runs(ctx, rows)
	if err != nil {
		return false, commands, err
	}
	differ := map[string][]string{}
	for i := range rows {
		if runs[i] != rows[i].Run {
			differ[rows[i].Tenant] = append(differ[rows[i].Tenant], rows[i].ID)
			commands += commandsOf(1)
		}
	}
	for tenant, ids := range differ {
		some, err := s.load(ctx, tenant, ids, nil, false)
		changed = changed || some
		if err != nil {
			return changed, commands, err
		}
	}
	return changed, commands, nil
}

// load reads records and writes their rows. changed reports whether rows were not as they should be.
func (s *session) load(ctx context.Context, tenant string, jobs, activations []string, force bool) (changed bool, err error) {
	if len(jobs)+len(activations) == 0 {
		return false, nil
	}
	c := newCollector(s.f, force, func(ctx context.Context, u *unit) error {
		counts, err := s.write(ctx, u)
		changed = changed || counts.Written+counts.Removed > 0
		return err
	})
	if err := c.jobs(ctx, tenant, jobs); err != nil {
		return changed, err
	}
	if err := c.activations(ctx, tenant, activations); err != nil {
		return changed, err
	}
	err = c.flush(ctx)
	if changed {
		s.f.hot.change(time.Now())
	}
	return changed, err
}

// function compares the index of a function's activations with the rows, newest first, and writes
// those that differ or have not ended. pages and step are as of set.
func (s *session) function(ctx context.Context, p place, pages int, force bool, step func(commands int) bool) (found bool, commands int, err error) {
	index := s.f.store.Keys().ActivationIndex(p.tenant, p.namespace, p.name)
	for from, n := "", 1; ; n++ {
		ids, next, err := s.f.jobs.Before(ctx, index, from, pageSize)
		if err != nil {
			return found, commands, err
		}
		statuses, err := s.f.mirror.ActivationStatuses(ctx, p.tenant, ids)
		if err != nil {
			return found, commands, err
		}
		var differ []string
		for _, id := range ids {
			if force || !api.Status(statuses[id]).Terminal() || statuses[id] == "" {
				differ = append(differ, id)
			}
		}
		changed, err := s.load(ctx, p.tenant, nil, differ, force)
		if err != nil {
			return found, commands, err
		}
		found = found || changed
		cost := 1 + (len(differ)+maxActivations-1)/maxActivations
		commands += cost
		if step != nil && !step(cost) {
			return found, commands, nil
		}
		if next == "" || pages > 0 && (n >= pages || !changed) {
			return found, commands, nil
		}
		from = next
	}
}
