package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/api/worker/v1/workerv1connect"
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
	workers := make([]*frameWorker, streamWorkers)
	for i := range workers {
		workers[i], err = newFrameWorker(ctx, "http://"+server.addr, fmt.Sprint("worker", i))
		if err != nil {
			return nil, err
		}
		defer workers[i].close()
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
func streamRound(workers []*frameWorker, add, take, window int, length time.Duration) (float64, error) {
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
func streamPhase(workers []*frameWorker, add, take, window int, length time.Duration) (float64, error) {
	var done atomic.Int64
	var work sync.WaitGroup
	errs := make(chan error, len(workers))
	begin := time.Now()
	for _, w := range workers {
		work.Go(func() {
			n, err := w.run(add, take, window, begin.Add(length))
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
func streamLatency(producer, consumer *frameWorker) (time.Duration, error) {
	var all []time.Duration
	for range queueIdleProbes {
		if err := consumer.send(&workerv1.LifecycleRequest{Fetch: &workerv1.Fetch{Queues: []string{benchQueue}, Credits: 1}}); err != nil {
			return 0, err
		}
		if _, err := consumer.bidi.Receive(); err != nil { // it waits
			return 0, err
		}
		begin := time.Now()
		if err := producer.send(producer.adds(1)); err != nil {
			return 0, err
		}
		res, err := consumer.bidi.Receive()
		if err != nil {
			return 0, err
		}
		all = append(all, time.Since(begin))
		if len(res.GetFetched().GetJobs()) != 1 {
			return 0, errors.New("a fetch ended without its job")
		}
		consumer.keep(res.GetFetched().GetJobs())
		if _, err := producer.bidi.Receive(); err != nil {
			return 0, err
		}
		if _, err := consumer.run(0, 0, 1, begin); err != nil {
			return 0, err
		}
	}
	slices.Sort(all)
	return all[len(all)*99/100], nil
}

// frameWorker is a worker that sends one frame after the other.
type frameWorker struct {
	bidi *connect.BidiStreamForClient[workerv1.LifecycleRequest, workerv1.LifecycleResponse]
	id   uint64
	acks []*workerv1.Ack // of the jobs in hand
}

func newFrameWorker(ctx context.Context, url, name string) (*frameWorker, error) {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	c := workerv1connect.NewWorkerServiceClient(&http.Client{Transport: &http.Transport{Protocols: protocols}}, url)
	w := &frameWorker{bidi: c.Lifecycle(ctx)}
	err := w.send(&workerv1.LifecycleRequest{Hello: &workerv1.Hello{Tenant: tenant, Namespace: namespace, WorkerId: name}})
	if err == nil {
		_, err = w.bidi.Receive()
	}
	return w, err
}

func (w *frameWorker) send(frame *workerv1.LifecycleRequest) error {
	w.id++
	frame.RequestId = w.id
	return w.bidi.Send(frame)
}

// adds returns a frame that adds n jobs.
func (w *frameWorker) adds(n int) *workerv1.LifecycleRequest {
	e := &workerv1.Enqueue{Queue: benchQueue, Jobs: make([]*workerv1.NewJob, n)}
	for i := range e.Jobs {
		e.Jobs[i] = &workerv1.NewJob{Payload: queuePayload}
	}
	return &workerv1.LifecycleRequest{Enqueues: []*workerv1.Enqueue{e}}
}

// run sends frames until then, of which window are under way, and then acknowledges the jobs in hand. It
// returns the number of jobs that were acknowledged, or else added.
func (w *frameWorker) run(add, take, window int, until time.Time) (done int, err error) {
	empty := false
	for underway := 0; ; {
		sending := time.Now().Before(until) && !empty
		for underway < window && (sending || len(w.acks) > 0) {
			f := &workerv1.LifecycleRequest{}
			if add > 0 && sending {
				f = w.adds(add)
			}
			if take > 0 && sending {
				now := int64(0)
				f.Fetch = &workerv1.Fetch{Queues: []string{benchQueue}, Credits: uint32(take), WaitMs: &now} //nolint:gosec // a constant
			}
			f.Acks, w.acks = w.acks, nil
			if err := w.send(f); err != nil {
				return done, err
			}
			underway++
		}
		if underway == 0 {
			return done, nil
		}
		res, err := w.bidi.Receive()
		if err != nil {
			return done, err
		}
		underway--
		added, acked, err := counts(res)
		if err != nil {
			return done, err
		}
		if take == 0 && add > 0 {
			done += added
		}
		done += acked
		w.keep(res.GetFetched().GetJobs())
		empty = empty || add == 0 && res.GetFetched() != nil && len(res.GetFetched().GetJobs()) == 0
	}
}

// counts returns how many jobs the frame of a response has added and acknowledged.
func counts(res *workerv1.LifecycleResponse) (added, acked int, err error) {
	if res.GetError() != nil {
		return 0, 0, errors.New(res.GetError().GetMessage())
	}
	for _, e := range res.GetEnqueued() {
		if e.GetError() != nil {
			return 0, 0, errors.New(e.GetError().GetMessage())
		}
		added += len(e.GetJobs())
	}
	for _, o := range res.GetAcked().GetOutcomes() {
		if !o.GetOk() {
			return 0, 0, errors.New(o.GetMessage())
		}
		acked++
	}
	return added, acked, nil
}

// keep takes jobs into the hand.
func (w *frameWorker) keep(jobs []*workerv1.Job) {
	for _, j := range jobs {
		w.acks = append(w.acks, &workerv1.Ack{Id: j.GetId(), LeaseEpoch: j.GetLeaseEpoch()})
	}
}

func (w *frameWorker) close() { _ = w.bidi.CloseRequest() }
