package rest

import (
	"net/http"
	"time"

	"github.com/codesous/sous/controlplane/admission"
)

// Limits on clients that read slowly. Without them, clients that read nothing could
// hold every connection. Each Write allows answerTimeout from now, plus a second for each
// 64 KiB that it writes: a client may take 126 s to read 6 MiB.
const (
	answerTimeout = 30 * time.Second
	answerRate    = 64 << 10 // bytes per additional second
	// countedAnswer is the smallest part of an answer that is counted in the budget of bytes:
	// the kernel takes a smaller one, however slowly the client reads.
	countedAnswer = 16 << 10
)

// trackedWriter records the status and size of an answer, and bounds the time that its
// client takes to read it.
type trackedWriter struct {
	http.ResponseWriter
	timeout  time.Duration // answerTimeout
	status   int
	bytes    int64
	route    string    // the pattern that the request matched; "" for none
	deadline time.Time // for the client, as set last

	metrics *serverMetrics   // nil outside of a server
	ticket  admission.Ticket // of a request that enter admitted
	hold    admission.Hold   // of its body and its answer
	held    bool             // hold has the answer

	connection Connection // of the listener; nil in tests
	bodyRead   bool       // by ReadBody, as far as it arrived
}

// bound sets the deadline for size more bytes. A deadline that would hardly move (by less
// than a sixteenth of the timeout) is left, so that a small answer sets one instead of
// two. net/http lifts the deadline before the connection's next request.
func (w *trackedWriter) bound(size int) {
	at := time.Now().Add(w.timeout + time.Duration(size)*time.Second/answerRate)
	if at.Sub(w.deadline).Abs() > w.timeout/16 {
		w.writeBy(at)
	}
}

// unbound lifts the deadline, for handlers that write again later: HTTP/2 ends a stream
// at its deadline even if nothing waits to be written.
func (w *trackedWriter) unbound() { w.writeBy(time.Time{}) }

// writeBy sets the deadline. Writers without deadlines, as in tests, are left alone.
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
	if len(b) >= countedAnswer && !w.held {
		w.hold.Force(int64(len(b)))
		defer w.hold.Shrink(int64(len(b)))
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// FlushError sends what was written and lifts the deadline, since more will follow.
// http.ResponseController calls it.
func (w *trackedWriter) FlushError() error {
	w.bound(0)
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.unbound()
	return err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *trackedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
