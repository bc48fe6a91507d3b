package invoker

import (
	"context"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/resolve"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
)

// Only callers that run the very version hold its places.
func TestCheckHeldCountsTheVersionsOwnCallers(t *testing.T) {
	t.Parallel()
	pool, err := sandbox.New(sandbox.Config{Executable: sandboxtest.Executable(t), MaxProcesses: 4, Spares: -1})
	if err != nil {
		t.Fatalf("sandbox.New: %v", err)
	}
	t.Cleanup(func() {
		if err := pool.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("pool.Close: %v", err)
		}
	})
	i := &Invoker{pool: pool}
	res := &resolve.Resolution{}
	res.Version.Version, res.Version.Config.MaxConcurrency = 3, 2
	self := api.Caller{Namespace: "default", Function: "f", Version: 3}
	for name, tt := range map[string]struct {
		other api.Caller
		want  api.Code
	}{
		"itself":            {self, api.CodeHostInvokeCycle},
		"another namespace": {api.Caller{Namespace: "other", Function: "f", Version: 3}, ""},
		"another function":  {api.Caller{Namespace: "default", Function: "g", Version: 3}, ""},
		"another version":   {api.Caller{Namespace: "default", Function: "f", Version: 2}, ""},
	} {
		inv := &api.Invocation{Namespace: "default", Function: "f", Callers: []api.Caller{self, tt.other}}
		var code api.Code
		if err := i.checkHeld(inv, res); err != nil {
			code = api.ErrorCode(err)
		}
		if code != tt.want {
			t.Errorf("%s: %q, want %q", name, code, tt.want)
		}
	}
}
