package sweeper_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/repair"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// leftover makes the records that a crash leaves behind, and names the repairs that they
// need. The function that make returns checks the state after the repairs.
type leftover struct {
	make func(b *repairBench) (sound func())
	want kinds
	// soon: it is repaired at first sight, since no call in progress leaves such a state.
	soon bool
}

// dropped returns a check that a set does not hold an id.
func (b *repairBench) dropped(set, id string) func() {
	return func() {
		b.t.Helper()
		if err := b.client().ZScore(b.t.Context(), set, id).Err(); err != redis.Nil { //nolint:errorlint // never wrapped
			b.t.Errorf("set %s: got job %s (%v), want it removed", set, id, err)
		}
	}
}

func (b *repairBench) holds(set, id string) func() {
	return func() {
		b.t.Helper()
		if err := b.client().ZScore(b.t.Context(), set, id).Err(); err != nil {
			b.t.Errorf("set %s: job %s not found (%v), want it there", set, id, err)
		}
	}
}

func later(j *api.NewJob) { j.RunAtMS = 1_760_000_000_000 + 3_600_000 }
func held(j *api.NewJob)  { j.Hold = true }

// stray puts a job into a set where it does not belong.
func stray(set string, job func(b *repairBench) string) leftover {
	return leftover{soon: true, want: kinds{repair.KindStray: 1}, make: func(b *repairBench) func() {
		b.add(emails, later)
		id, key := job(b), b.keys(emails).Set(set)
		b.must(b.client().ZAdd(b.t.Context(), key, redis.Z{Score: float64(b.now() + 7_200_000), Member: id}).Err())
		return b.dropped(key, id)
	}}
}

// orphan takes a job out of the index of its state.
func orphan(set string, change ...func(*api.NewJob)) leftover {
	return leftover{want: kinds{repair.KindOrphan: 1}, make: func(b *repairBench) func() {
		id, key := b.add(emails, change...), b.keys(emails).Set(set)
		b.must(b.client().ZRem(b.t.Context(), key, id).Err())
		return b.holds(key, id)
	}}
}

var leftovers = map[string]leftover{
	"no due mark": {want: kinds{repair.KindDue: 1}, make: func(b *repairBench) func() {
		b.add(emails, later)
		key, member := b.dueKey(emails)
		b.must(b.client().ZRem(b.t.Context(), key, member).Err())
		return b.holds(key, member)
	}},
	"due too late": {want: kinds{repair.KindDue: 1}, make: func(b *repairBench) func() {
		b.add(emails, later)
		key, member := b.dueKey(emails)
		b.must(b.client().ZAdd(b.t.Context(), key, redis.Z{Score: float64(b.now() + 86_400_000), Member: member}).Err())
		return func() {
			if at := b.client().ZScore(b.t.Context(), key, member).Val(); int64(at) != 1_760_000_000_000+3_600_000 {
				b.t.Errorf("queue due at %.0f, want at its first job", at)
			}
		}
	}},
	"a purge that is not due": {want: kinds{repair.KindDue: 1}, make: func(b *repairBench) func() {
		b.add(emails)
		b.ack(b.fetch(emails))
		key, member := b.dueKey(emails)
		b.must(b.client().ZRem(b.t.Context(), key, member).Err())
		return b.holds(key, member)
	}},
	"a purge that is due too late": {want: kinds{}, make: func(b *repairBench) func() { // the retention was lowered: no crash
		b.add(emails)
		b.ack(b.fetch(emails))
		key, member := b.dueKey(emails)
		b.must(b.client().ZAdd(b.t.Context(), key, redis.Z{Score: float64(b.now() + 30*86_400_000), Member: member}).Err())
		return func() {
			if at := b.client().ZScore(b.t.Context(), key, member).Val(); int64(at) != 1_760_000_000_000+api.JobRetentionMS {
				b.t.Errorf("queue due at %.0f, want at the purge of its job", at)
			}
		}
	}},
	"a marker that is not due": {want: kinds{repair.KindDue: 1}, make: func(b *repairBench) func() {
		id := b.add(emails)
		b.must(b.client().ZAdd(b.t.Context(), b.keys(emails).After(), redis.Z{Score: float64(b.now()), Member: id}).Err())
		key, member := b.dueKey(emails)
		return b.holds(key, member)
	}},
	"no ready mark": {want: kinds{repair.KindReady: 1}, make: func(b *repairBench) func() {
		b.invoke("echo")
		key, member := b.readyKey("fn.echo")
		b.must(b.client().ZRem(b.t.Context(), key, member).Err())
		return b.holds(key, member)
	}},
	"pending, and not there": stray("pending", func(*repairBench) string { return api.NewJobID() }),
	"held, and not there":    stray("held", func(*repairBench) string { return api.NewJobID() }),
	"waiting, and held":      stray("waiting", func(b *repairBench) string { return b.add(emails, held) }),
	"held, and elsewhere":    stray("held", func(b *repairBench) string { b.add(emails); return b.add("others", held) }),
	"scheduled, and held":    stray("scheduled", func(b *repairBench) string { return b.add(emails, held) }),
	"to expire, and ended": {soon: true, want: kinds{repair.KindExpiry: 1}, make: func(b *repairBench) func() {
		id := b.add(emails, func(j *api.NewJob) { j.ExpireAtMS = b.now() + 3_600_000 })
		b.ack(b.fetch(emails))
		return b.dropped(b.keys(emails).Expiry(), id)
	}},
	"pending in no index": orphan("pending"), "held in no index": orphan("held", held), "scheduled in no index": orphan("scheduled", later),
	"an enqueue without its queue": {want: kinds{repair.KindUnlisted: 1}, make: func(b *repairBench) func() {
		id, list := b.add(emails), b.store.JobKeys(b.tenant).Queues()
		b.must(b.client().SRem(b.t.Context(), list, home+"/"+emails).Err())
		return func() {
			if ok := b.client().SIsMember(b.t.Context(), list, home+"/"+emails).Val(); !ok || b.fetch(emails).ID != id {
				b.t.Error("list of queues: got no entry of the queue, want one")
			}
		}
	}},
	"waiting for what has ended": {want: kinds{repair.KindWaiting: 1}, make: func(b *repairBench) func() {
		first := b.add(emails)
		second := b.add(emails, func(j *api.NewJob) { j.DependsOn = []string{first} })
		b.tend(emails) // the enqueue's own marker
		b.must(b.client().Del(b.t.Context(), b.store.JobKeys(b.tenant).Dependents(first)).Err())
		b.ack(b.fetch(emails))
		return func() {
			b.tend(emails)
			if b.state(second) != api.JobPending {
				b.t.Errorf("job %s: got state %s, want %s", second, b.state(second), api.JobPending)
			}
		}
	}},
	"waiting for a job that is gone": {want: kinds{repair.KindWaiting: 1}, make: func(b *repairBench) func() {
		first := b.add(emails)
		second := b.add(emails, func(j *api.NewJob) { j.DependsOn = []string{first} })
		b.tend(emails)
		b.must(b.client().Del(b.t.Context(), b.store.JobKeys(b.tenant).Dependents(first)).Err())
		b.must(b.Delete(b.t.Context(), b.tenant, first))
		return func() {
			b.tend(emails)
			if b.state(second) != api.JobPending {
				b.t.Errorf("job %s: got state %s, want %s", second, b.state(second), api.JobPending)
			}
		}
	}},
	"a batch that was sealed": {want: kinds{repair.KindBatch: 1}, make: func(b *repairBench) func() {
		batch, err := b.CreateBatch(b.t.Context(), b.tenant, home, &api.BatchCallback{Queue: emails, NewJob: api.NewJob{Payload: json.RawMessage(`1`)}})
		b.must(err)
		b.must(b.client().HSet(b.t.Context(), b.store.JobKeys(b.tenant).Batch(batch.ID)+":meta", "sealed", "1").Err())
		return func() {
			if b.state(batch.CallbackID) != api.JobPending {
				b.t.Errorf("callback of the batch: got state %q, want %s", b.state(batch.CallbackID), api.JobPending)
			}
		}
	}},
	"an activation whose job is gone": {want: kinds{repair.KindJobless: 1}, make: func(b *repairBench) func() {
		job, a := b.invoke("echo")
		b.must(b.client().Del(b.t.Context(), b.store.JobKeys(b.tenant).Run(job), b.store.JobKeys(b.tenant).Spec(job)).Err())
		b.must(b.client().ZRem(b.t.Context(), b.keys("fn.echo").Set("pending"), job).Err())
		return b.ended(a, api.StatusError, api.ErrLost)
	}},
	"an activation whose job has ended": {want: kinds{repair.KindUnfinished: 1}, make: func(b *repairBench) func() {
		_, a := b.invoke("echo")
		b.ack(b.fetch("fn.echo"))
		return b.ended(a, api.StatusSuccess, "")
	}},
}

// ended checks how an activation ended that made no attempt.
func (b *repairBench) ended(a *activations.Record, status api.Status, kind api.ErrorType) func() {
	return func() {
		b.t.Helper()
		got, err := activations.New(b.store).Get(b.t.Context(), b.tenant, a.ActivationID)
		b.must(err)
		if got.Status != status || got.EndMS == 0 || got.DurationMS != 0 || kind != "" && (got.Error == nil || got.Error.Type != kind) {
			b.t.Errorf("got activation %+v, want status %s, duration 0 and error type %q", got, status, kind)
		}
	}
}

// Each leftover is mended once, however many sweepers see it, not before a call that
// left it so would have ended, and then nothing is left to mend.
func TestSweepersMendLeftovers(t *testing.T) {
	t.Parallel()
	eachOwn(t, func(t *testing.T, cfg storage.Config) { mendLeftovers(t, cfg, slices.Sorted(maps.Keys(leftovers))) })
}

func TestSweepersMendLeftoversInACluster(t *testing.T) {
	t.Parallel()
	mendLeftovers(t, storage.Config{URL: storagetest.OwnCluster(t)}, []string{
		"no due mark", "held, and elsewhere", "pending in no index", "waiting for what has ended", "a batch that was sealed",
		"an activation whose job is gone",
	})
}

func mendLeftovers(t *testing.T, cfg storage.Config, names []string) {
	t.Helper()
	for _, name := range names {
		l := leftovers[name]
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			b := newRepairBench(t, cfg)
			sound := l.make(b)
			sweepers := b.sweepers(2)
			got := b.pass(sweepers)
			if want := map[bool]kinds{true: l.want, false: {}}[l.soon]; !got.equal(want) {
				t.Errorf("at first sight %v were repaired, want %v", got, want)
			}
			b.advance(61 * time.Second)
			for kind, n := range b.sweep(sweepers) {
				got[kind] += n
			}
			if !got.equal(l.want) {
				t.Errorf("%v were repaired, want %v", got, l.want)
			}
			sound()
			if again := b.sweep(b.sweepers(1)); len(again) > 0 {
				t.Errorf("second sweep: got repairs %v, want none", again)
			}
			b.must(b.client().SRem(t.Context(), "cs:tenants", b.tenant).Err()) // keeps the passes of the next test short
		})
	}
}

// Sound records are left alone, however long they stay unchanged.
func TestSweepersLeaveWhatIsSound(t *testing.T) {
	t.Parallel()
	eachOwn(t, func(t *testing.T, cfg storage.Config) {
		b := newRepairBench(t, cfg)
		first := b.add(emails, later)
		b.add(emails, held)
		b.add(emails, func(j *api.NewJob) { j.DependsOn = []string{first} })
		b.add(emails, func(j *api.NewJob) { j.UniqueKey, j.ExpireAtMS = "k", b.now()+3_600_000 })
		b.add("done")
		b.ack(b.fetch("done"))
		b.fetch(emails)
		batch, err := b.CreateBatch(t.Context(), b.tenant, home, &api.BatchCallback{Queue: emails, NewJob: api.NewJob{Payload: json.RawMessage(`1`)}})
		b.must(err)
		b.add(emails, func(j *api.NewJob) { j.BatchID, j.Hold = batch.ID, true })
		_, err = b.SealBatch(t.Context(), b.tenant, home, batch.ID)
		b.must(err)
		_, waiting := b.invoke("echo")
		b.tend(emails)
		// A queue that is paused, or full, leaves the ready set by itself.
		for _, q := range []string{"paused", "full"} {
			b.invoke(q)
			b.invokeMore(q)
			if q == "full" {
				b.fetch("fn." + q)
			}
			_, err := b.Configure(t.Context(), b.tenant, home, "fn."+q, map[string]queue.Change{"paused": {Paused: new(true)}, "full": {MaxConcurrency: new(int64(1))}}[q])
			b.must(err)
			key, member := b.readyKey("fn." + q)
			b.must(b.client().ZRem(t.Context(), key, member).Err())
		}
		if got := b.sweep(b.sweepers(2)); len(got) > 0 {
			t.Errorf("got repairs %v, want none", got)
		}
		a, err := activations.New(b.store).Get(t.Context(), b.tenant, waiting.ActivationID)
		if err != nil || a.Status != api.StatusQueued {
			t.Errorf("activation whose job waits: got %+v, %v, want it queued", a, err)
		}
	})
}

// invokeMore enqueues another job on a function's queue.
func (b *repairBench) invokeMore(function string) {
	b.t.Helper()
	_, _, err := b.EnqueueInvocation(b.t.Context(), b.tenant, api.NewJobID(), &api.JobSpec{
		Namespace: home, Queue: api.FunctionQueuePrefix + function, Payload: json.RawMessage(`{}`),
		JobOptions: api.JobOptions{Target: &api.JobTarget{Function: function, Version: 1}},
	})
	b.must(err)
}

// What has looked cut short for less than a minute may be a call under way, however
// old the records are that it is about.
func TestSweepersLeaveWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	eachOwn(t, func(t *testing.T, cfg storage.Config) {
		b := newRepairBench(t, cfg)
		first := b.add(emails)
		b.add(emails, func(j *api.NewJob) { j.DependsOn = []string{first} })
		b.tend(emails)
		b.must(b.client().Del(t.Context(), b.store.JobKeys(b.tenant).Dependents(first)).Err())
		b.invoke("old")
		b.advance(2 * time.Minute)
		b.ack(b.fetch(emails))
		b.ack(b.fetch("fn.old"))
		young, _ := b.invoke("young")
		b.must(b.client().Del(t.Context(), b.store.JobKeys(b.tenant).Run(young), b.store.JobKeys(b.tenant).Spec(young)).Err())
		b.must(b.client().ZRem(t.Context(), b.keys("fn.young").Set("pending"), young).Err())
		sweepers := b.sweepers(1)
		for range 2 {
			b.advance(20 * time.Second)
			if got := b.pass(sweepers); len(got) > 0 {
				t.Errorf("got repairs %v, want none", got)
			}
		}
		b.advance(time.Minute)
		want := kinds{repair.KindWaiting: 1, repair.KindUnfinished: 1, repair.KindJobless: 1}
		if got := b.pass(sweepers); !got.equal(want) {
			t.Errorf("a minute later %v were repaired, want %v", got, want)
		}
	})
}
