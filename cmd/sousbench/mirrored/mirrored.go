// Package mirrored has the load of the benchmark of the mirror: jobs that end, and searches.
package mirrored

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/search"
	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/cmd/sousbench/frames"
)

// probeQueue has the jobs whose delay is measured.
const probeQueue = "probe"

// Workers are those of a server, with a stream each.
type Workers struct {
	Server            string // its URL
	Tenant, Namespace string
	Batch             int // jobs of a frame

	queues int
}

func (o Workers) worker(ctx context.Context, number int) (*frames.Worker, error) {
	return frames.New(ctx, o.Server, o.Tenant, o.Namespace, fmt.Sprint("worker", number))
}

// Paced adds and ends rate jobs a second until then.
func (o Workers) Paced(ctx context.Context, number int, until time.Time, rate float64, ended *atomic.Int64) error {
	w, err := o.worker(ctx, number)
	if err != nil {
		return err
	}
	defer w.Close()
	queue := fmt.Sprint("paced", number)
	load := frames.Load{Queues: []string{queue}, Add: o.parcels(queue, number), Take: o.Batch, Window: 1}
	begin, done := time.Now(), 0
	for time.Now().Before(until) {
		n, err := w.Run(load, time.Now().Add(time.Millisecond)) // one frame
		if err != nil {
			return err
		}
		done += n
		ended.Add(int64(n))
		due := begin.Add(time.Duration(float64(done) / rate * float64(time.Second)))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(due)):
		}
	}
	return nil
}

// Delays ends one job after the other until then, and returns how long each took to be found.
func (o Workers) Delays(ctx context.Context, t *client.Tenant, until time.Time) (out []time.Duration, err error) {
	w, err := frames.New(ctx, o.Server, o.Tenant, o.Namespace, "prober")
	if err != nil {
		return nil, err
	}
	defer w.Close()
	probe := frames.Load{Queues: []string{probeQueue}, Take: 1, Window: 1}
	probe.Add = func() *workerv1.Enqueue {
		return &workerv1.Enqueue{Queue: probeQueue, Jobs: []*workerv1.NewJob{{Payload: []byte("1")}}}
	}
	q := search.Jobs{Queues: []string{probeQueue}, States: []api.JobState{api.JobCompleted}, Order: search.Order{Count: true}}
	for total := 0; time.Now().Before(until); {
		n, err := w.Run(probe, time.Now().Add(time.Millisecond))
		if err != nil {
			return nil, err
		}
		total += n
		for began := time.Now(); ; {
			page, err := t.SearchJobs(ctx, q, client.PageOptions{Limit: 1})
			if err != nil {
				return nil, err
			}
			if page.Count != nil && int(page.Count.Value) == total {
				out = append(out, time.Since(began))
				break
			}
			if time.Since(began) > time.Minute {
				return nil, fmt.Errorf("%d jobs that ended were not found within a minute", total)
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(10 * time.Millisecond): // a search takes processor time, too
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// Make has a worker make n jobs in so many queues, and then end those of all workers but in the last queue.
func (o Workers) Make(ctx context.Context, number, n, queues int) error {
	w, err := o.worker(ctx, number)
	if err != nil {
		return err
	}
	defer w.Close()
	o.queues = queues
	load := frames.Load{Add: o.parcels("", number), Window: 4}
	for q := range queues - 1 {
		load.Queues = append(load.Queues, fmt.Sprint("q", q))
	}
	for made := 0; made < n; {
		some, err := w.Run(load, time.Now().Add(100*time.Millisecond))
		made += some
		if err != nil {
			return err
		}
	}
	load.Add, load.Take, load.Window = nil, o.Batch, 1
	_, err = w.Run(load, time.Now().Add(time.Hour))
	return err
}

// parcels returns what makes batches of jobs, in a queue or, for "", in those of o in turn.
func (o Workers) parcels(queue string, seed int) func() *workerv1.Enqueue {
	random, n := rand.New(rand.NewPCG(uint64(seed), 1)), 0 //nolint:gosec // a small number
	return func() *workerv1.Enqueue {
		n++
		e := &workerv1.Enqueue{Queue: queue, Jobs: make([]*workerv1.NewJob, o.Batch)}
		if queue == "" {
			e.Queue = fmt.Sprint("q", n%o.queues)
		}
		for i := range e.Jobs {
			e.Jobs[i] = &workerv1.NewJob{
				Payload: fmt.Appendf(nil, `{"order":"o%d","city":"city%d","text":"please deliver the parcel word%d"}`, random.IntN(1_000_000_000), random.IntN(100), random.IntN(10_000)),
				Tags:    map[string]string{"customer": "c" + strconv.Itoa(random.IntN(50_000)), "region": "r" + strconv.Itoa(random.IntN(5))},
			}
		}
		return e
	}
}

// CaughtUp waits until the mirror serves and has at least so many jobs, and returns how many it has.
func CaughtUp(ctx context.Context, c *client.Client, least int64) (int64, error) {
	for begin := time.Now(); ; {
		status, err := c.Mirror(ctx)
		if err != nil {
			return 0, err
		}
		if status.Serves && status.Jobs >= least {
			return status.Jobs, nil
		}
		if time.Since(begin) > 10*time.Minute {
			return 0, fmt.Errorf("the mirror has %d of %d jobs after ten minutes: %+v", status.Jobs, least, status)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Pages reads one page of 50 after the other for length, and again from the first behind the last. It
// returns how long each took, in order.
func Pages(ctx context.Context, t *client.Tenant, q search.Jobs, length time.Duration) (took []time.Duration, err error) {
	cursor := ""
	for end := time.Now().Add(length); time.Now().Before(end); {
		begin := time.Now()
		page, err := t.SearchJobs(ctx, q, client.PageOptions{Limit: 50, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
		cursor = ""
		if page.NextCursor != nil {
			cursor = *page.NextCursor
		}
	}
	slices.Sort(took)
	return took, nil
}
