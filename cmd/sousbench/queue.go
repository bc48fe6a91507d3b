package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/worker"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
)

// The work that both sides of the queue benchmark do.
const (
	queueProducers   = 16              // goroutines that enqueue
	queueConcurrency = 32              // handlers of the one worker
	queueBatch       = 64              // jobs of a call, for a broker that knows batches
	queueAhead       = 12 * queueBatch // jobs that our worker fetches ahead
	queueIdleProbes  = 300             // single jobs on the idle queue
	benchQueue       = "bench"         // the queue, and asynq's type of task
)

var queuePayload = json.RawMessage(`{"to":"somebody@example.com","subject":"hello","body":"` + strings.Repeat("x", 40) + `"}`)

// broker is one side of the comparison. Both sides run in this process and share the store
// server, and only one of them works at a time.
type broker interface {
	// enqueue adds n jobs in one call, or in n where the broker knows no batches.
	enqueue(ctx context.Context, n int) error
	// serve handles jobs until ctx ends, and calls handled with each payload, concurrently.
	serve(ctx context.Context, handled func(payload []byte)) error
	// enqueuePayload adds one job with the given payload.
	enqueuePayload(ctx context.Context, payload []byte) error
	close()
}

// queueBench compares the job queue with asynq, side by side on one store, in each
// of its modes.
func queueBench(ctx context.Context, o options) ([]row, error) {
	var rows []row
	for _, mode := range o.storeModes() {
		more, err := queueOn(ctx, o, mode)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	more, err := queueDepth(ctx, o)
	return append(rows, more...), err
}

// queueOn compares the sides on one mode of the store. The sides alternate in each round, and
// the median round of each counts.
func queueOn(ctx context.Context, o options, mode storeMode) ([]row, error) {
	dir, err := os.MkdirTemp("", "sousbench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := startStore(ctx, o, dir, mode.args...)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	// sous runs twice: asynq has no calls for several jobs, so the second side compares equal
	// calls, and the third shows what batches save.
	sides := []struct {
		name string
		open func(context.Context, string) (broker, error)
		size int
	}{
		{"asynq", newAsynq, 1},
		{"sous, one by one", newSousQueue, 1},
		{"sous, batches of 64", newSousQueue, queueBatch},
	}
	figures := make([]queueFigures, len(sides))
	for range o.rounds {
		for i, side := range sides {
			f, err := measureQueue(ctx, o, server.addr, side.open, side.size)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", side.name, err)
			}
			figures[i].add(f)
		}
	}
	var rows []row
	for i, side := range sides {
		rows = append(rows, row{name: mode.name + ": " + side.name, value: figures[i].String()})
	}
	base, single, batch := figures[0].median(), figures[1].median(), figures[2].median()
	ratio := func(name string, got, of, want float64) row {
		return row{mode.name + ": " + name, fmt.Sprintf("%.2f", got/of), fmt.Sprintf("≥ %.1f", want), got >= want*of}
	}
	return append(rows,
		ratio("lifecycle in batches, multiple of asynq", batch.lifecycle, base.lifecycle, o.want(4, 15)),
		ratio("lifecycle one by one, multiple of asynq", single.lifecycle, base.lifecycle, 1.2),
		ratio("enqueue in batches, multiple of asynq", batch.enqueue, base.enqueue, 1.5),
		row{mode.name + ": p99 to the handler on an idle queue", ms(single.p99), "< 10 ms", single.p99 < 10*time.Millisecond},
	), nil
}

// queueFigure is the result of one round of one side.
type queueFigure struct {
	enqueue, lifecycle float64       // jobs a second: enqueued only; enqueued and handled
	p50, p99           time.Duration // from enqueue to the handler, on an idle queue
	commands, bytes    float64       // of the store, for each job of the lifecycle
}

// queueFigures are the rounds of one side.
type queueFigures struct{ all []queueFigure }

func (f *queueFigures) add(one queueFigure) { f.all = append(f.all, one) }

// median returns the round with the median lifecycle: its figures belong together.
func (f *queueFigures) median() queueFigure {
	sorted := slices.Clone(f.all)
	slices.SortFunc(sorted, func(a, b queueFigure) int { return int(a.lifecycle - b.lifecycle) })
	return sorted[len(sorted)/2]
}

func (f *queueFigures) String() string {
	m := f.median()
	return fmt.Sprintf("enqueue %.0f/s, lifecycle %.0f/s, idle p50 %s p99 %s, %.1f commands and %.0f bytes a job",
		m.enqueue, m.lifecycle, ms(m.p50), ms(m.p99), m.commands, m.bytes)
}

// measureQueue measures three things of one side: enqueueing alone, the lifecycle with
// producers and workers at the same time, and single jobs on an idle queue. It begins with an
// empty store, and empties it before the lifecycle.
func measureQueue(ctx context.Context, o options, addr string, open func(context.Context, string) (broker, error), size int) (f queueFigure, err error) {
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, Protocol: 2})
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := client.FlushAll(ctx).Err(); err != nil {
		return f, err
	}
	b, err := open(ctx, addr)
	if err != nil {
		return f, err
	}
	defer b.close()
	begin := time.Now()
	made, err := produce(ctx, b, size, begin.Add(o.seconds/4))
	if err != nil {
		return f, err
	}
	f.enqueue = float64(made) / time.Since(begin).Seconds()
	if err := client.FlushAll(ctx).Err(); err != nil {
		return f, err
	}
	before, err := readStats(ctx, client)
	if err != nil {
		return f, err
	}
	begin = time.Now()
	done, err := lifecycleOf(ctx, b, size, begin.Add(o.seconds/2))
	if err != nil {
		return f, err
	}
	f.lifecycle = float64(done) / time.Since(begin).Seconds()
	after, err := readStats(ctx, client)
	if err != nil {
		return f, err
	}
	f.commands, f.bytes = (after.commands-before.commands)/float64(done), (after.bytes-before.bytes)/float64(done)
	f.p50, f.p99, err = idleLatency(ctx, b)
	return f, err
}

// produce enqueues size jobs a call from all producers until the time until, and returns the
// number of jobs. One producer's error does not end the others.
func produce(ctx context.Context, b broker, size int, until time.Time) (int64, error) {
	var made atomic.Int64
	errs := make(chan error, queueProducers)
	var work sync.WaitGroup
	for range queueProducers {
		work.Go(func() {
			for time.Now().Before(until) {
				if err := b.enqueue(ctx, size); err != nil {
					errs <- err
					return
				}
				made.Add(int64(size))
			}
		})
	}
	work.Wait()
	close(errs)
	return made.Load(), <-errs
}

// lifecycleOf runs producers until the time until and workers beside them, and returns the
// number of jobs when all of them are handled. It fails if that takes a minute longer.
func lifecycleOf(ctx context.Context, b broker, size int, until time.Time) (int64, error) {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var done atomic.Int64
	served := make(chan error, 1)
	go func() { served <- b.serve(serving, func([]byte) { done.Add(1) }) }()
	made, err := produce(ctx, b, size, until)
	for deadline := time.Now().Add(time.Minute); err == nil && done.Load() < made; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			err = fmt.Errorf("%d of %d jobs were handled", done.Load(), made)
		}
	}
	stop()
	return made, cmp.Or(err, <-served)
}

// idleLatency enqueues single jobs and measures the time until the handler has each. The
// pauses are random, so that they do not fall into step with a poll of the worker.
func idleLatency(ctx context.Context, b broker) (p50, p99 time.Duration, err error) {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	arrived := make(chan time.Duration, queueIdleProbes)
	served := make(chan error, 1)
	go func() {
		served <- b.serve(serving, func(payload []byte) {
			if sent, err := strconv.ParseInt(string(payload), 10, 64); err == nil {
				arrived <- time.Duration(time.Now().UnixNano() - sent)
			}
		})
	}()
	var took []time.Duration
	for range queueIdleProbes {
		time.Sleep(time.Duration(3+rand.IntN(7)) * time.Millisecond)
		if err := b.enqueuePayload(ctx, strconv.AppendInt(nil, time.Now().UnixNano(), 10)); err != nil {
			return 0, 0, err
		}
		select {
		case d := <-arrived:
			took = append(took, d)
		case <-time.After(30 * time.Second):
			return 0, 0, errors.New("a job did not arrive")
		}
	}
	stop()
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], <-served
}

// storeStats are the counters of the store since its start: commands, and bytes in both
// directions.
type storeStats struct{ commands, bytes float64 }

// readStats reads the counters from INFO stats. Commands that scripts call count too.
func readStats(ctx context.Context, c *redis.Client) (storeStats, error) {
	text, err := c.Info(ctx, "stats").Result()
	var s storeStats
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "total_commands_processed":
			s.commands = n
		case "total_net_input_bytes", "total_net_output_bytes":
			s.bytes += n
		}
	}
	return s, err
}

// asynqBroker is the other side: github.com/hibiken/asynq, a job queue on Redis. It has no call
// that enqueues several jobs, so a batch is that many calls.
type asynqBroker struct {
	client *asynq.Client
	addr   string
}

func newAsynq(_ context.Context, addr string) (broker, error) {
	return &asynqBroker{asynq.NewClient(asynq.RedisClientOpt{Addr: addr}), addr}, nil
}

func (a *asynqBroker) enqueue(ctx context.Context, n int) error {
	for range n {
		if err := a.enqueuePayload(ctx, queuePayload); err != nil {
			return err
		}
	}
	return nil
}

func (a *asynqBroker) enqueuePayload(ctx context.Context, payload []byte) error {
	_, err := a.client.EnqueueContext(ctx, asynq.NewTask(benchQueue, payload))
	return err
}

// serve runs asynq's server until ctx ends. Its options favour it: see TaskCheckInterval.
func (a *asynqBroker) serve(ctx context.Context, handled func([]byte)) error {
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: a.addr}, asynq.Config{
		Concurrency: queueConcurrency, LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Second,
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

func (a *asynqBroker) close() {
	if err := a.client.Close(); err != nil {
		log.Print(err)
	}
}

// sousQueue is the job queue of sous, used as a library in this process, as asynq is.
type sousQueue struct {
	store  *storage.Store
	broker *queue.Broker
}

func newSousQueue(ctx context.Context, addr string) (broker, error) {
	store, err := storage.Open(ctx, storage.Config{URL: "redis://" + addr})
	if err != nil {
		return nil, err
	}
	b, err := queue.New(ctx, store, queue.Config{})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &sousQueue{store, b}, nil
}

func (s *sousQueue) enqueue(ctx context.Context, n int) error {
	jobs := make([]api.NewJob, n)
	for i := range jobs {
		jobs[i].Payload = queuePayload
	}
	_, err := s.broker.Enqueue(ctx, queue.Enqueue{Tenant: tenant, Namespace: namespace, Queue: benchQueue, Jobs: jobs})
	return err
}

func (s *sousQueue) enqueuePayload(ctx context.Context, payload []byte) error {
	_, err := s.broker.Enqueue(ctx, queue.Enqueue{Tenant: tenant, Namespace: namespace, Queue: benchQueue, Jobs: []api.NewJob{{Payload: payload}}})
	return err
}

func (s *sousQueue) serve(ctx context.Context, handled func([]byte)) error {
	w, err := worker.New(s, worker.Config{Concurrency: queueConcurrency, Ahead: queueAhead, OnError: func(err error) { log.Print(err) }})
	if err != nil {
		return err
	}
	w.Handle(benchQueue, func(_ context.Context, j *worker.Job) error {
		handled(j.Payload)
		return nil
	})
	return w.Run(ctx)
}

func (s *sousQueue) close() {
	s.broker.Close()
	if err := s.store.Close(); err != nil {
		log.Print(err)
	}
}

// FetchJobs implements worker.Source, with AckJobs, FailJobs and HeartbeatJobs: the worker
// calls the broker itself, without HTTP.
func (s *sousQueue) FetchJobs(ctx context.Context, r api.FetchRequest) ([]api.FetchedJob, error) {
	return s.broker.Fetch(ctx, queue.Fetch{
		Tenant: tenant, Namespace: namespace, Queues: r.Queues, WorkerID: r.WorkerID, Count: r.Count,
		Lease: time.Duration(r.LeaseMS) * time.Millisecond, Wait: time.Duration(r.WaitMS) * time.Millisecond,
	})
}

// AckJobs acknowledges.
func (s *sousQueue) AckJobs(ctx context.Context, acks []api.JobAck) ([]api.JobOutcome, error) {
	return s.broker.Ack(ctx, tenant, acks)
}

// FailJobs fails.
func (s *sousQueue) FailJobs(ctx context.Context, fails []api.JobFail) ([]api.JobOutcome, error) {
	return s.broker.Fail(ctx, tenant, fails)
}

// HeartbeatJobs renews leases.
func (s *sousQueue) HeartbeatJobs(ctx context.Context, _ string, beats []api.JobHeartbeat) ([]api.JobOutcome, error) {
	return s.broker.Heartbeat(ctx, tenant, beats)
}

// queueDepth compares the rate of fetching from a queue of a million jobs, times
// options.scale, with that from a queue of a thousand. Each round takes a thousand jobs from
// both, and adds as many, so that the depths stay.
func queueDepth(ctx context.Context, o options) ([]row, error) {
	dir, err := os.MkdirTemp("", "sousbench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := startStore(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	opened, err := newSousQueue(ctx, server.addr)
	if err != nil {
		return nil, err
	}
	defer opened.close()
	s, _ := opened.(*sousQueue)
	depths := map[string]int{"small": 1000, "large": int(1_000_000 * o.scale)}
	rates := map[string][]float64{}
	for name, depth := range depths {
		if err := s.fill(ctx, name, depth); err != nil {
			return nil, err
		}
	}
	for range max(9, o.rounds) {
		for name := range depths {
			rate, err := s.drain(ctx, name, 1000)
			if err != nil {
				return nil, err
			}
			rates[name] = append(rates[name], rate)
			if err := s.fill(ctx, name, 1000); err != nil { // as deep as before
				return nil, err
			}
		}
	}
	median := func(name string) float64 {
		slices.Sort(rates[name])
		return rates[name][len(rates[name])/2]
	}
	small, large := median("small"), median("large")
	return []row{
		{name: "fetch and ack from 1,000 pending", value: fmt.Sprintf("%.0f/s", small)},
		{name: fmt.Sprintf("fetch and ack from %d pending", depths["large"]), value: fmt.Sprintf("%.0f/s", large)},
		{"deep queue, share of the shallow one's", fmt.Sprintf("%.2f", large/small), "≥ 0.9", large >= 0.9*small},
	}, nil
}

// fill adds n jobs to the queue called name.
func (s *sousQueue) fill(ctx context.Context, name string, n int) error {
	for ; n > 0; n -= api.MaxEnqueueJobs {
		jobs := make([]api.NewJob, min(n, api.MaxEnqueueJobs))
		for i := range jobs {
			jobs[i].Payload = queuePayload
		}
		if _, err := s.broker.Enqueue(ctx, queue.Enqueue{Tenant: tenant, Namespace: namespace, Queue: name, Jobs: jobs}); err != nil {
			return err
		}
	}
	return nil
}

// drain fetches and acknowledges n jobs in batches, one batch after the other, and returns
// the jobs a second. The queue must have n pending jobs.
func (s *sousQueue) drain(ctx context.Context, name string, n int) (float64, error) {
	begin := time.Now()
	for left := n; left > 0; {
		jobs, err := s.broker.Fetch(ctx, queue.Fetch{
			Tenant: tenant, Namespace: namespace, Queues: []string{name}, WorkerID: "bench", Count: min(left, queueBatch),
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
		if _, err := s.broker.Ack(ctx, tenant, acks); err != nil {
			return 0, err
		}
		left -= len(jobs)
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}
