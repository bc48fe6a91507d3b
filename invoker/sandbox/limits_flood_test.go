package sandbox

import (
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"go.uber.org/zap"
)

// TestRunEndsAFloodOfFrames: what a child may send in an activation is bounded, for each kind
// of frame that costs it nothing.
func TestRunEndsAFloodOfFrames(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"floodlogs":     "the sandbox was ended: it sent more than it may: logs beyond their limit of 1 MiB",
		"floodabandons": "the sandbox was ended: it sent more than it may: more than 1 GiB in arguments of calls, logs and results",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, fakeChild(t), func(c *Config) { c.Logger = zap.NewNop() })
			s := acquire(t, p, fakeProgram(what, ""))
			defer p.Release(s)
			c := call(`"`+what+`"`, 2*time.Minute)
			r := s.Run(t.Context(), c)
			if r.Status != api.StatusError || r.Error == nil || r.Error.Type != api.ErrSandboxCrash || r.Error.Message != want {
				t.Errorf("run %s: got %s, %+v, want error %s %q", what, r.Status, r.Error, api.ErrSandboxCrash, want)
			}
		})
	}
}

// TestRunEndsAtItsCPULimit: a script that spins ends at its limit, as does a child that does not
// stop by itself; one that waits longer than its limit does not, and an instance counts each
// activation from its beginning.
func TestRunEndsAtItsCPULimit(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	prog := program(t, "cpu", `export default async (ms) => {
  if (ms < 0) { await new Promise((r) => setTimeout(r, -ms)); return "waited"; }
  for (const end = performance.now() + ms; performance.now() < end;);
  return "worked";
}`)
	prog.Instance = true
	const limit = 400 * time.Millisecond
	for _, tt := range []struct {
		event string
		ends  bool
	}{{"-1000", false}, {"60000", true}, {"1", false}, {"1", false}} {
		s := acquire(t, p, prog)
		c := call(tt.event, time.Minute)
		c.CPULimit = limit
		r := s.Run(t.Context(), c)
		p.Release(s)
		if !tt.ends {
			if r.Status != api.StatusSuccess {
				t.Errorf("event %s: got %s, %+v, want success", tt.event, r.Status, r.Error)
			}
			continue
		}
		if r.Error == nil || r.Error.Type != api.ErrCPULimit || !strings.Contains(r.Error.Message, "limit of 400 ms: raise limits.cpuMs") {
			t.Errorf("event %s: got %s, %+v, want %s that names the limit", tt.event, r.Status, r.Error, api.ErrCPULimit)
		}
		if r.CPU < limit || r.CPU > limit+250*time.Millisecond {
			t.Errorf("event %s: got %v of processor time, want %v and little more", tt.event, r.CPU, limit)
		}
	}
}

// TestCPULimitOfAHostileChild: the limit is measured from outside.
func TestCPULimitOfAHostileChild(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.Logger = zap.NewNop() })
	s := acquire(t, p, fakeProgram("spins", ""))
	defer p.Release(s)
	c := call(`"spin"`, time.Minute)
	c.CPULimit = 100 * time.Millisecond
	if r := s.Run(t.Context(), c); r.Error == nil || r.Error.Type != api.ErrCPULimit {
		t.Errorf("got %s, %+v, want error %s", r.Status, r.Error, api.ErrCPULimit)
	}
}
