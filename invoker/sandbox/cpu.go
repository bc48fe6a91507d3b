package sandbox

import (
	"strings"
	"sync"
	"time"

	"github.com/codesous/sous/api"
)

const (
	// cpuThreads is how many processors a child keeps busy at most for longer than a moment:
	// its script, or the compiler, runs on one thread, and the garbage collector on another.
	cpuThreads = 2
	// cpuInterval is the shortest time between two looks at the processor time. An activation
	// uses at most cpuThreads times as much beyond its limit, and what the kill takes.
	cpuInterval = 5 * time.Millisecond
)

// CPULimit returns the processor time that an activation of a version may use. A version that
// was published before the limit existed may rely on as much as its timeout allows, so it has
// at least that.
func CPULimit(c *api.VersionConfig) time.Duration {
	ms := c.CPUMS
	if ms == 0 {
		ms = max(api.DefaultCPUMS, c.TimeoutMS)
	}
	return time.Duration(ms) * time.Millisecond
}

// cpuWatch ends a child whose activation uses more processor time than its limit. It asks the
// kernel, not the child. It looks again when the rest of the limit may be used up at the
// earliest, so a long activation costs a handful of looks.
type cpuWatch struct {
	child *process
	limit time.Duration
	base  time.Duration // what the child had used when the activation began

	mu     sync.Mutex
	timer  *time.Timer
	over   bool // the activation has ended
	killed bool
}

// watchCPU watches an activation that ends within the time rest. It returns nil if the
// activation cannot use up its limit in that time, as most cannot: then it costs nothing.
func watchCPU(child *process, limit, rest time.Duration) *cpuWatch {
	if limit <= 0 || cpuThreads*(rest+killGrace) <= limit {
		return nil
	}
	w := &cpuWatch{child: child, limit: limit, base: child.cpuTime()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.next(0), w.look)
	return w
}

// next returns when to look again after the activation has used so much.
func (w *cpuWatch) next(used time.Duration) time.Duration {
	return max((w.limit-used)/cpuThreads, cpuInterval)
}

// look kills the child if the limit is used up.
func (w *cpuWatch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	used := w.child.cpuTime() - w.base
	if used < w.limit {
		w.timer.Reset(w.next(used))
		return
	}
	w.killed = true
	w.child.killFor(endCPU)
}

// end ends the watch, and reports whether it has killed the child.
func (w *cpuWatch) end() (killed bool) {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
	return w.killed
}

// exceeded is the result of an activation that was killed.
func (w *cpuWatch) exceeded() Result {
	const raise = "limits.cpuMs"
	limit := strings.TrimSpace(api.AmountText(raise, w.limit.Milliseconds()))
	return failure(api.ErrCPULimit, "the function used more processor time than its limit of "+limit+
		": raise "+raise+" in its manifest, or do less in one call")
}
