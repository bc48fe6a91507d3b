package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"go.uber.org/zap"
)

// TestRestlessChildEnds: an idle child that works ends, one that waits stays.
func TestRestlessChildEnds(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.Logger = zap.NewNop() })
	for _, what := range []string{"echo", "restless"} {
		s := acquire(t, p, fakeProgram(what, ""))
		if r := s.Run(t.Context(), do(what)); r.Status != api.StatusSuccess {
			t.Fatalf("run %s: got %+v, want success", what, r)
		}
		p.Release(s)
	}
	eventually(t, func() bool { return p.Stats().Idle == 1 })
	if s := acquire(t, p, fakeProgram("echo", "")); s.Cold() {
		t.Error("it was the one that waits")
	} else {
		p.Release(s)
	}
}

// TestHugeRefusal: decoding what a child says must not cost more than it sent.
func TestHugeRefusal(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.Logger, c.Spares = zap.NewNop(), -1 })
	err := p.Check(t.Context(), fakeProgram("refuse", "refuse hugely"))
	var e *api.Error
	if err == nil || errors.As(err, &e) && len(e.Fields) > 0 { // a refusal that was read has fields
		t.Errorf("Check: got error %.200v, want one without fields", err)
	}
}

// TestSlowSourcesHoldUpTheirTenant, and do not delay publishes of others.
func TestSlowSourcesHoldUpTheirTenant(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.Logger, c.LoadTimeout = zap.NewNop(), time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const sources = 3
	var slow sync.WaitGroup
	for i := range sources {
		slow.Go(func() {
			prog := fakeProgram(fmt.Sprint("slow", i), "hang")
			prog.Tenant = "t_slow01"
			if err := p.Check(ctx, prog); !errors.Is(err, context.Canceled) {
				t.Errorf("check of a slow source: got error %v, want %v", err, context.Canceled)
			}
		})
	}
	count := func() int {
		running, waiting := p.checks.Counts()
		return running + waiting
	}
	eventually(t, func() bool { return count() == sources })
	if err := p.Check(t.Context(), fakeProgram("quick", "quick")); err != nil {
		t.Errorf("p.Check: %v", err)
	}
	if got := count(); got != sources {
		t.Errorf("after the check of the other tenant: got %d checks of the first, want %d", got, sources)
	}
	cancel()
	slow.Wait()
	if running, waiting := p.checks.Counts(); running+waiting > 0 {
		t.Errorf("got %d checks that run and %d that wait at the end, want 0 and 0", running, waiting)
	}
}

// TestRunCutsEmptyLogs: lines that hold nothing are bounded in number.
func TestRunCutsEmptyLogs(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("empty", ""))
	defer p.Release(s)
	c, got := do("emptylogs 40000"), 0
	c.Log = func(wire.LogRecord) { got++ }
	if r := s.Run(t.Context(), c); !r.LogsTruncated || got > api.MaxLogBytes/wire.LogRecordOverhead {
		t.Errorf("got %s with %d lines, truncated %v, want at most %d lines, truncated", r.Status, got, r.LogsTruncated, api.MaxLogBytes/wire.LogRecordOverhead)
	}
}

// TestRunDoubtsClaims: what a child says that it used is held against the kernel.
func TestRunDoubtsClaims(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("claim", ""))
	defer p.Release(s)
	for range 2 {
		r := s.Run(t.Context(), do("claim"))
		if r.Status != api.StatusSuccess || r.CPU < 0 || r.CPU > 5*time.Second {
			t.Errorf("got %s and processor time %v, want a success within 0 to 5 s", r.Status, r.CPU)
		}
		if r.MemoryPeakBytes < 0 || uint64(r.MemoryPeakBytes) > s.child.limit {
			t.Errorf("got a peak of %d bytes, want 0 to %d", r.MemoryPeakBytes, s.child.limit)
		}
	}
}

// TestRunEndsAFlood: a child that never stops to write to its stderr is killed.
func TestRunEndsAFlood(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.Logger = zap.NewNop() })
	s := acquire(t, p, fakeProgram("flood", ""))
	defer p.Release(s)
	if r := s.Run(t.Context(), call(`"flood"`, 20*time.Second)); r.Status != api.StatusError || r.Error.Type != api.ErrSandboxCrash {
		t.Errorf("run flood: got status %s, error %+v, want error %s", r.Status, r.Error, api.ErrSandboxCrash)
	}
}

// TestRunRefusesLargeFrames: once it is ready, a child may not send what only a
// script needs.
func TestRunRefusesLargeFrames(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.Logger = zap.NewNop() })
	s := acquire(t, p, fakeProgram("large", ""))
	defer p.Release(s)
	if r := s.Run(t.Context(), do("big 9000000")); r.Status != api.StatusError || r.Error.Type != api.ErrSandboxCrash {
		t.Errorf("run big: got status %s, error %+v, want error %s", r.Status, r.Error, api.ErrSandboxCrash)
	}
}
