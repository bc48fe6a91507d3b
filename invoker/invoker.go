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
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/wire"
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
	Workflows Workflows
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
	Documents Documents
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
	host        *host
	recorder    *recorder
	running     *running
	vault       *vault
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
	i.vault = openVault(life, store, &cfg)
	i.host = newHost(services{
		kv:      &kvHost{kv: storage.NewKV(store)},
		fetch:   newFetchHost(cfg.EgressAllow, cfg.Resolver),
		cadence: &cadenceHost{cfg.Workflows},
		queue:   &queueHost{broker, store.NowMS},
		invoke:  &invokeHost{i},
		job:     &jobHost{},
		storage: &storageHost{cfg.Documents},
	})
	i.worker = newWorker(i, cfg.Slots)
	err = errors.Join(
		i.metrics.register(cfg.Metrics, res),
		i.worker.metrics.register(cfg.Metrics, i.worker),
		i.recorder.metrics.register(cfg.Metrics, i.recorder),
		i.vault.metrics.register(cfg.Metrics, i.vault),
		store.Subscribe(life, i.onChange))
	if err != nil {
		end()
		return nil, fmt.Errorf("invoker: %w", err)
	}
	return i, nil
}

// Invoke runs a function to its end and answers with the terminal activation.
//
// An error means that no activation of this call reached a terminal status
// here: CodeValidation… for a malformed invocation, Code…NotFound for what does
// not exist, CodeAuthnRequired and CodeAuthzDenied (see Authorize),
// CodeConcurrencyLimit and CodeCapacityLimit (nothing ran),
// CodeIdempotency… for a key in use, CodeStoreUnavailable (it may have run),
// CodeShuttingDown. When ctx ends, the function is stopped and the activation
// is recorded as cancelled.
func (i *Invoker) Invoke(ctx context.Context, inv api.Invocation) (*api.Outcome, error) {
	if i.tracer != nil {
		return i.traceInvoke(ctx, &inv)
	}
	return i.invoke(ctx, &inv)
}

func (i *Invoker) invoke(ctx context.Context, inv *api.Invocation) (*api.Outcome, error) {
	if err := i.begin(inv); err != nil {
		return nil, i.metrics.refuse(inv, false, err)
	}
	defer i.inHand.Done()
	i.metrics.inFlight.Inc()
	defer i.metrics.inFlight.Dec()
	if err := i.runnable(inv); err != nil {
		return nil, i.metrics.refuse(inv, false, err)
	}
	if inv.IdempotencyKey != "" {
		if out, err := i.replay(ctx, inv); out != nil || err != nil {
			return i.replayed(inv, false, out, err)
		}
	}
	res, err := i.resolver.resolve(ctx, target{inv.Tenant, inv.Namespace, inv.Function, inv.Ref})
	if err != nil {
		return nil, i.metrics.refuse(inv, false, err)
	}
	if err := permit(inv, res.Version.Config.Authz); err != nil {
		return nil, i.metrics.refuse(inv, true, err)
	}
	if err := i.unheld(inv, res); err != nil {
		return nil, i.metrics.refuse(inv, true, err)
	}
	program := i.program(inv, res)
	if inv.Patient {
		// What waits can be told to stop, as what runs can.
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		defer i.running.add(inv.Tenant, inv.ActivationID, stop)()
	}
	release, err := i.place(ctx, inv, program, res.Version.Config.MaxConcurrency)
	if err != nil {
		return nil, i.metrics.refuse(inv, true, err)
	}
	defer release()
	begin, began := i.store.NowMS(), time.Now()
	box, err := i.sandbox(ctx, inv, program)
	switch {
	case api.ErrorCode(err) == api.CodeValidationSource:
		return i.execute(ctx, inv, res, begin, unusable(err, began, release))
	case err != nil:
		return nil, i.metrics.refuse(inv, true, err)
	}
	return i.execute(ctx, inv, res, begin, attempt{
		began: began,
		run:   box.Run,
		cold:  box.Cold(),
		// In this order: whoever gets the place next finds the sandbox warm.
		leave: func() { i.pool.Release(box); release() },
	})
}

// place takes a place under the version's limit.
func (i *Invoker) place(ctx context.Context, inv *api.Invocation, program *sandbox.Program, limit int) (release func(), err error) {
	if inv.Patient {
		return i.limits.await(ctx, program.Key, limit)
	}
	return i.limits.acquire(ctx, program.Key, limit)
}

// sandbox takes a sandbox for program.
func (i *Invoker) sandbox(ctx context.Context, inv *api.Invocation, program *sandbox.Program) (*sandbox.Sandbox, error) {
	for {
		box, err := i.pool.Acquire(ctx, program)
		if !inv.Patient || api.ErrorCode(err) != api.CodeCapacityLimit {
			return box, err
		}
		if err := pause(ctx, patience); err != nil {
			return nil, err
		}
	}
}

func (i *Invoker) runnable(inv *api.Invocation) error {
	if i.pool == nil {
		return errNoPool()
	}
	return inv.Ref.Validate()
}

func errNoPool() error { return api.Errorf(api.CodeInternal, "this replica runs no functions") }

// attempt is what runs an activation.
type attempt struct {
	began time.Time
	run   func(context.Context, sandbox.Call) sandbox.Result
	cold  bool
	leave func() // gives back what run holds
	final bool   // a failure is not to be tried again
}

// unusable fails with what a sandbox said of a published source: that is the
// function's failure, and is recorded as one.
func unusable(source error, began time.Time, release func()) attempt {
	message := source.Error()
	var coded *api.Error
	if errors.As(source, &coded) {
		message = coded.Message
	}
	result := sandbox.Result{
		Status: api.StatusError,
		Error:  &api.ActivationError{Type: api.ErrException, Message: message, Code: string(api.CodeValidationSource)},
	}
	return attempt{
		began: began,
		run:   func(context.Context, sandbox.Call) sandbox.Result { return result },
		cold:  true,
		leave: release,
	}
}

// execute runs inv and records it. What the attempt holds is given back as soon
// as it has answered.
func (i *Invoker) execute(ctx context.Context, inv *api.Invocation, res *resolution, begin int64, a attempt) (*api.Outcome, error) {
	timeout := time.Duration(res.Version.Config.TimeoutMS) * time.Millisecond
	if inv.MaxTimeout > 0 {
		timeout = min(timeout, inv.MaxTimeout)
	}
	deadline := i.store.Now().Add(timeout)
	if !inv.Deadline.IsZero() && inv.Deadline.Before(deadline) {
		deadline = inv.Deadline
	}
	rec := newRecord(inv, res, begin, deadline.UnixMilli(), a.cold)
	derived := inv.IdempotencyKey != "" || inv.ActivationID != ""
	if derived {
		// The id is derived: whoever writes the record first may run.
		existing, err := i.recorder.claim(ctx, rec)
		if err != nil || existing != nil {
			a.leave()
			out, err := taken(existing, rec.EventSHA256, err)
			return i.replayed(inv, true, out, err)
		}
	}
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	// Before the record can be seen, where possible, so that no cancel is missed.
	defer i.running.add(rec.Tenant, rec.ActivationID, stop)()
	logs := newLogSink(i.life, i.logs, rec.Tenant, rec.ActivationID, rec.Attempt)
	var visible *visibility
	if !derived {
		// The id is random: no other call can hold it, so the record can wait.
		visible = newVisibility(func() error { return i.recorder.start(ctx, rec) })
		logs.ready = visible.ensure
	}
	if inv.Started != nil {
		inv.Started()
	}
	call, sc := i.call(inv, res, rec, deadline, logs)
	sc.visible = visible
	result := sc.secrets.end(a.run(runCtx, call))
	sc.nest.end()
	a.leave()

	final, took := i.terminal(rec, begin, result), time.Since(a.began)
	current, err := i.recorder.finish(ctx, rec, final, logs, visible)
	if err != nil {
		i.ended(final, took, a.began.Add(took), i.traceID(ctx))
		return nil, err
	}
	i.ended(current, took, a.began.Add(took), i.traceID(ctx))
	return &api.Outcome{Activation: current.Activation}, nil
}

// call is what the sandbox is given, and what its host calls may.
func (i *Invoker) call(inv *api.Invocation, res *resolution, rec *activations.Record, deadline time.Time, logs *logSink) (sandbox.Call, *scope) {
	sc := &scope{
		tenant: inv.Tenant, namespace: inv.Namespace, function: inv.Function,
		capabilities: res.Version.Config.Capabilities, heartbeat: inv.Heartbeat, nest: newNest(inv, rec, deadline),
		secrets: i.vault.begin(inv, res, &rec.Activation),
	}
	logs.secrets = sc.secrets
	return sandbox.Call{
		Head:     invokeHead(inv, rec),
		Event:    inv.Event,
		Deadline: deadline,
		Log:      logs.add,
		Host: func(ctx context.Context, name string, head, blob []byte) ([]byte, []byte, error) {
			if i.tracer != nil {
				return i.traceHost(ctx, sc, name, head, blob)
			}
			return i.host.call(ctx, sc, name, head, blob)
		},
	}, sc
}

// invokeHead returns the description of its activation that the function receives.
func invokeHead(inv *api.Invocation, rec *activations.Record) wire.InvokeHead {
	trigger, err := rec.Trigger.AppendJSON(nil)
	if err != nil {
		panic(fmt.Sprintf("invoker: encode trigger: %v", err)) // its source is our own JSON
	}
	return wire.InvokeHead{
		ActivationID: rec.ActivationID,
		DeadlineMS:   rec.DeadlineMS,
		Ref:          rec.Ref.AppendJSON(nil),
		Trigger:      trigger,
		Principal:    inv.Principal.AppendJSON(nil),
		Attempt:      rec.Attempt,
		RequestID:    rec.RequestID,

		LastHeartbeat: inv.LastHeartbeat,
	}
}

// program returns the sandbox's view of the version, made at the resolution's first call.
func (i *Invoker) program(inv *api.Invocation, res *resolution) *sandbox.Program {
	res.programOnce.Do(func() { res.program = i.newProgram(inv.Tenant, inv.Namespace, inv.Function, &res.Version) })
	return res.program
}

func (i *Invoker) newProgram(tenant, namespace, function string, v *api.Version) *sandbox.Program {
	return &sandbox.Program{
		Key:    fmt.Sprintf("%s/%s/%s/%d", tenant, namespace, function, v.Version),
		Digest: v.SHA256,
		Entry:  v.Config.Entry, Handler: v.Config.Handler,
		MemoryMB: v.Config.MemoryMB,
		Env:      v.Config.Env,
		Tenant:   tenant, Namespace: namespace, Function: function, Version: v.Version,
		Bundle: func(ctx context.Context) ([]byte, error) {
			tar, err := i.versions.Bundle(ctx, tenant, namespace, function, v.Version)
			if err != nil {
				return nil, err
			}
			if bundle.Digest(tar) != v.SHA256 {
				return nil, api.Errorf(api.CodeInternal, "the stored bundle of version %d does not match its digest", v.Version)
			}
			return tar, nil
		},
	}
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
		i.vault.changed(c)
	case storage.ChangeResubscribed:
		i.resolver.invalidateAll()
		i.vault.changed(c)
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
		i.vault.close()
		i.vault.book.close(context.WithoutCancel(ctx)) // bounded by itself
		i.end()
		i.resolver.close()
	})
	return err
}
