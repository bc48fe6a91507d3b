// Package brokers holds the two sides of the benchmark of the job queue.
package brokers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/worker"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/hibiken/asynq"
)

// The jobs of both sides.
const (
	Tenant      = "t_bench0"
	Namespace   = "bench"
	Queue       = "bench"    // asynq's type of task, too
	Concurrency = 32         // handlers of the one worker
	Batch       = 64         // jobs of a call, for a broker that knows batches
	ahead       = 12 * Batch // jobs that our worker fetches ahead
)

// Payload is that of a job.
var Payload = json.RawMessage(`{"to":"somebody@example.com","subject":"hello","body":"` + strings.Repeat("x", 40) + `"}`)

// Broker is one side of the comparison. Both sides run in this process and share the store
// Server, and only one of them works at a time.
type Broker interface {
	// Enqueue adds n jobs in one call, or in n where the broker knows no batches.
	Enqueue(ctx context.Context, n int) error
	// Serve handles jobs until ctx ends, and calls handled with each payload, concurrently.
	Serve(ctx context.Context, handled func(payload []byte)) error
	// EnqueuePayload adds one job with the given payload.
	EnqueuePayload(ctx context.Context, payload []byte) error
	Close()
}

// asynqBroker is the other side: github.com/hibiken/asynq, a job queue on Redis. It has no call
// that enqueues several jobs, so a batch is that many calls.
type asynqBroker struct {
	client *asynq.Client
	addr   string
}

// NewAsynq returns asynq on the store at addr.
func NewAsynq(addr string) Broker {
	return &asynqBroker{asynq.NewClient(asynq.RedisClientOpt{Addr: addr}), addr}
}

func (a *asynqBroker) Enqueue(ctx context.Context, n int) error {
	for range n {
		if err := a.EnqueuePayload(ctx, Payload); err != nil {
			return err
		}
	}
	return nil
}

func (a *asynqBroker) EnqueuePayload(ctx context.Context, payload []byte) error {
	_, err := a.client.EnqueueContext(ctx, asynq.NewTask(Queue, payload))
	return err
}

// Serve runs asynq's server until ctx ends. Its options favour it: see TaskCheckInterval.
func (a *asynqBroker) Serve(ctx context.Context, handled func([]byte)) error {
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: a.addr}, asynq.Config{
		Concurrency: Concurrency, LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Second,
		TaskCheckInterval: time.Millisecond, // by default the job of an idle queue waits 1 s
	})
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		handled(t.Payload())
		return nil
	}))
	if err != nil {
		return err
	}
	<-ctx.Done()
	server.Shutdown()
	return nil
}

func (a *asynqBroker) Close() {
	if err := a.client.Close(); err != nil {
		log.Print(err)
	}
}

// Sous is the job queue of sous, used as a library in this process, as asynq is.
type Sous struct {
	store  *storage.Store
	broker *queue.Broker
}

// NewSous returns the job queue of sous on the store at addr.
func NewSous(ctx context.Context, addr string) (*Sous, error) {
	store, err := storage.Open(ctx, storage.Config{URL: "redis://" + addr})
	if err != nil {
		return nil, err
	}
	b, err := queue.New(ctx, store, queue.Config{})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Sous{store, b}, nil
}

// Enqueue implements Broker.
func (s *Sous) Enqueue(ctx context.Context, n int) error {
	jobs := make([]api.NewJob, n)
	for i := range jobs {
		jobs[i].Payload = Payload
	}
	_, err := s.broker.Enqueue(ctx, queue.Enqueue{Tenant: Tenant, Namespace: Namespace, Queue: Queue, Jobs: jobs})
	return err
}

// EnqueuePayload implements Broker.
func (s *Sous) EnqueuePayload(ctx context.Context, payload []byte) error {
	_, err := s.broker.Enqueue(ctx, queue.Enqueue{Tenant: Tenant, Namespace: Namespace, Queue: Queue, Jobs: []api.NewJob{{Payload: payload}}})
	return err
}

// Serve implements Broker.
func (s *Sous) Serve(ctx context.Context, handled func([]byte)) error {
	w, err := worker.New(s, worker.Config{Concurrency: Concurrency, Ahead: ahead, OnError: func(err error) { log.Print(err) }})
	if err != nil {
		return err
	}
	w.Handle(Queue, func(_ context.Context, j *worker.Job) error {
		handled(j.Payload)
		return nil
	})
	return w.Run(ctx)
}

// Close implements Broker.
func (s *Sous) Close() {
	s.broker.Close()
	if err := s.store.Close(); err != nil {
		log.Print(err)
	}
}

// FetchJobs implements worker.Source, with AckJobs, FailJobs and HeartbeatJobs: the worker
// calls the broker itself, without HTTP.
func (s *Sous) FetchJobs(ctx context.Context, r api.FetchRequest) ([]api.FetchedJob, error) {
	return s.broker.Fetch(ctx, queue.Fetch{
		Tenant: Tenant, Namespace: Namespace, Queues: r.Queues, WorkerID: r.WorkerID, Count: r.Count,
		Lease: time.Duration(r.LeaseMS) * time.Millisecond, Wait: time.Duration(r.WaitMS) * time.Millisecond,
	})
}

// AckJobs acknowledges.
func (s *Sous) AckJobs(ctx context.Context, acks []api.JobAck) ([]api.JobOutcome, error) {
	return s.broker.Ack(ctx, Tenant, acks)
}

// FailJobs fails.
func (s *Sous) FailJobs(ctx context.Context, fails []api.JobFail) ([]api.JobOutcome, error) {
	return s.broker.Fail(ctx, Tenant, fails)
}

// HeartbeatJobs renews leases.
func (s *Sous) HeartbeatJobs(ctx context.Context, _ string, beats []api.JobHeartbeat) ([]api.JobOutcome, error) {
	return s.broker.Heartbeat(ctx, Tenant, beats)
}

// Fill adds n jobs to the queue called name.
func (s *Sous) Fill(ctx context.Context, name string, n int) error {
	for ; n > 0; n -= api.MaxEnqueueJobs {
		jobs := make([]api.NewJob, min(n, api.MaxEnqueueJobs))
		for i := range jobs {
			jobs[i].Payload = Payload
		}
		if _, err := s.broker.Enqueue(ctx, queue.Enqueue{Tenant: Tenant, Namespace: Namespace, Queue: name, Jobs: jobs}); err != nil {
			return err
		}
	}
	return nil
}

// Drain fetches and acknowledges n jobs in batches, one batch after the other, and returns
// the jobs a second. The queue must have n pending jobs.
func (s *Sous) Drain(ctx context.Context, name string, n int) (float64, error) {
	begin := time.Now()
	for left := n; left > 0; {
		jobs, err := s.broker.Fetch(ctx, queue.Fetch{
			Tenant: Tenant, Namespace: Namespace, Queues: []string{name}, WorkerID: "bench", Count: min(left, Batch),
		})
		if err != nil {
			return 0, err
		}
		if len(jobs) == 0 {
			return 0, fmt.Errorf("queue %s is empty, want %d more jobs", name, left)
		}
		acks := make([]api.JobAck, len(jobs))
		for i, j := range jobs {
			acks[i] = api.JobAck{ID: j.ID, LeaseEpoch: j.LeaseEpoch}
		}
		if _, err := s.broker.Ack(ctx, Tenant, acks); err != nil {
			return 0, err
		}
		left -= len(jobs)
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}
