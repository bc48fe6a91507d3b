package child

import (
	"context"
	"sync/atomic"

	"github.com/dop251/goja"
)

// cause is the reason why an activation is stopped from outside the script. The script
// cannot catch it.
type cause int32

const (
	causeNone     cause = iota
	causeDeadline       // the deadline of the activation has passed
	causeHangup         // the parent closed the socket
	causeMemory         // the memory watch found too much live memory
	causeImpure         // evaluated ahead, a module did what belongs to an activation
	causeSlow           // evaluated ahead, a module took too long
	causeEnded          // the activation ended by itself: nothing stops it any more
)

// control stops an activation from any goroutine: the deadline's timer, the memory watch,
// the reader of the socket. It interrupts the script where it runs and wakes the loop where
// it waits. The first cause wins, and decides the outcome of the activation whatever the
// script does afterwards.
//
// The reader makes it with the Invoke frame, before the activation has a runtime. attach
// connects the two, so a stop before, during and after that moment takes effect.
type control struct {
	reason atomic.Int32
	vm     atomic.Pointer[goja.Runtime]
	wake   chan struct{} // filled once stopped, for a loop that waits
	halted atomic.Pointer[halted]
}

// halted is a context that ends when the activation is stopped.
type halted struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// context returns the context that ends when the activation is stopped, for code that an
// interrupt of the script does not reach. Only the goroutine that runs scripts calls it.
func (c *control) context() context.Context {
	h := c.halted.Load()
	if h == nil {
		h = &halted{}
		h.ctx, h.cancel = context.WithCancel(context.Background())
		c.halted.Store(h)
		if why := c.cause(); why != causeNone && why != causeEnded {
			h.cancel()
		}
	}
	return h.ctx
}

func newControl() *control { return &control{wake: make(chan struct{}, 1)} }

// attach makes vm the runtime to interrupt, also when stop came first.
func (c *control) attach(vm *goja.Runtime) {
	c.vm.Store(vm)
	if why := c.cause(); why != causeNone {
		vm.Interrupt(why)
	}
}

// stop interrupts the script and wakes its loop, for the first cause; later causes are
// ignored. It may be called from any goroutine, and after the end of the activation.
func (c *control) stop(why cause) {
	if !c.reason.CompareAndSwap(int32(causeNone), int32(why)) {
		return
	}
	if vm := c.vm.Load(); vm != nil {
		vm.Interrupt(why)
	}
	if h := c.halted.Load(); h != nil {
		h.cancel()
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// end lets no later stop reach the runtime, which the next activation may use, and returns
// why the activation was stopped before, causeNone where it was not.
func (c *control) end() cause {
	if c.reason.CompareAndSwap(int32(causeNone), int32(causeEnded)) {
		return causeNone
	}
	return c.cause()
}

// cause returns why the activation was stopped, causeNone while it was not.
func (c *control) cause() cause { return cause(c.reason.Load()) }
