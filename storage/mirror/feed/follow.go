package feed

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/mirror"
)

// maxPages bounds the pages of logs that one round of follow reads.
const maxPages = 32

// ofActivations begins the subjects of activations.
const ofActivations = "activations"

// follow reads the logs of the tenants that are due, a page of each in turn, and the records that the
// events name. While a batch is written, the next one is read. more reports that there is more to read
// now.
func (s *session) follow(ctx context.Context) (more bool, err error) {
	tenants, err := s.reading(ctx)
	if err != nil || len(tenants) == 0 {
		return false, err
	}
	out := make(chan *unit, 1)
	r := &round{s: s, at: map[string]events.Position{}}
	r.collector = newCollector(s.f, false, func(ctx context.Context, u *unit) error {
		select {
		case out <- u:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	for _, tenant := range tenants {
		r.at[tenant] = s.positions[tenant]
	}
	g, reading := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(out)
		return r.read(reading, tenants)
	})
	g.Go(func() error {
		for u := range out {
			if _, err := s.write(reading, u); err != nil {
				return err
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return false, err
	}
	s.took(r)
	return len(s.behind) > 0, nil
}

// took takes over what a round has read.
func (s *session) took(r *round) {
	s.behind = r.behind
	now := time.Now()
	if len(r.active) > 0 || len(r.places) > 0 {
		places := make([]place, 0, len(r.places))
		for p := range r.places {
			places = append(places, p)
		}
		s.f.hot.events(r.active, places, now)
	}
	for _, tenant := range r.gaps {
		s.f.m.gaps.Inc()
		s.f.cfg.Logger.Warn("the mirror missed events that are no longer kept; it reads all of the tenant", zap.String("tenant", tenant))
		s.gaps[tenant] = struct{}{}
	}
}

// round reads pages of logs. Its fields belong to the goroutine that reads until that ends.
type round struct {
	*collector

	s      *session
	at     map[string]events.Position
	behind map[string]int64 // of tenants that have more, the time of the last event
	active []string         // tenants with events
	places map[place]struct{}
	gaps   []string
}

// read reads pages of the tenants in turn.
func (r *round) read(ctx context.Context, tenants []string) error {
	r.behind, r.places = map[string]int64{}, map[place]struct{}{}
	for pages := 0; len(tenants) > 0; {
		var again []string
		for _, tenant := range tenants {
			if pages >= maxPages && pages >= len(tenants) {
				again = nil
				break
			}
			pages++
			more, err := r.page(ctx, tenant)
			if err != nil {
				return err
			}
			if more {
				again = append(again, tenant)
			}
		}
		tenants = again
	}
	return r.flush(ctx)
}

// page reads a page of one log, and the records of its events.
func (r *round) page(ctx context.Context, tenant string) (more bool, err error) {
	page, err := r.s.f.log.ReadSubjects(ctx, tenant, r.at[tenant], mirror.MaxBatch)
	if err != nil {
		return false, err
	}
	r.s.f.m.commands.WithLabelValues("follow").Inc()
	if page.Gap {
		r.gaps = append(r.gaps, tenant)
		r.unit.Notes[noteGap+tenant] = "yes" // with the position behind the gap, or it would be forgotten
	}
	delete(r.behind, tenant)
	if page.Next == r.at[tenant] && !page.Gap {
		return false, nil
	}
	if len(page.Entries) > 0 {
		r.active = append(r.active, tenant)
		r.unit.since(page.Entries[0].AtMS)
		if page.More {
			r.behind[tenant] = page.Entries[len(page.Entries)-1].AtMS
		}
	}
	jobs, activations := r.subjects(tenant, page)
	if err := r.jobs(ctx, tenant, jobs); err != nil {
		return false, err
	}
	if err := r.activations(ctx, tenant, activations); err != nil {
		return false, err
	}
	r.at[tenant] = page.Next
	r.unit.Positions[tenant] = string(page.Next)
	return page.More, nil
}

// subjects returns the jobs and the activations that a page names, each once, and notes their places.
func (r *round) subjects(tenant string, page *events.SubjectsPage) (jobs, activations []string) {
	seen := map[string]struct{}{}
	for i := range page.Entries {
		e := &page.Entries[i]
		if e.Of != event.KindJobs && e.Of != ofActivations {
			continue
		}
		if namespace, queue, ok := strings.Cut(e.Queue, "/"); ok {
			r.places[place{tenant, namespace, queue, kindQueue}] = struct{}{}
			if function := event.FunctionOf(queue); function != "" {
				r.places[place{tenant, namespace, function, kindFunction}] = struct{}{}
			}
		}
		for _, id := range e.IDs {
			if _, known := seen[id]; known {
				continue
			}
			seen[id] = struct{}{}
			if e.Of == event.KindJobs {
				jobs = append(jobs, id)
			} else {
				activations = append(activations, id)
			}
		}
	}
	return jobs, activations
}

// write writes a unit, and then takes over its positions.
func (s *session) write(ctx context.Context, u *unit) (mirror.Applied, error) {
	counts, err := s.f.mirror.Apply(ctx, &u.Batch)
	if err != nil {
		return counts, err
	}
	s.f.m.applied(counts)
	s.f.logResumed()
	for tenant, position := range u.Positions {
		s.positions[tenant] = events.Position(position)
	}
	if u.oldestMS > 0 {
		s.f.m.lag.Observe(max(0, float64(s.f.store.NowMS()-u.oldestMS)/1000))
	}
	return counts, nil
}
