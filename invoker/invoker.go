// Package invoker is the execution engine. Every trigger enters through Invoke, which
// resolves the function's version, takes a slot under the version's concurrency limit, runs
// the function in a sandbox, and records the activation. Enqueue accepts invocations that
// Work runs later, on any replica.
//
// A synchronous call passes through the files in this order:
//
//	invoke.go          the steps, from the invocation to the outcome
//	idempotency.go     an earlier activation under the same key answers the call
//	authorize.go       the roles that the version admits
//	invoker/slots      a slot of the version; the sandbox itself comes from sandbox.Pool
//	invoker/visibility when the running record is written
//	invoker/logsink    the function's log lines, in chunks
//	recorder.go        the running and the terminal record
//
// An asynchronous one is accepted in enqueue.go. The worker takes its job (worker.go), runs
// one attempt (serve.go), and settles record and job (settle.go); lease.go and
// job_updates.go keep the job's lease alive meanwhile.
//
// Three invariants hold across these files. An effect of a function never precedes the
// record of its activation. A terminal record never changes: all writers compare before
// they set, and the first one wins. The terminal record of an asynchronous activation is
// written before its job is settled, so a job that is found again after a crash is settled
// without a second run.
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
	"github.com/codesous/sous/invoker/models"
	"github.com/codesous/sous/invoker/resolve"
	"github.com/codesous/sous/invoker/running"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/slots"
	"github.com/codesous/sous/invoker/turns"
	"github.com/codesous/sous/invoker/vault"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/runs"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/activity"
	"github.com/codesous/sous/storage/budgets"
	"github.com/codesous/sous/storage/calls"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/triggers"
	"github.com/codesous/sous/tracing"
)

// Config configures an Invoker. Zero values mean the documented default.
type Config struct {
	// EgressAllow are address ranges that fetch may reach although they are not
	// public (default: none).
	EgressAllow []netip.Prefix
	// Resolver answers the DNS questions of fetch (default: the host's).
	Resolver *net.Resolver
	// Logger receives errors that no caller sees, and at info level a line for each
	// activation that ended (default: none).
	Logger *zap.Logger
	// Metrics exports the engine's metrics (default: none are exported).
	Metrics prometheus.Registerer
	// Tracer receives the engine's spans (default: none are made).
	Tracer trace.TracerProvider
	// Workflows serves cs.cadence.start and signal (default: both are refused).
	Workflows hostcall.Workflows
	// Secrets reads the secrets of cs.secrets (default: the store's, without a key, so
	// that none can be opened).
	Secrets *secrets.Secrets
	// SecretsTTL is how long a secret is used before it is read again, where no change
	// notice arrives (default 30 s).
	SecretsTTL time.Duration
	// SecretsWindow is how long readings of secrets are gathered for one event of the
	// audit (default 50 s).
	SecretsWindow time.Duration
	// Documents serves cs.storage (default: all operations are refused).
	Documents hostcall.Documents
	// Quotas admits calls and is charged with what they use (default: nothing is limited).
	Quotas Quotas
	// Observer sees what functions do on this replica, instead of the log's line for each
	// activation (default: none).
	Observer Observer
	// Slots is how many asynchronous invocations Work runs at once (default: as
	// many as the pool has processes).
	Slots int
}

// Observer sees log lines and outcomes as they happen, from several goroutines at a time. What
// its methods do delays the function.
type Observer interface {
	// Logged receives a line that an activation logged, without secrets.
	Logged(act *api.Activation, line api.LogLine)
	// Ended receives an activation that ended on this replica.
	Ended(act *api.Activation)
}

// Invoker executes functions. It is safe for concurrent use.
type Invoker struct {
	store       *storage.Store
	versions    *storage.Versions
	activations *activations.Repository
	logs        *activations.Logs
	pool        *sandbox.Pool
	broker      *queue.Broker
	runs        *runs.Runs // nil without a broker
	worker      *worker
	resolver    *resolve.Resolver
	limits      *slots.Limits
	host        hostCalls
	recorder    *recorder
	running     *running.Registry
	vault       *vault.Vault
	models      *models.Client
	spending    *budgets.Recorder
	turns       *turns.Turns
	observer    Observer // may be nil
	quotas      Quotas   // may be nil
	metrics     *engineMetrics
	calls       *calls.Counter
	tracer      trace.Tracer // nil for none
	logger      *zap.Logger
	// life ends when Close is done. Work that outlives its caller runs under it: late
	// records, background log writes, reads of secrets, the subscription to notices.
	life context.Context
	end  context.CancelFunc

	mu      sync.Mutex
	closed  bool
	active  sync.WaitGroup
	closing sync.Once
	aborted chan struct{} // closed when Close stops waiting for running work
}

// hostCalls performs the host calls of sandboxes: a hostcall.Table.
type hostCalls interface {
	Knows(name string) bool
	Call(ctx context.Context, s *hostcall.Scope, name string, head, blob []byte) (replyHead, replyBlob []byte, err error)
}

// New makes an engine over a store, a pool of sandboxes and a broker, which
// the caller closes after the engine. Without a pool (nil) the engine runs no function,
// and without a broker it accepts no asynchronous invocation. ctx applies to New only;
// it is not retained.
func New(ctx context.Context, store *storage.Store, pool *sandbox.Pool, broker *queue.Broker, cfg Config) (*Invoker, error) {
	if cfg.Slots < 0 {
		return nil, errors.New("invoker: Slots must not be negative")
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	versions := storage.NewVersions(store)
	res, err := resolve.New(versions)
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
		aborted:     make(chan struct{}),
		resolver:    res,
		limits:      slots.New(),
		recorder:    newRecorder(life, records, activity.New(life, store, cfg.Logger), cfg.Logger),
		running:     running.New(),
		metrics:     newEngineMetrics(metrics.MaxSeries),
		calls:       calls.NewCounter(life, store, cfg.Logger),
		tracer:      tracing.New(cfg.Tracer, "invoker"),
		logger:      cfg.Logger,
		observer:    cfg.Observer,
		quotas:      cfg.Quotas,
	}
	i.turns = turns.ForLogs()
	i.vault = vault.New(life, store, vault.Config{Secrets: cfg.Secrets, TTL: cfg.SecretsTTL, Window: cfg.SecretsWindow, Logger: cfg.Logger, Turns: i.turns})
	if err := i.openModels(&cfg); err != nil {
		end()
		return nil, fmt.Errorf("invoker: %w", err)
	}
	if broker != nil {
		i.runs = runs.New(store, broker)
	}
	i.host = hostcall.New(i.services(&cfg))
	i.worker = newWorker(i, cfg.Slots)
	err = errors.Join(
		i.metrics.register(cfg.Metrics, res),
		i.worker.metrics.register(cfg.Metrics, i.worker),
		i.recorder.metrics.Register(cfg.Metrics, i.recorder.behind),
		i.vault.Register(cfg.Metrics),
		i.models.Register(cfg.Metrics),
		i.turns.Register(cfg.Metrics),
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
		KV: kvstore.New(i.store), EgressAllow: cfg.EgressAllow, Resolver: cfg.Resolver, Engine: nestedEngine{i},
		Workflows: cfg.Workflows, Documents: cfg.Documents, NowMS: i.store.NowMS, Models: i.models,
	}
	if cfg.Quotas != nil {
		s.AdmitEgress, s.Egress = cfg.Quotas.Egress, chargesEgress(cfg.Quotas)
	}
	if i.broker != nil { // a nil pointer would be a Queue that is not nil
		s.Queue, s.Steps = i.broker, i.runs
	}
	return s
}

// Cancel ends a queued or running activation wherever it runs. Errors:
// CodeActivationNotFound, CodeActivationTerminal, CodeStoreUnavailable.
//
// The terminal record is written first: from then on the outcome of the run, wherever it
// executes, loses its compare-and-set. Stopping the run only saves its resources.
func (i *Invoker) Cancel(ctx context.Context, tenant, id string) (*api.Activation, error) {
	rec, err := i.activations.Cancel(ctx, tenant, id, i.store.NowMS())
	if err != nil {
		return nil, err
	}
	i.running.Cancel(tenant, id)
	i.cancelJob(ctx, rec)
	// Best effort: a replica that misses this runs to the end in vain, and its
	// compare-and-set loses.
	if err := i.store.PublishChange(ctx, storage.Change{Kind: storage.ChangeCancel, Tenant: tenant, ActivationID: id}); err != nil {
		i.logger.Warn("a cancel notice was not sent", zap.String("tenant", tenant), zap.String("activation_id", id), zap.Error(err))
	}
	return &rec.Activation, nil
}

// FlushCalls writes the calls of a namespace that ended on this replica, so that a read of the
// counts that follows has them.
func (i *Invoker) FlushCalls(ctx context.Context, tenant, namespace string) {
	i.calls.FlushOf(ctx, tenant, namespace)
}

// Check compiles a tenant's bundle in a sandbox of its own, and caches the script for
// the tenant's first call of it. Errors: CodeValidationSource with file, line
// and column.
func (i *Invoker) Check(ctx context.Context, tenant, entry, handler string, tar []byte) error {
	if err := i.enter(); err != nil {
		return err
	}
	defer i.active.Done()
	if i.pool == nil {
		return errNoPool()
	}
	return bundle.WithExcerpts(tar, i.pool.Check(ctx, &sandbox.Program{
		Tenant: tenant, Digest: bundle.Digest(tar), Entry: entry, Handler: handler, MemoryMB: api.DefaultMemoryMB,
		Bundle: func(context.Context) ([]byte, error) { return tar, nil },
	}))
}

// Verify evaluates the modules of a version that is not published yet, whose tar Check has
// accepted, and returns the handlers (api.Version.Handlers). Errors: CodeValidationSource where
// they fail, CodeShuttingDown, ctx's.
func (i *Invoker) Verify(ctx context.Context, tenant, namespace, function string, config *api.VersionConfig, tar []byte) ([]string, error) {
	if err := i.enter(); err != nil {
		return nil, err
	}
	defer i.active.Done()
	if i.pool == nil {
		return nil, errNoPool()
	}
	prog := i.newProgram(tenant, namespace, function, &api.Version{SHA256: bundle.Digest(tar), Config: *config})
	prog.Bundle = func(context.Context) ([]byte, error) { return tar, nil }
	handlers, err := i.pool.Verify(ctx, prog)
	return handlers, bundle.WithExcerpts(tar, err)
}

// Warm starts a sandbox for a version that was just published, where this replica has room, so
// that its first call finds the program loaded. It does not wait for the start. An error is
// logged only: the call starts a sandbox itself.
func (i *Invoker) Warm(tenant, namespace, function string, version *api.Version) {
	if i.pool == nil || i.enter() != nil {
		return
	}
	go func() {
		defer i.active.Done()
		err := i.pool.Warm(i.life, i.newProgram(tenant, namespace, function, version))
		if err != nil && i.life.Err() == nil {
			i.logger.Warn("no sandbox was started for a new version", zap.String("tenant", tenant), zap.String("namespace", namespace),
				zap.String("function", function), zap.Int64("version", version.Version), zap.Error(err))
		}
	}()
}

// onChange handles a notice of another replica, or of this one. It is called for one notice
// at a time and must not block.
func (i *Invoker) onChange(c storage.Change) {
	switch c.Kind {
	case storage.ChangeFunction:
		i.resolver.Invalidate(c.Tenant, c.Namespace, c.Function)
	case storage.ChangeTrigger:
		i.worker.triggers.ReadSoon(triggers.Space{Tenant: c.Tenant, Namespace: c.Namespace})
	case storage.ChangeCancel:
		i.running.Cancel(c.Tenant, c.ActivationID)
	case storage.ChangeSecret:
		i.vault.Changed(c)
	case storage.ChangeProvider:
		i.models.OnChange(c)
	case storage.ChangeResubscribed:
		i.models.OnChange(c)
		i.resolver.InvalidateAll()
		i.worker.triggers.ReadAllSoon()
		i.vault.Changed(c)
	}
}

// Close refuses new work and waits for the running work until ctx ends. Then it cancels
// the rest, puts cancelled asynchronous invocations back into their queues, and waits
// until all activations are recorded. The caller ends Work before Close or during it.
func (i *Invoker) Close(ctx context.Context) error {
	var err error
	i.closing.Do(func() {
		i.mu.Lock()
		i.closed = true
		i.mu.Unlock()
		done := make(chan struct{})
		go func() {
			i.active.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-ctx.Done():
			close(i.aborted)
			i.running.CancelAll()
			<-done
		}
		err = i.recorder.close(ctx)
		i.vault.Close(context.WithoutCancel(ctx)) // bounded by itself
		i.calls.Close(context.WithoutCancel(ctx)) // as well
		i.end()
		i.resolver.Close()
	})
	return err
}

// FunctionChanged drops the cached resolutions of a function, on this replica at once and on
// the others by a notice, which may be lost.
func (i *Invoker) FunctionChanged(ctx context.Context, tenant, namespace, function string) {
	i.resolver.Invalidate(tenant, namespace, function)
	change := storage.Change{Kind: storage.ChangeFunction, Tenant: tenant, Namespace: namespace, Function: function}
	if err := i.store.PublishChange(ctx, change); err != nil {
		i.logger.Warn("a change notice was not sent", zap.String("tenant", tenant), zap.String("namespace", namespace),
			zap.String("function", function), zap.Error(err))
	}
}
