package queue_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// BenchmarkLifecycle measures jobs from enqueue to ack, in calls of the given size, with the events
// that the queue records.
func BenchmarkLifecycle(b *testing.B) {
	for _, tc := range []struct {
		size   int
		events string
	}{{64, event.RecordEnds}, {64, event.RecordOff}, {64, event.RecordAll}, {1, event.RecordEnds}, {1, event.RecordOff}} {
		b.Run(fmt.Sprintf("%d/%s", tc.size, tc.events), func(b *testing.B) {
			broker := benchBroker(b)
			lifecycle(b, broker, tc.size, func(tenant string) api.NewJob {
				if _, err := broker.Configure(b.Context(), tenant, namespace, emails, queue.Change{Events: &tc.events}); err != nil {
					b.Fatalf("Configure: %v", err)
				}
				return api.NewJob{Payload: benchPayload}
			})
		})
	}
}

// benchBroker returns a broker on a server of its own, without the checks of scripts in tests.
func benchBroker(b *testing.B) *queue.Broker {
	b.Helper()
	store := storagetest.Open(b, storage.Config{URL: storagetest.Redis(b).URL, ScriptPrelude: "--\n"})
	broker, err := queue.New(b.Context(), store, queue.Config{})
	if err != nil {
		b.Fatalf("New: %v", err)
	}
	b.Cleanup(broker.Close)
	return broker
}

// BenchmarkFollowUps is BenchmarkLifecycle for jobs whose ends have consequences, in calls of 64.
func BenchmarkFollowUps(b *testing.B) {
	for _, with := range []string{"chain", "batch"} {
		b.Run(with, func(b *testing.B) {
			broker := benchBroker(b)
			lifecycle(b, broker, 64, func(tenant string) api.NewJob {
				job := api.NewJob{Payload: benchPayload}
				if with == "chain" {
					job.Chain = &api.Chain{Steps: []api.ChainStep{{Queue: "next", NewJob: api.NewJob{Payload: benchPayload}}}}
					return job
				}
				batch, err := broker.CreateBatch(b.Context(), tenant, namespace, nil)
				if err != nil {
					b.Fatalf("CreateBatch: %v", err)
				}
				job.BatchID = batch.ID
				return job
			})
		})
	}
}

var benchPayload = json.RawMessage(`{"to":"somebody@example.com","subject":"hello","body":"` + fmt.Sprintf("%050d", 7) + `"}`)

// lifecycle measures jobs from enqueue to ack, in calls of the given size. job returns the job of
// all calls of one producer.
func lifecycle(b *testing.B, broker *queue.Broker, size int, job func(tenant string) api.NewJob) {
	tenant := storagetest.Tenant(b)
	var made, done atomic.Int64
	var work sync.WaitGroup
	begin := time.Now()
	for range 16 {
		work.Go(func() {
			jobs := slices.Repeat([]api.NewJob{job(tenant)}, size)
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
