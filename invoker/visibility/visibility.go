// Package visibility decides when the record of a running activation is written.
package visibility

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// visibleAfter is how long an activation may run before its record is written.
const visibleAfter = 25 * time.Millisecond

// Visibility decides when the running record of one activation is written: before the first
// host call that has an effect (see hostcall.Table.Call), or visibleAfter after the start.
// An activation that ends before both is recorded once, as ended (recorder.finish of package invoker),
// which saves half of the store's work for a short call. Three calls, with the time since
// the function was handed to its sandbox:
//
//	no effect, short    6 ms  the function ends          absent → success, one write
//	with an effect      2 ms  cs.kv.set: Ensure begins the write, and the call waits
//	                    4 ms  the record is stored       absent → running; cs.kv.set runs
//	                    9 ms  the function ends          running → success
//	no effect, long    25 ms  the clock begins the write absent → running
//	                  300 ms  the function ends          running → success
//
// The first 25 ms are the price: a replica that dies in them leaves neither a record nor an
// answer, and the function has had no effect. docs/decisions/activation-visibility.md has
// the reasons.
//
// A version may record only a sample of its successes. An activation outside of the sample is
// silent: nothing is written while it runs, nor when it succeeds; when it fails, its record and
// its logs are written at its end. A replica that dies leaves no record of it, although it may
// have had effects.
//
// A chunk of logs that is written while the function runs waits for the record too
// (logsink.Sink.Ready). A nil Visibility is that of an activation with a derived id, whose
// record was written before it began. The methods may be called concurrently.
type Visibility struct {
	write func() error // stores the running record

	// silent is set while the activation is to leave no record, since its success is not in
	// its version's sample.
	silent atomic.Bool

	mu    sync.Mutex
	timer *time.Timer
	ended bool          // write does not begin any more
	done  chan struct{} // made when write begins, closed when it has returned
	err   error         // of write; read it behind done
}

// New starts the clock of an activation that begins. write must not depend
// on a caller's context: it may run when the caller is gone.
func New(write func() error) *Visibility {
	v := &Visibility{write: write}
	v.timer = time.AfterFunc(visibleAfter, func() { v.begin() })
	return v
}

// NewSilent returns the visibility of an activation that leaves no record if it succeeds: no
// write begins before Speak, and Ensure returns nil without one.
func NewSilent(write func() error) *Visibility {
	v := &Visibility{write: write}
	v.silent.Store(true)
	return v
}

// Silent reports whether the activation is to leave no record.
func (v *Visibility) Silent() bool { return v != nil && v.silent.Load() }

// Speak ends the silence of an activation that has failed, which is always recorded.
func (v *Visibility) Speak() { v.silent.Store(false) }

// errSilent is returned by Visible.
var errSilent = errors.New("the activation is not recorded unless it fails")

// Visible is Ensure for writes that need the record, such as those of logs: it returns an error
// for a silent activation.
func (v *Visibility) Visible(ctx context.Context) error {
	if v.Silent() {
		return errSilent
	}
	return v.Ensure(ctx)
}

// begin starts the write of the record, once, and returns the channel that is closed when
// it has ended; later calls return the same channel. done is nil if the activation ended
// first. The write runs in a goroutine of its own, so that neither the clock nor a host
// call whose ctx ends interrupts it.
func (v *Visibility) begin() (done <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.done == nil && !v.ended {
		v.done = make(chan struct{})
		go func() {
			v.err = v.write()
			close(v.done)
		}()
	}
	return v.done
}

// Ensure returns nil once the record is in the store, and begins its write if no write has
// begun. For a silent activation it returns nil at once and begins no write. A write that failed is not repeated: every later call of the activation gets its
// error, and the end of the activation writes the record. Errors: those of the write,
// ctx's, and context.Canceled if the activation ended without a running record.
func (v *Visibility) Ensure(ctx context.Context) error {
	if v == nil || v.silent.Load() {
		return nil
	}
	done := v.begin()
	if done == nil {
		return context.Canceled
	}
	select {
	case <-done:
		return v.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// End stops the clock and reports whether a write of the running record was begun, with the
// error of that write, which has returned. No write begins after End, so the caller knows
// which of the two ways of recorder.finish is right.
func (v *Visibility) End() (begun bool, err error) {
	if v == nil {
		return true, nil
	}
	if v.timer != nil {
		v.timer.Stop()
	}
	v.mu.Lock()
	v.ended = true
	done := v.done
	v.mu.Unlock()
	if done == nil {
		return false, nil
	}
	<-done
	return true, v.err
}
