// Package queue is the durable job queue: states, leases, retries, priorities,
// limits, batches and chains, kept in the store and moved by its scripts. Every
// step is atomic, safe to repeat, and may be made by any replica.
package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/queue/internal/claim"
	"github.com/codesous/sous/queue/internal/coalesce"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/queue/internal/notify"
	"github.com/codesous/sous/queue/internal/workers"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/duework"
)

// Config is what a Broker can be told; zero values mean the documented default.
type Config struct {
	// Logger gets what no caller can be told (default: none).
	Logger *zap.Logger
	// Random gives numbers in [0, 1), for jitter (default: math/rand).
	Random func() float64
	// Retention is how long ended jobs are kept (default: api.JobRetentionMS).
	Retention time.Duration
	// PollInterval is how often a fetch that waits asks again without having
	// been woken (default 1 s).
	PollInterval time.Duration
	// Metrics gets the broker's metrics (default: nobody does).
	Metrics prometheus.Registerer
}

// Broker is the queue of all tenants over one store. It is safe for concurrent
// use, and any number may work on one store.
type Broker struct {
	store       *storage.Store
	rdb         redis.UniversalClient
	tenants     *storage.Tenants
	activations *activations.Repository
	schedules   *storage.Schedules
	log         *zap.Logger
	random      func() float64
	poll        time.Duration
	sequence    jobstore.Sequence
	jobs        *jobstore.Store
	claimer     *claim.Claimer
	known       *otter.Cache[jobstore.NamespaceKey, struct{}]
	workers     *workers.Registry
	schemas     *schema.Cache
	notifier    *notify.Notifier
	metrics     *brokerMetrics
	enqueues    *coalesce.Coalescer[jobstore.Queue, jobstore.Entry]
	acks        *coalesce.Coalescer[jobstore.Queue, jobstore.Completion]
	alarm       *duework.Alarm

	life context.Context // the Broker's own lifetime, not a caller's
	end  context.CancelFunc
	work sync.WaitGroup
}

// Bounds of what a process remembers.
const (
	knownEntries = 20_000
)

// New makes a broker over a store, which stays the caller's to close, after it.
// ctx bounds nothing but the call.
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
	if cfg.Retention <= 0 {
		cfg.Retention = api.JobRetentionMS * time.Millisecond
	}
	if cfg.PollInterval <= 0 {
		cfg.PollInterval = time.Second
	}
	b := &Broker{
		store: store, rdb: store.Client(), tenants: storage.NewTenants(store),
		activations: activations.New(store), schedules: storage.NewSchedules(store), log: cfg.Logger,
		random: cfg.Random, poll: cfg.PollInterval,
		schemas: schema.NewCache(), alarm: duework.NewAlarm(),
	}
	var err1, err2, err3, err4 error
	b.jobs, err1 = jobstore.New(store, cfg.Retention, jobstore.Notify{DueAt: b.DueAt, Wake: func(q jobstore.Queue) { b.notifier.Wake(q) }})
	b.claimer, err2 = claim.New(store, b.jobs, claim.Hooks{
		Claimed: func(q jobstore.Queue, status string, jobs []api.FetchedJob, now int64) {
			b.metrics.claimed(q, status, jobs, now)
		},
		Expire: b.expireClaimed,
	})
	b.known, err3 = otter.New(&otter.Options[jobstore.NamespaceKey, struct{}]{MaximumSize: knownEntries})
	b.workers, err4 = workers.New(store)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	b.metrics = newBrokerMetrics(b)
	if err := b.metrics.register(cfg.Metrics); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	b.life, b.end = context.WithCancel(context.WithoutCancel(ctx))
	b.notifier = notify.New(b.life, &b.work, notify.Config{Store: store, Log: cfg.Logger, DueSoon: func() { b.alarm.Ring() }})
	b.enqueues = coalesce.New(b.life, &b.work, api.MaxEnqueueJobs, func(e *jobstore.Entry) int { return len(e.Text) }, b.flushEnqueues)
	b.acks = coalesce.New(b.life, &b.work, api.MaxSettleJobs, func(a *jobstore.Completion) int { return len(a.Result) }, b.flushAcks)
	return b, nil
}

// Close ends what the broker does by itself. Calls in hand may fail with
// CodeStoreUnavailable.
func (b *Broker) Close() {
	b.end()
	b.work.Wait()
}

// register enters tenant and namespace once in the life of this process.
func (b *Broker) register(ctx context.Context, tenant, namespace string) error {
	key := jobstore.NamespaceKey{Tenant: tenant, Namespace: namespace}
	if _, ok := b.known.GetIfPresent(key); ok {
		return nil
	}
	if err := b.tenants.Register(ctx, tenant, namespace); err != nil {
		return err
	}
	b.known.Set(key, struct{}{})
	return nil
}
