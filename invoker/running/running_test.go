package running_test

import (
	"context"
	"testing"

	"github.com/codesous/sous/invoker/running"
)

// Work that begins after Close has stopped waiting is stopped too.
func TestRunningStopsLatecomers(t *testing.T) {
	t.Parallel()
	r := running.New()
	r.CancelAll()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	defer r.Add("t_test00", "id", stop)()
	if ctx.Err() == nil {
		t.Error("an activation that came after CancelAll runs on")
	}
}
