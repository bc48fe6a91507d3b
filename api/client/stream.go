package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// streamRetryWait is the wait before a broken stream is opened again, where the
// server named none.
const streamRetryWait = 250 * time.Millisecond

// stream is a stream of events being followed across connections.
type stream struct {
	c     *Client
	path  string
	query url.Values // beside follow
	// take is given the events. It says that the last one has come; an error, too, ends it.
	take   func(event) (last bool, err error)
	lastID string // of the last event that was taken
}

// run follows the stream to its end. One that breaks is opened again where it broke,
// MaxAttempts times in a row without an event between them.
func (s *stream) run(ctx context.Context) error {
	for failures := 0; ; {
		before := s.lastID
		ended, wait, err := s.once(ctx)
		if ended || err == nil || !reopens(err) {
			return err
		}
		failures++
		if s.lastID != before {
			failures = 1
		}
		if failures >= s.c.cfg.MaxAttempts {
			return err
		}
		if err := sleep(ctx, min(wait, s.c.cfg.MaxRetryWait)); err != nil {
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

// once reads one connection. ended: the last event came, or take failed. Otherwise wait is
// how long to stay away.
func (s *stream) once(ctx context.Context) (ended bool, wait time.Duration, err error) {
	query := url.Values{"follow": {"true"}}
	for name, values := range s.query {
		query[name] = values
	}
	r := &request{method: http.MethodGet, path: s.path, query: query, header: http.Header{"Accept": {"text/event-stream"}}}
	if s.lastID != "" {
		r.header.Set("Last-Event-ID", s.lastID)
	}
	res, err := s.c.send(ctx, r)
	if err != nil {
		return false, streamRetryWait, err
	}
	defer func() { _ = res.Body.Close() }() // a stream is left, not finished
	if res.StatusCode != http.StatusOK {
		a, err := readError(res)
		if err != nil {
			return false, streamRetryWait, s.c.unreachable(ctx, err)
		}
		failure := responseError(a)
		return false, max(failure.Err.RetryAfter, streamRetryWait), failure
	}
	events := newEventReader(res.Body)
	for {
		e, err := events.next()
		if err != nil {
			return false, streamRetryWait, s.c.unreachable(ctx, err)
		}
		last, err := s.take(e)
		if last || err != nil {
			return true, 0, err
		}
		if e.id != "" {
			s.lastID = e.id
		}
	}
}
