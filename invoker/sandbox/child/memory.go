package child

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// idleBeforeRelease is how long a child waits for work after a heavy activation
// before it gives memory back, which costs a collection.
const idleBeforeRelease = 50 * time.Millisecond

// heavyShare of the limit in use makes an activation heavy.
const heavyShare = 4

// lookInterval is how often the watch looks at the heap of an activation while
// there is no collection.
const lookInterval = 100 * time.Millisecond

// memoryWatch holds the heap to a limit. After each collection it reads what
// was found live: more than the limit at two collections running, or a quarter
// more once, is over. Nothing else in Go tells how much a script really holds.
// It does not wait for collections that may never come because the script has
// stopped to allocate: the first that is over calls the second, and a heap that
// stands above the limit is collected.
//
// A nil watch watches nothing.
type memoryWatch struct {
	base        int64 // live before the first activation
	limit       int64
	over        func()
	collections atomic.Int64 // that were seen
	twice       atomic.Bool  // the last collection was over the limit
	peak        atomic.Int64 // highest live since reset, base included
	look        *time.Timer
	armed       atomic.Bool  // look will fire
	looking     atomic.Bool  // an activation is in hand
	highAt      atomic.Int64 // one more than collections at a look that found the heap above the limit; 0: it was not
}

func newMemoryWatch(base int64, limitMB int, over func()) *memoryWatch {
	limit := int64(limitMB) << 20
	mapped := gauge(metricTotal) - gauge(metricReleased)
	debug.SetMemoryLimit(mapped + limit + limit/4)
	w := &memoryWatch{base: base, limit: limit, over: over}
	w.look = time.AfterFunc(lookInterval, w.looked)
	w.look.Stop()
	return w
}

// sentinel is garbage at every collection; its finalizer is the watch's clock.
type sentinel struct{ watch *memoryWatch }

func (w *memoryWatch) start() { runtime.SetFinalizer(&sentinel{w}, (*sentinel).collected) }

func (s *sentinel) collected() {
	again := s.watch.check(gauge(metricLive))
	runtime.SetFinalizer(s, (*sentinel).collected)
	if again {
		go runtime.GC()
	}
}

// check judges the live bytes that a collection found, and says whether another
// collection is needed to tell.
func (w *memoryWatch) check(live int64) (again bool) {
	w.collections.Add(1)
	if live > w.peak.Load() {
		w.peak.Store(live)
	}
	used := live - w.base
	over := used > w.limit
	wasOver := w.twice.Swap(over)
	if used > w.limit+w.limit/4 || over && wasOver {
		w.over()
		return false
	}
	return over
}

// looked collects a heap that has stood above the limit since the last look,
// garbage included, without a collection of its own. The timer runs on from one
// activation to the next, so that a short one need not touch it.
func (w *memoryWatch) looked() {
	w.armed.Store(false)
	if !w.looking.Load() {
		return // reset arms it
	}
	at := int64(0)
	if gauge(metricObjects)-w.base > w.limit {
		at = w.collections.Load() + 1
	}
	if w.highAt.Swap(at) == at && at != 0 {
		runtime.GC()
	}
	w.arm()
}

func (w *memoryWatch) arm() {
	if w.armed.CompareAndSwap(false, true) {
		w.look.Reset(lookInterval)
	}
}

// reset begins an activation.
func (w *memoryWatch) reset() {
	if w != nil {
		w.peak.Store(0)
		w.twice.Store(false)
		w.highAt.Store(0)
		w.looking.Store(true)
		w.arm()
	}
}

// measured ends an activation: the most bytes that its heap was seen to hold,
// what was there before it not counted.
func (w *memoryWatch) measured() int64 {
	if w == nil {
		return 0
	}
	w.looking.Store(false)
	if now := gauge(metricObjects); now > w.peak.Load() {
		w.peak.Store(now)
	}
	return max(0, w.peak.Load()-w.base)
}

// heavy says whether the last activation left much to give back.
func (w *memoryWatch) heavy() bool {
	return w != nil && w.peak.Load()-w.base > w.limit/heavyShare
}

func (w *memoryWatch) release() {
	debug.FreeOSMemory()
	w.peak.Store(0)
}
