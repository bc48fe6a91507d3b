package webhooks

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/webhooks"
)

const (
	// readEvents is the largest number of events of one read of a log.
	readEvents = 500
	// leastRoom is how many deliveries a webhook must have room for before more events are read.
	leastRoom = 50
)

// load reads the enabled webhooks with their positions and deliveries, if they were read long ago or a
// notice has come.
func (r *run) load(ctx context.Context) error {
	if time.Since(r.loaded) < loadInterval {
		return nil
	}
	began := time.Now()
	records, err := r.d.hooks.All(ctx, r.tenant)
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(rec webhooks.Record) bool { return !rec.Enabled })
	states, err := r.d.hooks.Statuses(ctx, r.tenant, records)
	if err != nil {
		return err
	}
	due, err := r.d.hooks.Due(ctx, r.tenant, records)
	if err != nil {
		return err
	}
	hooks := make([]*hook, len(records))
	for i := range records {
		hooks[i] = r.hook(&records[i], states[i], due[i])
	}
	r.hooks, r.loaded = hooks, began
	return nil
}

// hook returns a webhook as it is now. One that was known and is unchanged keeps what attempts in
// progress refer to.
func (r *run) hook(rec *webhooks.Record, s webhooks.Status, due []webhooks.Waiting) *hook {
	h := &hook{Record: *rec, filter: rec.Filter(), position: s.Position, failingSince: s.FailingSince}
	flying := map[webhooks.Member]bool{}
	if at := slices.IndexFunc(r.hooks, func(known *hook) bool { return known.ID == rec.ID }); at >= 0 {
		known := r.hooks[at]
		for _, w := range known.waiting {
			if w.flying {
				flying[w.Member] = true
			}
		}
		if known.Revision == rec.Revision {
			h = known
			h.position = s.Position
		}
	}
	h.waiting = make([]waiting, len(due))
	for i, w := range due {
		h.waiting[i] = waiting{w, flying[w.Member]}
	}
	slices.SortStableFunc(h.waiting, func(a, b waiting) int {
		switch {
		case a.Member.Before(b.Member):
			return -1
		case b.Member.Before(a.Member):
			return 1
		}
		return 0
	})
	keys, err := r.d.hooks.Keys(r.tenant, rec)
	if err != nil {
		r.d.cfg.Logger.Error("the secret of a webhook cannot be opened; its events are not sent until then",
			zap.String("tenant", r.tenant), zap.String("webhook", rec.Name), zap.Error(err))
	}
	h.keys = keys
	return h
}

// follow reads the log behind the positions of the webhooks, adds deliveries of the events that they
// select, and moves their positions. Webhooks at one position share a read; one with many deliveries
// waits until some have ended.
func (r *run) follow(ctx context.Context) error {
	groups := map[events.Position][]*hook{}
	limits := map[events.Position]int{}
	for _, h := range r.hooks {
		room := webhook.MaxPending - len(h.waiting)
		if room < leastRoom {
			continue
		}
		groups[h.position] = append(groups[h.position], h)
		if limit := limits[h.position]; limit == 0 || room < limit {
			limits[h.position] = min(room, readEvents)
		}
	}
	for from, group := range groups {
		page, err := r.d.log.Read(ctx, r.tenant, from, limits[from])
		if err != nil {
			return err
		}
		if page.Gap {
			r.d.m.gaps.Inc()
		}
		if page.Next == from || page.Next == "" {
			continue
		}
		r.events = time.Now()
		for _, h := range group {
			if err := r.take(ctx, h, page); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds deliveries of the events of a page that the webhook selects.
func (r *run) take(ctx context.Context, h *hook, page *events.Page) error {
	var selected []event.Event
	for i := range page.Events {
		if h.filter.Matches(&page.Events[i]) {
			selected = append(selected, page.Events[i])
		}
	}
	moved, err := r.d.hooks.Take(ctx, r.tenant, h.ID, selected, h.position, page.Next)
	if err != nil {
		return err
	}
	if !moved {
		r.loaded = time.Time{} // the webhook was changed, or another replica has the lease
		return nil
	}
	h.position = page.Next
	h.wait(selected, r.d.store.NowMS())
	return nil
}

// wait adds the deliveries of events, which are due at now. Those that an earlier take added before a
// crash of the store are known already.
func (h *hook) wait(selected []event.Event, now int64) {
	known := make(map[webhooks.Member]struct{}, len(h.waiting))
	for i := range h.waiting {
		known[h.waiting[i].Member] = struct{}{}
	}
	for i := range selected {
		m := webhooks.MemberOf(&selected[i])
		if _, waits := known[m]; !waits {
			h.waiting = append(h.waiting, waiting{Waiting: webhooks.Waiting{Member: m, AtMS: now}})
		}
	}
}
