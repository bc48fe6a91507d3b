package child

import (
	"container/heap"
	"time"

	"github.com/dop251/goja"
)

// maxTimers bounds the timers that wait at once.
const maxTimers = 100_000

// timer is one setTimeout or setInterval, or a timeout of the platform.
type timer struct {
	id    int64
	at    time.Time
	every time.Duration // 0: once
	call  func() error
	index int // in the heap; -1 when out of it
}

// timers is a heap by time, then by age.
type timers []*timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	if t[i].at.Equal(t[j].at) {
		return t[i].id < t[j].id
	}
	return t[i].at.Before(t[j].at)
}

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}

func (t *timers) Push(x any) {
	x.(*timer).index = len(*t)
	*t = append(*t, x.(*timer))
}

func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	last.index = -1
	return last
}

// loop is an activation's event loop: its timers and the host calls in flight. Microtasks
// are goja's: they run whenever a call returns to the loop. The loop is empty when no timer
// and no call is left; a handler's promise that is pending then can never settle.
//
//	setTimeout(f, 5); await fetch(u); return 1
//
//	turn   no timer is due: waits for a timer or a frame
//	turn   5 ms: fires f
//	turn   the reply: settles fetch's promise; the handler's promise settles, and the
//	       loop is left, whatever it still holds
type loop struct {
	timers timers
	byID   map[int64]*timer
	calls  map[uint32]*pendingCall
	flying int // calls that were sent and not answered, also abandoned ones
	// abandoned holds what undoes abandoned calls that succeed nevertheless.
	abandoned map[uint32]func(head []byte)
}

// start adds a timer with an id of its own, unless there are too many.
func (l *loop) start(id int64, after, every time.Duration, call func() error) bool {
	if len(l.timers) >= maxTimers {
		return false
	}
	if l.byID == nil {
		l.byID = make(map[int64]*timer)
	}
	t := &timer{id: id, at: time.Now().Add(after), every: every, call: call}
	l.byID[t.id] = t
	heap.Push(&l.timers, t)
	return true
}

// clear removes a timer; an unknown id is ignored. An interval may clear itself while it
// runs.
func (l *loop) clear(id int64) {
	if t, ok := l.byID[id]; ok {
		delete(l.byID, id)
		if t.index >= 0 {
			heap.Remove(&l.timers, t.index)
		}
	}
}

// empty reports whether nothing can happen any more. Abandoned calls do not count: no
// promise waits for them.
func (l *loop) empty() bool { return len(l.timers) == 0 && len(l.calls) == 0 }

// waiting reports whether a call with an id of at most last is in flight.
func (l *loop) waiting(last uint32) bool {
	for id := range l.calls {
		if id <= last {
			return true
		}
	}
	return false
}

// fire runs the next timer that is due.
//
// An interval is started again after its call, from that moment on, so a slow callback does
// not fall behind. An error of the callback ends the activation, as an exception that no
// caller can catch.
func (l *loop) fire(now time.Time) (fired bool, err error) {
	if len(l.timers) == 0 || l.timers[0].at.After(now) {
		return false, nil
	}
	t := heap.Pop(&l.timers).(*timer)
	if t.every == 0 {
		delete(l.byID, t.id)
		return true, t.call()
	}
	err = t.call()
	if _, alive := l.byID[t.id]; alive {
		t.at = time.Now().Add(t.every)
		heap.Push(&l.timers, t)
	}
	return true, err
}

// turn does one thing: it runs a timer that is due, or waits for the next event. Log lines
// are sent before it waits, so that followers see them. It returns after a wake without an
// error; await looks at the cause.
func (a *activation) turn() error {
	if fired, err := a.loop.fire(time.Now()); fired || err != nil {
		return err
	}
	if moved, err := a.advance(); moved || err != nil {
		return err
	}
	if err := a.server.link.flush(); err != nil {
		return err
	}
	var due <-chan time.Time
	if len(a.loop.timers) > 0 {
		t := time.NewTimer(time.Until(a.loop.timers[0].at))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-due:
		return nil
	case <-a.ctl.wake:
		return nil
	case f, ok := <-a.server.frames:
		f, err := a.server.received(f, ok)
		if err != nil {
			return err
		}
		return a.replied(f)
	}
}

// settled reports whether a promise is fulfilled or rejected.
func settled(p *goja.Promise) bool { return p.State() != goja.PromiseStatePending }
