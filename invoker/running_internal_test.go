package invoker

import (
	"context"
	"testing"
)

// Work that begins after Close has stopped waiting is stopped too.
func TestRunningStopsLatecomers(t *testing.T) {
	t.Parallel()
	r := newRunning()
	r.cancelAll()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	defer r.add("t_test00", "id", stop)()
	if ctx.Err() == nil {
		t.Error("an activation that came after cancelAll runs on")
	}
}
