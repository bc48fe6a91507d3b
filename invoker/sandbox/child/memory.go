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

// memoryWatch holds the heap to a limit. After each collection it reads what
// was found live: more than the limit at two collections running, or a quarter
// more once, is over. Nothing else in Go tells how much a script really holds.
//
// A nil watch watches nothing.
type memoryWatch struct {
	base  int64 // live before the first activation
	limit int64
	over  func()
	twice atomic.Bool  // the last collection was over the limit
	peak  atomic.Int64 // highest live since reset, base included
}

func newMemoryWatch(base int64, limitMB int, over func()) *memoryWatch {
	limit := int64(limitMB) << 20
	mapped := gauge(metricTotal) - gauge(metricReleased)
	debug.SetMemoryLimit(mapped + limit + limit/4)
	return &memoryWatch{base: base, limit: limit, over: over}
}

// sentinel is garbage at every collection; its finalizer is the watch's clock.
type sentinel struct{ watch *memoryWatch }

func (w *memoryWatch) start() { runtime.SetFinalizer(&sentinel{w}, (*sentinel).collected) }

func (s *sentinel) collected() {
	s.watch.check(gauge(metricLive))
	runtime.SetFinalizer(s, (*sentinel).collected)
}

// check judges the live bytes that a collection found.
func (w *memoryWatch) check(live int64) {
	if live > w.peak.Load() {
		w.peak.Store(live)
	}
	used := live - w.base
	wasOver := w.twice.Swap(used > w.limit)
	if used > w.limit+w.limit/4 || used > w.limit && wasOver {
		w.over()
	}
}

// reset begins an activation.
func (w *memoryWatch) reset() {
	if w != nil {
		w.peak.Store(0)
		w.twice.Store(false)
	}
}

// measured ends an activation: the most bytes that its heap was seen to hold,
// what was there before it not counted.
func (w *memoryWatch) measured() int64 {
	if w == nil {
		return 0
	}
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
