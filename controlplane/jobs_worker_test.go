package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/worker"
	"github.com/codesous/sous/scheduler"
)

// The Go worker does jobs over HTTP, through the Go client.
func TestTheWorkerOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t)
	c, err := client.New(h.URL, client.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	namespace := c.Tenant(h.tenant).Namespace("payments")
	const total = 40
	jobs := make([]api.NewJob, total)
	for i := range jobs {
		jobs[i].Payload = fmt.Append(nil, i)
	}
	made, err := namespace.Queue("emails").Enqueue(t.Context(), "once", jobs...)
	if err != nil || len(made) != total {
		t.Fatalf("Enqueue: got %d jobs and error %v, want %d jobs and no error", len(made), err, total)
	}
	w, err := worker.New(namespace, worker.Config{Concurrency: 4, Wait: 50 * time.Millisecond, OnError: func(err error) { t.Errorf("OnError: got error %v, want no call", err) }})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	seen := map[string]int{}
	w.Handle("emails", func(_ context.Context, j *worker.Job) error {
		mu.Lock()
		defer mu.Unlock()
		seen[string(j.Payload)]++
		if len(seen) == total {
			stop()
		}
		if string(j.Payload) == "7" {
			return worker.Fatal(errors.New("seven"))
		}
		return j.Return(map[string]string{"did": string(j.Payload)})
	})
	if err := w.Run(ctx); err != nil {
		t.Fatalf("Run: %v", err)
	}
	states := map[api.JobState]int{}
	for i, job := range made {
		got := h.job(t, job.ID)
		states[got.State]++
		if want := fmt.Sprintf(`{"did":"%d"}`, i); got.State == api.JobCompleted && string(got.Result) != want {
			t.Errorf("%s, want %s", got.Result, want)
		}
		if seen[fmt.Sprint(i)] != 1 {
			t.Errorf("job %d was done %d times, want once", i, seen[fmt.Sprint(i)])
		}
	}
	if diff := cmp.Diff(map[api.JobState]int{api.JobCompleted: total - 1, api.JobDead: 1}, states); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// maintain runs the loop that ends leases.
func maintain(t *testing.T, h *harness) {
	t.Helper()
	maintained, done := context.WithCancel(t.Context())
	var maintenance sync.WaitGroup
	ticker, err := scheduler.NewTicker(h.store, h.queue, nil, zap.NewNop())
	if err != nil {
		t.Fatalf("NewTicker: %v", err)
	}
	maintenance.Go(func() { scheduler.NewLoop(h.store, h.queue, ticker, zap.NewNop()).Run(maintained) })
	t.Cleanup(maintenance.Wait)
	t.Cleanup(done)
}

// The Go worker's heartbeats keep a lease that is shorter than the work, carry
// progress and checkpoints, and tell the handler that its job was cancelled.
func TestTheWorkerHearsOfItsJobs(t *testing.T) {
	t.Parallel()
	// A heartbeat has a third of it, and is late only on a machine that stands still.
	const lease = 6 * time.Second
	h := start(t)
	maintain(t, h)
	c, err := client.New(h.URL, client.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	tenant := c.Tenant(h.tenant)
	namespace := tenant.Namespace("payments")
	made, err := namespace.Queue("emails").Enqueue(t.Context(), "", api.NewJob{Payload: []byte(`1`)})
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	w, err := worker.New(namespace, worker.Config{Lease: lease, OnError: func(err error) { t.Errorf("OnError: got error %v, want no call", err) }})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	type visit struct {
		epoch      int64
		attempt    int
		checkpoint string
	}
	visits, causes := make(chan visit, 3), make(chan error, 1)
	w.Handle("emails", func(ctx context.Context, j *worker.Job) error {
		visits <- visit{j.LeaseEpoch, j.Attempt, string(j.Checkpoint)}
		j.Progress(int64(j.Attempt), 2, "half")
		if j.Attempt == 1 {
			return errors.Join(j.Keep("page 7"), worker.RetryAfter(errors.New("not yet"), 0))
		}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	if diff := cmp.Diff([]visit{{1, 1, ""}, {2, 2, `"page 7"`}}, []visit{<-visits, <-visits}, cmp.AllowUnexported(visit{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	began := time.Now()
	ask := time.NewTicker(50 * time.Millisecond)
	defer ask.Stop()
	for ; time.Since(began) < lease*5/4; <-ask.C {
		if job := h.job(t, made[0].ID); job.State != api.JobActive || job.Lease.Epoch != 2 {
			t.Fatalf("%s after its second attempt has begun, want active: %+v", time.Since(began), job)
		}
	}
	if job := h.job(t, made[0].ID); string(job.Progress) != `{"current":2,"total":2,"message":"half"}` {
		t.Errorf("progress %s, want progress {\"current\":2,\"total\":2,\"message\":\"half\"}", job.Progress)
	}
	if _, err := tenant.CancelJob(t.Context(), made[0].ID); err != nil {
		t.Fatalf("CancelJob: %v", err)
	}
	if cause := <-causes; !errors.Is(cause, worker.ErrCancelled) {
		t.Errorf("got cause %v, want %v", cause, worker.ErrCancelled)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("New: %v", err)
	}
	if job := h.job(t, made[0].ID); job.State != api.JobCancelled || len(job.Errors) != 1 || len(visits) > 0 {
		t.Errorf("got job %+v and %d further starts, want it cancelled with 1 error and not started again", job, len(visits))
	}
}
