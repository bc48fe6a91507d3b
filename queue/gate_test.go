package queue_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// Of the fetches from one queue, so many take jobs at once. One more is told when to try again; one
// that waits tries again by itself. Other queues, and workers of the platform, are not affected.
func TestFetchesOfAQueueAreLimited(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	const others = "others"
	f.add(t, job(`1`), job(`2`), job(`3`), job(`4`))
	reg := prometheus.NewRegistry()
	limited, err := queue.New(t.Context(), f.store, queue.Config{Fetches: 1, Metrics: reg})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(limited.Close)
	fetch := func(wait time.Duration, internal bool, queues ...string) (int, error) {
		jobs, err := limited.Fetch(t.Context(), queue.Fetch{
			Tenant: f.tenant, Namespace: namespace, Queues: queues, WorkerID: "w1", Wait: wait, Internal: internal,
		})
		return len(jobs), err
	}
	reached, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	f.store.Client().AddHook(storagetest.Before(func(cmds []redis.Cmder) {
		if strings.HasPrefix(cmds[0].Name(), "evalsha") {
			first.Do(func() {
				close(reached)
				<-release
			})
		}
	}))
	var fetches sync.WaitGroup
	admitted := func(internal bool) {
		fetches.Go(func() {
			if n, err := fetch(0, internal, emails); n != 1 || err != nil {
				t.Errorf("Fetch, of the platform %t: got %d jobs and error %v, want one", internal, n, err)
			}
		})
	}
	admitted(false)
	<-reached
	_, err = fetch(0, false, emails)
	var coded *api.Error
	if !errors.As(err, &coded) || coded.Code != api.CodeOverloaded || coded.RetryAfter < 2*time.Millisecond || coded.RetryAfter > 8*time.Millisecond {
		t.Errorf("a second Fetch: got error %v, want %s with a time from 2 to 8 ms", err, api.CodeOverloaded)
	}
	if _, err := fetch(0, false, others); err != nil {
		t.Errorf("Fetch from another queue: got error %v, want none", err)
	}
	admitted(true) // joins the next claim
	waited := make(chan int, 1)
	go func() {
		n, err := fetch(10*time.Second, false, emails)
		if err != nil {
			t.Errorf("a Fetch that waits: got error %v, want none", err)
		}
		waited <- n
	}()
	for metricstest.Value(t, reg, "sous_queue_fetches_total", "outcome=overloaded") < 2 { // it was refused
		time.Sleep(time.Millisecond)
	}
	close(release)
	fetches.Wait()
	if n := <-waited; n != 1 {
		t.Errorf("a Fetch that waits: got %d jobs, want 1", n)
	}
}
