package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/cgroup"
	"github.com/codesous/sous/invoker/sandbox/memory"
)

// of is fakeProgram of a tenant.
func of(tenant, function string) *Program {
	p := fakeProgram(tenant+"/default/"+function+"/1", "")
	p.Tenant, p.Namespace, p.Function, p.Version = tenant, "default", function, 1
	return p
}

// TestOneTenantLeavesTheReserve: sleeping calls of one tenant do not take the last places, and
// calls beyond are refused with the time after which to try again.
func TestOneTenantLeavesTheReserve(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.MaxProcesses, c.Spares, c.AcquireTimeout = 10, -1, 50*time.Millisecond })
	for n := range 8 {
		defer p.Release(acquire(t, p, of("attacker", fmt.Sprint("f", n))))
	}
	var e *api.Error
	if _, err := p.Acquire(t.Context(), of("attacker", "f9"), nil); !errors.As(err, &e) || e.Code != api.CodeCapacityLimit || e.RetryAfter < time.Second {
		t.Errorf("a ninth call: got %v, want %s with the time of a retry", err, api.CodeCapacityLimit)
	}
	if attacker, victim := p.Room("attacker", "", 64), p.Room("victim", "", 64); attacker != 0 || victim != 2 {
		t.Errorf("room: got %d for the attacker and %d for the victim, want 0 and 2", attacker, victim)
	}
	p.Release(acquire(t, p, of("victim", "f")))
	if s := p.Stats(); s.Refused != 1 {
		t.Errorf("got %d refusals, want only the attacker's", s.Refused)
	}
}

// TestMemoryOfOneTenantLeavesTheReserve, and a version that is larger is refused at once.
func TestMemoryOfOneTenantLeavesTheReserve(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) {
		c.MemoryBudgetBytes, c.Spares, c.AcquireTimeout = 20*memory.BudgetBytes(64), -1, 2*time.Second
	})
	large := of("attacker", "large")
	large.MemoryMB = 16*64 - 1
	s := acquire(t, p, large)
	defer p.Release(s)
	if _, err := p.Acquire(t.Context(), of("attacker", "f"), nil); api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("beside a call with all memory of a tenant: got %v, want %s", err, api.CodeCapacityLimit)
	}
	p.Release(acquire(t, p, of("victim", "f")))
	larger := of("victim", "large")
	larger.MemoryMB = 17 * 64
	began := time.Now()
	if _, err := p.Acquire(t.Context(), larger, nil); api.ErrorCode(err) != api.CodeCapacityLimit || time.Since(began) > time.Second {
		t.Errorf("a version that never fits: got %v after %s, want %s at once", err, time.Since(began), api.CodeCapacityLimit)
	}
}

// TestFreePlaceIsTheOthersTurn: a tenant with many calls that wait does not keep its places
// from a tenant with one.
func TestFreePlaceIsTheOthersTurn(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(2), func(c *Config) { c.AcquireTimeout = time.Minute })
	prog := of("attacker", "f")
	held := acquire(t, p, prog)
	other := acquire(t, p, prog)
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			s, err := p.Acquire(t.Context(), prog, nil)
			if err != nil {
				t.Errorf("the attacker's Acquire: %v", err)
				return
			}
			s.Run(t.Context(), do("echo"))
			p.Release(s)
		})
	}
	eventually(t, func() bool { return p.Stats().Waiting == 50 })
	got := make(chan *Sandbox)
	go func() {
		s, err := p.Acquire(t.Context(), of("victim", "f"), nil)
		if err != nil {
			t.Errorf("the victim's Acquire: %v", err)
		}
		got <- s
	}()
	eventually(t, func() bool { return p.Stats().Waiting == 51 })
	p.Release(held)
	s := <-got
	if waiting := p.Stats().Waiting; waiting != 50 {
		t.Errorf("the victim was served when %d calls waited, want 50: it is the next", waiting)
	}
	p.Release(s)
	p.Release(other)
	wait.Wait()
}

// TestWarmChildrenOfOthersStay: a tenant that calls many versions ends its own warm children
// for room.
func TestWarmChildrenOfOthersStay(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(6))
	p.Release(acquire(t, p, of("victim", "f")))
	for n := range 20 {
		p.Release(acquire(t, p, of("attacker", fmt.Sprint("f", n))))
	}
	s := acquire(t, p, of("victim", "f"))
	if s.Cold() {
		t.Error("the victim's warm child was ended for the attacker's")
	}
	p.Release(s)
}

// TestCapOfSandboxes: a tenant at its cap ends a warm child of its own for another version, and
// other tenants keep theirs.
func TestCapOfSandboxes(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(10), func(c *Config) {
		c.AcquireTimeout = 20 * time.Millisecond
		c.Share = func(tenant string) Share { return map[string]Share{"capped": {MaxSandboxes: 2}}[tenant] }
	})
	p.Release(acquire(t, p, of("other", "f")))
	for n := range 4 {
		p.Release(acquire(t, p, of("capped", fmt.Sprint("f", n))))
	}
	if s := p.Stats(); s.Idle != 3 || s.Evicted != 2 {
		t.Errorf("got %d idle and %d evicted, want 3 and 2", s.Idle, s.Evicted)
	}
	defer p.Release(acquire(t, p, of("capped", "f3")))
	defer p.Release(acquire(t, p, of("capped", "f2")))
	if _, err := p.Acquire(t.Context(), of("capped", "f1"), nil); api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("a third call: got %v, want %s", err, api.CodeCapacityLimit)
	}
}

// TestStartsOfOneTenantAreFew: starts of many versions leave the processors to others, and none
// of them is refused because it waits for its turn.
func TestStartsOfOneTenantAreFew(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.Spares, c.AcquireTimeout = -1, 50*time.Millisecond })
	most := max(leastStarts, startsAtOnce*runtime.GOMAXPROCS(0))
	loaded := make(chan struct{})
	var wait sync.WaitGroup
	for n := range 3 * most {
		prog := of("attacker", fmt.Sprint("f", n))
		prog.Digest = ""
		prog.Bundle = func(context.Context) ([]byte, error) {
			<-loaded
			return []byte("a bundle"), nil
		}
		wait.Go(func() {
			s, err := p.Acquire(t.Context(), prog, nil)
			if err != nil {
				t.Errorf("Acquire: %v", err)
				return
			}
			p.Release(s)
		})
	}
	eventually(t, func() bool { s := p.Stats(); return s.Waiting == 2*most && s.Starting == most })
	p.Release(acquire(t, p, of("victim", "f")))
	time.Sleep(3 * p.cfg.AcquireTimeout) // the calls that wait for a start are to outlive it
	if s := p.Stats(); s.Starting != most || s.Refused != 0 {
		t.Errorf("got %d starts at once and %d refusals, want %d and none", s.Starting, s.Refused, most)
	}
	close(loaded)
	wait.Wait()
}

// TestWaitingCallsOfATenantAreBounded: those beyond are refused at once, and others wait.
func TestWaitingCallsOfATenantAreBounded(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(1), func(c *Config) { c.AcquireTimeout = time.Hour })
	held := acquire(t, p, of("attacker", "f"))
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	begin := func(prog *Program) {
		wait.Go(func() {
			s, err := p.Acquire(ctx, prog, nil)
			if err == nil {
				p.Release(s)
			} else if !errors.Is(err, context.Canceled) {
				t.Errorf("Acquire: got error %v, want %v", err, context.Canceled)
			}
		})
	}
	for range maxWaiting {
		begin(of("attacker", "f"))
	}
	eventually(t, func() bool { return p.Stats().Waiting == maxWaiting })
	if _, err := p.Acquire(t.Context(), of("attacker", "g"), nil); api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("one more call: got %v, want %s", err, api.CodeCapacityLimit)
	}
	begin(of("victim", "f"))
	eventually(t, func() bool { return p.Stats().Waiting == maxWaiting+1 })
	cancel()
	wait.Wait()
	p.Release(held)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.families) != 1 || p.ledger.Tenants() != 1 {
		t.Errorf("got %d versions of %d tenants known after the end, want only the warm one", len(p.families), p.ledger.Tenants())
	}
}

// niceOf returns the nice value of a process, as the kernel has it.
func niceOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
	return fields[17] // the 19th of all
}

// TestSpinningChildrenOfOneTenantAreNice beside another tenant's.
func TestSpinningChildrenOfOneTenantAreNice(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	victim := acquire(t, p, of("victim", "f"))
	defer p.Release(victim)
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var spinning []*Sandbox
	for n := range 3 * runtime.GOMAXPROCS(0) {
		s := acquire(t, p, of("attacker", fmt.Sprint("f", n)))
		spinning = append(spinning, s)
		wait.Go(func() {
			s.Run(ctx, call(`"spin"`, time.Minute))
			p.Release(s)
		})
	}
	for _, s := range spinning {
		eventually(t, func() bool { return niceOf(t, s.child.pid) != "0" })
	}
	if got := niceOf(t, victim.child.pid); got != "0" {
		t.Errorf("nice value of the victim's child: got %s, want 0", got)
	}
	stop()
	wait.Wait()
}

// TestChildWithLowPriorityIsReplaced where the server may not raise its priority again: at once
// if it is idle, after its activation if it is busy.
func TestChildWithLowPriorityIsReplaced(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(2))
	idle, busy := acquire(t, p, fakeProgram("idle", "")), acquire(t, p, fakeProgram("busy", ""))
	p.Release(idle)
	p.replace(idle.child)
	p.replace(busy.child)
	if s := p.Stats(); s.Idle != 0 || s.Busy != 1 {
		t.Errorf("got %d idle and %d busy, want only the busy one", s.Idle, s.Busy)
	}
	if r := busy.Run(t.Context(), do("echo")); r.Status != api.StatusSuccess {
		t.Errorf("activation of the busy one: got %s, want success", r.Status)
	}
	p.Release(busy)
	if s := p.Stats(); s.Idle != 0 || s.Busy != 0 {
		t.Errorf("after its release: got %d idle and %d busy, want none", s.Idle, s.Busy)
	}
}

// TestChildrenHaveCGroups: over the kernel's file system, where it is writable. The controllers
// may be missing.
func TestChildrenHaveCGroups(t *testing.T) {
	t.Parallel()
	root := ""
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err == nil {
			root = dir
		}
	}
	base := filepath.Join(root, fmt.Sprintf("sous-pool-test-%d", os.Getpid()))
	if root == "" || os.Mkdir(base, 0o755) != nil {
		t.Skip("no writable control group file system")
	}
	tree, err := cgroup.Open(&cgroup.Place{Dir: base})
	if err != nil {
		t.Fatalf("cgroup.Open: %v", err)
	}
	t.Cleanup(func() { // after the pool has ended
		if err := os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			t.Errorf("back to the root: %v", err)
		}
		for _, name := range []string{"server", "spares", "sandboxes", ""} {
			eventually(t, func() bool { return os.Remove(filepath.Join(base, name)) == nil })
		}
	})
	p := newPool(t, fakeChild(t), places(3))
	p.cgroups, p.spawner.CGroups = tree, tree // no child was started yet
	a, b := acquire(t, p, of("t_acme", "f")), acquire(t, p, of("t_acme", "g"))
	for n, s := range []*Sandbox{a, b} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", s.child.pid))
		want := fmt.Sprintf("/sandboxes/t_acme/%d\n", n+1)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("groups of a child: got %q, %v, want %q", text, err, want)
		}
		s.spent = true
		p.Release(s)
	}
	eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(base, "sandboxes", "t_acme"))
		return errors.Is(err, os.ErrNotExist)
	})
}

// TestKilledAtTheLimitOfItsCGroup is a memory limit like others.
func TestKilledAtTheLimitOfItsCGroup(t *testing.T) {
	t.Parallel()
	if got := (&process{exit: exit{overLimit: true}}).reason(); got != endMemory {
		t.Errorf("reason of the end: got %s, want %s", got, endMemory)
	}
}
