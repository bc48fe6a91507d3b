package scheduler

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

const loopWait = 10 * time.Second // for what happens within milliseconds on an idle machine

// loopBench is a replica with a Loop on a store.
type loopBench struct {
	store   *storage.Store
	broker  *queue.Broker
	loop    *Loop
	metrics *prometheus.Registry
	tenant  string
}

func newLoopBench(t *testing.T, cfg storage.Config) *loopBench {
	t.Helper()
	b := &loopBench{store: storagetest.Open(t, cfg), metrics: prometheus.NewRegistry(), tenant: storagetest.Tenant(t)}
	var err error
	b.broker, err = queue.New(t.Context(), b.store, queue.Config{Metrics: b.metrics})
	if err != nil {
		t.Fatalf("queue.New: %v", err)
	}
	t.Cleanup(b.broker.Close)
	ticker, err := NewTicker(b.store, b.broker, b.metrics, zap.NewNop())
	if err != nil {
		t.Fatalf("NewTicker: %v", err)
	}
	b.loop = NewLoop(b.store, b.broker, ticker, zap.NewNop())
	return b
}

// run runs the loop until the test ends.
func (b *loopBench) run(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.loop.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
}

// schedule enqueues a job that is to run in the given time.
func (b *loopBench) schedule(t *testing.T, in time.Duration) (id string) {
	t.Helper()
	made, err := b.broker.Enqueue(t.Context(), queue.Enqueue{Tenant: b.tenant, Namespace: "default", Queue: "emails", Jobs: []api.NewJob{
		{Payload: []byte(`1`), JobOptions: api.JobOptions{RunAtMS: b.store.NowMS() + in.Milliseconds()}},
	}})
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	return made[0].ID
}

// promoted waits until the loop has made job id pending, and returns how long that took.
func (b *loopBench) promoted(t *testing.T, id string) time.Duration {
	t.Helper()
	for began := time.Now(); ; {
		j, err := b.broker.Get(t.Context(), b.tenant, id)
		if err != nil {
			t.Fatalf("Get(%s): %v", id, err)
		}
		if j.State == api.JobPending {
			return time.Since(began)
		}
		if time.Since(began) > loopWait {
			t.Fatalf("job %s is %s after %s, want pending", id, j.State, loopWait)
		}
		time.Sleep(time.Millisecond) // between two looks
	}
}

// TestLoopHearsOfWorkOfOtherProcesses: the due sets are read every five seconds where
// nothing is known to be due, and a notice of another process makes it sooner.
func TestLoopHearsOfWorkOfOtherProcesses(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	b := newLoopBench(t, cfg)
	newLoopBench(t, cfg).run(t)
	// When the first job is promoted, the loop has read the sets and waits.
	b.promoted(t, b.schedule(t, 300*time.Millisecond))
	for range 3 {
		if took := b.promoted(t, b.schedule(t, 300*time.Millisecond)); took > 2500*time.Millisecond {
			t.Errorf("a job that was due in 300ms was promoted after %s, want less than 2.5s", took)
		}
	}
}

// TestSlowScheduleDelaysNoQueue: queues are maintained while the ticks of schedules do not
// come to an end, and the other way round it is the same code.
func TestSlowScheduleDelaysNoQueue(t *testing.T) {
	t.Parallel()
	b := newLoopBench(t, storage.Config{URL: storagetest.Redis(t).URL})
	seen := make(chan []storage.DueMember)
	b.loop.schedules.tend = func(ctx context.Context, due []storage.DueMember, _ int64) (Counts, int64, error) {
		select { // until the test receives it, it is busy
		case seen <- due:
		case <-ctx.Done():
		}
		return Counts{}, 0, nil
	}
	member := storage.DueSchedulePrefix + b.tenant
	pipe := b.store.Client().Pipeline()
	storage.MarkDue(t.Context(), pipe, member, b.store.NowMS())
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatalf("MarkDue(%s): %v", member, err)
	}
	b.run(t)
	if got := <-seen; len(got) != 1 || got[0].Member != member {
		t.Fatalf("due schedules: got %+v, want one of %s", got, member)
	}
	// Nothing has settled the member: the schedules are busy again, or soon.
	b.promoted(t, b.schedule(t, time.Second))
}

// TestLoopCountsIdleRounds: a loop that has nothing to do shows no lag.
func TestLoopCountsIdleRounds(t *testing.T) {
	t.Parallel()
	b := newLoopBench(t, storage.Config{URL: storagetest.Redis(t).URL})
	got, err := b.loop.RunOnce(t.Context(), b.store.NowMS())
	if err != nil || got != (Counts{}) {
		t.Errorf("RunOnce = %+v, %v, want nothing done", got, err)
	}
	for _, name := range []string{"queues", "ticker"} {
		if got := metricstest.Value(t, b.metrics, "sous_loop_rounds_total", "loop="+name, "outcome=ok"); got != 1 {
			t.Errorf("rounds of loop %q: got %g, want 1", name, got)
		}
	}
}

// TestLoopReportsWhatItCannotRead: a round without the store fails for both kinds of work.
func TestLoopReportsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	b := newLoopBench(t, storage.Config{URL: storagetest.Redis(t).URL})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.loop.RunOnce(ctx, b.store.NowMS()); err == nil || !strings.Contains(err.Error(), "read due members") {
		t.Errorf("RunOnce: got error %v, want an error with \"read due members\"", err)
	}
	for _, name := range []string{"queues", "ticker"} {
		if got := metricstest.Value(t, b.metrics, "sous_loop_rounds_total", "loop="+name, "outcome=error"); got != 1 {
			t.Errorf("failed rounds of loop %q: got %g, want 1", name, got)
		}
	}
}

// TestLoopStartsAndStops ends loops in every phase of a round.
func TestLoopStartsAndStops(t *testing.T) {
	b := newLoopBench(t, storage.Config{URL: storagetest.Redis(t).URL})
	others := goleak.IgnoreCurrent()
	for n := range 30 {
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(n)*5*time.Millisecond)
		b.loop.Run(ctx)
		stop()
	}
	b.broker.Close() // its own goroutines may have started after others was read
	goleak.VerifyNone(t, others)
}
