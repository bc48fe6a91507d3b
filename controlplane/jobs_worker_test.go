package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/worker"
)

// The Go worker does jobs over HTTP, through the Go client.
func TestTheWorkerOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t)
	c, err := client.New(h.URL, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := c.Tenant(h.tenant).Namespace("payments")
	const total = 40
	jobs := make([]api.NewJob, total)
	for i := range jobs {
		jobs[i].Payload = fmt.Append(nil, i)
	}
	made, err := namespace.Queue("emails").Enqueue(t.Context(), "once", jobs...)
	if err != nil || len(made) != total {
		t.Fatal(made, err)
	}
	w, err := worker.New(namespace, worker.Config{Concurrency: 4, Wait: 50 * time.Millisecond, OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	seen := map[string]int{}
	w.Handle("emails", func(_ context.Context, j *worker.Job) error {
		mu.Lock()
		defer mu.Unlock()
		if seen[string(j.Payload)]++; len(seen) == total {
			stop()
		}
		if string(j.Payload) == "7" {
			return worker.Fatal(errors.New("seven"))
		}
		return j.Return(map[string]string{"did": string(j.Payload)})
	})
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	states := map[api.JobState]int{}
	for i, job := range made {
		got := h.job(t, job.ID)
		states[got.State]++
		if want := fmt.Sprintf(`{"did":"%d"}`, i); got.State == api.JobCompleted && string(got.Result) != want {
			t.Errorf("%s, want %s", got.Result, want)
		}
		if seen[fmt.Sprint(i)] != 1 {
			t.Errorf("job %d was done %d times", i, seen[fmt.Sprint(i)])
		}
	}
	if diff := cmp.Diff(map[api.JobState]int{api.JobCompleted: total - 1, api.JobDead: 1}, states); diff != "" {
		t.Error(diff)
	}
}
