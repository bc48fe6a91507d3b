package queue_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// aroundScripts is a hook that calls before ahead of each pipeline with a script, and after
// behind it. n counts the earlier such pipelines. Either may be nil.
type aroundScripts struct {
	before func(n int64)
	after  func(n int64, again func() error)
	seen   atomic.Int64
	busy   atomic.Bool // during a call of before or after, whose own scripts are ignored
}

func (h *aroundScripts) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (h *aroundScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *aroundScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		script := false
		for _, cmd := range cmds {
			script = script || strings.HasPrefix(cmd.Name(), "evalsha")
		}
		if !script || !h.busy.CompareAndSwap(false, true) {
			return next(ctx, cmds)
		}
		defer h.busy.Store(false)
		n := h.seen.Add(1) - 1
		if h.before != nil {
			h.before(n)
		}
		err := next(ctx, cmds)
		if h.after != nil && err == nil {
			h.after(n, func() error { return next(ctx, cmds) })
		}
		return err
	}
}

// warm loads every script that the life of a job needs, so that later pipelines contain them.
func (f *fixture) warm(t *testing.T) {
	t.Helper()
	f.add(t, job(`0`))
	for _, j := range f.fetch(t, 1) {
		if out := f.ack(t, j, ""); !out.OK {
			t.Fatalf("ack: got %+v, want success", out)
		}
	}
}

// TestAClaimTakesNoJobThatChangedMeanwhile changes a job between the read by a fetch and its
// claim. The job has never run, or has run once.
func TestAClaimTakesNoJobThatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	changes := map[string]func(t *testing.T, f *fixture, id string) (want api.JobState){
		"cancelled": func(t *testing.T, f *fixture, id string) api.JobState {
			if _, err := f.Cancel(t.Context(), f.tenant, id); err != nil {
				t.Errorf("Cancel: %v", err)
			}
			return api.JobCancelled
		},
		"moved": func(t *testing.T, f *fixture, id string) api.JobState {
			if _, err := f.Move(t.Context(), f.tenant, id, "others"); err != nil {
				t.Errorf("Move: %v", err)
			}
			return api.JobPending
		},
		"held": func(t *testing.T, f *fixture, id string) api.JobState {
			if _, err := f.Hold(t.Context(), f.tenant, id, ""); err != nil {
				t.Errorf("Hold: %v", err)
			}
			return api.JobHeld
		},
	}
	for name, change := range changes {
		for _, ran := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
				f.warm(t)
				id := f.add(t, job(`1`))[0].ID
				claims := int64(0) // the pipeline that claims the job
				if ran {
					at := int64(0)
					f.fail(t, f.fetch(t, 1)[0], func(fail *api.JobFail) { fail.RetryAfterMS = &at })
					f.tend(t)
					claims = 1 // the first claim finds that the run does not follow from the spec
				}
				var want api.JobState
				hook := &aroundScripts{before: func(n int64) {
					if n == claims {
						want = change(t, f, id)
					}
				}}
				f.store.Client().AddHook(hook)
				if got := f.fetch(t, 1); len(got) != 0 {
					t.Errorf("Fetch = %+v, want no job", got)
				}
				if want == "" {
					t.Fatal("Fetch ran no claim script")
				}
				if j := f.get(t, id); j.State != want {
					t.Errorf("the job is %s, want %s", j.State, want)
				}
				f.sound(t, id)
			})
		}
	}
}

// TestAnAddThatIsRepeatedLeavesBegunJobsAlone sends an enqueue again, as the store's client
// does after a lost reply, when a worker has started the job, and when the job has ended.
func TestAnAddThatIsRepeatedLeavesBegunJobsAlone(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
		f.warm(t)
		want := api.JobActive
		hook := &aroundScripts{after: func(n int64, again func() error) {
			if n > 0 {
				return
			}
			got := f.fetch(t, 1)
			if len(got) != 1 {
				t.Errorf("fetch: got %+v, want one job", got)
				return
			}
			if ended {
				want = api.JobCompleted
				if out := f.ack(t, got[0], ""); !out.OK {
					t.Errorf("ack: got %+v, want success", out)
				}
			}
			if err := again(); err != nil {
				t.Errorf("again: %v", err)
			}
		}}
		f.store.Client().AddHook(hook)
		id := f.add(t, job(`1`))[0].ID
		if j := f.get(t, id); hook.seen.Load() == 0 || j.State != want {
			t.Errorf("the job is %s, want %s", j.State, want)
		}
		if got := f.fetch(t, 1); len(got) != 0 {
			t.Errorf("second Fetch = %+v, want no job", got)
		}
		f.sound(t, id)
	}
}

// TestALostRaceCountsNoCrash: another replica reclaims the jobs of a dead worker between the read
// and the move of this one. Only the replica that moved a job counts it.
func TestALostRaceCountsNoCrash(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	f := newFixture(t, cfg)
	other := f.beside(t, cfg, 0)
	f.add(t, job(`1`, func(j *api.NewJob) { j.MaxAttempts = 1 }), job(`2`, func(j *api.NewJob) { j.MaxAttempts = 1 }), job(`3`))
	if got := f.fetch(t, 3); len(got) != 3 {
		t.Fatalf("Fetch = %+v, want 3 jobs", got)
	}
	f.clock.advance(time.Minute)
	var first queue.Counts
	hook := &aroundScripts{before: func(n int64) {
		if n == 0 {
			f.clock.advance(time.Second) // an equal move would count as a repeat of the same call
			first = other.tend(t)
		}
	}}
	f.store.Client().AddHook(hook)
	second := f.tend(t)
	if first.Reclaimed != 3 || first.Crashed != 2 {
		t.Errorf("Tend of the first replica = %+v, want 3 reclaimed, 2 of them crashed", first)
	}
	if hook.seen.Load() == 0 || second.Reclaimed != 0 || second.Crashed != 0 {
		t.Errorf("Tend of the second replica = %+v, want none reclaimed or crashed", second)
	}
}

// TestAnAddThatIsRefusedLeavesNothing: the records are written before the script refuses the
// call, and are deleted then.
func TestAnAddThatIsRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		draining := true
		if _, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{Draining: &draining}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		_, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`1`), job(`2`)}})
		if api.ErrorCode(err) != api.CodeQueueDraining {
			t.Fatalf("Enqueue in a draining queue: got error %v, want CodeQueueDraining", err)
		}
		k := f.store.JobKeys(f.tenant)
		if left := storagetest.Keys(t, f.store.Client(), strings.TrimSuffix(k.Run("x"), "x:run")+"*"); len(left) != 0 {
			t.Errorf("keys after a refused Enqueue = %v, want none", left)
		}
	})
}

// TestAnAddThatIsRefusedWhenItIsRepeated: a refused enqueue does not delete a job that a worker
// has started. The first try had added it, and the queue has been draining since.
func TestAnAddThatIsRefusedWhenItIsRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	f.warm(t)
	var begun api.FetchedJob
	f.store.Client().AddHook(&aroundScripts{after: func(n int64, again func() error) {
		if n > 0 {
			return
		}
		draining := true
		got := f.fetch(t, 1)
		if _, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{Draining: &draining}); err != nil || len(got) != 1 {
			t.Errorf("Fetch = %+v, Configure error %v; want one job, no error", got, err)
			return
		}
		begun = got[0]
		if err := again(); err == nil {
			t.Error("the repeat succeeded, want CodeQueueDraining")
		}
	}})
	if _, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`1`)}}); api.ErrorCode(err) != api.CodeQueueDraining {
		t.Errorf("Enqueue in a draining queue: got error %v, want CodeQueueDraining", err)
	}
	if out := f.ack(t, begun, ""); !out.OK {
		t.Errorf("ack: got %+v, want success", out)
	}
}

// TestARefusedRepeatLeavesNoEntries: the first try of an enqueue added jobs of all priorities, its
// reply was lost, and the repeat is refused. No set keeps the id of a job that was deleted.
func TestARefusedRepeatLeavesNoEntries(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	f.warm(t)
	hook := &aroundScripts{after: func(n int64, again func() error) {
		if n > 0 {
			return
		}
		draining := true
		if _, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{Draining: &draining}); err != nil {
			t.Errorf("Configure: %v", err)
		}
		if err := again(); err == nil {
			t.Error("the repeat succeeded, want CodeQueueDraining")
		}
	}}
	f.store.Client().AddHook(hook)
	var jobs []api.NewJob
	for _, priority := range api.Priorities() {
		jobs = append(jobs, job(`1`, func(j *api.NewJob) { j.Priority = priority }))
	}
	_, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: jobs})
	if api.ErrorCode(err) != api.CodeQueueDraining || hook.seen.Load() == 0 {
		t.Fatalf("Enqueue = %v after %d scripts, want CodeQueueDraining", err, hook.seen.Load())
	}
	pending := f.store.JobKeys(f.tenant).Queue(namespace, emails).Set(string(api.JobPending))
	if left := storagetest.Keys(t, f.store.Client(), pending+"*"); len(left) != 0 {
		t.Errorf("sets of pending jobs after a refused Enqueue = %v, want none", left)
	}
}

// TestAPlainAckIsRepeated: the second ack finds the run that the first one wrote.
func TestAPlainAckIsRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`))[0].ID
		got := f.fetch(t, 1)[0]
		for range 2 {
			if out := f.ack(t, got, ""); !out.OK || out.State != api.JobCompleted {
				t.Errorf("ack: got %+v, want success and state completed", out)
			}
		}
		if _, err := f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: id, LeaseEpoch: got.LeaseEpoch}}); err != nil {
			t.Errorf("Heartbeat: %v", err)
		}
		if j := f.get(t, id); j.State != api.JobCompleted {
			t.Errorf("got job %+v, want state completed", j)
		}
		f.sound(t, id)
	})
}

// TestAPlainAckAfterAHeartbeat: the stored run differs from the one that the process cached.
func TestAPlainAckAfterAHeartbeat(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`))[0].ID
		got := f.fetch(t, 1)[0]
		f.clock.ms.Add(1000)
		if _, err := f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: id, LeaseEpoch: got.LeaseEpoch, Progress: &api.JobProgress{Current: 1}}}); err != nil {
			t.Fatalf("Heartbeat: %v", err)
		}
		if out := f.ack(t, got, ""); !out.OK {
			t.Errorf("ack: got %+v, want success", out)
		}
		f.sound(t, id)
	})
}

// TestAPlainAckOfALostLease: the process has cached the run of a lease that has been lost.
func TestAPlainAckOfALostLease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		cancelled, again := f.add(t, job(`1`))[0].ID, f.add(t, job(`2`))[0].ID
		got := f.fetch(t, 2)
		if _, err := f.Cancel(t.Context(), f.tenant, cancelled); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		f.clock.ms.Add(api.DefaultLeaseMS + 1000)
		f.tend(t)
		second := f.fetch(t, 1)
		if len(second) != 1 || second[0].ID != again {
			t.Fatalf("second fetch: got %+v, want job %s alone", second, again)
		}
		for _, j := range got {
			if out := f.ack(t, j, ""); out.OK || out.Code != api.CodeJobLeaseLost {
				t.Errorf("ack: got %+v, want CodeJobLeaseLost", out)
			}
		}
		if j := f.get(t, cancelled); j.State != api.JobCancelled {
			t.Errorf("got job %+v, want state cancelled", j)
		}
		if out := f.ack(t, second[0], ""); !out.OK {
			t.Errorf("ack: got %+v, want success", out)
		}
		f.sound(t, cancelled, again)
	})
}

// TestARetriedJobComesBeforeNewOnes, also if the limits allow only one job.
func TestARetriedJobComesBeforeNewOnes(t *testing.T) {
	t.Parallel()
	for _, most := range []int64{0, 1} {
		each(t, func(t *testing.T, f *fixture) {
			if _, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{MaxConcurrency: &most}); err != nil {
				t.Fatalf("Configure: %v", err)
			}
			old := f.add(t, job(`1`))[0].ID
			at := int64(0)
			f.fail(t, f.fetch(t, 1)[0], func(fail *api.JobFail) { fail.RetryAfterMS = &at })
			f.tend(t)
			f.add(t, job(`2`), job(`3`))
			want := 2
			if most > 0 {
				want = 1
			}
			got := f.fetch(t, 2)
			if len(got) != want || got[0].ID != old || got[0].Attempt != 2 {
				t.Errorf("Fetch(2) = %+v, want %d jobs, the first %s in attempt 2", got, want, old)
			}
		})
	}
}

// TestConsequencesOfAnExpiredJobComeFirst: the chain of an expired job makes a job with a higher
// priority than the job behind the expired one, which the same fetch has read.
func TestConsequencesOfAnExpiredJobComeFirst(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		late := f.clock.ms.Load() + 1000
		f.add(t, job(`1`, func(j *api.NewJob) {
			j.ExpireAtMS = late
			j.Chain = &api.Chain{OnFailure: &api.ChainStep{NewJob: job(`"failed"`, func(j *api.NewJob) { j.Priority = api.PriorityCritical })}}
		}))
		second := f.add(t, job(`2`))[0].ID
		if _, err := f.Hold(t.Context(), f.tenant, second, ""); err != nil {
			t.Fatalf("Hold: %v", err)
		}
		f.clock.ms.Add(10)
		if _, err := f.Approve(t.Context(), f.tenant, second); err != nil { // which changes its run
			t.Fatalf("Approve: %v", err)
		}
		f.clock.ms.Add(2000)
		if got := f.fetch(t, 2); len(got) != 2 || string(got[0].Payload) != `"failed"` || string(got[1].Payload) != `2` {
			t.Errorf("Fetch(2) = %+v, want the payloads \"failed\" and 2", got)
		}
	})
}

// TestAWaitingJobIsNotServed: a held job is not fetched although a crash left an entry for it
// among the pending jobs.
func TestAWaitingJobIsNotServed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`, func(j *api.NewJob) { j.Hold = true }))[0].ID
		f.add(t, job(`2`))
		pending := f.store.JobKeys(f.tenant).Queue(namespace, emails).Set("pending")
		score := f.members(t, pending)[0].Score
		if err := f.store.Client().ZAdd(t.Context(), pending, redis.Z{Score: score, Member: id}).Err(); err != nil {
			t.Fatalf("ZAdd: %v", err)
		}
		if got := f.fetch(t, 2); len(got) != 1 || got[0].ID == id {
			t.Errorf("Fetch(2) = %+v, want one job, not %s", got, id)
		}
		f.sound(t, id)
	})
}

// TestAnUnreadableJobDoesNotBlockOthers: a job whose spec cannot be decoded is leased, so that the
// jobs behind it are served.
func TestAnUnreadableJobDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		broken := f.add(t, job(`1`))[0].ID
		good := f.add(t, job(`2`))[0].ID
		key := f.store.JobKeys(f.tenant).Spec(broken)
		text, err := f.store.Client().Get(t.Context(), key).Result()
		if err != nil {
			t.Fatalf("Result: %v", err)
		}
		if err := f.store.Client().Set(t.Context(), key, strings.Replace(text, `"score":`, `"score":x`, 1), 0).Err(); err != nil {
			t.Fatalf("Set: %v", err)
		}
		if got := f.fetch(t, 2); len(got) != 1 || got[0].ID != good {
			t.Errorf("Fetch(2) = %+v, want %s alone", got, good)
		}
	})
}

// TestAFullQueueIsNotRead: a worker that polls a queue at its concurrency limit makes the store
// read none of its jobs.
func TestAFullQueueIsNotRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	one := int64(1)
	if _, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{MaxConcurrency: &one}); err != nil {
		t.Fatalf("Configure: %v", err)
	}
	f.add(t, job(`1`), job(`2`), job(`3`))
	held := f.fetch(t, 3)
	f.fetch(t, 3) // the process learns that the queue is full
	read := &countedReads{}
	f.store.Client().AddHook(read)
	if got := f.fetch(t, 3); len(got) != 0 || read.keys.Load() != 0 {
		t.Errorf("Fetch of a full queue = %+v and read %d records, want no job and no read", got, read.keys.Load())
	}
	for _, j := range held {
		if out := f.ack(t, j, ""); !out.OK {
			t.Fatalf("ack: got %+v, want success", out)
		}
	}
	if got := f.fetch(t, 3); len(got) != 1 || read.keys.Load() != 1 {
		t.Errorf("Fetch after the ack = %+v and read %d records, want one of each", got, read.keys.Load())
	}
}

// countedReads counts the keys of the MGETs outside scripts.
type countedReads struct{ keys atomic.Int64 }

func (h *countedReads) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *countedReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *countedReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "mget" {
			h.keys.Add(int64(len(cmd.Args()) - 1))
		}
		return next(ctx, cmd)
	}
}
