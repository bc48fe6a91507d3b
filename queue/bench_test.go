package queue_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// BenchmarkLifecycle measures jobs from enqueue to ack, in calls of the given size.
func BenchmarkLifecycle(b *testing.B) {
	for _, size := range []int{64, 1} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			server := storagetest.Redis(b)
			store := storagetest.Open(b, storage.Config{URL: server.URL, ScriptPrelude: "--\n"})
			broker, err := queue.New(b.Context(), store, queue.Config{})
			if err != nil {
				b.Fatalf("New: %v", err)
			}
			b.Cleanup(broker.Close)
			lifecycle(b, broker, size)
		})
	}
}

func lifecycle(b *testing.B, broker *queue.Broker, size int) {
	tenant := storagetest.Tenant(b)
	payload := json.RawMessage(`{"to":"somebody@example.com","subject":"hello","body":"` + fmt.Sprintf("%050d", 7) + `"}`)
	var made, done atomic.Int64
	var work sync.WaitGroup
	begin := time.Now()
	for range 16 {
		work.Go(func() {
			jobs := make([]api.NewJob, size)
			for i := range jobs {
				jobs[i].Payload = payload
			}
			for made.Add(int64(size)) <= int64(b.N)+int64(size) {
				if _, err := broker.Enqueue(b.Context(), queue.Enqueue{Tenant: tenant, Namespace: namespace, Queue: emails, Jobs: jobs}); err != nil {
					b.Errorf("Enqueue: %v", err)
					return
				}
			}
		})
	}
	work.Wait()
	enqueued := float64(made.Load()) / time.Since(begin).Seconds()
	b.ResetTimer()
	for w := range 8 {
		work.Go(func() {
			for done.Load() < int64(b.N) {
				jobs, err := broker.Fetch(b.Context(), queue.Fetch{Tenant: tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: fmt.Sprint("w", w), Count: size})
				if err != nil {
					b.Errorf("Fetch: %v", err)
					return
				}
				if len(jobs) == 0 {
					return
				}
				acks := make([]api.JobAck, len(jobs))
				for i, j := range jobs {
					acks[i] = api.JobAck{ID: j.ID, LeaseEpoch: j.LeaseEpoch}
				}
				if _, err := broker.Ack(b.Context(), tenant, acks); err != nil {
					b.Errorf("Ack: %v", err)
					return
				}
				done.Add(int64(len(jobs)))
			}
		})
	}
	work.Wait()
	b.ReportMetric(enqueued, "enqueued/s")
	b.ReportMetric(float64(done.Load())/b.Elapsed().Seconds(), "done/s")
}
