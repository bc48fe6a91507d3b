package hostcall

import (
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// What a child says of a workflow is bounded, whatever its capability allows.
func TestCadenceHostBoundsItsArguments(t *testing.T) {
	t.Parallel()
	h := &cadenceCalls{workflows: struct{ Workflows }{}}
	long := strings.Repeat("x", api.MaxCadenceNameBytes+1)
	for name, args := range map[string]wire.Workflow{
		"domain":     {Domain: long},
		"workflow":   {Workflow: long},
		"workflowId": {WorkflowID: long},
		"runId":      {RunID: long},
		"signal":     {Signal: long},
		"tasklist":   {Tasklist: long},
	} {
		if err := h.check(args, nil); api.ErrorCode(err) != api.CodeHostInvalidArgument {
			t.Errorf("h.check: %s: %v, want code %s", name, err, api.CodeHostInvalidArgument)
		}
	}
	for n, want := range map[float64]time.Duration{0: time.Hour, 0.5: time.Second, 60: time.Minute, -1: 0, -1.84e10: 0, 1e300: 1e9 * time.Second} {
		if got := seconds(n, time.Hour); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}
