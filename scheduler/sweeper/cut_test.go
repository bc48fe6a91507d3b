package sweeper_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// cutWrites is more than any of the scripts makes.
const cutWrites = 10

// cutCalls are calls that a crash interrupts and no caller repeats.
var cutCalls = map[string]func(b *repairBench) (call func(cut *queue.Broker) error){
	"enqueue":       cutEnqueue(func(j *api.NewJob) { j.UniqueKey = "k" }),
	"enqueue later": cutEnqueue(later),
	"enqueue held":  cutEnqueue(held),
	"enqueue in a batch": func(b *repairBench) func(*queue.Broker) error {
		batch, err := b.CreateBatch(b.t.Context(), b.tenant, home, nil)
		b.must(err)
		return cutEnqueue(func(j *api.NewJob) { j.BatchID = batch.ID })(b)
	},
	"enqueue waiting": func(b *repairBench) func(*queue.Broker) error {
		first := b.add("others")
		return cutEnqueue(func(j *api.NewJob) { j.DependsOn = []string{first} })(b)
	},
	"ack": func(b *repairBench) func(*queue.Broker) error {
		b.add(emails, func(j *api.NewJob) { j.UniqueKey, j.ExpireAtMS = "k", b.now()+3_600_000 })
		j := b.fetch(emails)
		return func(cut *queue.Broker) error {
			_, err := cut.Ack(context.Background(), b.tenant, []api.JobAck{{ID: j.ID, LeaseEpoch: j.LeaseEpoch}})
			return err
		}
	},
	"hold": func(b *repairBench) func(*queue.Broker) error {
		id := b.add(emails)
		return func(cut *queue.Broker) error {
			_, err := cut.Hold(context.Background(), b.tenant, id, "why")
			return err
		}
	},
	"approve": func(b *repairBench) func(*queue.Broker) error {
		id := b.add(emails, held, later)
		return func(cut *queue.Broker) error {
			_, err := cut.Approve(context.Background(), b.tenant, id)
			return err
		}
	},
	"move": func(b *repairBench) func(*queue.Broker) error {
		id := b.add(emails, later)
		return func(cut *queue.Broker) error {
			_, err := cut.Move(context.Background(), b.tenant, id, "others")
			return err
		}
	},
	"cancel": func(b *repairBench) func(*queue.Broker) error {
		id := b.add(emails, func(j *api.NewJob) { j.ExpireAtMS = b.now() + 3_600_000 })
		return func(cut *queue.Broker) error {
			_, err := cut.Cancel(context.Background(), b.tenant, id)
			return err
		}
	},
	"seal": func(b *repairBench) func(*queue.Broker) error {
		batch, err := b.CreateBatch(b.t.Context(), b.tenant, home, &api.BatchCallback{Queue: emails, NewJob: api.NewJob{}})
		b.must(err)
		return func(cut *queue.Broker) error {
			_, err := cut.SealBatch(context.Background(), b.tenant, home, batch.ID)
			return err
		}
	},
}

func cutEnqueue(change func(*api.NewJob)) func(b *repairBench) func(*queue.Broker) error {
	return func(b *repairBench) func(*queue.Broker) error {
		return func(cut *queue.Broker) error {
			jobs := []api.NewJob{{JobOptions: api.JobOptions{ExpireAtMS: b.now() + 7_200_000}}, {}}
			change(&jobs[0])
			change(&jobs[1])
			jobs[1].UniqueKey = ""
			_, err := cut.Enqueue(context.Background(), queue.Enqueue{Tenant: b.tenant, Namespace: home, Queue: emails, Jobs: jobs})
			return err
		}
	}
}

// After a crash between any two writes of a call, sweepers and maintenance make the store
// sound, even if no caller repeats the call.
func TestSweepersMendWhatACrashCut(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	for k := range cutWrites {
		cfg := storage.Config{URL: server.URL}
		for name, prepare := range cutCalls {
			t.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(name, " ", "_"), k), func(t *testing.T) {
				b := newRepairBench(t, cfg)
				call := prepare(b)
				broken := b.cfg
				broken.ScriptPrelude = storagetest.CutAfter(k)
				if err := call(brokerOn(t, storagetest.Open(t, broken))); err != nil && k == cutWrites-1 {
					t.Fatalf("after %d writes: got error %v, want success", cutWrites, err)
				}
				b.advance(time.Millisecond)
				sweepers := b.sweepers(1)
				b.sweep(sweepers)
				for _, q := range []string{emails, "others"} { // what was marked is followed up
					b.tend(q)
				}
				b.sound()
				b.must(b.client().FlushDB(t.Context()).Err())
			})
		}
	}
}

// sound checks that every job is in the index of its state and in no other, in a queue
// that is listed and marked.
func (b *repairBench) sound() {
	b.t.Helper()
	ctx := b.t.Context()
	for _, key := range storagetest.Keys(b.t, b.client(), "cs:job:"+b.tenant+":*:run") {
		id := strings.Split(key, ":")[3]
		j, err := b.Get(ctx, b.tenant, id)
		b.must(err)
		var in []string
		for _, q := range []string{emails, "others"} {
			for _, state := range api.JobStates() {
				if b.in(q, state, id) && (!state.Terminal() || state == j.State) {
					in = append(in, q+":"+string(state))
				}
			}
			if j.State.Terminal() && b.client().ZScore(ctx, b.keys(q).Expiry(), id).Err() == nil {
				b.t.Errorf("job %s, which is %s: got an expiry entry, want none", id, j.State)
			}
		}
		if want := []string{j.Queue + ":" + string(j.State)}; !slices.Equal(in, want) {
			b.t.Errorf("job %s is in %v, want %v", id, in, want)
		}
		if !b.client().SIsMember(ctx, b.store.JobKeys(b.tenant).Queues(), home+"/"+j.Queue).Val() {
			b.t.Errorf("job %s: got no entry of its queue in the list, want one", id)
		}
		due, member := b.dueKey(j.Queue)
		at, marked := b.client().ZScore(ctx, due, member).Val(), j.DueAtMS+j.ExpireAtMS > 0 || j.State.Terminal()
		if marked && (at == 0 || j.DueAtMS > 0 && int64(at) > j.DueAtMS+60_000) {
			b.t.Errorf("job %s is due at %d: got its queue due at %.0f, want no later", id, j.DueAtMS, at)
		}
	}
	for _, q := range []string{emails, "others"} {
		for _, state := range api.JobStates() {
			for _, set := range b.keys(q).Sets(state) {
				for _, id := range b.client().ZRange(ctx, set, 0, -1).Val() {
					if b.state(id) == "" {
						b.t.Errorf("set %s: got an entry of job %s without a record, want none", set, id)
					}
				}
			}
		}
	}
}

// in reports whether a job is in an index of q's jobs of a state.
func (b *repairBench) in(q string, state api.JobState, id string) bool {
	return slices.ContainsFunc(b.keys(q).Sets(state), func(set string) bool {
		return b.client().ZScore(b.t.Context(), set, id).Err() == nil
	})
}
