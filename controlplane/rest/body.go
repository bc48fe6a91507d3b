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

// Limits on slow and oversized bodies. bodyTimeout bounds the time that a client may
// take to send a body. The rest of a body that is too large is read and discarded, up to
// discardBytes and for at most discardTimeout: a client that still writes when the answer
// comes would see a reset connection instead of the answer.
const (
	bodyTimeout    = 60 * time.Second
	discardBytes   = 32 << 20
	discardTimeout = 5 * time.Second
	// reserveBytes bounds the memory of a body before it arrives.
	reserveBytes = 64 << 10
)

// boundBody sets the deadline of bodyTimeout for the body of r. Handlers that read no body
// need it, too: net/http reads up to 256 KiB of an unread body before it answers, and
// waits for the client.
func boundBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		setReadDeadline(http.NewResponseController(w), time.Now().Add(bodyTimeout))
	}
}

// boundRest sets the deadline of discardTimeout for the rest of the body of a request
// that was refused with err. After CodeRequestTimeout the deadline has passed already,
// and a new one would grant the slow client more time.
func boundRest(w http.ResponseWriter, r *http.Request, err error) {
	if r.ContentLength != 0 && api.ErrorCode(err) != api.CodeRequestTimeout {
		setReadDeadline(http.NewResponseController(w), time.Now().Add(discardTimeout))
	}
}

// ReadBody reads a request's body, which may have at most limit bytes. It returns nil for
// a request without a body. Errors: CodeBodyLimit (after reading on and discarding),
// CodeRequestTimeout, CodeInvalid for a body that was cut short.
//
// The deadline of boundBody is lifted when the body has arrived: the server detects a
// client that goes away by reading, and a deadline would end long runs.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, nil
	}
	control := http.NewResponseController(w)
	if r.ContentLength > limit {
		return nil, refuseLarge(control, r, limit)
	}
	body, err := readUpTo(r.Body, r.ContentLength, limit+1)
	if int64(len(body)) > limit {
		return nil, refuseLarge(control, r, limit)
	}
	if err != nil {
		return nil, bodyError(err)
	}
	setReadDeadline(control, time.Time{})
	return body, nil
}

// readUpTo reads at most limit bytes. size is the Content-Length, or -1. It is only a
// hint for the buffer, which grows with the data beyond reserveBytes: a client that announces a
// large body and sends nothing must not cost its size.
func readUpTo(body io.Reader, size, limit int64) ([]byte, error) {
	var buf bytes.Buffer
	if size > 0 {
		buf.Grow(int(min(size, limit, reserveBytes)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(io.LimitReader(body, limit))
	return buf.Bytes(), err
}

// refuseLarge returns the CodeBodyLimit error of a body that exceeds limit. It first reads
// and discards the rest of the body, up to discardBytes and discardTimeout, so that the client
// finishes writing and reads the answer. It reads nothing from a client with Expect:
// 100-continue, which waits for permission to write.
func refuseLarge(control *http.ResponseController, r *http.Request, limit int64) error {
	if !strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		setReadDeadline(control, time.Now().Add(discardTimeout))
		// Best effort, within bounds: an error only means that the client stopped.
		_, _ = io.CopyN(io.Discard, r.Body, discardBytes)
	}
	return api.Errorf(api.CodeBodyLimit, "the body exceeds %s", api.SizeText(limit))
}

// setReadDeadline bounds the reading of a body. Writers without deadlines, as in tests,
// are left alone.
func setReadDeadline(control *http.ResponseController, at time.Time) {
	_ = control.SetReadDeadline(at)
}

// bodyError returns the coded error for a body that could not be read.
func bodyError(err error) error {
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		return api.Wrap(api.CodeRequestTimeout, err, "the body did not arrive in time")
	}
	return api.Wrap(api.CodeInvalid, err, "the body was cut short")
}

// buffered reads the bodies of the routes below it before huma does, so that all routes
// have the same limits and errors.
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
