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
// select, and moves their positions. Webhooks whose positions are within one page share its read; one
// with many deliveries waits until some have ended. more reports that there is more to read now.
func (r *run) follow(ctx context.Context) (more bool, err error) {
	var open []*hook
	limit := 0
	for _, h := range r.hooks {
		if h.room() >= leastRoom {
			open = append(open, h)
			limit = max(limit, min(h.room(), readEvents))
		}
	}
	slices.SortStableFunc(open, func(a, b *hook) int { return a.position.Compare(b.position) })
	for len(open) > 0 {
		page, err := r.d.log.Read(ctx, r.tenant, open[0].position, limit)
		if err != nil {
			return false, err
		}
		if page.Gap {
			r.d.m.gaps.Inc()
		}
		if len(page.Events) > 0 {
			r.events = time.Now()
		}
		n := reached(open, page)
		for _, h := range open[:n] {
			if err := r.take(ctx, h, page); err != nil {
				return false, err
			}
			more = more || page.More && h.room() >= leastRoom
		}
		open = open[n:]
	}
	return more, nil
}

// reached returns how many of the webhooks, by their positions, a page serves that was read at the first
// position: those before its end, and at the end of the log also those at its end.
func reached(open []*hook, page *events.Page) int {
	n := 0
	for n < len(open) {
		at := open[n].position
		end := at.Compare(page.Next)
		if at != open[0].position && end >= 0 && (end > 0 || page.More) {
			break
		}
		n++
	}
	return n
}

// room is how many more deliveries of the webhook may wait.
func (h *hook) room() int { return webhook.MaxPending - len(h.waiting) }

// selects returns the events of a page that are behind the webhook's position and that it selects, as
// many as it has room for, and the position behind those.
func (h *hook) selects(page *events.Page) (selected []event.Event, to events.Position) {
	room := h.room()
	to = h.position
	for i := range page.Events {
		e := &page.Events[i]
		at := events.Position(e.ID)
		if at.Compare(h.position) <= 0 {
			continue
		}
		if h.filter.Matches(e) {
			if len(selected) == room {
				return selected, to
			}
			selected = append(selected, *e)
		}
		to = at
	}
	if page.Next == "" {
		return selected, events.Since(1) // the log is empty, and need not be read from an older position
	}
	return selected, page.Next
}

// take adds deliveries of the events of a page that the webhook selects.
func (r *run) take(ctx context.Context, h *hook, page *events.Page) error {
	selected, to := h.selects(page)
	if to == h.position {
		return nil
	}
	moved, err := r.d.hooks.Take(ctx, r.tenant, h.ID, selected, h.position, to)
	if err != nil {
		return err
	}
	if !moved {
		r.loaded = time.Time{} // the webhook was changed, or another replica has the lease
		return nil
	}
	h.position = to
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
