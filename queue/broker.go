// Package queue is the durable job queue. It implements states, leases, retries, priorities,
// limits, batches and chains of jobs. The store holds all state, and scripts in it make each
// change of a job, so every step is atomic and safe to repeat, and any replica may take it.
//
// Jobs are delivered at least once: a worker has a job under a lease, and a job whose lease
// expires is handed out again. queue/internal/claim explains leases by an example, and
// queue/internal/jobstore the records and sets of a job.
//
// # The path of a job
//
//	Enqueue          enqueue_check.go checks, enqueue.go makes the entries; concurrent calls are
//	                 merged (internal/coalesce); jobstore runs job_add.lua or job_enqueue.lua
//	Fetch            fetch.go waits (internal/notify), internal/claim runs job_claim.lua
//	Take             ready.go: the same for fn queues, whose dispatchers follow the ready sets
//	Heartbeat        lease.go, job_heartbeat.lua
//	Ack              settle.go, merged; job_complete.lua or job_ack.lua
//	Fail             settle.go decides, move.go makes the move by job_move.lua
//	end of the job   internal/followup: chain, outcome, batch, dependents
//	MaintainDue      internal/round: turns of tenants; due.go claims a due queue; maintain.go promotes,
//	                 reclaims, expires, purges
//	Cancel, Hold, …  control.go for one job, queues.go for whole queues, configure.go
//	Tick             tick.go: the job of a schedule's tick, for package scheduler
//	NewRepairer      repairs.go and package queue/repair, for the sweeper
//
// # Invariants
//
// Each change of a job is one script that compares the stored run, or the lease epoch in it, with
// that of the caller. A call that loses such a race is refused, or reads the job again and decides
// on its present state.
//
// Work is stored before the mark that makes it found: a job before the queue's time in the due
// set, the end of a job together with the marker of its consequences. A crash in between leaves
// work without a mark, which maintenance or the sweeper finds.
//
// A job that is made because of another record has an id derived from the cause, so that any
// step can be repeated.
//
// Moments are Unix times in milliseconds by the clock of storage.Store. Scripts and decisions
// receive them as arguments.
package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/coalesce"
	"github.com/codesous/sous/queue/internal/admission"
	"github.com/codesous/sous/queue/internal/claim"
	"github.com/codesous/sous/queue/internal/consent"
	"github.com/codesous/sous/queue/internal/followup"
	"github.com/codesous/sous/queue/internal/gate"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/queue/internal/notify"
	"github.com/codesous/sous/queue/internal/overspend"
	"github.com/codesous/sous/queue/internal/resultschema"
	"github.com/codesous/sous/queue/internal/workers"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/approvals"
	"github.com/codesous/sous/storage/budgets"
	"github.com/codesous/sous/storage/duework"
	"github.com/codesous/sous/storage/schedules"
	"github.com/codesous/sous/storage/spending"
)

// Config is the configuration of a Broker. Zero values mean the documented defaults.
type Config struct {
	// Logger receives failures that cannot be returned to a caller (default: none).
	Logger *zap.Logger
	// Random returns numbers in [0, 1), for jitter (default: math/rand/v2). It is called
	// concurrently.
	Random func() float64
	// Retention is how long ended jobs are kept (default: api.JobRetentionMS). All brokers
	// of a store should have the same: each purges by its own.
	Retention storage.Retention
	// PollInterval is how often a waiting fetch polls the store without having been
	// notified (default 1 s).
	PollInterval time.Duration
	// Fetches limits how many fetches of clients take jobs of one queue at once (default:
	// gate.DefaultLimit).
	Fetches int
	// Metrics is where the broker registers its metrics (default: nowhere).
	Metrics prometheus.Registerer
}

// Broker operates the queues of all tenants in one store. It is safe for concurrent use, and
// any number of Brokers may use one store.
type Broker struct {
	store       *storage.Store
	rdb         redis.UniversalClient
	activations *activations.Repository
	schedules   *schedules.Repository
	prices      *spending.Prices
	log         *zap.Logger
	random      func() float64
	poll        time.Duration
	host        string // of this process, for the workers of the platform
	sequence    jobstore.Sequence
	jobs        *jobstore.Store
	claimer     *claim.Claimer
	gate        *gate.Gate
	budgets     *budgets.Repository
	guard       *overspend.Guard
	policies    *approvals.Repository
	consent     *consent.Keeper
	admission   *admission.Admission
	workers     *workers.Registry
	results     *resultschema.Checker
	notifier    *notify.Notifier
	metrics     *brokerMetrics
	enqueues    *coalesce.Coalescer[jobstore.Queue, []*jobstore.Entry]
	internals   *coalesce.Coalescer[jobstore.Queue, []*jobstore.Entry] // of the platform
	acks        *coalesce.Coalescer[jobstore.Queue, []*jobstore.Completion]
	follower    *followup.Follower
	alarm       *duework.Alarm

	life context.Context // the Broker's own lifetime, not a caller's
	end  context.CancelCauseFunc
	work sync.WaitGroup
}

// New returns a Broker over store, which the caller closes after the Broker. ctx applies to
// New only; its values are retained, its end is not. New fails if store is nil or the
// metrics cannot be registered.
func New(ctx context.Context, store *storage.Store, cfg Config) (*Broker, error) {
	if store == nil {
		return nil, errors.New("queue: a store is required")
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	if cfg.PollInterval <= 0 {
		cfg.PollInterval = time.Second
	}
	if cfg.Fetches <= 0 {
		cfg.Fetches = gate.DefaultLimit
	}
	b := &Broker{
		store: store, rdb: store.Client(),
		activations: activations.New(store), schedules: schedules.New(store), log: cfg.Logger,
		random: cfg.Random, poll: cfg.PollInterval, gate: gate.New(cfg.Fetches),
		results: resultschema.New(), alarm: duework.NewAlarm(),
	}
	if name, err := os.Hostname(); err == nil { // else its attempts name no host
		b.host = jobstore.HostOf(name)
	}
	var err1, err2, err3, err4, err5, err6, err7 error
	b.life, b.end = context.WithCancelCause(context.WithoutCancel(ctx))
	b.jobs, err1 = jobstore.New(store, cfg.Retention, jobstore.Notify{DueAt: b.DueAt, Wake: func(q jobstore.Queue) { b.notifier.Wake(q) }})
	b.claimer, err2 = claim.New(b.life, store, b.jobs, claim.Hooks{
		Claimed: func(q jobstore.Queue, status string, jobs []api.FetchedJob, now int64) {
			b.metrics.claimed(q, status, jobs, now)
		},
		Expire: b.expireClaimed,
	})
	b.admission, err3 = admission.New(store)
	b.workers, err4 = workers.New(store)
	b.prices, err5 = spending.NewPrices(store)
	b.budgets, err6 = budgets.New(store, b.DueAt)
	b.policies, err7 = approvals.New(store)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	b.consent = consent.New(store, b.policies)
	b.guard = overspend.New(store, b.budgets, b.jobs, b.claimer, b.changeFound, cfg.Logger)
	b.metrics = newBrokerMetrics(b)
	if err := b.metrics.register(cfg.Metrics, b.guard.Collectors()...); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	b.notifier = notify.New(b.life, &b.work, notify.Config{Store: store, Log: cfg.Logger, DueSoon: func() { b.alarm.Ring() }})
	b.enqueues = coalesced(b.life, api.MaxEnqueueJobs, func(e *jobstore.Entry) int { return len(e.Text) }, b.flushEnqueues)
	b.internals = coalesced(b.life, api.MaxEnqueueJobs, func(e *jobstore.Entry) int { return len(e.Text) }, b.flushInternals)
	b.acks = coalesced(b.life, api.MaxSettleJobs, func(a *jobstore.Completion) int { return len(a.Result) }, b.flushAcks)
	b.follower = followup.New(b.life, followup.Config{
		Store: store, Jobs: b.jobs, Admission: b.admission, Log: cfg.Logger, Enqueue: b.enqueueInternal, Change: b.changeOnly,
	})
	return b, nil
}

const (
	flushBytes   = api.MaxEnqueueBytes // the maximum size of the items of one flush
	flushTimeout = 5 * time.Second     // of one flush, including retries by the store's client
	flushSecond  = 128                 // how many items must wait before a second flush starts
)

// coalesced returns a Coalescer of calls with one or more items each, by queue. It passes at
// most limit items to flush, unless one call has more. weigh returns the size of an item in
// bytes.
func coalesced[T any](life context.Context, limit int, weigh func(T) int, flush func(context.Context, jobstore.Queue, []T)) *coalesce.Coalescer[jobstore.Queue, []T] {
	weighAll := func(items []T) (count, bytes int) {
		for _, item := range items {
			bytes += weigh(item)
		}
		return len(items), bytes
	}
	cfg := coalesce.Config[[]T]{Count: limit, Bytes: flushBytes, SecondFlushAt: flushSecond, Weigh: weighAll}
	return coalesce.New(life, cfg, func(ctx context.Context, q jobstore.Queue, calls [][]T) {
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		flush(ctx, q, slices.Concat(calls...))
	})
}

// Policies returns the approval policies that b enforces.
func (b *Broker) Policies() *approvals.Repository { return b.policies }

// Jobs returns the records of jobs, for the packages below queue.
func (b *Broker) Jobs() *jobstore.Store { return b.jobs }

// TakeBytes takes the quota of n bytes that are stored with jobs of a tenant. CodeTenantRate.
func (b *Broker) TakeBytes(ctx context.Context, tenant string, n int) error {
	return b.admission.Bytes(ctx, tenant, n)
}

// Close stops the broker's goroutines and waits for them. Concurrent calls may fail with
// CodeStoreUnavailable or CodeShuttingDown; waiting fetches return. Leases stay as they are. A
// second Close does nothing.
func (b *Broker) Close() {
	b.end(api.Errorf(api.CodeShuttingDown, "the queue is closed"))
	b.enqueues.Wait()
	b.acks.Wait()
	b.follower.Wait()
	b.internals.Wait()
	b.claimer.Wait()
	b.work.Wait()
}
