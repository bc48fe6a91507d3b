package feed

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/mirror"
)

const (
	// listInterval is how often the tenants of the store are read.
	listInterval = 30 * time.Second
	// measureInterval is how often the file and the room for it are looked for.
	measureInterval = 5 * time.Second
	// maxWait bounds the pause of the loop.
	maxWait = time.Second
)

// session fills the open file. Its fields belong to one goroutine.
type session struct {
	f         *Feed
	positions map[string]events.Position // of all tenants that are known
	listed    time.Time
	looked    time.Time // when logs were looked at that are not read often
	read      time.Time // when those that are were read
	measured  time.Time
	behind    map[string]int64 // the time of the last event that was read, of tenants that have more

	complete        bool // the rows were complete at the begin, and the status does not show it yet
	visits, passing budget
	gaps            map[string]struct{} // tenants of which events were missed
	pass            *pass               // in progress, nil between two
	next            time.Time           // when the next one begins
	rest            time.Duration       // between two passes that find nothing
}

// begin reads the state of the file. It begins or resumes the rebuild of a file that is not complete.
func (f *Feed) begin(ctx context.Context) (*session, error) {
	s := &session{f: f, positions: map[string]events.Position{}, behind: map[string]int64{}, gaps: map[string]struct{}{}, rest: minRest, next: time.Now().Add(minRest)}
	stored, err := f.mirror.Positions(ctx)
	if err != nil {
		return nil, err
	}
	for tenant, position := range stored {
		s.positions[tenant] = events.Position(position)
	}
	notes, err := f.mirror.Notes(ctx)
	if err != nil {
		return nil, err
	}
	for name, value := range notes {
		if tenant, is := strings.CutPrefix(name, noteGap); is && value != "" {
			s.gaps[tenant] = struct{}{}
		}
	}
	if notes[noteStarted] == "" {
		if err := s.startAtEnd(ctx); err != nil {
			return nil, err
		}
	}
	switch resumed := parsePass(notes[notePass]); {
	case resumed != nil:
		s.beginPass(ctx, resumed)
	case notes[noteComplete] == "":
		s.beginPass(ctx, &pass{Kind: passRebuild, Reason: "the file is new"})
	case f.logged == failFull: // visits find only the newest of many jobs
		s.beginPass(ctx, &pass{Kind: passGap, Reason: "there was no room"})
	default:
		s.complete = true
	}
	return s, nil
}

// startAtEnd stores the ends of all logs as positions: a rebuild that begins afterwards reads what was
// before.
func (s *session) startAtEnd(ctx context.Context) error {
	tenants, _, err := s.f.tenants.All(ctx)
	if err != nil {
		return err
	}
	b := &mirror.Batch{Positions: map[string]string{}, Notes: map[string]string{noteStarted: "yes"}}
	for _, tenant := range tenants {
		end, err := s.f.log.End(ctx, tenant)
		if err != nil {
			return err
		}
		s.positions[tenant] = end
		b.Positions[tenant] = string(end)
	}
	_, err = s.f.mirror.Apply(ctx, b)
	return err
}

// run fills the file until ctx ends or something fails.
func (s *session) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.asked(ctx); err != nil {
			return err
		}
		more, err := s.follow(ctx)
		if err != nil {
			return err
		}
		if err := s.visit(ctx); err != nil {
			return err
		}
		if err := s.advance(ctx); err != nil {
			return err
		}
		if err := s.measure(ctx); err != nil {
			return err
		}
		if s.complete { // a turn of the loop has worked
			s.complete = false
			s.f.mirror.SetServing()
		}
		if !more {
			s.pause(ctx)
		}
	}
	return ctx.Err()
}

// end releases what the session has.
func (s *session) end() {
	if s.pass != nil {
		s.pass.stop()
	}
}

// asked does what others asked for since the last call.
func (s *session) asked(ctx context.Context) error {
	rebuild, damaged := s.f.mirror.Asked()
	if damaged != nil {
		return damaged
	}
	if rebuild {
		s.f.cfg.Logger.Info("the mirror is rebuilt", zap.String("reason", reasonAsked))
		s.beginPass(ctx, &pass{Kind: passRebuild, Reason: reasonAsked})
	}
	return nil
}

// measure updates the status, and reports a file that was removed.
func (s *session) measure(ctx context.Context) error {
	now := time.Now()
	s.setLag()
	if now.Sub(s.measured) < measureInterval {
		return nil
	}
	s.measured = now
	if s.f.mirror.Missing() {
		return mirror.ErrMissing
	}
	s.f.mirror.Measure()
	return s.f.mirror.Room(ctx)
}

// setLag sets the lag of the status: that of the tenant with the oldest event.
func (s *session) setLag() {
	if len(s.behind) == 0 {
		s.f.mirror.SetLag(0)
		return
	}
	oldest := s.f.store.NowMS()
	for _, at := range s.behind {
		oldest = min(oldest, at)
	}
	s.f.mirror.SetLag(time.Duration(s.f.store.NowMS()-oldest) * time.Millisecond)
}

// pause waits until something is due.
func (s *session) pause(ctx context.Context) {
	now := time.Now()
	until := now.Add(maxWait)
	for _, at := range []time.Time{s.nextRead(now), s.nextVisit(now), s.nextStep(now)} {
		if at.Before(until) {
			until = at
		}
	}
	timer := time.NewTimer(max(time.Millisecond, until.Sub(now)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-s.f.hot.wake:
	case <-s.f.mirror.Wake():
	}
}

// list reads the tenants of the store from time to time. A tenant that is new is read from the begin
// of its log.
func (s *session) list(ctx context.Context, now time.Time) error {
	if now.Sub(s.listed) < listInterval {
		return nil
	}
	tenants, commands, err := s.f.tenants.All(ctx)
	if err != nil {
		return err
	}
	s.f.m.commands.WithLabelValues("follow").Add(float64(commands))
	for _, tenant := range tenants {
		if _, known := s.positions[tenant]; !known {
			s.positions[tenant] = ""
		}
	}
	s.listed = now
	return nil
}

// reading returns the tenants whose logs are due to be read.
func (s *session) reading(ctx context.Context) ([]string, error) {
	now := time.Now()
	if err := s.list(ctx, now); err != nil {
		return nil, err
	}
	if now.Sub(s.looked) >= s.idlePoll() {
		s.looked = now
		news, commands, err := s.f.log.News(ctx, s.positions)
		if err != nil {
			return nil, err
		}
		s.f.m.commands.WithLabelValues("follow").Add(float64(commands))
		s.f.hot.events(news, nil, now)
	}
	tenants := s.f.hot.reading(now)
	if len(tenants) == 0 || now.Before(s.read.Add(s.f.cfg.Poll)) && len(s.behind) == 0 {
		return nil, nil
	}
	s.read = now
	for _, tenant := range tenants {
		if _, known := s.positions[tenant]; !known {
			s.positions[tenant] = ""
		}
	}
	slices.Sort(tenants)
	return tenants, nil
}

// idlePoll is longer with many tenants: each look is a command for 128 of them.
func (s *session) idlePoll() time.Duration {
	return s.f.cfg.IdlePoll * time.Duration(1+len(s.positions)/128)
}

// nextRead returns when logs are read next.
func (s *session) nextRead(now time.Time) time.Time {
	next := s.looked.Add(s.idlePoll())
	if len(s.f.hot.reading(now)) > 0 && s.read.Add(s.f.cfg.Poll).Before(next) {
		return s.read.Add(s.f.cfg.Poll)
	}
	return next
}
