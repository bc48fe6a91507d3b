package queue_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestARateWindowThatGrowsStillEnds: claims counted in the tenths of a shorter window leave the
// count of the longer one.
func TestARateWindowThatGrowsStillEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		configure := func(windowMS int64) {
			t.Helper()
			limit := int64(2)
			if _, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{RateLimit: &limit, RateWindowMS: &windowMS}); err != nil {
				t.Fatalf("Configure: %v", err)
			}
		}
		configure(1000)
		f.add(t, job(`1`), job(`2`), job(`3`))
		if got := f.fetch(t, 3); len(got) != 2 {
			t.Fatalf("fetch under a rate limit of 2: got %+v, want 2 jobs", got)
		}
		configure(60_000)
		f.clock.advance(2 * time.Minute)
		if got := f.fetch(t, 3); len(got) != 1 {
			t.Errorf("Fetch(3) after the window = %+v, want one job", got)
		}
	})
}

// TestAWorkersIdIsNoKeyOfOthers: workers choose their ids, and none leads to another record's key.
func TestAWorkersIdIsNoKeyOfOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for _, id := range []string{"index", "w1", "w2"} {
			if _, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: id}); err != nil {
				t.Errorf("Fetch by worker %s: %v", id, err)
			}
		}
		if workers, _, err := f.Workers(t.Context(), f.tenant, "", 10); err != nil || len(workers) != 3 {
			t.Errorf("Workers: got %+v, error %v, want 3 workers", workers, err)
		}
	})
}

// TestErrorsAreBounded: a job that is continued between failures may fail without end, but keeps
// a limited number of errors.
func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`))[0].ID
		key := f.store.JobKeys(f.tenant).Errors(id)
		for i := range 100 {
			if err := f.store.Client().RPush(t.Context(), key, fmt.Sprintf(`{"epoch":-1,"attempt":%d}`, i)).Err(); err != nil {
				t.Fatalf("RPush: %v", err)
			}
		}
		f.fail(t, f.fetch(t, 1)[0])
		if errs := f.get(t, id).Errors; len(errs) != 100 || errs[0].Attempt != 1 || errs[99].Error != "broke" {
			t.Errorf("the job has %d errors %+v, want the last 100", len(errs), errs)
		}
	})
}

// TestAnIdempotencyKeyServesAgainAfterItsDay: the jobs of its first use still exist, and are not
// returned for the second.
func TestAnIdempotencyKeyServesAgainAfterItsDay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		enqueue := func(payload string) string {
			t.Helper()
			out, err := f.Enqueue(t.Context(), queue.Enqueue{
				Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(payload)}, IdempotencyKey: "daily",
			})
			if err != nil {
				t.Fatalf("Enqueue: %v", err)
			}
			return out[0].ID
		}
		ids := map[string]bool{}
		for day := range 3 {
			payload := fmt.Sprint(day)
			first := enqueue(payload)
			if again := enqueue(payload); again != first {
				t.Errorf("day %d: the repeat made job %s, want %s of the first call", day, again, first)
			}
			got := f.fetch(t, 5)
			if len(got) != 1 || got[0].ID != first || string(got[0].Payload) != payload {
				t.Fatalf("day %d: fetched %+v, want job %s with payload %s", day, got, first, payload)
			}
			f.ack(t, got[0], "")
			ids[first] = true
			f.clock.advance(api.IdempotencyTTLMS * time.Millisecond)
			f.forgetIdempotency(t)
		}
		if len(ids) != 3 {
			t.Errorf("got jobs %v, want a new one on each of 3 days", ids)
		}
	})
}

// forgetIdempotency deletes the idempotency key, which the store's own clock would let expire.
func (f *fixture) forgetIdempotency(t *testing.T) {
	t.Helper()
	keys := f.store.JobKeys(f.tenant)
	n, err := f.store.Client().Del(t.Context(), keys.Idempotency(namespace+":"+emails+":daily")).Result()
	if err != nil || n != 1 {
		t.Fatalf("Del of the idempotency key: deleted %d, error %v, want 1", n, err)
	}
}

// TestOneQueueDoesNotBlockMaintenance: the visit of a queue that takes too long ends, and the round
// continues with the next queue, without an error.
func TestOneQueueDoesNotBlockMaintenance(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	f.addAt(t, f, "stuck", 1)
	f.addAt(t, f, emails, 1)
	f.clock.advance(time.Millisecond)
	f.store.Client().AddHook(stuck{key: f.store.JobKeys(f.tenant).Queue(namespace, "stuck").Set("scheduled")})
	began := time.Now()
	got, err := loopOn(t, f.store, f.Broker).RunOnce(t.Context(), f.clock.ms.Load())
	if err != nil || got.NextMS <= f.clock.ms.Load() {
		t.Errorf("RunOnce = %+v, %v, want a NextMS behind %d and no error", got, err, f.clock.ms.Load())
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("RunOnce took %s, want at most 20s", took)
	}
	if got := f.fetch(t, 1); len(got) != 1 {
		t.Error("the other queue was not maintained")
	}
}

// stuck is a hook that blocks reads of a sorted set until their contexts end.
type stuck struct{ key string }

func (stuck) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s stuck) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "zrangebyscore" && args[1] == s.key {
			select {
			case <-ctx.Done():
				cmd.SetErr(ctx.Err())
				return ctx.Err()
			case <-time.After(30 * time.Second):
			}
		}
		return next(ctx, cmd)
	}
}

func (stuck) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestWorkersHaveAllTheirQueues: a worker fetches from several queues and namespaces, by separate
// fetches and through separate replicas, and stops using one of them.
func TestWorkersHaveAllTheirQueues(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		fetch := func(namespace string, queues ...string) {
			t.Helper()
			if _, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: queues, WorkerID: "w1", Hostname: "here"}); err != nil {
				t.Fatalf("Fetch from %s: %v", namespace, err)
			}
		}
		expect := func(what string, want ...api.WorkerNamespace) {
			t.Helper()
			got, _, err := f.Workers(t.Context(), f.tenant, "", 10)
			if err != nil || len(got) != 1 || got[0].ID != "w1" || got[0].Hostname != "here" {
				t.Fatalf("%s: Workers = %+v, %v, want w1 of the host here", what, got, err)
			}
			if diff := cmp.Diff(want, got[0].Namespaces); diff != "" {
				t.Errorf("%s: namespaces differ (-want +got):\n%s", what, diff)
			}
		}
		fetch("shop", "mails", "bills")
		fetch("blog", "posts")
		fetch("shop", "sms")
		expect("after three fetches", api.WorkerNamespace{Namespace: "blog", Queues: []string{"posts"}}, api.WorkerNamespace{Namespace: "shop", Queues: []string{"bills", "mails", "sms"}})
		f.clock.advance(4 * time.Minute)
		fetch("shop", "sms")
		if err := f.NoteAlive(t.Context(), f.tenant, "elsewhere", "w1"); err != nil {
			t.Errorf("NoteAlive: %v", err)
		}
		f.clock.advance(2 * time.Minute)
		fetch("shop", "sms")
		expect("once the others are unused", api.WorkerNamespace{Namespace: "shop", Queues: []string{"sms"}})
	})
}

// TestWorkersOfATenantAreBounded: a tenant that has as many workers as the registry notes gets jobs
// for another one, which is not noted until the others have expired. The noted ones are refreshed.
func TestWorkersOfATenantAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		keys, rdb := f.store.JobKeys(f.tenant), f.store.Client()
		queues := make([]string, 3*api.MaxFetchQueues)
		for i := range queues {
			queues[i] = fmt.Sprintf("q%d", i)
		}
		fetch := func(worker string) {
			t.Helper()
			for part := range slices.Chunk(queues, api.MaxFetchQueues) {
				if _, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: part, WorkerID: worker}); err != nil {
					t.Fatalf("Fetch by %s: got error %v, want none", worker, err)
				}
			}
		}
		noted := func(want ...string) {
			t.Helper()
			got, _, err := f.Workers(t.Context(), f.tenant, "", 10)
			var ids []string
			for i := range got {
				ids = append(ids, got[i].ID)
			}
			if err != nil || !slices.Equal(ids, want) {
				t.Errorf("Workers: got %v, error %v, want %v", ids, err, want)
			}
		}
		fetch("w1")
		if n, err := rdb.ZCard(t.Context(), keys.WorkerQueues("w1")).Result(); err != nil || n != api.MaxFetchQueues {
			t.Errorf("queues of w1: got %d, error %v, want %d", n, err, api.MaxFetchQueues)
		}
		if n, err := rdb.StrLen(t.Context(), keys.Worker("w1")).Result(); err != nil || n > 512 {
			t.Errorf("record of w1: got %d bytes, error %v, want at most 512", n, err)
		}
		others := make([]redis.Z, 9_999)
		for i := range others {
			others[i] = redis.Z{Score: float64(f.clock.ms.Load()), Member: fmt.Sprintf("x%d", i)}
		}
		if err := rdb.ZAdd(t.Context(), keys.Workers(), others...).Err(); err != nil {
			t.Fatalf("ZAdd: got error %v, want none", err)
		}
		fetch("w2")
		noted("w1")
		f.clock.advance(4 * time.Minute)
		fetch("w1") // this broker knows it
		f.clock.advance(30 * time.Second)
		f.Broker = brokerOn(t, f.store) // this one does not
		fetch("w1")
		noted("w1")
		f.clock.advance(2 * time.Minute) // the others have expired
		fetch("w2")
		noted("w1", "w2")
	})
}
