package platformtest_test

import (
	"encoding/json"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/platformtest"
)

// A worker that was silent for longer than its lease cannot settle the job any
// more: whatever it says, what the next worker says counts.
func TestLateWorkerIsRefused(t *testing.T) {
	t.Parallel()
	server := platformtest.Serve(t, redis(t))
	namespace := server.API(t).Namespace(platformtest.Namespace)
	made, err := namespace.Queue("late").Enqueue(t.Context(), "", api.NewJob{Payload: json.RawMessage(`1`)})
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	fetch := func(worker string) api.FetchedJob {
		t.Helper()
		jobs, err := namespace.FetchJobs(t.Context(), api.FetchRequest{
			Queues: []string{"late"}, WorkerID: worker, LeaseMS: api.MinLeaseMS, WaitMS: 20_000,
		})
		if err != nil || len(jobs) != 1 || jobs[0].ID != made[0].ID {
			t.Fatalf("fetch by %s = %+v, %v, want one job", worker, jobs, err)
		}
		return jobs[0]
	}
	slow := fetch("slow")
	fast := fetch("fast") // waits until the first lease is over
	if fast.LeaseEpoch <= slow.LeaseEpoch || fast.Attempt != 2 {
		t.Errorf("second fetch = %+v, want the job %+v again with the next attempt", fast, slow)
	}
	ack := func(j api.FetchedJob, result string) api.JobOutcome {
		t.Helper()
		out, err := namespace.AckJobs(t.Context(), []api.JobAck{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Result: json.RawMessage(result)}})
		if err != nil || len(out) != 1 {
			t.Fatalf("AckJobs of job %s: got %d outcomes (%v) and error %v, want 1 outcome", j.ID, len(out), out, err)
		}
		return out[0]
	}
	lost := func(said string, out api.JobOutcome, state api.JobState) {
		t.Helper()
		if out.OK || out.Code != api.CodeJobLeaseLost || out.State != state {
			t.Errorf("%s: got %+v, want code %s and state %s", said, out, api.CodeJobLeaseLost, state)
		}
	}
	lost("ack beside the other", ack(slow, `"slow"`), api.JobActive)
	beats, err := namespace.HeartbeatJobs(t.Context(), "slow", []api.JobHeartbeat{{ID: slow.ID, LeaseEpoch: slow.LeaseEpoch}})
	if err != nil {
		t.Fatalf("HeartbeatJobs: %v", err)
	}
	lost("heartbeat", beats[0], api.JobActive)
	for range 2 { // a repeated ack has the same result
		if out := ack(fast, `"fast"`); !out.OK || out.State != api.JobCompleted {
			t.Errorf("ack of the present lease: got %+v, want success and state %s", out, api.JobCompleted)
		}
	}
	lost("ack after the other", ack(slow, `"slow"`), api.JobCompleted)
	fails, err := namespace.FailJobs(t.Context(), []api.JobFail{{ID: slow.ID, LeaseEpoch: slow.LeaseEpoch, Error: "slow"}})
	if err != nil {
		t.Fatalf("FailJobs: %v", err)
	}
	lost("fail", fails[0], api.JobCompleted)
	job, err := server.API(t).Job(t.Context(), slow.ID)
	if err != nil || job.State != api.JobCompleted || string(job.Result) != `"fast"` {
		t.Errorf("job %s: got state %s, result %s and error %v; want state %s and result %q", slow.ID, job.State, job.Result, err, api.JobCompleted, `"fast"`)
	}
	if len(job.Errors) != 1 || job.Errors[0].Error != "the lease of worker slow ran out" {
		t.Errorf("job.Errors = %+v, want the one of the expired lease", job.Errors)
	}
}
