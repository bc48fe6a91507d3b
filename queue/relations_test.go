package queue_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
)

func TestOrderOfService(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		var want [4][]string
		for i := range 40 {
			p := api.Priorities()[i%4]
			// With an idempotency key, the order of ids is not that of the jobs.
			added, err := f.Enqueue(t.Context(), queue.Enqueue{
				Tenant: f.tenant, Namespace: namespace, Queue: emails, IdempotencyKey: strconv.Itoa(i),
				Jobs: []api.NewJob{job(`1`, func(j *api.NewJob) { j.Priority = p })},
			})
			if err != nil {
				t.Fatalf("Enqueue: %v", err)
			}
			want[i%4] = append(want[i%4], added[0].ID)
			if i%7 == 0 {
				f.clock.advance(time.Millisecond)
			}
		}
		var got []string
		for n := 1; len(got) < 40; n = n%5 + 1 {
			for _, j := range f.fetch(t, n) {
				got = append(got, j.ID)
			}
		}
		if all := slices.Concat(want[:]...); !slices.Equal(got, all) {
			t.Errorf("Fetch order: got %v\nwant %v", got, all)
		}
	})
}

// TestAStaleUniqueKeyIsFree: the holder has ended without releasing its key, or was never stored. A
// holder whose enqueue was interrupted before it was indexed keeps the key and is indexed. An
// idempotency key, if there is one, remembers the answer.
func TestAStaleUniqueKeyIsFree(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		keys := f.store.JobKeys(f.tenant)
		unique := func(j *api.NewJob) { j.UniqueKey = "k" }
		add := func(idempotency string) api.EnqueuedJob {
			t.Helper()
			out, err := f.Enqueue(t.Context(), queue.Enqueue{
				Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`1`, unique)}, IdempotencyKey: idempotency,
			})
			if err != nil {
				t.Fatalf("Enqueue: %v", err)
			}
			return out[0]
		}
		holder := keys.Unique(namespace, emails, "k")
		hold := func(id string) {
			t.Helper()
			if err := f.store.Client().Set(t.Context(), holder, id, 0).Err(); err != nil {
				t.Fatalf("Set: %v", err)
			}
		}
		first := add("")
		if again := add("one"); !again.Duplicate || again.ID != first.ID || again.State != api.JobPending {
			t.Errorf("add under a held unique key: got %+v, want a duplicate of %s, which is pending", again, first.ID)
		}
		f.ack(t, f.fetch(t, 1)[0], "")
		for n, ended := range []string{first.ID, api.NewJobID()} {
			for _, key := range []string{"", "two" + string(rune('a'+n))} {
				hold(ended)
				fresh := add(key)
				if fresh.Duplicate {
					t.Errorf("add with idempotency key %q after the holder has ended: got %+v, want no duplicate", key, fresh)
				}
				if key != "" {
					if again := add(key); again.ID != fresh.ID || again.Duplicate || !again.Replayed {
						t.Errorf("idempotency key %q: first %+v, repeat %+v, want the same job replayed", key, fresh, again)
					}
				}
				f.ack(t, f.fetch(t, 1)[0], "")
			}
		}
		interrupted := add("")
		if err := f.store.Client().ZRem(t.Context(), keys.Queue(namespace, emails).Set("pending"), interrupted.ID).Err(); err != nil {
			t.Fatalf("ZRem: %v", err)
		}
		if again := add(""); !again.Duplicate || again.ID != interrupted.ID {
			t.Errorf("add after an interrupted enqueue: got %+v, want a duplicate of %s", again, interrupted.ID)
		}
		if got := f.fetch(t, 10); len(got) != 1 || got[0].ID != interrupted.ID {
			t.Errorf("Fetch = %+v, want the holder of the key", got)
		}
		f.sound(t, interrupted.ID)
	})
}

// TestDependenciesThatEndTooSoon: a job ends before the one that depends on it is added, or at the
// same time.
func TestDependenciesThatEndTooSoon(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		tests := map[string]struct {
			policy string
			hold   bool
			dead   bool
			want   api.JobState
		}{
			"completed":      {"", false, false, api.JobPending},
			"dead, fail":     {"", false, true, api.JobDead},
			"dead, continue": {api.DependencyContinue, false, true, api.JobPending},
			"dead, hold":     {api.DependencyHold, false, true, api.JobHeld},

			"completed, to be held":      {"", true, false, api.JobHeld},
			"dead, fail, to be held":     {"", true, true, api.JobDead},
			"dead, continue, to be held": {api.DependencyContinue, true, true, api.JobHeld},
			"dead, hold, to be held":     {api.DependencyHold, true, true, api.JobHeld},
		}
		for name, tt := range tests {
			f.add(t, job(`1`))
			on := f.fetch(t, 1)[0]
			waiting := func(j *api.NewJob) {
				j.DependsOn, j.OnDependencyFailure, j.Hold = []string{on.ID}, tt.policy, tt.hold
			}
			done := make(chan []api.EnqueuedJob)
			go func() {
				out, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`3`, waiting)}})
				if err != nil {
					t.Errorf("Enqueue: %v", err)
				}
				done <- out
			}()
			if tt.dead {
				f.fail(t, on, func(j *api.JobFail) { j.Fatal = true })
			} else {
				f.ack(t, on, "")
			}
			during := <-done
			after := f.add(t, job(`4`, waiting))
			f.settle(t)
			for _, id := range []string{during[0].ID, after[0].ID} {
				if j := f.get(t, id); j.State != tt.want || (j.State == api.JobDead) != (j.DeadReason == api.DeadDependency) {
					t.Errorf("%s: got dependent job %s with dead reason %q, want %s", name, j.State, j.DeadReason, tt.want)
				}
			}
			if _, err := f.Clear(t.Context(), f.tenant, namespace, emails); err != nil {
				t.Fatalf("Clear: %v", err)
			}
			f.settle(t)
		}
		if _, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{
			job(`1`), job(`2`, func(j *api.NewJob) { j.DependsOn = []string{api.NewJobID()} }),
		}}); api.ErrorCode(err) != api.CodeJobNotFound {
			t.Errorf("Enqueue with an unknown dependency: got error %v, want CodeJobNotFound", err)
		}
	})
}

// TestConfinedEnqueue: a call that is confined to its namespace finds no jobs and no batches of
// others, and a refused call leaves nothing at them. A call without a bound finds both.
func TestConfinedEnqueue(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		root, batch := f.add(t, job(`1`))[0].ID, f.batch(t)
		dependents := f.store.JobKeys(f.tenant).Dependents(root)
		foreign, err := f.CreateBatch(t.Context(), f.tenant, "others", nil)
		if err != nil {
			t.Fatalf("CreateBatch: %v", err)
		}
		tests := map[string]struct {
			of   string // the namespace of the new job
			j    api.NewJob
			want api.Code
		}{
			"dependency":       {"others", job(`2`, func(j *api.NewJob) { j.DependsOn = []string{root} }), api.CodeJobNotFound},
			"batch":            {"others", job(`2`, inBatch(batch.ID)), api.CodeBatchNotFound},
			"own dependency":   {namespace, job(`2`, func(j *api.NewJob) { j.DependsOn = []string{root} }), ""},
			"own batch":        {namespace, job(`2`, inBatch(batch.ID)), ""},
			"unknown job":      {namespace, job(`2`, func(j *api.NewJob) { j.DependsOn = []string{root, api.NewJobID()} }), api.CodeJobNotFound},
			"foreign batch":    {namespace, job(`2`, inBatch(foreign.ID), func(j *api.NewJob) { j.DependsOn = []string{root} }), api.CodeBatchNotFound},
			"nothing referred": {"others", job(`2`), ""},
		}
		for name, tt := range tests {
			call := queue.Enqueue{Tenant: f.tenant, Namespace: tt.of, Queue: emails, Jobs: []api.NewJob{tt.j}, Confined: true}
			before, err := f.store.Client().SCard(t.Context(), dependents).Result()
			if err != nil {
				t.Fatalf("SCard: %v", err)
			}
			if _, err := f.Enqueue(t.Context(), call); api.ErrorCode(err) != tt.want {
				t.Errorf("%s: Enqueue confined to %s: got error %v, want code %q", name, tt.of, err, tt.want)
			}
			after, err := f.store.Client().SCard(t.Context(), dependents).Result()
			if err != nil || tt.want != "" && after != before {
				t.Errorf("%s: got %d dependents and error %v after a refused call, want %d", name, after, err, before)
			}
			if tt.want == "" || name == "unknown job" {
				continue
			}
			call.Confined = false
			if _, err := f.Enqueue(t.Context(), call); err != nil {
				t.Errorf("%s: Enqueue that is not confined: %v", name, err)
			}
		}
	})
}

// TestABatchCallsBackOnce: the batch is sealed before or after its jobs have ended, and a job ends a
// second time.
func TestABatchCallsBackOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for _, early := range []bool{true, false} {
			b := f.batch(t)
			f.add(t, job(`1`, inBatch(b.ID)), job(`2`, inBatch(b.ID)))
			seal := func() {
				if _, err := f.SealBatch(t.Context(), f.tenant, namespace, b.ID); err != nil {
					t.Fatalf("SealBatch: %v", err)
				}
			}
			if early {
				seal()
				if _, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`3`, inBatch(b.ID))}}); api.ErrorCode(err) != api.CodeBatchSealed {
					t.Errorf("Enqueue in a sealed batch: got error %v, want CodeBatchSealed", err)
				}
			}
			jobs := f.fetch(t, 2)
			f.ack(t, jobs[0], "")
			f.settle(t)
			if _, err := f.Get(t.Context(), f.tenant, b.CallbackID); api.ErrorCode(err) != api.CodeJobNotFound {
				t.Error("Get of the callback before the batch is complete: want CodeJobNotFound, got", err)
			}
			f.fail(t, jobs[1], func(j *api.JobFail) { j.Fatal = true })
			seal()
			called, err := f.Get(t.Context(), f.tenant, b.CallbackID)
			if err != nil || called.State != api.JobPending || string(called.Payload) != `"done"` || called.ParentID != "" || called.CallbackOf != b.ID {
				t.Fatalf("Get of the callback: got %+v, error %v, want it pending with payload \"done\", without a parent, of batch %s", called, err, b.ID)
			}
			got, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{"callbacks"}, WorkerID: "w1", Count: 5})
			if err != nil || len(got) != 1 || got[0].ParentID != "" || got[0].CallbackOf != b.ID {
				t.Fatalf("Fetch: got %+v, error %v, want one job, the callback of batch %s", got, err, b.ID)
			}
			f.ack(t, got[0], "")
			if _, err := f.Retry(t.Context(), f.tenant, jobs[1].ID); err != nil { // it ends a second time
				t.Fatalf("Retry: %v", err)
			}
			f.ack(t, f.fetch(t, 1)[0], "")
			seal()
			if got := f.get(t, b.CallbackID); got.State != api.JobCompleted || got.Attempt != 1 {
				t.Errorf("Fetch = %+v, want no second callback", got)
			}
			if got, err := f.GetBatch(t.Context(), f.tenant, namespace, b.ID); err != nil || got.Succeeded != 2 || got.Failed != 0 {
				t.Errorf("GetBatch: got %+v, error %v, want 2 succeeded and none failed", got, err)
			}
		}
	})
}

// TestAChainRunsItsSteps: a chain runs all steps, or on_failure after the first failure, and on_exit in
// either case.
func TestAChainRunsItsSteps(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		step := func(payload, q string) api.ChainStep { return api.ChainStep{Queue: q, NewJob: job(payload)} }
		failure, exit := step(`"failure"`, "others"), step(`"exit"`, "others")
		for fails, want := range map[int][]string{
			-1: {`"first"`, `"one"`, `"two"`, `"exit"`},
			0:  {`"first"`, `"failure"`, `"exit"`},
			2:  {`"first"`, `"one"`, `"two"`, `"failure"`, `"exit"`},
		} {
			first := f.add(t, job(`"first"`, func(j *api.NewJob) {
				j.Chain = &api.Chain{Steps: []api.ChainStep{step(`"one"`, ""), step(`"two"`, "others")}, OnFailure: &failure, OnExit: &exit}
			}))[0].ID
			var ran []string
			for n := 0; ; n++ {
				got, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{emails, "others"}, WorkerID: "w1"})
				if err != nil {
					t.Fatalf("Fetch: %v", err)
				}
				if len(got) == 0 {
					break
				}
				ran = append(ran, string(got[0].Payload))
				if n > 0 {
					if j := f.get(t, got[0].ID); j.ChainID != first || j.ChainStep == 0 {
						t.Errorf("got job %+v, want a later step of chain %s", j, first)
					}
				}
				if n == fails {
					f.fail(t, got[0], func(j *api.JobFail) { j.Fatal = true })
				} else {
					f.ack(t, got[0], "")
				}
			}
			if !slices.Equal(ran, want) {
				t.Errorf("chain failing at step %d ran %v, want %v", fails, ran, want)
			}
		}
		f.sound(t)
	})
}
