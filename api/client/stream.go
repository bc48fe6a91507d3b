package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/codesous/sous/api/sleep"
)

const (
	// streamRetryWait is the least wait before a broken stream is opened again, unless the server
	// requests another. The wait is up to twice as long.
	streamRetryWait = 250 * time.Millisecond
	// streamSteady is how long a connection must last to count as a success without an event.
	streamSteady = 10 * time.Second
)

// stream follows a stream of events across connections: rest.Follow is the server's side.
// A connection that is cut after the event with the id B is replaced by one that sends
// Last-Event-ID: B, so take sees every event once.
type stream struct {
	c     *Client
	path  string
	query url.Values // without follow
	own   bool       // the path is that of a stream, which needs no follow
	// take handles an event. It reports whether it was the last one; an error ends the
	// stream as well.
	take   func(sentEvent) (last bool, err error)
	lastID string // of the last event that was handled
	opened bool   // the server has accepted the present connection
}

// run follows the stream to its end. A broken stream is opened again after the last event,
// at most MaxAttempts times in a row without an event or a steady connection in between.
func (s *stream) run(ctx context.Context) error {
	for failures := 0; ; {
		before, began := s.lastID, time.Now()
		s.opened = false
		ended, wait, err := s.once(ctx)
		if ended || err == nil || !reopens(err) {
			return err
		}
		failures++
		if s.lastID != before || s.opened && time.Since(began) >= streamSteady {
			failures = 1
		}
		if failures >= s.c.cfg.MaxAttempts {
			return err
		}
		wait += rand.N(wait + 1) // the clients of a server that restarts do not return all at once
		if err := sleep.For(ctx, min(wait, s.c.cfg.MaxRetryWait)); err != nil {
			return err
		}
	}
}

// reopens reports whether another attempt may succeed after err.
func reopens(err error) bool {
	var answered *ResponseError
	if errors.As(err, &answered) {
		return answered.Status == http.StatusServiceUnavailable
	}
	var broken *UnreachableError
	return errors.As(err, &broken)
}

// once reads one connection. ended is set after the last event or an error of take.
// Otherwise wait is the time to wait before the next connection.
func (s *stream) once(ctx context.Context) (ended bool, wait time.Duration, err error) {
	query := url.Values{}
	if !s.own {
		query.Set("follow", "true")
	}
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
	defer func() { _ = res.Body.Close() }() // the stream may be unfinished
	if res.StatusCode != http.StatusOK {
		a, err := readError(res)
		if err != nil {
			return false, streamRetryWait, s.c.unreachable(ctx, err)
		}
		failure := responseError(a)
		return false, max(failure.Err.RetryAfter, streamRetryWait), failure
	}
	s.opened = true
	events := newEventReader(res.Body)
	for {
		e, err := events.next()
		if err != nil {
			return false, streamRetryWait, s.c.unreachable(ctx, err)
		}
		if e.name != "" || e.data != nil { // else only the position has changed
			last, err := s.take(e)
			if last || err != nil {
				return true, 0, err
			}
		}
		if e.id != "" {
			s.lastID = e.id
		}
	}
}
