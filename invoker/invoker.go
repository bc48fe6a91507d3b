// Package invoker is the one execution engine. Invoke is the only way in, for
// every trigger: it resolves what was named, takes a place under the version's
// limit, runs the function in a sandbox, and records the activation.
package invoker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/vault"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/tracing"
)

// Config is what an Invoker can be told; zero values mean the documented default.
type Config struct {
	// EgressAllow are address ranges that fetch may reach although they are not
	// public (default: none).
	EgressAllow []netip.Prefix
	// Resolver answers fetch's DNS questions (default: the host's).
	Resolver *net.Resolver
	// Logger gets what no caller can be told, and at info level a line for each
	// activation that ended (default: none).
	Logger *zap.Logger
	// Metrics is where the engine's metrics are exported (default: nowhere).
	Metrics prometheus.Registerer
	// Tracer is who gets the engine's spans (default: nobody).
	Tracer trace.TracerProvider
	// Workflows serves cs.cadence.start and signal (default: nobody does).
	Workflows hostcall.Workflows
	// Secrets is where cs.secrets are read (default: the store's, none of which can be
	// opened).
	Secrets *secrets.Secrets
	// SecretsTTL is how long secrets are believed without a look at the store, where no
	// notice tells of a change (default 30 s).
	SecretsTTL time.Duration
	// SecretsWindow is how long readings of secrets are gathered for one event of the
	// audit (default: a little less than a minute).
	SecretsWindow time.Duration
	// Documents serves cs.storage (default: nobody does).
	Documents hostcall.Documents
	// Slots is how many asynchronous invocations Work runs at once (default: as
	// many as the pool has processes).
	Slots int
}

// Invoker executes functions. It is safe for concurrent use.
type Invoker struct {
	store       *storage.Store
	versions    *storage.Versions
	activations *activations.Repository
	logs        *activations.Logs
	pool        *sandbox.Pool
	broker      *queue.Broker
	worker      *worker
	resolver    *resolver
	limits      *limits
	host        hostCalls
	recorder    *recorder
	running     *running
	vault       *vault.Vault
	metrics     *engineMetrics
	tracer      trace.Tracer // nil for none
	logger      *zap.Logger
	// life ends when Close is done; what outlives a caller runs under it.
	life context.Context
	end  context.CancelFunc

	mu      sync.Mutex
	closed  bool
	inHand  sync.WaitGroup
	closing sync.Once
	hurry   chan struct{} // closed when Close waits no longer for what is in hand
}

// hostCalls performs the host calls of sandboxes: a hostcall.Table.
type hostCalls interface {
	Knows(name string) bool
	Call(ctx context.Context, s *hostcall.Scope, name string, head, blob []byte) (replyHead, replyBlob []byte, err error)
}

// New makes an engine over a store, a pool of sandboxes and a broker, all of which
// stay the caller's to close, after the engine. Without a pool (nil) nothing runs
// here, and without a broker nothing asynchronous is accepted. ctx bounds nothing
// but the call.
func New(ctx context.Context, store *storage.Store, pool *sandbox.Pool, broker *queue.Broker, cfg Config) (*Invoker, error) {
	if cfg.Slots < 0 {
		return nil, errors.New("invoker: Slots must not be negative")
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	versions := storage.NewVersions(store)
	res, err := newResolver(versions)
	if err != nil {
		return nil, fmt.Errorf("invoker: %w", err)
	}
	records := activations.New(store)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	i := &Invoker{
		life:        life,
		end:         end,
		store:       store,
		versions:    versions,
		activations: records,
		logs:        activations.NewLogs(store),
		pool:        pool,
		broker:      broker,
		hurry:       make(chan struct{}),
		resolver:    res,
		limits:      newLimits(),
		recorder:    newRecorder(life, records, cfg.Logger),
		running:     newRunning(),
		metrics:     newEngineMetrics(maxSeries),
		tracer:      tracing.New(cfg.Tracer, "invoker"),
		logger:      cfg.Logger,
	}
	i.vault = vault.New(life, store, vault.Config{Secrets: cfg.Secrets, TTL: cfg.SecretsTTL, Window: cfg.SecretsWindow, Logger: cfg.Logger})
	i.host = hostcall.New(i.services(&cfg))
	i.worker = newWorker(i, cfg.Slots)
	err = errors.Join(
		i.metrics.register(cfg.Metrics, res),
		i.worker.metrics.register(cfg.Metrics, i.worker),
		i.recorder.metrics.register(cfg.Metrics, i.recorder),
		i.vault.Register(cfg.Metrics),
		store.Subscribe(life, i.onChange))
	if err != nil {
		end()
		return nil, fmt.Errorf("invoker: %w", err)
	}
	return i, nil
}

// services returns what the host calls of the engine work with.
func (i *Invoker) services(cfg *Config) hostcall.Services {
	s := hostcall.Services{
		KV: storage.NewKV(i.store), EgressAllow: cfg.EgressAllow, Resolver: cfg.Resolver, Engine: nestedEngine{i},
		Workflows: cfg.Workflows, Documents: cfg.Documents, NowMS: i.store.NowMS,
	}
	if i.broker != nil { // a nil pointer would be a Queue that is not nil
		s.Queue = i.broker
	}
	return s
}

// Cancel ends a queued or running activation wherever it runs. Errors:
// CodeActivationNotFound, CodeActivationTerminal, CodeStoreUnavailable.
func (i *Invoker) Cancel(ctx context.Context, tenant, id string) (*api.Activation, error) {
	rec, err := i.activations.Cancel(ctx, tenant, id, i.store.NowMS())
	if err != nil {
		return nil, err
	}
	i.running.cancel(tenant, id)
	i.cancelJob(ctx, rec)
	// Best effort: a replica that misses this runs to the end in vain, and its
	// compare-and-set loses.
	if err := i.store.PublishChange(ctx, storage.Change{Kind: storage.ChangeCancel, Tenant: tenant, ActivationID: id}); err != nil {
		i.logger.Warn("a cancel notice was not sent", zap.String("tenant", tenant), zap.String("activation_id", id), zap.Error(err))
	}
	return &rec.Activation, nil
}

// Check compiles a tenant's bundle in a sandbox of its own, and keeps the script
// for the tenant's first call of it. Errors: CodeValidationSource with file, line
// and column.
func (i *Invoker) Check(ctx context.Context, tenant, entry, handler string, tar []byte) error {
	if err := i.enter(); err != nil {
		return err
	}
	defer i.inHand.Done()
	if i.pool == nil {
		return errNoPool()
	}
	return i.pool.Check(ctx, &sandbox.Program{
		Tenant: tenant, Digest: bundle.Digest(tar), Entry: entry, Handler: handler, MemoryMB: api.DefaultMemoryMB,
		Bundle: func(context.Context) ([]byte, error) { return tar, nil },
	})
}

// Invalidate forgets what is cached of a function, here and, by a notice that
// may be lost, on the other replicas.
func (i *Invoker) Invalidate(ctx context.Context, tenant, namespace, function string) {
	i.resolver.invalidate(tenant, namespace, function)
	change := storage.Change{Kind: storage.ChangeFunction, Tenant: tenant, Namespace: namespace, Function: function}
	if err := i.store.PublishChange(ctx, change); err != nil {
		i.logger.Warn("a change notice was not sent", zap.String("tenant", tenant), zap.String("namespace", namespace),
			zap.String("function", function), zap.Error(err))
	}
}

func (i *Invoker) onChange(c storage.Change) {
	switch c.Kind {
	case storage.ChangeFunction:
		i.resolver.invalidate(c.Tenant, c.Namespace, c.Function)
	case storage.ChangeCancel:
		i.running.cancel(c.Tenant, c.ActivationID)
	case storage.ChangeSecret:
		i.vault.Changed(c)
	case storage.ChangeResubscribed:
		i.resolver.invalidateAll()
		i.vault.Changed(c)
	}
}

// begin counts inv among what is in hand. A function's call, for which its caller is
// counted as long as it waits, begins also while the engine shuts down.
func (i *Invoker) begin(inv *api.Invocation) error {
	if len(inv.Callers) == 0 {
		return i.enter()
	}
	i.inHand.Add(1)
	return nil
}

func (i *Invoker) enter() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		err := api.Errorf(api.CodeShuttingDown, "this replica is shutting down")
		err.RetryAfter = time.Second
		return err
	}
	i.inHand.Add(1)
	return nil
}

// Close refuses new work, waits for what is in hand until ctx ends, cancels the
// rest (of asynchronous invocations: puts it back into its queue), and waits until
// all of it is recorded. Work is to be ended before, or at once after.
func (i *Invoker) Close(ctx context.Context) error {
	var err error
	i.closing.Do(func() {
		i.mu.Lock()
		i.closed = true
		i.mu.Unlock()
		done := make(chan struct{})
		go func() {
			i.inHand.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-ctx.Done():
			close(i.hurry)
			i.running.cancelAll()
			<-done
		}
		err = i.recorder.close(ctx)
		i.vault.Close(context.WithoutCancel(ctx)) // bounded by itself
		i.end()
		i.resolver.close()
	})
	return err
}
