package sandbox

import (
	"fmt"
	"github.com/codesous/sous/invoker/sandbox/layers"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"go.uber.org/zap"
)

// nurseryOf is the process id of this process's child that pool p spawns from.
func nurseryOf(t *testing.T, p *Pool) int {
	t.Helper()
	p.mu.Lock()
	known := make(map[int]bool)
	for c := range p.children {
		known[c.pid] = true
	}
	p.mu.Unlock()
	for _, pid := range childrenOf(t, os.Getpid()) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), "nursery") && !known[pid] {
			return pid
		}
	}
	t.Fatal("there is no nursery")
	return 0
}

// TestNurseryIsReplaced: children outlive it, and the next spawn starts another.
// Not parallel: it looks for its own among this process's nurseries.
func TestNurseryIsReplaced(t *testing.T) {
	p := newPool(t, fakeChild(t), places(2), func(c *Config) { c.Logger = zap.NewNop() })
	first := acquire(t, p, fakeProgram("a", ""))
	nursery, err := os.FindProcess(nurseryOf(t, p))
	if err != nil {
		t.Fatalf("os.FindProcess: %v", err)
	}
	if err := nursery.Kill(); err != nil {
		t.Fatalf("nursery.Kill: %v", err)
	}
	eventually(t, func() bool { return strings.HasPrefix(layers.ProcStatus(nursery.Pid)["State"], "Z") })
	second := acquire(t, p, fakeProgram("b", ""))
	for _, s := range []*Sandbox{first, second} {
		if r := s.Run(t.Context(), do("echo")); r.Status != api.StatusSuccess {
			t.Errorf("run: got status %s, error %+v, want success", r.Status, r.Error)
		}
		p.Release(s)
	}
}

// TestSpawnFromALargeServer: the server's size costs a spawn nothing. A fork of
// this one would take a hundred milliseconds.
func TestSpawnFromALargeServer(t *testing.T) {
	ballast := make([]byte, 512<<20)
	for i := 0; i < len(ballast); i += os.Getpagesize() {
		ballast[i] = 1
	}
	p := newPool(t, fakeChild(t), places(1))
	p.Release(acquire(t, p, fakeProgram("first", ""))) // starts the nursery
	best := time.Hour
	for i := range 10 {
		start := time.Now()
		s := acquire(t, p, fakeProgram(fmt.Sprint("key", i), ""))
		best = min(best, time.Since(start))
		p.Release(s)
	}
	t.Logf("at best %v with %d MB", best, len(ballast)>>20)
	if best > 80*time.Millisecond {
		t.Errorf("got %v for the fastest spawn, want at most 80 ms", best)
	}
}
