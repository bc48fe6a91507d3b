package rest

import (
	"net/http"
	"time"
)

// How long a client may take to read an answer: without a bound, clients that read
// nothing would hold all connections for ever.
const (
	answerTimeout = 30 * time.Second
	answerRate    = 64 << 10 // bytes for each of which there is a second more
)

// trackedWriter remembers what was answered, and bounds how long its client takes
// to read it.
type trackedWriter struct {
	http.ResponseWriter
	timeout  time.Duration // answerTimeout
	status   int
	bytes    int64
	route    string    // the pattern that the request matched; "" for none
	deadline time.Time // for the client, as set last
}

// bound gives the client its time to take size bytes. net/http lifts the deadline
// itself before the connection's next request. A deadline
// that would hardly move is left: a small answer sets one, not two.
func (w *trackedWriter) bound(size int) {
	at := time.Now().Add(w.timeout + time.Duration(size)*time.Second/answerRate)
	if at.Sub(w.deadline).Abs() > w.timeout/16 {
		w.writeBy(at)
	}
}

// unbound is for handlers that have more to write, who knows when: HTTP/2 ends a
// stream at its deadline, also where nothing waits to be written.
func (w *trackedWriter) unbound() { w.writeBy(time.Time{}) }

// writeBy sets the deadline; writers that know none (in tests) have no client that
// could be deaf.
func (w *trackedWriter) writeBy(at time.Time) {
	w.deadline = at
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(at)
}

func (w *trackedWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *trackedWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.bound(len(b))
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// FlushError sends what was written, and lifts the deadline: there will be more.
// It is what http.ResponseController calls.
func (w *trackedWriter) FlushError() error {
	w.bound(0)
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.unbound()
	return err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *trackedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
