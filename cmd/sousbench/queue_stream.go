package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/cmd/sousbench/frames"
)

const (
	// streamWorkers is how many workers have a stream each.
	streamWorkers = 8
	// The frames that are under way for a worker: it sends the next ones before the answers to the
	// earlier ones have arrived. A worker with single jobs has several in hand, and sends a frame when
	// one of them ends. More frames with batches of jobs are not faster: they share the same claims.
	addWindow, batchWindow, jobWindow = 4, 1, 8
)

// queueStream takes jobs through the stream of workers, with frames of 64 jobs and of one. The workers
// are goroutines of this process, beside the server and its store on the same processors. The rate of
// frames is not limited.
func queueStream(ctx context.Context, o options) ([]row, error) {
	var rows []row
	for _, mode := range o.storeModes() {
		more, err := streamOn(ctx, o, mode)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func streamOn(ctx context.Context, o options, mode storeMode) ([]row, error) {
	dir, err := os.MkdirTemp("", "sousbench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := startStore(ctx, o, dir, mode.args...)
	if err != nil {
		return nil, err
	}
	defer store.stop()
	server, err := startSous(ctx, o, store, append(profileArgs(o), "--stream-frame-rate", "1000000")...)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	workers := make([]*frames.Worker, streamWorkers)
	for i := range workers {
		workers[i], err = frames.New(ctx, "http://"+server.addr, tenant, namespace, fmt.Sprint("worker", i))
		if err != nil {
			return nil, err
		}
		defer workers[i].Close()
	}
	defer startProfile(ctx, o, "queue-stream")()
	var rows []row
	for _, kind := range []struct {
		name        string
		add, take   int // jobs of a frame
		window      int
		redis, disk float64 // the required rates; 0 for none
	}{
		{"enqueue batches of 64", queueBatch, 0, addWindow, 78_000, 50_000},
		{"fetch and ack batches of 64", 0, queueBatch, batchWindow, 40_000, 16_000},
		{"enqueue, fetch and ack batches of 64", queueBatch, queueBatch, batchWindow, 28_000, 12_000},
		{"enqueue, fetch and ack of single jobs, 8 frames under way", 1, 1, jobWindow, 7_000, 7_000},
		{"enqueue, fetch and ack of single jobs, one frame after the other", 1, 1, 1, 0, 0},
	} {
		var best float64 // a disturbed round says nothing about the server
		for range o.rounds {
			rate, err := streamRound(workers, kind.add, kind.take, kind.window, o.seconds/4)
			if err != nil {
				return nil, err
			}
			best = max(best, rate)
		}
		r := row{name: mode.name + ": stream, 8 workers: " + kind.name, value: fmt.Sprintf("%.0f/s", best)}
		want := o.want(kind.redis, kind.disk)
		if mode.bound && want > 0 {
			r.want, r.ok = fmt.Sprintf("≥ %.0f/s", want), best >= want
		}
		rows = append(rows, r)
	}
	idle, err := streamLatency(workers[0], workers[1])
	if err != nil {
		return nil, err
	}
	r := row{name: mode.name + ": stream, p99 to the worker on an idle queue", value: ms(idle)}
	if mode.bound {
		r.want, r.ok = "< 3 ms", idle < 3*time.Millisecond
	}
	return append(rows, r), nil
}

// streamRound has all workers send frames for length, which add and take so many jobs, and returns the
// jobs a second: those that were acknowledged, or else added. Jobs that are left are taken afterwards.
// Where frames only take, more than they can take in the time were added before.
func streamRound(workers []*frames.Worker, add, take, window int, length time.Duration) (float64, error) {
	if add == 0 {
		if _, err := streamPhase(workers, queueBatch, 0, window, length); err != nil {
			return 0, err
		}
	}
	rate, err := streamPhase(workers, add, take, window, length)
	if err != nil {
		return 0, err
	}
	_, err = streamPhase(workers, 0, queueBatch, 1, time.Hour)
	return rate, err
}

// streamPhase sends frames for length, and then acknowledges the jobs in hand. Frames that only take
// end with the queue.
func streamPhase(workers []*frames.Worker, add, take, window int, length time.Duration) (float64, error) {
	var done atomic.Int64
	var work sync.WaitGroup
	errs := make(chan error, len(workers))
	begin, load := time.Now(), frames.Load{Queues: []string{benchQueue}, Add: adds(add), Take: take, Window: window}
	for _, w := range workers {
		work.Go(func() {
			n, err := w.Run(load, begin.Add(length))
			done.Add(int64(n))
			if err != nil {
				errs <- err
			}
		})
	}
	work.Wait()
	close(errs)
	return float64(done.Load()) / time.Since(begin).Seconds(), <-errs
}

// streamLatency returns the p99 of the time from the frame that adds a job to its arrival at a worker
// whose fetch waits.
func streamLatency(producer, consumer *frames.Worker) (time.Duration, error) {
	var all []time.Duration
	for range queueIdleProbes {
		if err := consumer.Send(&workerv1.LifecycleRequest{Fetch: &workerv1.Fetch{Queues: []string{benchQueue}, Credits: 1}}); err != nil {
			return 0, err
		}
		if _, err := consumer.Receive(); err != nil { // it waits
			return 0, err
		}
		begin := time.Now()
		if err := producer.Send(&workerv1.LifecycleRequest{Enqueues: []*workerv1.Enqueue{benchJobs(1)}}); err != nil {
			return 0, err
		}
		res, err := consumer.Receive()
		if err != nil {
			return 0, err
		}
		all = append(all, time.Since(begin))
		if len(res.GetFetched().GetJobs()) != 1 {
			return 0, errors.New("a fetch ended without its job")
		}
		consumer.Keep(res.GetFetched().GetJobs())
		if _, err := producer.Receive(); err != nil {
			return 0, err
		}
		if _, err := consumer.Run(frames.Load{Window: 1}, begin); err != nil {
			return 0, err
		}
	}
	slices.Sort(all)
	return all[len(all)*99/100], nil
}

// adds returns what frames with n jobs add, nil for none.
func adds(n int) func() *workerv1.Enqueue {
	if n == 0 {
		return nil
	}
	e := benchJobs(n)
	return func() *workerv1.Enqueue { return e }
}

// benchJobs returns n jobs.
func benchJobs(n int) *workerv1.Enqueue {
	e := &workerv1.Enqueue{Queue: benchQueue, Jobs: make([]*workerv1.NewJob, n)}
	for i := range e.Jobs {
		e.Jobs[i] = &workerv1.NewJob{Payload: queuePayload}
	}
	return e
}
