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
// take to send a body. In each bodyWindow, bodyRate bytes a second must arrive, or the end: the first
// window begins with the request. The rest of a body that is too large is read and discarded, up to
// discardBytes and for at most discardTimeout: a client that still writes when the answer
// comes would see a reset connection instead of the answer.
const (
	bodyTimeout    = 60 * time.Second
	bodyWindow     = 10 * time.Second
	bodyRate       = 1 << 10
	discardBytes   = 32 << 20
	discardTimeout = 5 * time.Second
	// reserveBytes bounds the memory of a body before it arrives, firstBytes that of a body of
	// unknown size.
	reserveBytes = 64 << 10
	firstBytes   = 4 << 10
)

// boundBody sets the deadline of the first bodyWindow for the body of r. Handlers that read no body
// need it, too: net/http reads up to 256 KiB of an unread body before it answers, and
// waits for the client.
func boundBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		setReadDeadline(http.NewResponseController(w), time.Now().Add(bodyWindow))
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
// CodeRequestTimeout for a body that arrives too slowly, CodeInvalid for one that was cut short,
// CodeCapacityLimit and CodeOverloaded if there is no room for it in the budget of bytes.
//
// The body counts in the budget until the request is answered. The deadline of boundBody is
// lifted when the body has arrived: the server detects a client that goes away by reading, and a
// deadline would end long runs.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, nil
	}
	control := http.NewResponseController(w)
	if r.ContentLength > limit {
		return nil, refuseLarge(control, r, limit)
	}
	tracked := trackedOf(w)
	tracked.ticket.Pause() // the client is at work, not the platform
	defer tracked.ticket.Resume()
	tracked.bodyRead = true
	arriving := newArrival(control, r)
	body, err := readUpTo(arriving, r.ContentLength, limit+1, &tracked.hold)
	arriving.end(err == nil && int64(len(body)) <= limit)
	if int64(len(body)) > limit {
		return nil, refuseLarge(control, r, limit)
	}
	if err != nil {
		return nil, tracked.bodyError(err)
	}
	setReadDeadline(control, time.Time{})
	return body, nil
}

// arrival reads a body and bounds the time in which it arrives.
type arrival struct {
	body       io.Reader
	control    *http.ResponseController
	connection Connection // nil for none
	shared     bool       // with other requests
	begun      time.Time
	window     time.Time // begin of the window
	bytes      int64     // that have arrived in it
}

func newArrival(control *http.ResponseController, r *http.Request) *arrival {
	now := time.Now()
	a := &arrival{body: r.Body, control: control, begun: now, window: now, connection: connectionOf(r), shared: r.ProtoMajor != 1}
	if a.connection != nil {
		a.connection.BodyBegins()
	}
	return a
}

// end notifies the listener that no more of the body is read. HTTP/1 waits for the rest of a body that
// is not whole before the next request; the listener sees the end of that.
func (a *arrival) end(whole bool) {
	if a.connection != nil && (whole || a.shared) {
		a.connection.BodyEnds()
	}
}

// Read implements io.Reader. A window that has brought enough ends, and the next begins.
func (a *arrival) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if a.connection != nil {
		a.connection.BodyArrives(n)
	}
	a.bytes += int64(n)
	if err != nil || a.bytes < int64(bodyWindow/time.Second)*bodyRate {
		return n, err
	}
	now := time.Now()
	if now.Sub(a.window) < time.Second {
		return n, nil // the deadline would hardly move
	}
	a.window, a.bytes = now, 0
	at := now.Add(bodyWindow)
	if last := a.begun.Add(bodyTimeout); at.After(last) {
		at = last
	}
	setReadDeadline(a.control, at)
	return n, nil
}

// holder counts the bytes of a buffer. admission.Hold implements it.
type holder interface {
	// Grow takes n more bytes, or returns why it does not.
	Grow(n int64) error
}

// readUpTo reads at most limit bytes. size is the Content-Length, or -1. It is only a
// hint for the buffer, which grows with the data beyond reserveBytes: a client that announces a
// large body and sends nothing must not cost its size. The buffer is taken from hold before it
// grows; an error of hold ends the reading.
func readUpTo(body io.Reader, size, limit int64, hold holder) ([]byte, error) {
	most := limit
	if size >= 0 {
		most = min(size+1, limit) // one more to see the end
	}
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			next := min(max(2*int64(cap(buf)), min(most, firstBytes)), most)
			if size > 0 && cap(buf) == 0 {
				next = min(most, reserveBytes)
			}
			if next == int64(cap(buf)) {
				return buf, nil // limit is reached
			}
			if err := hold.Grow(next - int64(cap(buf))); err != nil {
				return buf, err
			}
			buf = append(make([]byte, 0, next), buf...)
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
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

// bodyError returns the coded error for a body that could not be read, and counts a refusal.
func (w *trackedWriter) bodyError(err error) error {
	var coded *api.Error
	var slow net.Error
	switch {
	case errors.As(err, &coded):
		return w.refuseBytes(err)
	case errors.As(err, &slow) && slow.Timeout():
		err = api.Wrap(api.CodeRequestTimeout, err, "the body did not arrive in time")
		if w.metrics != nil {
			err = w.metrics.refuse(refusedSlowBody, err)
		}
		return err
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
