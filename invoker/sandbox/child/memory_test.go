package child

import (
	"sync/atomic"
	"testing"
)

// TestMemoryWatchDuringACopy: the bytes that exist twice while a memory of WebAssembly grows do
// not count towards the limit, but towards the quarter above it.
func TestMemoryWatchDuringACopy(t *testing.T) {
	t.Parallel()
	stopped := 0
	var growing atomic.Int64
	w := &memoryWatch{limit: 64 << 20, growing: &growing, over: func() { stopped++ }}
	w.active.Store(true)
	growing.Store(30 << 20)
	for range 3 {
		if again := w.check(70 << 20); again || stopped != 0 {
			t.Fatalf("with 30 of 70 MB twice: got another collection %v and %d stops, want neither", again, stopped)
		}
	}
	w.check(81 << 20)
	if stopped != 1 {
		t.Errorf("a quarter above the limit: got %d stops, want 1", stopped)
	}
	growing.Store(0)
	if !w.check(70<<20) && stopped < 2 {
		t.Error("above the limit with nothing twice: got neither another collection nor a stop")
	}
}

// TestMemoryWatchBetweenActivations: a collection that finds too much after the end of an
// activation stops nothing, since the next one may have begun by then.
func TestMemoryWatchBetweenActivations(t *testing.T) {
	t.Parallel()
	stopped := 0
	w := &memoryWatch{limit: 64 << 20, over: func() { stopped++ }}
	if again := w.check(1 << 30); again || stopped != 0 {
		t.Errorf("without an activation: got another collection %v and %d stops, want neither", again, stopped)
	}
	w.active.Store(true)
	w.check(1 << 30)
	if stopped != 1 {
		t.Errorf("within an activation: got %d stops, want 1", stopped)
	}
	if !w.large {
		t.Error("a heap above the limit grows as a small one, want by no more than it holds")
	}
}
