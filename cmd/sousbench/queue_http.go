package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

// queueHTTP takes jobs through the HTTP API: two producers and eight workers that
// fetch and acknowledge in batches. They are goroutines of this process, beside the server
// and its store on the same processors.
func queueHTTP(ctx context.Context, o options) ([]row, error) {
	var rows []row
	for _, mode := range o.storeModes() {
		rate, err := httpLifecycle(ctx, o, mode)
		if err != nil {
			return nil, err
		}
		r := row{name: mode.name + ": over HTTP, 8 workers, batches of 64", value: fmt.Sprintf("%.0f/s", rate)}
		if mode.bound {
			want := o.want(27_000, 20_000)
			r.want, r.ok = fmt.Sprintf("≥ %.0f/s", want), rate >= want
		}
		rows = append(rows, r)
	}
	return rows, nil
}

const httpWorkers = 8

// httpLifecycle returns the best rate of all rounds in jobs a second: the processes share the
// processors, and a disturbed round says nothing about the server.
func httpLifecycle(ctx context.Context, o options, mode storeMode) (float64, error) {
	dir, err := os.MkdirTemp("", "sousbench")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := startStore(ctx, o, dir, mode.args...)
	if err != nil {
		return 0, err
	}
	defer store.stop()
	server, err := startSous(ctx, o, store, profileArgs(o)...)
	if err != nil {
		return 0, err
	}
	defer server.stop()
	c, err := client.New("http://"+server.addr, client.Config{})
	if err != nil {
		return 0, err
	}
	ns := c.Tenant(tenant).Namespace(namespace)
	defer startProfile(ctx, o, "queue-http")()
	var best float64
	for range o.rounds {
		rate, err := httpRound(ctx, ns, o.seconds/2)
		if err != nil {
			return 0, err
		}
		best = max(best, rate)
	}
	return best, nil
}

// httpRound produces for a while, ahead of the workers by a few thousand jobs at
// most, and returns the number of completed ones a second.
func httpRound(ctx context.Context, ns *client.Namespace, length time.Duration) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const ahead = 4096 // more jobs would measure the producers first and the workers then
	var made, done atomic.Int64
	var work sync.WaitGroup
	errs := make(chan error, httpWorkers+2)
	begin := time.Now()
	until := begin.Add(length)
	for range 2 {
		work.Go(func() {
			jobs := make([]api.NewJob, queueBatch)
			for i := range jobs {
				jobs[i].Payload = queuePayload
			}
			for time.Now().Before(until) {
				if made.Load()-done.Load() > ahead {
					time.Sleep(time.Millisecond)
					continue
				}
				if _, err := ns.Queue(benchQueue).Enqueue(ctx, "", jobs...); err != nil {
					errs <- err
					return
				}
				made.Add(queueBatch)
			}
		})
	}
	for i := range httpWorkers {
		work.Go(func() {
			for time.Now().Before(until) || done.Load() < made.Load() {
				n, err := httpBatch(ctx, ns, fmt.Sprint("worker", i))
				if err != nil {
					errs <- err
					return
				}
				done.Add(int64(n))
			}
		})
	}
	work.Wait()
	close(errs)
	return float64(done.Load()) / time.Since(begin).Seconds(), <-errs
}

// httpBatch fetches and acknowledges one batch, and returns the number of its jobs, 0 if none
// was pending for 100 ms.
func httpBatch(ctx context.Context, ns *client.Namespace, worker string) (int, error) {
	jobs, err := ns.FetchJobs(ctx, api.FetchRequest{Queues: []string{benchQueue}, WorkerID: worker, Count: queueBatch, WaitMS: 100})
	if err != nil || len(jobs) == 0 {
		return 0, err
	}
	acks := make([]api.JobAck, len(jobs))
	for i, j := range jobs {
		acks[i] = api.JobAck{ID: j.ID, LeaseEpoch: j.LeaseEpoch}
	}
	_, err = ns.AckJobs(ctx, acks)
	return len(jobs), err
}
