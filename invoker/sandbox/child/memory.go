package child

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// idleBeforeRelease is how long a child waits for work after a heavy activation
// before it returns memory to the kernel, which costs a collection.
const idleBeforeRelease = 50 * time.Millisecond

// heavyShare of the limit in use makes an activation heavy.
const heavyShare = 4

// checkInterval is how often the watch looks at the heap of an activation while
// there is no collection.
const checkInterval = 100 * time.Millisecond

// memoryWatch enforces the memory limit of an activation within the child. After each
// collection it reads the live bytes of the heap: above the limit at two consecutive
// collections, or a quarter above it at one, the activation is stopped. No other metric of Go
// shows how much a script really holds. A script that has stopped allocating causes no
// collections: so the first collection above the limit starts the second, and a timer starts
// one where the heap stands above the limit.
//
// A nil watch does nothing. The parent's own limits, of the address space, hold where the
// watch fails (see package sandbox).
//
// With a limit of 64 MB, after the base, a script that fills an array sees
//
//	collection 7    50 MB live    fine
//	collection 8    70 MB live    over; the watch starts a collection itself
//	collection 9    70 MB live    over twice: the activation is stopped
//	collection 9    60 MB live    or: 10 MB have become garbage, nothing happens
//	any             81 MB live    over 1.25 times the limit: stopped at once
//
// Finalizers run on a goroutine of the runtime and the timer on its own, so the fields that
// they share with activations are atomic.
type memoryWatch struct {
	base        int64 // live before the first activation
	limit       int64
	growing     *atomic.Int64 // bytes that exist twice (see program); nil for none
	over        func()
	collections atomic.Int64 // that were seen
	last        atomic.Int64 // live at the last collection
	wasOver     atomic.Bool  // the last collection was over the limit
	peak        atomic.Int64 // highest live since reset, base included
	large       bool         // the heap grows by largeGrowth
	timer       *time.Timer
	armed       atomic.Bool // timer will fire
	active      atomic.Bool // an activation runs
	// highAt is one more than collections at a check that found the heap above the limit,
	// 0 after any other check.
	highAt atomic.Int64
}

// How much the heap may grow between two collections, in percent of what the last one found
// to live. What a load allocates lives until its end, so that collections during it are in
// vain: without most of them, it takes two thirds of the processor time. A warm instance with
// modules of 10 MB spends a tenth less on a call at 200% than at Go's 100%. A heap of more
// than a quarter of the limit grows by 100%, so that the watch sees it near the limit.
const (
	loadGrowth  = 800
	runGrowth   = 200
	largeGrowth = 100
	largeShare  = 4
)

// loadRoom is where a load begins to collect more often, in bytes above the memory that is
// mapped before it. It is half of the room that the parent leaves for it.
const loadRoom = 256 << 20

// collectForLoad sets the collector for the load of a program, and collectForRuns for its
// activations. newMemoryWatch lowers the limit thereafter.
func collectForLoad() {
	debug.SetGCPercent(loadGrowth)
	debug.SetMemoryLimit(gauge(metricTotal) - gauge(metricReleased) + loadRoom)
}

func collectForRuns() { debug.SetGCPercent(runGrowth) }

// follow sets the growth of the heap for what the last collection found beyond the base. It
// is called from check only.
func (w *memoryWatch) follow(used int64) {
	if large := used > w.limit/largeShare; large != w.large {
		w.large = large
		growth := runGrowth
		if large {
			growth = largeGrowth
		}
		debug.SetGCPercent(growth)
	}
}

// newMemoryWatch makes the watch of a child with a limit of limitMB; base is the live
// memory before the first activation, and growing the bytes that exist twice at a moment. over
// is called, on any goroutine, when an activation must be stopped. It also sets Go's memory
// limit, 1.25 times the limit above the memory that is mapped now, so that the collector runs
// more often before a script reaches its own.
func newMemoryWatch(base int64, limitMB int, growing *atomic.Int64, over func()) *memoryWatch {
	limit := int64(limitMB) << 20
	mapped := gauge(metricTotal) - gauge(metricReleased)
	debug.SetMemoryLimit(mapped + limit + limit/4)
	w := &memoryWatch{base: base, limit: limit, growing: growing, over: over}
	w.timer = time.AfterFunc(checkInterval, w.checkHeap)
	w.timer.Stop()
	return w
}

// sentinel is garbage at every collection; its finalizer is the watch's clock.
type sentinel struct{ watch *memoryWatch }

// start begins to watch, with the first and only sentinel.
func (w *memoryWatch) start() { runtime.SetFinalizer(&sentinel{w}, (*sentinel).collected) }

// collected runs after each collection, which finds s to be garbage. It registers s again
// for the next one.
func (s *sentinel) collected() {
	again := s.watch.check(gauge(metricLive))
	runtime.SetFinalizer(s, (*sentinel).collected)
	if again {
		go collectFast()
	}
}

// collectors is how many processors collectFast marks with.
const collectors = 4

// collectFast collects with more processors than scripts have. What a script allocates during
// a collection counts as live: where the script has the only processor of the process, or
// shares it with other processes, that is easily a quarter of the limit.
func collectFast() {
	collecting.Lock()
	defer collecting.Unlock()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(collectors))
	runtime.GC()
}

// collecting is held by collectFast, which changes and restores a setting of the process.
var collecting sync.Mutex

// check compares the live bytes that a collection found with the limit, and reports whether
// another collection is needed to decide.
//
// It runs once for each collection.
func (w *memoryWatch) check(live int64) (again bool) {
	w.collections.Add(1)
	w.last.Store(live)
	if live > w.peak.Load() {
		w.peak.Store(live)
	}
	used := live - w.base
	w.follow(used)
	if !w.active.Load() { // an activation that began meanwhile must not be stopped for the last
		w.wasOver.Store(false)
		return false
	}
	over := used > w.limit
	if over && w.growing != nil {
		over = used-w.growing.Load() > w.limit
	}
	wasOver := w.wasOver.Swap(over)
	if used > w.limit+w.limit/4 || over && wasOver {
		w.over()
		return false
	}
	return over
}

// checkHeap collects a heap that has stood above the limit since the last check,
// garbage included, without a collection of its own. The timer runs on from one
// activation to the next, so that a short one need not touch it.
func (w *memoryWatch) checkHeap() {
	w.armed.Store(false)
	if !w.active.Load() {
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

// arm starts the timer unless it runs.
func (w *memoryWatch) arm() {
	if w.armed.CompareAndSwap(false, true) {
		w.timer.Reset(checkInterval)
	}
}

// reset begins an activation: the peak and the memory of earlier collections are forgotten.
func (w *memoryWatch) reset() {
	if w != nil {
		w.peak.Store(0)
		w.wasOver.Store(false)
		w.highAt.Store(0)
		w.active.Store(true)
		w.arm()
	}
}

// measured ends an activation and returns the most bytes that its heap was seen to hold,
// without those that were there before the first activation. Memory between two collections
// is not seen, except at the end.
func (w *memoryWatch) measured() int64 {
	if w == nil {
		return 0
	}
	w.active.Store(false)
	if now := gauge(metricObjects); now > w.peak.Load() {
		w.peak.Store(now)
	}
	return max(0, w.peak.Load()-w.base)
}

// heldShare of the limit on the heap, garbage included, is enough to measure an instance.
const heldShare = 4

// measureHeld returns how many bytes the heap holds beyond those of the engine, 0 if they
// are few beside the limit. It collects garbage to find out.
func (w *memoryWatch) measureHeld() int64 {
	if w == nil || gauge(metricObjects)-w.base < w.limit/heldShare {
		return 0
	}
	runtime.GC()
	return max(0, gauge(metricLive)-w.base)
}

// grown reports whether an instance holds more than half of the room that it had above its
// modules, which hold held bytes: the next activation needs room. The last collection may
// have found what an activation held only while it ran, so one that found too much is
// repeated: that is cheaper than to evaluate the modules again.
func (w *memoryWatch) grown(held int64) bool {
	if w == nil || !w.beyond(held) {
		return false
	}
	runtime.GC()
	w.last.Store(gauge(metricLive))
	return w.beyond(held)
}

// beyond reports whether the last collection found more than half of the room that an
// instance has above held bytes.
func (w *memoryWatch) beyond(held int64) bool { return w.last.Load()-w.base > (w.limit+held)/2 }

// heavy reports whether the last activation used so much, a quarter of its limit, that
// memory is worth returning.
func (w *memoryWatch) heavy() bool {
	return w != nil && w.peak.Load()-w.base > w.limit/heavyShare
}

// release returns free memory to the kernel, once for each heavy activation. It costs a
// full collection.
func (w *memoryWatch) release() {
	debug.FreeOSMemory()
	w.peak.Store(0)
}
