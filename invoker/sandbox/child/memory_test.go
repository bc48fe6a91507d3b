package child

import "testing"

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
