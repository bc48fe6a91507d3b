package rest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/codesous/sous/api"
)

// How long a client may take to send a body, and how much of one that is too
// large is read and thrown away: a client that still writes when the answer
// comes would see a reset connection in its place.
const (
	bodyTimeout    = 60 * time.Second
	discardBytes   = 32 << 20
	discardTimeout = 5 * time.Second
)

// boundBody gives the client bodyTimeout for the body of r. Before an answer
// leaves, net/http itself reads what the handler left of a body, for as long as
// the client takes: a deadline must stand whatever the handler does.
func boundBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		setReadDeadline(http.NewResponseController(w), time.Now().Add(bodyTimeout))
	}
}

// boundRest gives the client discardTimeout for what is left of the body of a
// request that was refused with err, unless its time is over.
func boundRest(w http.ResponseWriter, r *http.Request, err error) {
	if r.ContentLength != 0 && api.ErrorCode(err) != api.CodeRequestTimeout {
		setReadDeadline(http.NewResponseController(w), time.Now().Add(discardTimeout))
	}
}

// ReadBody reads a request's body, which may have at most limit bytes. Errors: CodeBodyLimit
// (after reading on and discarding), CodeRequestTimeout, CodeValidation for a
// body that was cut short.
//
// The deadline of boundBody is lifted once the body is there: the server watches
// for a client that goes away by reading, and a deadline would end long runs.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, nil
	}
	control := http.NewResponseController(w)
	if r.ContentLength > limit {
		return nil, discard(control, r, limit)
	}
	body, err := readUpTo(r.Body, r.ContentLength, limit+1)
	if int64(len(body)) > limit {
		return nil, discard(control, r, limit)
	}
	if err != nil {
		return nil, bodyError(err)
	}
	setReadDeadline(control, time.Time{})
	return body, nil
}

// readUpTo reads at most limit bytes; size is what the client announced, or -1.
func readUpTo(body io.Reader, size, limit int64) ([]byte, error) {
	var buf bytes.Buffer
	if size > 0 {
		buf.Grow(int(min(size, limit)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(io.LimitReader(body, limit))
	return buf.Bytes(), err
}

// discard reads on so that the client can finish writing, and gives the refusal.
// A client that waits for leave to write (Expect: 100-continue) is told at once.
func discard(control *http.ResponseController, r *http.Request, limit int64) error {
	if !strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		setReadDeadline(control, time.Now().Add(discardTimeout))
		// Best effort, within bounds: an error only means that the client stopped.
		_, _ = io.CopyN(io.Discard, r.Body, discardBytes)
	}
	return api.Errorf(api.CodeBodyLimit, "the body exceeds %d bytes", limit)
}

// setReadDeadline bounds reading the body; writers that know no deadlines (in
// tests) have nothing to bound.
func setReadDeadline(control *http.ResponseController, at time.Time) {
	_ = control.SetReadDeadline(at)
}

func bodyError(err error) error {
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		return api.Wrap(api.CodeRequestTimeout, err, "the body did not arrive in time")
	}
	return api.Wrap(api.CodeValidation, err, "the body was cut short")
}

// buffered reads the bodies of the routes below it before huma does, so that
// every route has the same limits and answers.
func (s *Server) buffered(limit int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := ReadBody(w, r, limit)
			if err != nil {
				s.fail(w, r, RequestID(r.Context()), err)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		})
	}
}
