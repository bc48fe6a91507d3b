// Package worker runs handlers for the jobs of queues: it fetches ahead, keeps
// leases alive, settles in groups, and stops without losing or repeating work.
//
//	w, err := worker.New(c.Tenant("t_acme01").Namespace("default"), worker.Config{Concurrency: 20})
//	…
//	w.Handle("emails", func(ctx context.Context, j *worker.Job) error {
//		return send(ctx, j.Payload)
//	})
//	err = w.Run(ctx)
//
// Run has four kinds of goroutines. fetch leases jobs and puts them into the channel work;
// Concurrency goroutines take them from there and call the handlers; beat renews the leases
// of all jobs in hand; the settler (settler.go) acknowledges and fails them in groups. A job
// is in hand from its fetch until the server has answered its settlement, or its lease is
// lost. With the default lease of 30 s:
//
//	0 s     fetch: job A, lease epoch 1, leased until 30 s; it waits in work
//	0.1 s   a handler starts with A
//	10 s    beat: leased until 40 s; sends what Progress and Keep have stored
//	14 s    the handler returns nil; the settler sends {"acks": [{A, epoch 1}, …]}
//
// If the process is killed at 12 s, the lease ends at 40 s. The job is then fetched again,
// by any worker, with epoch 2 and the checkpoint of 10 s. If the process was only frozen, its
// ack of epoch 1 fails with CodeJobLeaseLost. So a handler runs at least once: what it does
// must be safe to repeat.
package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codesous/sous/api"
)

// Source provides jobs and settles them; *client.Namespace implements it. It must be safe
// for concurrent use. A Worker passes it contexts with deadlines.
type Source interface {
	// FetchJobs leases jobs, and waits up to r.WaitMS for the first. It may return none.
	FetchJobs(ctx context.Context, r api.FetchRequest) ([]api.FetchedJob, error)
	// AckJobs, FailJobs and HeartbeatJobs return one outcome for each job in order.
	// After an error the outcome of every job is unknown.
	AckJobs(ctx context.Context, acks []api.JobAck) ([]api.JobOutcome, error)
	FailJobs(ctx context.Context, fails []api.JobFail) ([]api.JobOutcome, error)
	HeartbeatJobs(ctx context.Context, workerID string, beats []api.JobHeartbeat) ([]api.JobOutcome, error)
}

// Handler runs a job. Its result settles the job: nil completes it, an error fails the
// attempt, and the job is retried after its backoff unless the error is one of Fatal,
// RetryAfter and Snooze. ctx ends when the job is cancelled, its lease is lost, or the
// worker stops and StopTimeout has passed; context.Cause returns which.
type Handler func(ctx context.Context, j *Job) error

// Config configures a Worker. Zero values mean the documented defaults.
type Config struct {
	// Concurrency is the number of handlers that run at once (default 10).
	Concurrency int
	// Ahead is the number of jobs that are fetched in advance, so that no handler
	// waits for the next one (default: Concurrency; negative: none). They are leased.
	Ahead int
	// Lease is the duration of leases (default 30 s). They are renewed after a third
	// of it.
	Lease time.Duration
	// Wait is the time that one fetch waits for jobs (default 20 s).
	Wait time.Duration
	// StopTimeout is the time that running handlers have to finish after Run's context
	// has ended (default 25 s; negative: none).
	StopTimeout time.Duration
	// ID names this worker (default: host, process and a random part).
	ID string
	// Version is the version of the program, for the list of workers.
	Version string
	// OnError receives errors that no handler sees: of a request that is repeated, and
	// of an outcome that was rejected (default: ignored).
	OnError func(error)
}

// The reasons with which a handler's context ends.
var (
	// ErrCancelled means that the job was cancelled.
	ErrCancelled = errors.New("worker: the job was cancelled")
	// ErrLeaseLost means that the job was leased to another worker or deleted.
	ErrLeaseLost = errors.New("worker: the job's lease was lost")
	// ErrStopped means that the worker stops and StopTimeout has passed.
	ErrStopped = errors.New("worker: stopped")
)

// Worker runs handlers. Register them with Handle, then call Run once. Only Run and ID may be
// called concurrently.
type Worker struct {
	source   Source
	cfg      Config
	hostname string
	queues   []string
	handlers map[string]Handler

	began atomic.Bool
	mu    sync.Mutex
	// mu protects inHand and asked. Together they are at most the capacity of work, so
	// that each job that a fetch returns has room there.
	inHand map[string]*Job // fetched and not settled, by id
	asked  int             // jobs that unfinished fetches asked for

	work    chan *Job        // fetched, for the handlers
	room    [2]chan struct{} // for each fetch, has a token if there may be room for more jobs
	settler *settler         // of Run
}

// New returns a worker that fetches from source. It fails for an invalid Config. It starts
// nothing and sends nothing.
func New(source Source, cfg Config) (*Worker, error) {
	if source == nil {
		return nil, errors.New("worker: a source is required")
	}
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "unknown"
	}
	setDefault(&cfg.Concurrency, 10)
	setDefault(&cfg.Ahead, cfg.Concurrency)
	setDefault(&cfg.Lease, api.DefaultLeaseMS*time.Millisecond)
	setDefault(&cfg.Wait, 20*time.Second)
	setDefault(&cfg.StopTimeout, 25*time.Second)
	cfg.Ahead = max(0, cfg.Ahead)
	if cfg.ID == "" {
		cfg.ID = fmt.Sprintf("%s-%d-%s", hostname, os.Getpid(), rand.Text()[:8])
	}
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Worker{
		source: source, cfg: cfg, hostname: hostname, handlers: map[string]Handler{},
		inHand: map[string]*Job{}, work: make(chan *Job, cfg.Concurrency+cfg.Ahead),
		room: [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)},
	}, nil
}

// validate checks a Config whose defaults are set.
func (c *Config) validate() error {
	const leastLease, mostLease, mostWait = api.MinLeaseMS * time.Millisecond, api.MaxLeaseMS * time.Millisecond, api.MaxFetchWaitMS * time.Millisecond
	switch {
	case c.Concurrency < 1:
		return errors.New("worker: the concurrency must be at least 1")
	case c.Lease < leastLease || c.Lease > mostLease:
		return fmt.Errorf("worker: a lease must be from %s to %s", leastLease, mostLease)
	case c.Wait < time.Millisecond || c.Wait > mostWait:
		return fmt.Errorf("worker: a wait must be from 1ms to %s", mostWait)
	}
	return api.ValidateWorkerID(c.ID)
}

// setDefault sets *v to standard if it is zero.
func setDefault[T comparable](v *T, standard T) {
	var zero T
	if *v == zero {
		*v = standard
	}
}

// Handle registers the handler of a queue. Queues are fetched from in the order of their
// registration: a queue that is never empty starves later ones. Call it before Run.
func (w *Worker) Handle(queue string, h Handler) {
	if _, known := w.handlers[queue]; !known {
		w.queues = append(w.queues, queue)
	}
	w.handlers[queue] = h
}

// ID returns the name of the worker in its leases.
func (w *Worker) ID() string { return w.cfg.ID }

// Run fetches and handles jobs until ctx ends. Then it stops fetching, returns jobs that no
// handler has started to the queue, waits up to StopTimeout for the other handlers, and
// settles their jobs. It stops trying to settle a job after the time of a lease. A job
// whose handler ended because of StopTimeout is returned too: it can run again at once, and
// the attempt does not count. A handler that ignores its context delays the return of Run.
// Run returns nil after such a stop. Call it once. It fails at once without a handler, with
// more than api.MaxFetchQueues queues, and for a queue of the platform.
//
// The stop goes backwards through the pipeline: fetch, then the handlers, then the settler,
// and last the renewal of leases, which all of them need until then.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	// Leases are renewed and jobs settled while handlers finish.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	handling, halt := context.WithCancelCause(life)
	defer halt(nil)
	w.settler = newSettler(life, w)
	var handlers, renewal sync.WaitGroup
	renewal.Go(func() { w.beat(life) })
	for range w.cfg.Concurrency {
		handlers.Go(func() {
			for j := range w.work {
				if ctx.Err() != nil {
					w.giveBack(j)
					continue
				}
				w.handle(handling, j)
			}
		})
	}
	w.fetch(ctx)
	close(w.work)
	stopping := time.AfterFunc(w.cfg.StopTimeout, func() { halt(ErrStopped) })
	handlers.Wait()
	stopping.Stop()
	w.settler.flush()
	end()
	renewal.Wait()
	return nil
}

// check returns an error for a worker that could never run a job.
func (w *Worker) check() error {
	if n := len(w.queues); n == 0 || n > api.MaxFetchQueues {
		return fmt.Errorf("worker: %d queues have a handler, want 1 to %d", n, api.MaxFetchQueues)
	}
	for _, q := range w.queues {
		if err := api.ValidateQueue(q); err != nil {
			return err
		}
		if strings.HasPrefix(q, api.FunctionQueuePrefix) {
			return fmt.Errorf("worker: queue %s is served by the platform itself", q)
		}
	}
	if w.began.Swap(true) {
		return errors.New("worker: Run can be called once")
	}
	return nil
}

// fetchGrace is the time that a fetch may take beyond its wait before the connection is
// considered dead.
const fetchGrace = 15 * time.Second

// fetch fetches jobs for the handlers until ctx ends. While calls return as many jobs as
// they asked for, two calls run at once: the store searches the next jobs while those of
// the previous call are transferred.
func (w *Worker) fetch(ctx context.Context) {
	var second sync.WaitGroup
	defer second.Wait()
	var helped atomic.Bool
	w.fetchWhile(ctx, w.room[0], 1, w.cfg.Wait, func(full bool) bool {
		if full && helped.CompareAndSwap(false, true) {
			second.Go(func() {
				defer helped.Store(false)
				w.fetchWhile(ctx, w.room[1], min(cap(w.work)/secondFetchShare, api.MaxFetchJobs), 0, func(full bool) bool { return full })
			})
		}
		return true
	})
}

// secondFetchShare is the part of all room, as a divisor, for which a second fetch is
// worthwhile: a small fetch costs the store as much as a large one.
const secondFetchShare = 4

// fetchWhile fetches until ctx ends or goOn returns false. goOn is called after each fetch
// with whether it returned as many jobs as it asked for. Before each fetch it waits on room
// until least jobs fit. A fetch waits up to wait for its first job. After an error it
// pauses, for a growing time.
func (w *Worker) fetchWhile(ctx context.Context, room <-chan struct{}, least int, wait time.Duration, goOn func(full bool) bool) {
	pause := newBackoff()
	for ctx.Err() == nil {
		count := w.reserve(least)
		if count == 0 {
			select {
			case <-room:
			case <-ctx.Done():
			}
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, wait+fetchGrace)
		jobs, err := w.source.FetchJobs(bounded, api.FetchRequest{
			Queues: w.queues, WorkerID: w.cfg.ID, Count: count, LeaseMS: w.cfg.Lease.Milliseconds(),
			WaitMS: wait.Milliseconds(), Hostname: w.hostname, Version: w.cfg.Version,
		})
		cancel()
		if err != nil {
			jobs = nil
		}
		taken := w.takeAll(jobs, count)
		if err != nil {
			if ctx.Err() == nil {
				w.cfg.OnError(fmt.Errorf("worker: fetch: %w", err))
				pause.wait(ctx)
			}
			if !goOn(false) {
				return
			}
			continue
		}
		pause.reset()
		for _, j := range taken {
			w.work <- j // does not block, unless a job whose lease expired is still queued
		}
		if !goOn(len(jobs) == count) {
			return
		}
	}
}

// reserve returns how many jobs a fetch may ask for, none if that is fewer than least. It
// counts them as asked until takeAll, since two fetches share the room.
func (w *Worker) reserve(least int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	free := cap(w.work) - len(w.inHand) - w.asked
	if free < max(1, least) {
		return 0
	}
	count := min(free, api.MaxFetchJobs)
	w.asked += count
	return count
}

// takeAll registers the jobs of a fetch that asked for count jobs, and ends its reservation. A
// job that is registered already had a lease that expired: this worker has fetched it again,
// and the handler of the earlier lease is stopped.
func (w *Worker) takeAll(fetched []api.FetchedJob, count int) []*Job {
	jobs := make([]*Job, len(fetched))
	var lost []*Job
	w.mu.Lock()
	w.asked -= count
	for i := range fetched {
		j := &Job{FetchedJob: fetched[i]}
		if before := w.inHand[j.ID]; before != nil {
			lost = append(lost, before)
		}
		w.inHand[j.ID], jobs[i] = j, j
	}
	w.mu.Unlock()
	for _, j := range lost {
		j.lose(ErrLeaseLost)
	}
	if len(fetched)-len(lost) < count {
		w.freed()
	}
	return jobs
}

// freed notifies fetches that wait for room. A token that is in the channel already is
// enough: a fetch looks at the room itself.
func (w *Worker) freed() {
	for _, room := range w.room {
		select {
		case room <- struct{}{}:
		default:
		}
	}
}

// settled unregisters a job. A job of the same id that was fetched again stays.
func (w *Worker) settled(j *Job) {
	w.mu.Lock()
	if w.inHand[j.ID] == j {
		delete(w.inHand, j.ID)
	}
	w.mu.Unlock()
	w.freed()
}

// giveBack returns a job that no handler has finished to its queue: it fails the job with a
// snooze of 0 ms, so that it is due immediately. The attempt does not count.
func (w *Worker) giveBack(j *Job) {
	now := int64(0)
	w.settler.add(j.failing(&api.JobFail{ID: j.ID, LeaseEpoch: j.LeaseEpoch, SnoozeMS: &now}, w.cfg.Lease))
}

// handle runs the job's handler and passes its outcome to the settler. The handler's own
// result counts, unless the lease is lost (there is nothing to settle), or the worker's stop
// ended the handler (the job is returned).
func (w *Worker) handle(handling context.Context, j *Job) {
	ctx, stop := context.WithCancelCause(handling)
	defer stop(nil)
	if !j.begin(stop) {
		w.settled(j) // its lease was lost before it began
		return
	}
	err := w.call(ctx, j)
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrLeaseLost) || errors.Is(cause, ErrCancelled) {
		w.settled(j) // the lease was lost meanwhile
		return
	}
	if errors.Is(cause, ErrStopped) && (errors.Is(err, context.Canceled) || errors.Is(err, ErrStopped)) {
		w.giveBack(j)
		return
	}
	w.settler.add(j.outcome(err, w.cfg.Lease))
}

// call calls the handler and turns a panic into an error with a stack.
func (w *Worker) call(ctx context.Context, j *Job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	return w.handlers[j.Queue](ctx, j)
}

// beat renews the leases of all registered jobs, every third of a lease: two renewals may
// fail before a lease ends.
func (w *Worker) beat(ctx context.Context) {
	tick := time.NewTicker(w.cfg.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.renew(ctx)
		}
	}
}

// renew sends one heartbeat for each job in hand, with its progress and checkpoint if they
// are new. A job whose lease is lost, or which was cancelled, has its handler stopped. After
// an error, or an answer that does not match, everything is sent again with the next one.
func (w *Worker) renew(ctx context.Context) {
	w.mu.Lock()
	jobs := make([]*Job, 0, len(w.inHand))
	for _, j := range w.inHand {
		jobs = append(jobs, j)
	}
	w.mu.Unlock()
	for part := range slices.Chunk(jobs, api.MaxSettleJobs) {
		beats := make([]api.JobHeartbeat, len(part))
		for i, j := range part {
			beats[i] = j.heartbeat(w.cfg.Lease)
		}
		bounded, cancel := context.WithTimeout(ctx, w.cfg.Lease/3)
		outcomes, err := w.source.HeartbeatJobs(bounded, w.cfg.ID, beats)
		cancel()
		if err == nil && len(outcomes) != len(part) {
			err = fmt.Errorf("%d outcomes for %d jobs", len(outcomes), len(part))
		}
		if err != nil {
			for i, j := range part {
				j.unsent(beats[i])
			}
			if ctx.Err() == nil {
				w.cfg.OnError(fmt.Errorf("worker: heartbeat: %w", err))
			}
			continue
		}
		for i, o := range outcomes {
			switch {
			case o.OK:
				part[i].sent(beats[i])
			case o.State == api.JobCancelled:
				part[i].lose(ErrCancelled)
			case o.Code == api.CodeJobLeaseLost, o.Code == api.CodeJobNotFound:
				part[i].lose(ErrLeaseLost)
			default:
				w.cfg.OnError(fmt.Errorf("worker: heartbeat of job %s: %s: %s", o.ID, o.Code, o.Message))
			}
		}
	}
}
