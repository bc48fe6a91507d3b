package sandbox

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
)

// callWhileLoading begins calls of a version whose children cannot load. load lets them, and
// waits for all calls.
func callWhileLoading(t *testing.T, p *Pool, calls int) (load func()) {
	t.Helper()
	loaded := make(chan struct{})
	prog := fakeProgram("loads", "")
	prog.Digest = "" // each child reads the bundle
	prog.Bundle = func(context.Context) ([]byte, error) {
		<-loaded
		return []byte("a bundle"), nil
	}
	var wait sync.WaitGroup
	for range calls {
		wait.Go(func() {
			s, err := p.Acquire(t.Context(), prog, nil)
			if err != nil {
				t.Errorf("Acquire: %v", err)
				return
			}
			p.Release(s)
		})
	}
	return func() {
		close(loaded)
		wait.Wait()
	}
}

// TestFewChildrenServeManyCalls: of calls that arrive while a version's first children load,
// most wait for these instead of starting children of their own.
func TestFewChildrenServeManyCalls(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.Spares, c.AcquireTimeout = -1, time.Hour })
	processors := runtime.GOMAXPROCS(0)
	most := childrenPerProcessor * processors
	calls := 6 * most
	load := callWhileLoading(t, p, calls)
	eventually(t, func() bool { s := p.Stats(); return s.Busy+s.Waiting == calls })
	if s := p.Stats(); s.Starting != processors {
		t.Errorf("got %d children that load, want one for each of %d processors", s.Starting, processors)
	}
	load()
	if s := p.Stats(); int(s.Cold) > most {
		t.Errorf("got %d children for %d calls, want at most %d", s.Cold, calls, most)
	}
}

// TestLongWaitStartsAChild: where all useful children of a version are busy for long, a call
// starts another one after a moment. It is not refused.
func TestLongWaitStartsAChild(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	prog := fakeProgram("waits", "")
	for range childrenPerProcessor*runtime.GOMAXPROCS(0) + 3 {
		defer p.Release(acquire(t, p, prog))
	}
	if s := p.Stats(); s.Refused != 0 || s.Waiting != 0 {
		t.Errorf("got %d refused and %d waiting, want none", s.Refused, s.Waiting)
	}
}

// TestWaitingForAChildIsNotInTheWay: a call that waits for a child of its version does not
// hold up calls of other versions, for which there is room.
func TestWaitingForAChildIsNotInTheWay(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.AcquireTimeout = time.Hour })
	load := callWhileLoading(t, p, runtime.GOMAXPROCS(0)+1)
	eventually(t, func() bool { return p.Stats().Waiting == 1 })
	if p.Room("", "other", 64) == 0 {
		t.Error("Room: got none for another version, want some")
	}
	other := acquire(t, p, fakeProgram("other", "")) // would wait for an hour behind it
	p.Release(other)
	load()
}

func TestUsefulChildren(t *testing.T) {
	t.Parallel()
	processors := runtime.GOMAXPROCS(0)
	for _, c := range []struct {
		cpu  time.Duration
		want int
	}{
		{0, 3 * processors},
		{time.Second, 3 * processors},
		{200 * time.Microsecond, 6 * processors},
		{100 * time.Microsecond, 8 * processors},
		{time.Nanosecond, 8 * processors},
	} {
		if got := (&family{cpu: c.cpu}).useful(processors); got != c.want {
			t.Errorf("useful with %s of processor time: got %d, want %d", c.cpu, got, c.want)
		}
	}
}

func TestWarmWait(t *testing.T) {
	t.Parallel()
	p := &Pool{cfg: Config{AcquireTimeout: time.Second}}
	for load, want := range map[time.Duration]time.Duration{
		0: 750 * time.Millisecond, 10 * time.Millisecond: 20 * time.Millisecond, time.Minute: 750 * time.Millisecond,
	} {
		if got := p.warmWait(&family{load: load}); got != want {
			t.Errorf("warmWait of a version that loads in %s: got %s, want %s", load, got, want)
		}
	}
}

// TestWarm: a version's first call finds a child that was started ahead, where there was room
// for it.
func TestWarm(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(2))
	for _, key := range []string{"a", "b", "full"} {
		if err := p.Warm(t.Context(), fakeProgram(key, "")); err != nil {
			t.Fatalf("Warm of %s: %v", key, err)
		}
	}
	if err := p.Warm(t.Context(), fakeProgram("a", "")); err != nil {
		t.Errorf("Warm of a version that is warm: %v", err)
	}
	if s := p.Stats(); s.Idle != 2 || s.Cold != 0 || s.Evicted != 0 {
		t.Errorf("got %d idle, %d started by calls, %d ended for room, want 2 and none", s.Idle, s.Cold, s.Evicted)
	}
	s := acquire(t, p, fakeProgram("a", ""))
	if s.Cold() {
		t.Error("the first call started a child")
	}
	p.Release(s)
	if err := p.Warm(t.Context(), fakeProgram("bad", "refuse")); err != nil {
		t.Errorf("Warm without room: %v", err)
	}
}

// TestWarmReportsBadSource and leaves no child.
func TestWarmReportsBadSource(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	if err := p.Warm(t.Context(), fakeProgram("bad", "refuse")); api.ErrorCode(err) != api.CodeValidationSource {
		t.Errorf("Warm: got %v, want %s", err, api.CodeValidationSource)
	}
	if s := p.Stats(); s.Idle != 0 || s.Busy != 0 {
		t.Errorf("got %d idle and %d busy, want none", s.Idle, s.Busy)
	}
}
