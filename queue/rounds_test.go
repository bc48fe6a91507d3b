package queue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// maintain runs a broker's loop until the test ends.
func maintain(t *testing.T, b *queue.Broker) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var loop sync.WaitGroup
	loop.Go(func() { b.Maintain(ctx) })
	t.Cleanup(func() { stop(); loop.Wait() })
}

// TestWhatAnotherProcessMakesDueIsFoundAtOnce: the due sets are read every five
// seconds where nothing is known to be due, and a notice makes it sooner.
func TestWhatAnotherProcessMakesDueIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	f := &fixture{store: storagetest.Open(t, cfg), tenant: storagetest.Tenant(t), clock: newClock()}
	f.Broker = brokerOn(t, f.store)
	other := brokerOn(t, storagetest.Open(t, cfg))
	maintain(t, other)
	// The loop has read the sets, and rests, when it has promoted this one.
	await := func(id string) {
		t.Helper()
		began := time.Now()
		for f.get(t, id).State != api.JobPending {
			if time.Since(began) > 10*time.Second {
				t.Fatal("the job is not promoted")
			}
			time.Sleep(time.Millisecond) // between two looks
		}
	}
	soon := func() string {
		return f.add(t, job(`1`, func(j *api.NewJob) { j.RunAtMS = f.store.NowMS() + 300 }))[0].ID
	}
	await(soon())
	for range 3 {
		began := time.Now()
		if await(soon()); time.Since(began) > 2500*time.Millisecond {
			t.Errorf("the job was promoted after %s", time.Since(began))
		}
	}
}

// TestASlowQueueDelaysNoSchedule: schedules are looked after beside queues.
func TestASlowQueueDelaysNoSchedule(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	seen, idle := make(chan []storage.DueMember), make(chan struct{}, 1)
	f.OnSchedulesDue(func(ctx context.Context, due []storage.DueMember, _ int64) (int64, error) {
		select { // until it is read, it is at work
		case seen <- due:
		case <-ctx.Done():
		}
		return 0, nil
	}, func() {
		select {
		case idle <- struct{}{}:
		default:
		}
	})
	maintain(t, f.Broker)
	select { // what has nothing to do is told so: it does not stand still
	case <-idle:
	case due := <-seen:
		t.Fatalf("due was %+v", due)
	}
	pipe := f.store.Client().Pipeline()
	storage.MarkDue(t.Context(), pipe, storage.DueSchedulePrefix+f.tenant, f.clock.ms.Load())
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.DueAt(0)
	first := <-seen // and the schedules' crew may be at work again, on what nobody settled
	if len(first) != 1 || first[0].Member != "schedule/"+f.tenant {
		t.Fatalf("due was %+v", first)
	}
	// A queue is looked after while the schedules' crew works.
	id := f.add(t, job(`1`, func(j *api.NewJob) { j.RunAtMS = f.clock.ms.Load() + 1 }))[0].ID
	f.clock.advance(time.Second)
	for began := time.Now(); f.get(t, id).State != api.JobPending; {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the job is not promoted")
		}
		f.DueAt(0)
		time.Sleep(time.Millisecond) // between two looks
	}
}
