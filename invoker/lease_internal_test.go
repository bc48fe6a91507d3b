package invoker

import (
	"encoding/json"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/invoker/sandbox"
)

// Host calls are served concurrently: the update that the function made last wins, in
// whatever order they arrive.
func TestUpdatesKeepTheLast(t *testing.T) {
	t.Parallel()
	var s hostcall.Scope
	j := &leasedJob{}
	(&worker{}).join(j, &sandbox.Call{}, &s)
	s.UpdateJob(2, hostcall.JobUpdate{Progress: &api.JobProgress{Current: 2}})
	s.UpdateJob(3, hostcall.JobUpdate{Checkpoint: json.RawMessage("3")})
	s.UpdateJob(1, hostcall.JobUpdate{Progress: &api.JobProgress{Current: 1}, Checkpoint: json.RawMessage("1")})
	if j.update.Progress.Current != 2 || string(j.update.Checkpoint) != "3" {
		t.Errorf("update = %+v %s, want progress 2 and checkpoint 3", j.update.Progress, j.update.Checkpoint)
	}
}
