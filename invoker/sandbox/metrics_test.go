package sandbox

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/invoker/sandbox/memory"
	"github.com/codesous/sous/metrics/metricstest"
)

// measuredPool is a pool of fake children without spares, and what it exports.
func measuredPool(t *testing.T, change ...func(*Config)) (*Pool, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	change = append([]func(*Config){fakeChild(t), places(2), func(c *Config) { c.Metrics, c.Logger = reg, zap.NewNop() }}, change...)
	return newPool(t, change...), reg
}

// TestEndsAreCountedByReason ends a child for each reason; it then counts
// under that one and no other.
func TestEndsAreCountedByReason(t *testing.T) {
	t.Parallel()
	run := func(what string) func(*testing.T, *Pool) {
		return func(t *testing.T, p *Pool) {
			s := acquire(t, p, fakeProgram("a", ""))
			s.Run(t.Context(), do(what))
			p.Release(s)
		}
	}
	for reason, end := range map[endReason]func(*testing.T, *Pool){
		endCrash:    run("exit 3"),
		endMemory:   run("oom"),
		endStack:    run("stack"),
		endProtocol: run("garbage"),
		endRetired: func(t *testing.T, p *Pool) {
			s := acquire(t, p, fakeProgram("a", ""))
			s.spent = true
			p.Release(s)
		},
		endTimeout: func(t *testing.T, p *Pool) {
			s := acquire(t, p, fakeProgram("a", ""))
			s.Run(t.Context(), call(`"spin"`, 50*time.Millisecond))
			p.Release(s)
		},
		endCancelled: func(t *testing.T, p *Pool) {
			ctx, cancel := context.WithCancel(t.Context())
			s := acquire(t, p, fakeProgram("a", ""))
			idle := s.child.cpuTime()
			go func() {
				for s.child.cpuTime() < idle+10*time.Millisecond { // until it spins
					runtime.Gosched()
				}
				cancel()
			}()
			s.Run(ctx, call(`"spin"`, time.Minute))
			p.Release(s)
		},
		endIdle: func(t *testing.T, p *Pool) {
			p.Release(acquire(t, p, fakeProgram("a", "")))
			p.retireIdle(time.Now().Add(time.Hour))
		},
		endEvicted: func(t *testing.T, p *Pool) {
			for _, key := range []string{"a", "b", "c"} {
				p.Release(acquire(t, p, fakeProgram(key, "")))
			}
		},
		endRestless: func(t *testing.T, p *Pool) {
			s := acquire(t, p, fakeProgram("a", ""))
			p.Release(s)
			p.mu.Lock()
			s.seen, s.seenCPU = s.idleSince, -time.Hour
			p.mu.Unlock()
			p.endRestless()
		},
		endUnusable: func(t *testing.T, p *Pool) {
			if _, err := p.Acquire(t.Context(), fakeProgram("a", "refuse"), nil); err == nil {
				t.Error("refused source was used")
			}
		},
		endCompile: func(t *testing.T, p *Pool) {
			if err := p.Check(t.Context(), fakeProgram("a", "spin")); err == nil {
				t.Error("got no error of source that compiles without end, want one")
			}
		},
		endChecked: func(t *testing.T, p *Pool) {
			if err := p.Check(t.Context(), fakeProgram("a", "")); err != nil {
				t.Errorf("p.Check: %v", err)
			}
		},
		endShutdown: func(t *testing.T, p *Pool) {
			p.Release(acquire(t, p, fakeProgram("a", "")))
			if err := p.Close(t.Context()); err != nil {
				t.Errorf("p.Close: %v", err)
			}
		},
	} {
		t.Run(reason.String(), func(t *testing.T) {
			t.Parallel()
			p, reg := measuredPool(t, func(c *Config) { c.CompileCPU = 300 * time.Millisecond })
			end(t, p)
			eventually(t, func() bool {
				return metricstest.Value(t, reg, "sous_sandbox_ends_total", "reason="+reason.String()) == 1
			})
			if all := metricstest.Value(t, reg, "sous_sandbox_ends_total"); all != 1 {
				t.Errorf("got %g ends, want 1", all)
			}
		})
	}
}

// A child that stopped a script by itself ends for the same reason as one that
// had to be stopped.
func TestEndsOfOurChildren(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	p := newPool(t, places(1), func(c *Config) { c.Metrics, c.Logger = reg, zap.NewNop() })
	for reason, source := range map[endReason]string{
		endTimeout: `export default () => { for (;;) {} }`,
		endMemory:  `export default () => { const all = []; for (;;) all.push(new Array(1000).fill(1.5)); }`,
	} {
		s := acquire(t, p, program(t, reason.String(), source))
		patience := map[endReason]time.Duration{endTimeout: 50 * time.Millisecond, endMemory: 30 * time.Second}[reason]
		s.Run(t.Context(), call("1", patience))
		p.Release(s)
		eventually(t, func() bool {
			return metricstest.Value(t, reg, "sous_sandbox_ends_total", "reason="+reason.String()) == 1
		})
	}
	if err := p.Check(t.Context(), program(t, "c", `export default () => 1`)); err != nil {
		t.Errorf("p.Check: %v", err)
	}
	if err := p.Check(t.Context(), program(t, "d", `export default (`)); err == nil {
		t.Error("source that cannot be read was accepted")
	}
	eventually(t, func() bool { return metricstest.Value(t, reg, "sous_sandbox_ends_total", "reason=checked") == 2 })
	if all := metricstest.Value(t, reg, "sous_sandbox_ends_total"); all != 4 {
		t.Errorf("got %g ends, want 4", all)
	}
}

// A child that does not come up is a failed start.
func TestFailedStartsAreCounted(t *testing.T) {
	t.Parallel()
	p, reg := measuredPool(t, func(c *Config) { c.Executable = "/bin/false" })
	if _, err := p.Acquire(t.Context(), fakeProgram("a", ""), nil); err == nil {
		t.Fatal("/bin/false is a sandbox")
	}
	if got := metricstest.Value(t, reg, "sous_sandbox_starts_total", "outcome=error"); got != 1 {
		t.Errorf("got %g failed starts, want 1", got)
	}
}

// The states add up to the children there are, while they are at work as well.
func TestProcessesAreCountedByState(t *testing.T) {
	t.Parallel()
	p, reg := measuredPool(t, func(c *Config) { c.Spares = 2 })
	waitSpares(t, p)
	is := func(state string) float64 {
		return metricstest.Value(t, reg, "sous_sandbox_processes", "state="+state)
	}
	prog := fakeProgram("a", "")
	loading := make(chan struct{})
	bundle := prog.Bundle
	prog.Bundle = func(ctx context.Context) ([]byte, error) {
		if is("starting") != 1 || is("busy") != 0 {
			t.Errorf("while it loads: got %g starting and %g busy, want 1 and 0", is("starting"), is("busy"))
		}
		close(loading)
		return bundle(ctx)
	}
	s := acquire(t, p, prog)
	<-loading
	if is("starting") != 0 || is("busy") != 1 || is("warm") != 0 {
		t.Errorf("at work: got %g starting, %g busy and %g warm, want 0, 1 and 0", is("starting"), is("busy"), is("warm"))
	}
	if got := metricstest.Value(t, reg, "sous_sandbox_memory_reserved_bytes"); got != float64(memory.BudgetBytes(64)) {
		t.Errorf("got %g bytes reserved, want %d", got, memory.BudgetBytes(64))
	}
	p.Release(s)
	if is("busy") != 0 || is("warm") != 1 {
		t.Errorf("after its return: got %g busy and %g warm, want 0 and 1", is("busy"), is("warm"))
	}
	eventually(t, func() bool { return is("spare") == 2 })
	p.Release(acquire(t, p, prog))
	for result, want := range map[string]float64{"cold": 1, "warm": 1, "refused": 0} {
		if got := metricstest.Value(t, reg, "sous_sandbox_acquisitions_total", "result="+result); got != want {
			t.Errorf("%g %s acquisitions, want %g", got, result, want)
		}
	}
	if got := metricstest.Value(t, reg, "sous_sandbox_cold_start_duration_seconds"); got != 1 {
		t.Errorf("got %g timed cold starts, want 1", got)
	}
	if got := metricstest.Value(t, reg, "sous_sandbox_nursery_starts_total"); got != 1 {
		t.Errorf("got %g starts of a nursery, want 1", got)
	}
	if got := metricstest.Value(t, reg, "sous_cache_entries", "cache=scripts"); got != 1 {
		t.Errorf("got %g cached scripts, want 1", got)
	}
}

// The keeper's rounds are counted, and those that could not fill the spares.
func TestKeeperIsMeasured(t *testing.T) {
	t.Parallel()
	for outcome, executable := range map[string]string{"ok": "", "error": "/bin/false"} {
		_, reg := measuredPool(t, func(c *Config) {
			c.Spares = 1
			if executable != "" {
				c.Executable = executable
			}
		})
		eventually(t, func() bool {
			return metricstest.Value(t, reg, "sous_loop_rounds_total", "loop=sandbox_keeper", "outcome="+outcome) > 0
		})
	}
}
