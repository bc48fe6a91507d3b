package rest

import (
	"context"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/sleep"
)

// Feed is a source of events that a client follows.
type Feed struct {
	// Name of the feed, for the log.
	Name string
	// Send writes to the stream what has come since the last call, and returns without
	// waiting. Calls do not overlap. An error ends the stream; the client sees it end
	// without a last event, and reconnects.
	Send func(ctx context.Context, stream *EventStream) (Progress, error)
	// Changed receives a value when there may be something new (nil: the feed is only
	// polled).
	Changed <-chan struct{}
	// Poll is how often Send is called without a notice of Changed.
	Poll time.Duration
	// MinInterval is the least time between two calls of Send that Changed causes.
	MinInterval time.Duration
	// Drained writes the last event when the server drains (nil: none), after which the
	// client reconnects, to another replica.
	Drained func(stream *EventStream) error
}

// Progress is the result of Feed.Send. The zero value means that there was nothing new.
type Progress struct {
	Sent  bool // events were written
	More  bool // there is more to read: Send is called again without a pause
	Ended bool // the feed has no further events
}

// Follow streams a feed as server-sent events until it ends, the client goes away, the
// caller's key does not hold any more, or the server drains; the client then connects
// to another replica and resumes by the id of the last event. Errors after the headers
// cannot be answered any more: they are logged. The stream of a log:
//
//	: following
//
//	id: hK0m3…                                  Last-Event-ID of a resumption
//	event: log
//	data: {"ts_ms":…,"level":"info",…}
//
//	: alive                                     every KeepAlive without events
//
//	event: end
//	data: {"status":"success"}
func Follow(w http.ResponseWriter, r *http.Request, feed Feed) {
	h := w.Header()
	h.Set("Content-Type", ContentTypeEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies must not hold events back
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return // there is nothing to wait for
	}
	s := exchangeOf(r.Context()).server
	err := s.stream(r.Context(), &EventStream{w: w, control: http.NewResponseController(w)}, feed)
	if err != nil && r.Context().Err() == nil {
		// The answer has begun: its status cannot change any more.
		s.log.Warn("a followed "+feed.Name+" was interrupted", append(s.requestFields(r.Context(), RequestID(r.Context()), r.Method, r.URL.Path), zap.Error(err))...)
	}
}

// stream calls feed.Send, and again after each notice, poll or keep-alive. The caller's
// key is examined before each call, so that a revoked key soon stops reading; its client
// sees the stream end, and a 401 when it reconnects.
func (s *Server) stream(ctx context.Context, stream *EventStream, feed Feed) error {
	poll := time.NewTicker(feed.Poll)
	defer poll.Stop()
	alive := time.NewTicker(s.alive)
	defer alive.Stop()
	if err := stream.comment("following"); err != nil { // the headers leave with it
		return err
	}
	for {
		err := s.auth.Recheck(ctx, CallerOf(ctx))
		switch {
		case api.ErrorCode(err) == api.CodeAuthnInvalid:
			return nil
		case err != nil:
			return err
		}
		read := time.Now()
		progress, err := feed.Send(ctx, stream)
		if err != nil || progress.Ended {
			return err
		}
		if progress.Sent {
			alive.Reset(s.alive)
		}
		if progress.More && !isClosed(s.drained) {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.drained:
			if feed.Drained == nil {
				return nil
			}
			return feed.Drained(stream)
		case <-alive.C:
			if err := stream.comment("alive"); err != nil {
				return err
			}
		case <-feed.Changed:
			if err := sleep.For(ctx, feed.MinInterval-time.Since(read)); err != nil {
				return err
			}
		case <-poll.C:
		}
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// EventStream writes server-sent events. It buffers what Add adds until Flush. One
// goroutine uses it.
type EventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
}

// Add appends an event; Flush sends it. id is what a client sends as Last-Event-ID after
// this event; nil leaves the previous id in force. data is JSON, which has no line breaks
// that would end it.
func (e *EventStream) Add(name string, id *string, data []byte) {
	if id != nil {
		e.buf = append(append(append(e.buf, "id: "...), *id...), '\n')
	}
	e.buf = append(append(append(e.buf, "event: "...), name...), '\n')
	e.buf = append(append(append(e.buf, "data: "...), data...), "\n\n"...)
}

// Mark adds an id without an event, from which a client resumes; Flush sends it. Clients take it as
// Last-Event-ID and dispatch nothing.
func (e *EventStream) Mark(id string) {
	e.buf = append(append(append(e.buf, "id: "...), id...), "\n\n"...)
}

// comment sends a comment, which clients ignore.
func (e *EventStream) comment(text string) error {
	e.buf = append(append(append(e.buf, ": "...), text...), "\n\n"...)
	return e.Flush()
}

// Flush sends the events that were added.
func (e *EventStream) Flush() error {
	if _, err := e.w.Write(e.buf); err != nil {
		return err
	}
	e.buf = e.buf[:0]
	return e.control.Flush()
}
