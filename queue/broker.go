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
	keepMS      int64
	poll        time.Duration
	sequence    sequence
	briefs      *otter.Cache[jobKey, *brief]
	lanes       *otter.Cache[queueKey, *lane]
	known       *otter.Cache[namespaceKey, struct{}]
	workers     *otter.Cache[jobKey, seenWorker]
	schemas     *schema.Cache
	wakes       *wakes
	metrics     *brokerMetrics
	enqueues    *coalescer[queueKey, enqueueItem]
	acks        *coalescer[queueKey, ackItem]
	alarm       *duework.Alarm
	floors      storage.Floors

	life context.Context // the Broker's own lifetime, not a caller's
	end  context.CancelFunc
	work sync.WaitGroup
}

type (
	jobKey       struct{ tenant, id string }
	namespaceKey struct{ tenant, namespace string }
)

// queueKey names one queue of the whole store.
type queueKey struct{ tenant, namespace, queue string }

// name is how sets of a tenant's queues call it.
func (q queueKey) name() string { return q.namespace + "/" + q.queue }

// Bounds of what a process remembers.
const (
	briefEntries = 200_000
	laneEntries  = 20_000
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
		random: cfg.Random, keepMS: cfg.Retention.Milliseconds(), poll: cfg.PollInterval,
		schemas: schema.NewCache(), alarm: duework.NewAlarm(),
	}
	var err1, err2, err3, err4 error
	b.briefs, err1 = otter.New(&otter.Options[jobKey, *brief]{MaximumSize: briefEntries})
	b.lanes, err2 = otter.New(&otter.Options[queueKey, *lane]{MaximumSize: laneEntries})
	b.known, err3 = otter.New(&otter.Options[namespaceKey, struct{}]{MaximumSize: knownEntries})
	b.workers, err4 = otter.New(&otter.Options[jobKey, seenWorker]{MaximumSize: knownEntries})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	b.metrics = newBrokerMetrics(b)
	if err := b.metrics.register(cfg.Metrics); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	b.life, b.end = context.WithCancel(context.WithoutCancel(ctx))
	b.wakes = newWakes(b)
	b.enqueues = newCoalescer(b.life, &b.work, api.MaxEnqueueJobs, func(e *enqueueItem) int { return len(e.text) }, b.flushEnqueues)
	b.acks = newCoalescer(b.life, &b.work, api.MaxSettleJobs, func(a *ackItem) int { return len(a.result) }, b.flushAcks)
	return b, nil
}

// Close ends what the broker does by itself. Calls in hand may fail with
// CodeStoreUnavailable.
func (b *Broker) Close() {
	b.end()
	b.work.Wait()
}

func (b *Broker) keys(q queueKey) storage.QueueKeys {
	return b.store.JobKeys(q.tenant).Queue(q.namespace, q.queue)
}

// register enters tenant and namespace once in the life of this process.
func (b *Broker) register(ctx context.Context, tenant, namespace string) error {
	key := namespaceKey{tenant, namespace}
	if _, ok := b.known.GetIfPresent(key); ok {
		return nil
	}
	if err := b.tenants.Register(ctx, tenant, namespace); err != nil {
		return err
	}
	b.known.Set(key, struct{}{})
	return nil
}

// texts reads a script's list.
func texts(reply any) []string {
	list, _ := reply.([]any)
	out := make([]string, len(list))
	for i, v := range list {
		switch v := v.(type) {
		case string:
			out[i] = v
		case int64:
			out[i] = scoreText(v)
		}
	}
	return out
}

// failure types an error of a plain command.
func (b *Broker) failure(ctx context.Context, op string, err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return storage.Failure(ctx, op, err)
}
