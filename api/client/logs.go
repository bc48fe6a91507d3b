package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/codesous/sous/api"
)

// Logs gives one page of an activation's log lines, in their order. While the
// activation runs every page has a cursor: an empty one is the end for now.
// CodeActivationNotFound.
func (t *Tenant) Logs(ctx context.Context, id string, o PageOptions) (api.Page[api.LogLine], error) {
	var out api.Page[api.LogLine]
	r := &request{method: http.MethodGet, path: t.path("activations", id, "logs"), query: o.query()}
	_, err := t.c.call(ctx, r, nil, &out)
	return out, err
}

// LogLines walks the lines that are there now, to their end, and waits for none.
// It stops after the first error, which it yields.
func (t *Tenant) LogLines(ctx context.Context, id string) iter.Seq2[api.LogLine, error] {
	return All(ctx, func(ctx context.Context, o PageOptions) (api.Page[api.LogLine], error) {
		page, err := t.Logs(ctx, id, o)
		if len(page.Items) == 0 {
			page.NextCursor = nil // more may come, but later
		}
		return page, err
	}, PageOptions{Limit: api.MaxPageLimit})
}

// streamRetryWait is the wait before a broken stream is opened again, where the
// server named none.
const streamRetryWait = 250 * time.Millisecond

// FollowLogs gives every line of an activation's log to handle, those that are
// there and those to come, until the activation has ended. A stream that breaks
// is opened again where it broke, MaxAttempts times in a row without a line
// between them. An error of handle ends it. CodeActivationNotFound.
func (t *Tenant) FollowLogs(ctx context.Context, id string, handle func(api.LogLine) error) error {
	follow := &logStream{tenant: t, id: id, handle: handle}
	for failures := 0; ; {
		before := follow.lastID
		ended, wait, err := follow.once(ctx)
		if ended || err == nil || !reopens(err) {
			return err
		}
		failures++
		if follow.lastID != before {
			failures = 1
		}
		if failures >= t.c.cfg.MaxAttempts {
			return err
		}
		if err := sleep(ctx, min(wait, t.c.cfg.MaxRetryWait)); err != nil {
			return err
		}
	}
}

// reopens says whether err is of the kind that another try may mend.
func reopens(err error) bool {
	var answered *ResponseError
	if errors.As(err, &answered) {
		return answered.Status == http.StatusServiceUnavailable
	}
	var broken *UnreachableError
	return errors.As(err, &broken)
}

// logStream is one log being followed across connections.
type logStream struct {
	tenant *Tenant
	id     string
	handle func(api.LogLine) error
	lastID string // of the last line that handle took
}

// once reads one connection. ended: the server said that no more will come, or
// handle failed. Otherwise wait is how long to stay away.
func (s *logStream) once(ctx context.Context) (ended bool, wait time.Duration, err error) {
	c := s.tenant.c
	r := &request{
		method: http.MethodGet, path: s.tenant.path("activations", s.id, "logs"),
		query: url.Values{"follow": {"true"}}, header: http.Header{"Accept": {"text/event-stream"}},
	}
	if s.lastID != "" {
		r.header.Set("Last-Event-ID", s.lastID)
	}
	res, err := c.send(ctx, r)
	if err != nil {
		return false, streamRetryWait, err
	}
	defer func() { _ = res.Body.Close() }() // a stream is left, not finished
	if res.StatusCode != http.StatusOK {
		a, err := readError(res)
		if err != nil {
			return false, streamRetryWait, c.unreachable(ctx, err)
		}
		failure := responseError(a)
		return false, max(failure.Err.RetryAfter, streamRetryWait), failure
	}
	events := newEventReader(res.Body)
	for {
		e, err := events.next()
		if err != nil {
			return false, streamRetryWait, c.unreachable(ctx, err)
		}
		if e.name == eventEnd {
			return true, 0, nil
		}
		if err := s.take(e); err != nil {
			return true, 0, err
		}
	}
}

// take hands a line on. Events of other names are not for this reader.
func (s *logStream) take(e event) error {
	if e.name != "" && e.name != eventMessage && e.name != eventLog {
		return nil
	}
	var line api.LogLine
	if err := json.Unmarshal(e.data, &line); err != nil {
		return fmt.Errorf("log line of %s: %w", s.id, err)
	}
	if err := s.handle(line); err != nil {
		return err
	}
	if e.id != "" {
		s.lastID = e.id
	}
	return nil
}
