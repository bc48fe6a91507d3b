package rest

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/controlplane/admission"
)

// Duplex is a request whose body and answer are streams of messages that pass at the same time. Its
// handler reads from and writes to it as long as the client likes. It is safe for concurrent use.
type Duplex struct {
	w       http.ResponseWriter
	r       *http.Request
	tracked *trackedWriter
	body    io.ReadCloser

	mu       sync.Mutex // of the rest, and of tracked.hold
	most     int64      // bytes of a message
	read     int64      // bytes since the last message
	since    time.Time  // of the first of them
	ended    bool       // the request's part of the budget has been released
	flushErr error      // of the writer
}

type duplexKey struct{}

// OpenDuplex returns the Duplex of a request, and the request to serve: DuplexOf finds the Duplex in
// its context. The first message may have at most first bytes, and must arrive within the time of a
// body, until Begin. The handler must call End.
func OpenDuplex(w http.ResponseWriter, r *http.Request, first int64) (*Duplex, *http.Request) {
	d := &Duplex{w: w, r: r, tracked: trackedOf(w), body: r.Body, most: first}
	d.tracked.held = true    // by Hold: the writer must not count answers while a body is read
	d.tracked.ticket.Pause() // the client is at work, not the platform
	r = r.WithContext(context.WithValue(r.Context(), duplexKey{}, d))
	r.Body = d
	return d, r
}

// DuplexOf returns the Duplex that ctx belongs to, nil where there is none.
func DuplexOf(ctx context.Context) *Duplex {
	d, _ := ctx.Value(duplexKey{}).(*Duplex)
	return d
}

// Begin admits the stream of tenant, which its first message names, as a request that waits. From now
// on messages of at most most bytes may arrive at any time. release must be called exactly once, also
// after an error: those of Charge and Wait.
func (d *Duplex) Begin(tenant string, most int64, waits *admission.Waits) (release func(), err error) {
	d.mu.Lock()
	d.most = most
	held := d.read
	d.tracked.hold.Release()
	err = Charge(d.w, tenant)
	if err == nil {
		err = d.tracked.refuseBytes(d.tracked.hold.Grow(held))
	}
	d.mu.Unlock()
	d.tracked.ticket.Resume()
	if err != nil {
		return func() {}, err
	}
	release, err = Wait(d.w, d.r, waits, tenant)
	setReadDeadline(http.NewResponseController(d.w), time.Time{})
	return release, err
}

// Read implements io.Reader of the body. The bytes count in the budget of the client until Return.
// Errors: CodeBodyLimit for a message that is too large, those of Charge.
func (d *Duplex) Read(p []byte) (int, error) {
	n, err := d.body.Read(p)
	if n == 0 {
		return n, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.ended:
		return 0, io.ErrClosedPipe
	case d.read+int64(n) > d.most:
		return 0, api.Errorf(api.CodeBodyLimit, "a message exceeds %s", api.SizeText(d.most))
	case d.read == 0:
		d.since = time.Now()
	}
	if full := d.tracked.refuseBytes(d.tracked.hold.Grow(int64(n))); full != nil {
		return 0, full
	}
	d.read += int64(n)
	return n, err
}

// Close implements io.Closer of the body.
func (d *Duplex) Close() error { return d.body.Close() }

// End releases what the stream holds. A reader may still be at work.
func (d *Duplex) End() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.tracked.hold.Release()
}

// Message returns the bytes that were read since its last call: those of a message.
func (d *Duplex) Message() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.read
	d.read = 0
	return n
}

// Stalled returns CodeRequestTimeout if a message that has begun does not arrive in the time of a body.
func (d *Duplex) Stalled() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read == 0 || time.Since(d.since) < bodyTimeout {
		return nil
	}
	return api.Errorf(api.CodeRequestTimeout, "a message did not arrive in time")
}

// Hold takes n more bytes from the budget of the client, until Return. Errors: those of Charge.
func (d *Duplex) Hold(n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil
	}
	return d.tracked.refuseBytes(d.tracked.hold.Grow(n))
}

// Return returns n bytes to the budget.
func (d *Duplex) Return(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		d.tracked.hold.Shrink(n)
	}
}

// Writer returns the writer of the answer, with the Flush of http.Flusher.
func (d *Duplex) Writer() http.ResponseWriter { return flushingWriter{d.w, d} }

// Flushed returns the first error of a Flush: the answer did not leave.
func (d *Duplex) Flushed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.flushErr
}

// flushingWriter lets libraries flush that know only http.Flusher, which reports no error.
type flushingWriter struct {
	http.ResponseWriter
	d *Duplex
}

// Flush implements http.Flusher.
func (f flushingWriter) Flush() {
	err := http.NewResponseController(f.ResponseWriter).Flush()
	if err == nil {
		return
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.flushErr == nil {
		f.d.flushErr = err
	}
}

// Recheck returns an error if the key of the caller of ctx does not hold any more, as
// access.Authenticator.Recheck does.
func Recheck(ctx context.Context) error {
	x := exchangeOf(ctx)
	if x == nil || x.caller == nil {
		return nil
	}
	return x.server.auth.Recheck(ctx, x.caller)
}

// Pace waits until the client of d may send a further request that writes, or reads: a part of a
// message counts as one. Errors: CodeCapacityLimit, that of ctx.
func (d *Duplex) Pace(ctx context.Context, writes bool) error {
	x := exchangeOf(ctx)
	if x == nil {
		return nil
	}
	wait, err := x.server.rates.Take(clientOf(d.r, CallerOf(ctx)), writes, x.server.clock())
	if err != nil {
		return x.server.metrics.refuse(refusedRate, err)
	}
	return sleep.For(ctx, wait)
}
