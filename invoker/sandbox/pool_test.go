package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/memory"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

// places bounds a pool to n children, and keeps no spares and no reserve.
func places(n int) func(*Config) {
	return func(c *Config) { c.MaxProcesses, c.Spares, c.ReservePercent = n, -1, -1 }
}

// pid is the process that serves s, asked of itself.
func pid(t *testing.T, s *Sandbox) string {
	t.Helper()
	r := s.Run(t.Context(), do("pid"))
	if r.Status != api.StatusSuccess {
		t.Fatalf("run pid: got status %s, error %+v, want success", r.Status, r.Error)
	}
	return string(r.Value)
}

func TestConfigRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{MaxProcesses: -1}, {MemoryBudgetBytes: -1}, {IdleTimeout: -1}, {AcquireTimeout: -1}, {LoadTimeout: -1}, {CompileCPU: -1}, {ScriptCacheBytes: -1},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("New(%+v): got no error, want one", c)
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	got, err := Config{}.withDefaults()
	if err != nil {
		t.Fatalf("withDefaults: %v", err)
	}
	if got.MemoryBudgetBytes < minimumBudgetBytes {
		t.Errorf("got a budget of %d bytes, want at least %d", got.MemoryBudgetBytes, minimumBudgetBytes)
	}
	got.MemoryBudgetBytes, got.Logger = 0, nil
	want := Config{
		Executable: "/proc/self/exe", MaxProcesses: 100, Spares: 2, ReservePercent: 20, CGroups: CGroupsAuto,
		IdleTimeout: 10 * time.Minute, AcquireTimeout: time.Second,
		LoadTimeout: 30 * time.Second, CompileCPU: 8 * time.Second, ScriptCacheBytes: 64 << 20,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestIdleAreReusedLastFirst: of two idle children the one used last serves, and
// a child never serves another key.
func TestIdleAreReusedLastFirst(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(4))
	a, b := fakeProgram("a", ""), fakeProgram("b", "")
	first, second, other := acquire(t, p, a), acquire(t, p, a), acquire(t, p, b)
	pids := map[string]bool{pid(t, first): true, pid(t, second): true, pid(t, other): true}
	if len(pids) != 3 {
		t.Fatalf("got children %v for three concurrent calls, want three", pids)
	}
	p.Release(first)
	p.Release(other)
	p.Release(second)
	if got := acquire(t, p, a); got != second || got.Cold() {
		t.Error("not the one used last")
	}
	if got := acquire(t, p, a); got != first || got.Cold() {
		t.Error("not the other one")
	}
	third := acquire(t, p, a)
	if third == other || !third.Cold() {
		t.Error("a child of b serves a")
	}
	for _, s := range []*Sandbox{first, second, third} {
		p.Release(s)
	}
}

// TestEvictionTakesTheLeastRecentlyUsed, by count and by memory.
func TestEvictionTakesTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	for name, bound := range map[string]func(*Config){
		"by count":  places(3),
		"by memory": func(c *Config) { c.MemoryBudgetBytes, c.Spares, c.ReservePercent = 3*memory.BudgetBytes(64), -1, -1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, fakeChild(t), bound)
			children := make(map[string]*process)
			for _, key := range []string{"a", "b", "c", "a", "d"} {
				s := acquire(t, p, fakeProgram(key, ""))
				children[key] = s.child
				p.Release(s)
			}
			select {
			case <-children["b"].gone:
			case <-time.After(5 * time.Second):
				t.Error("the evicted child lives")
			}
			for key, warm := range map[string]bool{"a": true, "c": true, "d": true} {
				s := acquire(t, p, fakeProgram(key, ""))
				if s.Cold() == warm {
					t.Errorf("%s: warm %v, want %v", key, !s.Cold(), warm)
				}
				defer p.Release(s)
			}
			if s := p.Stats(); s.Evicted != 1 || s.Busy != 3 || s.ReservedBytes != 3*memory.BudgetBytes(64) {
				t.Errorf("got %d evicted, %d busy, %d bytes reserved, want 1, 3 and %d", s.Evicted, s.Busy, s.ReservedBytes, 3*memory.BudgetBytes(64))
			}
		})
	}
}

// TestNothingIsEvictedInVain: a large program that cannot fit beside the busy ones
// leaves the idle ones alone.
func TestNothingIsEvictedInVain(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) {
		c.ReservePercent, c.MemoryBudgetBytes, c.Spares, c.AcquireTimeout = -1, 3*memory.BudgetBytes(64), -1, 20*time.Millisecond
	})
	busy, idle := acquire(t, p, fakeProgram("busy", "")), acquire(t, p, fakeProgram("idle", ""))
	p.Release(idle)
	large := fakeProgram("large", "")
	large.MemoryMB = 3*64 - 1
	if _, err := p.Acquire(t.Context(), large, nil); api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("Acquire: got error %v, want code %s", err, api.CodeCapacityLimit)
	}
	if s := acquire(t, p, fakeProgram("idle", "")); s.Cold() {
		t.Error("the idle one was ended for nothing")
	} else {
		p.Release(s)
	}
	p.Release(busy)
	s := acquire(t, p, large)
	p.Release(s)
}

func TestTooLargeForTheBudget(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.MemoryBudgetBytes, c.AcquireTimeout = memory.BudgetBytes(64), time.Hour })
	prog := fakeProgram("large", "")
	prog.MemoryMB = 65
	if _, err := p.Acquire(t.Context(), prog, nil); api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("Acquire: got error %v, want code %s", err, api.CodeCapacityLimit)
	}
}

func TestAcquireWaitsForRoom(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(1), func(c *Config) { c.AcquireTimeout = time.Minute })
	held := acquire(t, p, fakeProgram("a", ""))
	for _, key := range []string{"a", "b"} { // the warm one; its place
		got := make(chan *Sandbox, 1)
		go func() {
			s, err := p.Acquire(t.Context(), fakeProgram(key, ""), nil)
			if err != nil {
				t.Errorf("p.Acquire: %v", err)
			}
			got <- s
		}()
		eventually(t, func() bool { return p.Stats().Waiting == 1 })
		p.Release(held)
		held = <-got
		if held == nil || held.family.key != key {
			t.Fatalf("got %+v, want a sandbox of %s", held, key)
		}
	}
	p.Release(held)
}

func TestAcquireGivesUp(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(1), func(c *Config) { c.AcquireTimeout = 30 * time.Millisecond })
	held := acquire(t, p, fakeProgram("a", ""))
	defer p.Release(held)
	_, err := p.Acquire(t.Context(), fakeProgram("b", ""), nil)
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.CodeCapacityLimit || e.RetryAfter != time.Second {
		t.Errorf("Acquire: got error %v, want code %s to retry after 1 s", err, api.CodeCapacityLimit)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := p.Acquire(ctx, fakeProgram("b", ""), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Acquire: got error %v, want %v", err, context.DeadlineExceeded)
	}
	if s := p.Stats(); s.Waiting != 0 || s.Refused != 2 {
		t.Errorf("got %d waiting and %d refused, want 0 and 2", s.Waiting, s.Refused)
	}
}

// TestWaitersAreServedInOrder: a new caller does not pass those that wait.
func TestWaitersAreServedInOrder(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(1), func(c *Config) { c.AcquireTimeout = time.Minute })
	held := acquire(t, p, fakeProgram("held", ""))
	var order []string
	var wait sync.WaitGroup
	for i := range 5 {
		key := fmt.Sprint("w", i)
		wait.Go(func() {
			s, err := p.Acquire(t.Context(), fakeProgram(key, ""), nil)
			if err != nil {
				t.Errorf("p.Acquire: %v", err)
				return
			}
			order = append(order, key) // one place: one at a time
			p.Release(s)
		})
		eventually(t, func() bool { return p.Stats().Waiting == i+1 })
	}
	p.Release(held)
	wait.Wait()
	if diff := cmp.Diff([]string{"w0", "w1", "w2", "w3", "w4"}, order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSmallPassesLarge: a call that does not fit does not stop those that do, and gets the room
// that it needs once that is free.
func TestSmallPassesLarge(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) {
		c.ReservePercent, c.MemoryBudgetBytes, c.Spares, c.AcquireTimeout = -1, 100*memory.BudgetBytes(64), -1, time.Minute
	})
	held := acquire(t, p, fakeProgram("held", ""))
	large := fakeProgram("large", "")
	large.MemoryMB = 100*64 - 1
	got := make(chan *Sandbox)
	go func() {
		s, err := p.Acquire(t.Context(), large, nil)
		if err != nil {
			t.Errorf("p.Acquire: %v", err)
		}
		got <- s
	}()
	eventually(t, func() bool { return p.Stats().Waiting == 1 })
	small := acquire(t, p, fakeProgram("small", "")) // with 1 of 100 busy
	p.Release(small)
	p.Release(held)
	s := <-got
	if s == nil || s.family.key != "large" {
		t.Fatalf("got %+v, want large", s)
	}
	p.Release(s)
}

// TestDeadIdleChildIsReplaced: whether its death was noticed or not.
func TestDeadIdleChildIsReplaced(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(2))
	prog := fakeProgram("dead", "")
	for _, notice := range []bool{false, true} {
		s := acquire(t, p, prog)
		p.Release(s)
		s.child.kill()
		if notice {
			eventually(t, func() bool { return p.Stats().Idle == 0 })
		} else {
			// Until the socket's end: the pool itself may know or not.
			eventually(t, func() bool { return !s.child.alive() })
		}
		again := acquire(t, p, prog)
		if !again.Cold() {
			t.Error("the dead one serves")
		}
		if r := again.Run(t.Context(), do("echo")); r.Status != api.StatusSuccess {
			t.Errorf("run in the new child: got status %s, error %+v, want success", r.Status, r.Error)
		}
		again.spent = true
		p.Release(again)
	}
}

// TestChildThatSpeaksWhileIdleIsEnded: what it says would be taken for the next
// activation's.
func TestChildThatSpeaksWhileIdleIsEnded(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(1))
	prog := fakeProgram("chatty", "")
	s := acquire(t, p, prog)
	if r := s.Run(t.Context(), do("after")); r.Status != api.StatusSuccess {
		t.Fatalf("run after: got status %s, error %+v, want success", r.Status, r.Error)
	}
	eventually(t, func() bool { return !s.child.alive() })
	p.Release(s)
	if again := acquire(t, p, prog); !again.Cold() {
		t.Error("it serves on")
	} else {
		p.Release(again)
	}
}

func TestSparesAreKeptAndUsed(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.Spares = 3 })
	waitSpares(t, p)
	spawned := p.Stats().Spawned
	s := acquire(t, p, fakeProgram("a", ""))
	defer p.Release(s)
	if p.Stats().Spawned > spawned+1 { // the refill may have begun
		t.Error("the spare was not used")
	}
	waitSpares(t, p)
	p.mu.Lock()
	p.spares[0].kill()
	p.spares[2].kill()
	p.mu.Unlock()
	eventually(t, func() bool { return p.Stats().Spawned == spawned+3 })
	waitSpares(t, p)
}

func TestIdleAreRetired(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(3), func(c *Config) { c.IdleTimeout = time.Hour })
	for _, key := range []string{"a", "b"} {
		p.Release(acquire(t, p, fakeProgram(key, "")))
	}
	if n := p.retireIdle(time.Now().Add(59 * time.Minute)); n != 0 {
		t.Errorf("got %d children retired after 59 minutes, want none", n)
	}
	if n := p.retireIdle(time.Now().Add(61 * time.Minute)); n != 2 {
		t.Errorf("got %d children retired after 61 minutes, want 2", n)
	}
	if s := p.Stats(); s.Idle != 0 || s.ReservedBytes != 0 {
		t.Errorf("got %d idle and %d bytes reserved after the retirement, want 0 and 0", s.Idle, s.ReservedBytes)
	}
}

func TestKeeperRetiresIdle(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(1), func(c *Config) { c.IdleTimeout = 20 * time.Millisecond })
	p.Release(acquire(t, p, fakeProgram("a", "")))
	eventually(t, func() bool { return p.Stats().Idle == 0 })
}

// TestClose ends idle, busy and spare children and waiting callers.
func TestClose(t *testing.T) {
	t.Parallel()
	cfg := Config{MaxProcesses: 2, Spares: 2, AcquireTimeout: time.Minute, ReservePercent: -1, Logger: zap.NewNop()}
	fakeChild(t)(&cfg)
	p, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	waitSpares(t, p)
	p.Release(acquire(t, p, fakeProgram("idle", "")))
	busy := acquire(t, p, fakeProgram("busy", ""))
	p.mu.Lock()
	var children []*process
	for c := range p.children {
		children = append(children, c)
	}
	p.mu.Unlock()
	ran := make(chan Result)
	go func() { ran <- busy.Run(t.Context(), do("spin")) }()
	other := acquire(t, p, fakeProgram("other", "")) // evicts the idle one
	waited := make(chan error)
	go func() {
		_, err := p.Acquire(t.Context(), fakeProgram("waits", ""), nil)
		waited <- err
	}()
	eventually(t, func() bool { return p.Stats().Waiting == 1 })
	if err := p.Close(t.Context()); err != nil {
		t.Fatalf("p.Close: %v", err)
	}
	if err := <-waited; api.ErrorCode(err) != api.CodeShuttingDown {
		t.Errorf("Acquire that waits: got error %v, want code %s", err, api.CodeShuttingDown)
	}
	if r := <-ran; r.Error == nil || r.Error.Type != api.ErrSandboxCrash {
		t.Errorf("got %+v for the busy child, want error %s", r, api.ErrSandboxCrash)
	}
	p.Release(busy)
	p.Release(other)
	for _, c := range children {
		select {
		case <-c.gone:
		default:
			t.Errorf("child %d: got it alive, want it ended", c.pid)
		}
	}
	if _, err := p.Acquire(t.Context(), fakeProgram("late", ""), nil); api.ErrorCode(err) != api.CodeShuttingDown {
		t.Errorf("Acquire after Close: got error %v, want code %s", err, api.CodeShuttingDown)
	}
	if err := p.Check(t.Context(), fakeProgram("late", "")); api.ErrorCode(err) != api.CodeShuttingDown {
		t.Errorf("Check after Close: got error %v, want code %s", err, api.CodeShuttingDown)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("Close again: %v", err)
	}
}

// TestStress mixes everything over few places.
func TestStress(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) {
		c.MaxProcesses, c.AcquireTimeout, c.IdleTimeout, c.Logger = 4, time.Minute, 30*time.Millisecond, zap.NewNop()
	})
	doing := []string{"echo", "retire", "exit 1", "calls 3", "leave", "echo", "after", "echo"}
	var wait sync.WaitGroup
	for i := range 12 {
		wait.Go(func() {
			for n := range 40 {
				s, err := p.Acquire(t.Context(), fakeProgram(fmt.Sprint("key", (i+n)%6), ""), nil)
				if err != nil {
					t.Errorf("p.Acquire: %v", err)
					return
				}
				s.Run(t.Context(), do(doing[(i*7+n)%len(doing)]))
				p.Release(s)
			}
		})
	}
	wait.Wait()
	eventually(t, func() bool { s := p.Stats(); return s.Idle == 0 && s.ReservedBytes == 0 })
}
