package invoker

import (
	"context"
	"sync"
	"time"
)

// visibleAfter is how long an activation may run before its record is written.
const visibleAfter = 25 * time.Millisecond

// visibility decides when the running record of one activation is written: before
// the first host call that has an effect (see hostcall.Table.Call), or visibleAfter after the
// start. An activation that ends before both is recorded once, as ended (see
// recorder.finish), which saves half of the store's work for a short call.
//
// The first 25 ms are the price: a replica that dies in them leaves neither a record nor an
// answer, and the function has had no effect (docs/architecture.md).
//
// A nil visibility is that of an activation whose record was written before it began.
type visibility struct {
	write func() error // stores the running record

	mu    sync.Mutex
	timer *time.Timer
	ended bool          // write does not begin any more
	done  chan struct{} // made when write begins, closed when it has returned
	err   error         // of write; read it behind done
}

// newVisibility starts the clock of an activation that begins. write must not depend
// on a caller's context: it may run when the caller is gone.
func newVisibility(write func() error) *visibility {
	v := &visibility{write: write}
	v.timer = time.AfterFunc(visibleAfter, func() { v.begin() })
	return v
}

// begin starts the write of the record, once. done is nil where the activation ended first.
func (v *visibility) begin() (done <-chan struct{}) {
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

// Ensure returns nil once the record is in the store. Errors: those of the write,
// ctx's, and context.Canceled where the activation ended without a running record.
func (v *visibility) Ensure(ctx context.Context) error {
	if v == nil {
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

// end stops the clock and reports whether a write of the running record was begun,
// with the error of that write, which has returned. No write begins after it.
func (v *visibility) end() (begun bool, err error) {
	if v == nil {
		return true, nil
	}
	v.timer.Stop()
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
