package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
)

// EventSelection selects events. Since is the time from which on they were recorded; zero selects
// all that are kept, of a stream those to come.
type EventSelection struct {
	event.Filter
	Since time.Time
}

func (s *EventSelection) query(o PageOptions) url.Values {
	q := o.query()
	for name, value := range map[string]string{
		"types": strings.Join(s.Types, ","), "namespace": s.Namespace, "queue": s.Queue, "function": s.Function,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if !s.Since.IsZero() {
		q.Set("since", strconv.FormatInt(s.Since.UnixMilli(), 10))
	}
	return q
}

// Events returns one page of the events of the tenant, oldest first: those of resources that the
// caller may read. A page may be shorter
// than its limit. It always has a cursor: later events appear there.
func (t *Tenant) Events(ctx context.Context, s EventSelection, o PageOptions) (event.Page, error) {
	var out event.Page
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("events"), query: s.query(o)}, nil, &out)
	return out, err
}

// AllEvents iterates over the events that exist now and does not wait for more. It stops after the
// first error, which it yields.
func (t *Tenant) AllEvents(ctx context.Context, s EventSelection) iter.Seq2[event.Event, error] {
	return All(ctx, func(ctx context.Context, o PageOptions) (api.Page[event.Event], error) {
		page, err := t.Events(ctx, s, o)
		if !page.More {
			page.NextCursor = nil
		}
		return api.Page[event.Event]{Items: page.Items, NextCursor: page.NextCursor}, err
	}, PageOptions{Limit: api.MaxPageLimit})
}

// FollowEvents calls handle with each event from s.Since on, or else from the next one on, until
// ctx ends or handle fails. It calls gap, which may be nil, where events may be missing, because
// they are no longer kept. A broken stream is opened again behind the last event, at most
// MaxAttempts times in a row without an event or a steady connection in between.
func (t *Tenant) FollowEvents(ctx context.Context, s EventSelection, handle func(event.Event) error, gap func() error) error {
	follow := &stream{c: t.c, path: t.path("events") + ":follow", query: s.query(PageOptions{}), own: true}
	follow.take = func(e sentEvent) (bool, error) {
		switch {
		case e.name == eventGap && gap != nil:
			return false, gap()
		case e.name == eventGap:
			return false, nil
		}
		var of event.Event
		if err := json.Unmarshal(e.data, &of); err != nil {
			return true, fmt.Errorf("event %s: %w", e.id, err)
		}
		return false, handle(of)
	}
	return follow.run(ctx)
}
