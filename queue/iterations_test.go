package queue_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
)

// agentJob returns a job with agent.
func agentJob(o agent.Options) api.NewJob {
	return job(`{"question":1}`, func(j *api.NewJob) { j.Agent = &o })
}

// goOn acks a job with continue, with a checkpoint and a trace that name the lease.
func (f *fixture) goOn(t testing.TB, j api.FetchedJob, change ...func(*api.JobAck)) api.JobOutcome {
	t.Helper()
	mark := json.RawMessage(fmt.Sprintf(`{"epoch":%d}`, j.LeaseEpoch))
	ack := api.JobAck{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Continue: true, Checkpoint: mark, Trace: mark, Result: json.RawMessage(`"partly"`)}
	for _, c := range change {
		c(&ack)
	}
	out, err := f.Ack(t.Context(), f.tenant, []api.JobAck{ack})
	if err != nil {
		t.Fatalf("Ack: %v", err)
	}
	return out[0]
}

// iterations reads all iterations of a job, by pages of n.
func (f *fixture) iterations(t testing.TB, id string, n int) (all []agent.Iteration) {
	t.Helper()
	for position := ""; ; {
		page, next, err := f.Iterations(t.Context(), f.tenant, id, position, n)
		if err != nil {
			t.Fatalf("Iterations: %v", err)
		}
		if len(page) > n {
			t.Fatalf("Iterations: got a page of %d, want at most %d", len(page), n)
		}
		all = append(all, page...)
		if next == "" {
			return all
		}
		position = next
	}
}

// TestContinueEndsAnIteration: each continue and hold ends an iteration, of which the record is kept,
// and failures count within one.
func TestContinueEndsAnIteration(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, agentJob(agent.Options{}))[0].ID
		if got := f.iterations(t, id, 10); len(got) != 0 {
			t.Errorf("iterations before the first fetch: got %+v, want none", got)
		}
		one := f.fetch(t, 1)[0]
		f.fail(t, one, func(j *api.JobFail) { j.RetryAfterMS = new(int64) })
		f.tend(t)
		one = f.fetch(t, 1)[0]
		for range 2 {
			if out := f.goOn(t, one); !out.OK || out.State != api.JobPending {
				t.Fatalf("continue: got %+v, want success and state pending", out)
			}
		}
		two := f.fetch(t, 1)[0]
		if two.Attempt != 1 || string(two.Checkpoint) != `{"epoch":2}` {
			t.Errorf("second iteration: got attempt %d and checkpoint %s, want 1 and that of epoch 2", two.Attempt, two.Checkpoint)
		}
		f.goOn(t, two, func(a *api.JobAck) { a.Continue, a.Hold = false, "look" })
		if _, err := f.Approve(t.Context(), f.tenant, id); err != nil {
			t.Fatalf("Approve: %v", err)
		}
		three := f.fetch(t, 1)[0]
		if j := f.get(t, id); j.Iteration != 3 {
			t.Errorf("job: got iteration %d, want 3", j.Iteration)
		}
		if out := f.ack(t, three, `"done"`); !out.OK {
			t.Fatalf("ack: got %+v, want success", out)
		}
		for _, size := range []int{1, 2, 10} {
			got := f.iterations(t, id, size)
			if len(got) != 3 {
				t.Fatalf("iterations by pages of %d: got %+v, want 3", size, got)
			}
			for i, want := range []agent.Iteration{
				{Status: agent.IterationContinued, Attempt: 2, LeaseEpoch: 2, Checkpoint: json.RawMessage(`{"epoch":2}`), Trace: json.RawMessage(`{"epoch":2}`), Result: json.RawMessage(`"partly"`)},
				{Status: agent.IterationHeld, Attempt: 1, LeaseEpoch: 3, HoldReason: "look", Checkpoint: json.RawMessage(`{"epoch":3}`), Trace: json.RawMessage(`{"epoch":3}`), Result: json.RawMessage(`"partly"`)},
				{Status: agent.IterationCompleted, Attempt: 1, LeaseEpoch: 4},
			} {
				it := got[i]
				if it.Iteration != int64(i+1) || it.Status != want.Status || it.Attempt != want.Attempt || it.LeaseEpoch != want.LeaseEpoch || it.HoldReason != want.HoldReason ||
					string(it.Checkpoint) != string(want.Checkpoint) || string(it.Trace) != string(want.Trace) || string(it.Result) != string(want.Result) || it.WorkerID != "w1" || it.StartedAtMS == 0 || it.EndedAtMS == 0 {
					t.Errorf("iteration %d: got %+v, want %+v", i+1, it, want)
				}
			}
		}
		f.sound(t, id)
	})
}

// TestIterationsAreBounded: a job keeps its last iterations, and they are deleted with it.
func TestIterationsAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, agentJob(agent.Options{}))[0].ID
		const ended = agent.KeptIterations + 3
		for range ended {
			f.goOn(t, f.fetch(t, 1)[0])
		}
		got := f.iterations(t, id, 500)
		if len(got) != agent.KeptIterations || got[0].Iteration != ended-agent.KeptIterations+1 || got[len(got)-1].Iteration != ended {
			t.Errorf("iterations: got %d from %d on, want the last %d of %d", len(got), got[0].Iteration, agent.KeptIterations, ended)
		}
		fields, err := f.store.Client().HLen(t.Context(), f.store.JobKeys(f.tenant).Meta(id)).Result()
		if err != nil || fields > agent.KeptIterations+2 {
			t.Errorf("fields of the job's hash: got %d, error %v, want at most %d", fields, err, agent.KeptIterations+2)
		}
		if err := f.Delete(t.Context(), f.tenant, id); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		if left := f.scan(t, "*"+id+"*"); len(left) > 0 {
			t.Errorf("keys of the deleted job: got %v, want none", left)
		}
	})
}
