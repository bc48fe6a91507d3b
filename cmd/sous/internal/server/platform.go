// Package server runs a sous server: it reads the settings, opens the store and every
// part of the platform that the roles ask for, wires them, answers on the listener, and
// drains.
//
// Serve and Dev are the two ways to run one; WithTryout runs one for a single function
// inside the calling process. A run passes through the files in this order:
//
//	run.go       Serve or Dev: the settings, the logger
//	config.go    loadSettings: flags, variables and the YAML file; settings.go validates
//	listen.go    runServer: takes the port, opens the platform, serves, drains
//	platform.go  open: creates every part and passes it to those that use it; close
//
// Each other file has the settings of one subject, such as tracing.go, or one part of the
// listener, such as connections.go.
//
// This is the only package that connects the parts: they receive each other and their
// configuration as arguments. The part that is opened first is closed last. Work that must
// outlive the signal (requests in flight, records, loops) does not run under the context of
// Serve, which ends with the signal: see open.
package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/cadenceworker"
	"github.com/codesous/sous/cmd/sous/internal/build"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/controlplane/admission"
	"github.com/codesous/sous/controlplane/domains"
	"github.com/codesous/sous/controlplane/jobs"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/bulk"
	"github.com/codesous/sous/queue/tasks"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/scheduler/sweeper"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/compiled"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/embedded"
	"github.com/codesous/sous/storage/examine"
	"github.com/codesous/sous/storage/mirror"
	mirrorsearch "github.com/codesous/sous/storage/mirror/search"
	"github.com/codesous/sous/storage/quotas"
	"github.com/codesous/sous/storage/secrets"
)

// platform holds the parts of a running server. One goroutine opens, serves and closes it.
type platform struct {
	server    *controlplane.Server
	metrics   *prometheus.Registry
	loop      *scheduler.Loop // nil without the scheduler role
	documents *documents.Service
	secrets   *secrets.Secrets
	quotas    *quotas.Keeper
	mirror    *mirror.Mirror // nil without the mirror role
	bulk      *bulk.Operations
	fed       chan struct{} // closed when nothing fills the mirror any more; nil without one

	// closers close the parts, the last opened first.
	closers []func(context.Context) error
	tracer  trace.TracerProvider // nil if tracing is off
	stop    context.CancelFunc   // of the loops, and of the work if it still runs
	// stopWork stops the fetching of asynchronous invocations and activities. Those that
	// run continue until the engine and the workers of Cadence are closed.
	stopWork context.CancelFunc
	loops    sync.WaitGroup // they use the parts, so they end before any part is closed
	workEnds time.Time      // deadline of running work; zero until the platform closes
	logger   *zap.Logger
}

// open opens the parts that s asks for and wires them. The caller must close the platform,
// also after ctx ended; if open fails, it has closed it.
//
// Three contexts have different ends. ctx applies to the opening. life is the context of
// the loops and ends with close: a scheduler still fires schedules while requests drain.
// working is the context of the fetching of jobs and activities, and ends when the drain
// begins.
func open(ctx context.Context, s settings, logger *zap.Logger) (*platform, error) {
	registry, err := newRegistry()
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	working, stopWork := context.WithCancel(life)
	p := &platform{stop: stop, stopWork: stopWork, logger: logger, metrics: registry}
	if err := p.openParts(ctx, life, working, s); err != nil {
		return nil, errors.Join(err, p.close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// openParts opens each part after those that it uses. Loops run until life ends, and work on
// jobs and activities until working ends. A part that it opens registers how it is closed
// before the next one is opened, so that a failure half-way leaves nothing open.
func (p *platform) openParts(ctx, life, working context.Context, s settings) error {
	var err error
	p.tracer, err = p.openTracing(ctx, s)
	if err != nil {
		return err
	}
	store, err := p.openStore(ctx, life, s)
	if err != nil {
		return err
	}
	if err := p.openQuotas(ctx, life, s, store); err != nil {
		return err
	}
	p.documents, err = s.Documents.openDocuments(ctx, store, p.metrics)
	if err != nil {
		return err
	}
	keep, err := parseRetention("job-retention", s.Retention.Jobs)
	if err != nil {
		return err
	}
	broker, err := queue.New(ctx, store, queue.Config{Logger: p.logger.Named("queue"), Retention: keep, Metrics: p.metrics, Fetches: s.Network.QueueFetches})
	if err != nil {
		return err
	}
	p.onClose(func(context.Context) error { broker.Close(); return nil })
	cadence, err := p.openCadence(s)
	if err != nil {
		return err
	}
	schedules, err := p.openSchedules(s, store, broker)
	if err != nil {
		return err
	}
	engine, err := p.openEngine(ctx, working, s, store, broker, cadence)
	if err != nil {
		return err
	}
	if err := p.openActivities(ctx, working, s, store, engine, cadence); err != nil {
		return err
	}
	if err := p.openMirror(life, s, store, broker); err != nil {
		return err
	}
	if err := p.openServer(ctx, s, store, engine, broker, schedules); err != nil {
		return err
	}
	if err := p.noteKeys(ctx, store, s); err != nil {
		return err
	}
	if err := p.openAdmin(life, s); err != nil {
		return err
	}
	if s.has(roleScheduler) {
		if err := p.maintain(life, store, broker); err != nil {
			return err
		}
		return p.deliverWebhooks(life, s, store)
	}
	return nil
}

// openServer opens the control plane. A replica without the api role has one too: its
// health checks answer the probes (see handler).
func (p *platform) openServer(ctx context.Context, s settings, store *storage.Store, engine *invoker.Invoker, broker *queue.Broker, schedules *scheduler.Schedules) error {
	runners, err := s.Documents.token()
	if err != nil {
		return err
	}
	keep, err := parseRetention("job-retention", s.Retention.Jobs)
	if err != nil {
		return err
	}
	proxies, err := s.Network.proxies()
	if err != nil {
		return err
	}
	p.server, err = controlplane.New(ctx, store, engine, broker, controlplane.Config{
		Logger: p.logger.Named("api"), Metrics: p.metrics, Tracer: p.tracer, Version: build.Version(), Auth: s.authMode(), MaxWaits: maxWaits(s), Rates: admission.RateConfig{Reads: s.Network.ReadRate, Writes: s.Network.WriteRate},
		Streams: jobs.StreamConfig{Frames: s.Network.StreamFrames, FrameRate: s.Network.StreamRate, Errors: s.Network.StreamErrors}, BodyBudget: s.bodyBudget(), Proxies: proxies, Schedules: schedules, Secrets: p.secrets,
		Documents: p.documents, JobRetention: keep, Quotas: p.quotas, StorageToken: runners, ShowErrors: s.ShowErrors, Unconfined: s.Unconfined, FunctionDomain: s.Network.FunctionDomain,
		MirrorControl: p.mirror, Bulk: p.bulk, Mirror: mirrorsearch.Of(p.mirror), DomainResolver: domains.NewResolver(s.Network.DomainResolver), ReservedDomains: s.Network.reserved(s.Listen),
	})
	if err != nil {
		return err
	}
	p.onClose(func(context.Context) error { p.server.Close(); return nil })
	return nil
}

// openSchedules returns the repository of schedules, for the control plane. Under the
// scheduler role it also prepares the loop that fires them and maintains the queues;
// maintain starts it.
func (p *platform) openSchedules(s settings, store *storage.Store, broker *queue.Broker) (*scheduler.Schedules, error) {
	ticker, err := scheduler.NewTicker(store, broker, p.metrics, p.logger.Named("ticker"))
	if err != nil {
		return nil, err
	}
	ticker.Trace(p.tracer)
	if s.has(roleScheduler) {
		p.loop = scheduler.NewLoop(store, broker, ticker, p.logger.Named("scheduler"))
	}
	return scheduler.NewSchedules(store, broker, ticker)
}

// maintain starts the loops of the scheduler role, which run until life ends. Any number of
// replicas may run them on one store: each of them claims what it works on.
func (p *platform) maintain(life context.Context, store *storage.Store, broker *queue.Broker) error {
	sweeps, err := sweeper.New(store, broker, sweeper.Config{Metrics: p.metrics}, p.logger.Named("sweeper"))
	if err != nil {
		return err
	}
	if err := p.sweepTasks(life, store, broker); err != nil {
		return err
	}
	p.loops.Go(func() { sweeps.Run(life) })
	p.loops.Go(func() { p.loop.Run(life) })
	return nil
}

// sweepTasks starts the loop that repairs stuck tasks until life ends.
func (p *platform) sweepTasks(life context.Context, store *storage.Store, broker *queue.Broker) error {
	logger := p.logger.Named("tasks")
	repairs, err := tasks.New(store, broker, tasks.Config{Logger: logger})
	if err != nil {
		return err
	}
	sweeps, err := sweeper.NewTaskSweeper(store, repairs, sweeper.TaskConfig{Metrics: p.metrics}, logger)
	if err != nil {
		return err
	}
	p.loops.Go(func() { sweeps.Run(life) })
	return nil
}

// openEngine opens the engine, with sandboxes if a role of s runs functions. Under the
// invoker role the engine works on asynchronous invocations until working ends. A replica
// with the scheduler role only has an engine without sandboxes, which runs no function.
func (p *platform) openEngine(ctx, working context.Context, s settings, store *storage.Store, broker *queue.Broker, cadence *cadenceworker.Conn) (*invoker.Invoker, error) {
	var pool *sandbox.Pool
	if s.has(roleAPI) || s.has(roleInvoker) || s.has(roleCadence) {
		var err error
		pool, err = p.openPool(s, store)
		if err != nil {
			return nil, err
		}
	}
	cfg, err := s.invokerConfig()
	if err != nil {
		return nil, err
	}
	cfg.Logger, cfg.Metrics, cfg.Secrets, cfg.Tracer = p.logger.Named("invoker"), p.metrics, p.secrets, p.tracer
	cfg.Documents, cfg.Observer, cfg.Quotas = p.documents, s.Observer, p.quotas
	if cadence != nil { // a nil *Conn in the interface would not be nil
		cfg.Workflows = cadence
	}
	engine, err := invoker.New(ctx, store, pool, broker, cfg)
	if err != nil {
		return nil, err
	}
	var work sync.WaitGroup
	// The worker returns once its jobs are settled. Close bounds that time: jobs that are
	// not done by then return to their queues.
	p.onClose(func(ctx context.Context) error {
		ctx, cancel := p.untilWorkEnds(ctx)
		defer cancel()
		err := engine.Close(ctx)
		work.Wait()
		return err
	})
	if s.has(roleInvoker) {
		work.Go(func() { engine.Work(working) })
	}
	return engine, nil
}

// openCadence connects to the Cadence server. It returns nil if the settings name none. It
// does not wait for the server: an unavailable Cadence does not prevent the start.
func (p *platform) openCadence(s settings) (*cadenceworker.Conn, error) {
	if s.CadenceAddr == "" {
		return nil, nil //nolint:nilnil // documented: there is no server
	}
	conn, err := cadenceworker.Dial(s.CadenceAddr)
	if err != nil {
		return nil, err
	}
	p.onClose(conn.Close)
	return conn, nil
}

// openActivities starts the workers of the Cadence worker bindings on a replica with that role. They
// run until working ends.
func (p *platform) openActivities(ctx, working context.Context, s settings, store *storage.Store, engine *invoker.Invoker, cadence *cadenceworker.Conn) error {
	if !s.has(roleCadence) {
		return nil
	}
	activities, err := cadenceworker.New(ctx, store, engine, cadenceworker.Config{
		Conn: cadence, Logger: p.logger.Named("cadence"), Metrics: p.metrics, Tracer: p.tracer,
	})
	if err != nil {
		return err
	}
	var run sync.WaitGroup
	run.Go(func() { activities.Run(working) })
	p.onClose(func(ctx context.Context) error {
		ctx, cancel := p.untilWorkEnds(ctx)
		defer cancel()
		run.Wait() // no more tasks arrive then, so Close sees all of them
		return activities.Close(ctx)
	})
	return nil
}

// untilWorkEnds returns ctx with the deadline of running work, which the first call sets.
// Activities and asynchronous invocations share it: they are closed one after the other, and
// the second does not get another workTimeout.
func (p *platform) untilWorkEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.workEnds.IsZero() {
		p.workEnds = time.Now().Add(workTimeout)
	}
	return context.WithDeadline(ctx, p.workEnds)
}

// workTimeout bounds the end of running work when the server closes, from the last request
// on. The other parts have the rest of closeTimeout.
const workTimeout = closeTimeout / 2

// openPool opens the pool of sandboxes, which keeps compiled scripts in store. The executable
// is closed after the pool, which may start a child from it until then.
func (p *platform) openPool(s settings, store *storage.Store) (*sandbox.Pool, error) {
	executable, closeExecutable, err := SandboxExecutable()
	if err != nil {
		return nil, err
	}
	p.onClose(func(context.Context) error { return closeExecutable() })
	if risk := CgoRisk(executable); risk != "" {
		p.logger.Warn(risk, zap.String("mend", CgoMend))
	}
	cfg := s.sandboxConfig()
	cfg.Logger, cfg.Metrics, cfg.Executable = p.logger.Named("sandbox"), p.metrics, executable
	cfg.Share = func(tenant string) sandbox.Share { return shareOf(p.quotas.Limits(tenant)) }
	if build := sandboxBuild(executable); build != "" {
		cfg.Scripts = compiled.New(store, build)
	}
	pool, err := sandbox.New(cfg)
	if err != nil {
		return nil, err
	}
	p.onClose(pool.Close)
	return pool, nil
}

// shareOf returns the share of the sandboxes that a tenant with such limits has.
func shareOf(limits quota.TenantLimits) sandbox.Share {
	share := sandbox.Share{Weight: int(limits.Weight)}
	if limits.MaxSandboxes != quota.Unlimited {
		share.MaxSandboxes = int(limits.MaxSandboxes)
	}
	if limits.MaxMemoryMB != quota.Unlimited {
		share.MaxMemoryBytes = limits.MaxMemoryMB << 20
	}
	return share
}

// onClose registers a function that close calls before those registered earlier.
func (p *platform) onClose(f func(context.Context) error) { p.closers = append(p.closers, f) }

// openStore connects to the store server, or opens the embedded store if the settings name
// no server. It fails if the server does not answer, so a replica starts only with its store;
// an outage after the start is survived. It compares the clock of a server with its own
// until life ends.
func (p *platform) openStore(ctx, life context.Context, s settings) (*storage.Store, error) {
	keep, err := parseRetention("activation-retention", s.Retention.Activations)
	if err != nil {
		return nil, err
	}
	if s.StoreInArgs {
		p.logger.Warn(WarnOfPassword(s.Store))
	}
	audit, err := parseRetention("audit-retention", s.Retention.Audit)
	if err != nil {
		return nil, err
	}
	cfg := storage.Config{URL: s.Store, Activations: keep, Audit: audit, Metrics: p.metrics}
	if s.Store == "" {
		server, err := embedded.Open(s.DataDir, p.logger.Named("store"))
		if err != nil {
			return nil, err
		}
		p.onClose(func(context.Context) error { return server.Close() })
		cfg.Embedded = server
	}
	store, err := storage.Open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	p.onClose(func(context.Context) error { return store.Close() })
	if s.Store != "" {
		if err := p.examineStore(ctx, life, store); err != nil {
			return nil, err
		}
	}
	p.secrets, err = s.openSecrets(store, p.logger.Named("secrets"))
	return store, err
}

// examineTimeout bounds the examination of the store at the start.
const examineTimeout = 5 * time.Second

// examineStore logs the kind and version of the store server and the problems of its
// settings, and compares the clocks until life ends. Problems do not prevent the start:
// some installations accept the loss of data. sous doctor reports the same findings, and its
// exit code is not 0 if one of them can lose data.
func (p *platform) examineStore(ctx, life context.Context, store *storage.Store) error {
	logger := p.logger.Named("store")
	bounded, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	report, err := examine.Servers(bounded, store)
	if err != nil {
		logger.Warn("cannot examine the store", zap.Error(err))
	} else {
		report.Log(logger)
	}
	watch, err := examine.NewClockWatch(store, report, examine.ClockWatchConfig{Metrics: p.metrics, Logger: logger})
	if err != nil {
		return err
	}
	p.loops.Go(func() { watch.Run(life) })
	return nil
}

// handler returns the HTTP handler for the roles of s: without the api role it serves the
// health checks only.
func (p *platform) handler(s settings) http.Handler {
	if s.has(roleAPI) {
		return p.server.Handler()
	}
	return p.server.HealthHandler()
}

// close stops the loops and closes the parts, the last opened first. ctx bounds the time.
// It closes all parts even if some fail, and returns all errors.
func (p *platform) close(ctx context.Context) error {
	p.stop()
	p.loops.Wait()
	var errs []error
	for len(p.closers) > 0 {
		last := len(p.closers) - 1
		errs = append(errs, p.closers[last](ctx))
		p.closers = p.closers[:last]
	}
	if p.fed != nil { // a disk that hangs must keep nothing else from closing
		select {
		case <-p.fed:
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("the mirror does not stop: %w", ctx.Err()))
		}
	}
	return errors.Join(errs...)
}
