// Package controlplane is the REST API and the HTTP endpoints of functions. A
// handler decodes, calls one method, and encodes; what is more than that is a
// use case without HTTP types (publish.go).
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/tasks"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/bindings"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/tracing"
)

// Engine executes functions: the invoker, as far as this package needs it.
type Engine interface {
	// Authorize says whether Invoke would let inv in; nothing runs.
	Authorize(ctx context.Context, inv *api.Invocation) error
	// Invoke runs a function to a terminal activation; an error means that none
	// was reached.
	Invoke(ctx context.Context, inv api.Invocation) (*api.Outcome, error)
	// Enqueue accepts an invocation that is run later: it is durable then.
	Enqueue(ctx context.Context, inv api.Invocation) (*api.Queued, error)
	// Cancel ends an activation wherever it waits or runs.
	Cancel(ctx context.Context, tenant, id string) (*api.Activation, error)
	// Check compiles a tenant's bundle; CodeValidationSource says where it cannot be.
	Check(ctx context.Context, tenant, entry, handler string, bundle []byte) error
	// Invalidate forgets what is cached of a function, on every replica.
	Invalidate(ctx context.Context, tenant, namespace, function string)
}

// Config is what a Server can be told; zero values mean the documented default.
type Config struct {
	// Logger gets failures, and every request at debug level (default: none).
	Logger *zap.Logger
	// Metrics is where the server's metrics are exported (default: nowhere).
	Metrics prometheus.Registerer
	// Tracer is who gets the spans of requests (default: nobody).
	Tracer trace.TracerProvider
	// Auth says how callers are known (default: AuthKeys).
	Auth AuthMode
	// Clock dates drafts, functions and request ids, and ends keys (default: time.Now).
	Clock func() time.Time
	// Version is what the OpenAPI document calls the server's (default "dev").
	Version string
	// FollowInterval is how often a followed log is read again (default 200 ms).
	FollowInterval time.Duration
	// KeepAlive is how often a silent event stream says that it is alive
	// (default 15 s).
	KeepAlive time.Duration
	// MaxWaits is how many fetches of jobs wait at once; one tenant's at most half
	// of them (default 1,024).
	MaxWaits int
	// Schedules keeps the schedules (default: one of the server's own over its store
	// and queue, whose runs by hand are not counted).
	Schedules Schedules
	// Secrets keeps the secrets (default: those of the server's store, without a key,
	// so that none can be written).
	Secrets *secrets.Secrets
	// Documents is the document storage (default: one of the server's own over its store,
	// with the default quotas, whose operations are not counted).
	Documents *documents.Service
	// StorageToken is what runners send to the internal endpoint of the document storage,
	// of at least MinStorageToken bytes (default: there is no such endpoint).
	StorageToken string
}

// Server answers the platform's HTTP requests. It is safe for concurrent use.
type Server struct {
	store       *storage.Store
	functions   *storage.Functions
	drafts      *storage.Drafts
	versions    *storage.Versions
	aliases     *storage.Aliases
	activations *activations.Repository
	logs        *activations.Logs
	tenants     *storage.Tenants
	keys        *access.APIKeys
	events      *access.Audit
	queue       *queue.Broker
	tasks       *tasks.Tasks
	schedules   Schedules
	documents   *documents.Service
	bindings    *bindings.Repository
	secrets     *secrets.Secrets
	waits       *waits
	auth        *authenticator
	engine      Engine
	publisher   *Publisher
	metrics     *serverMetrics
	tracer      trace.Tracer // nil for none
	runners     string       // token of the internal storage endpoint, "" for no such endpoint

	log      *zap.Logger
	clock    func() time.Time
	follow   time.Duration
	alive    time.Duration
	patience time.Duration // with those who do not read their answers
	router   http.Handler
	openapi  func() ([]byte, error) // encodes the document when it is first asked for
	docsPage func() ([]byte, error)
	unready  atomic.Bool
	drained  chan struct{} // closed by Drain
	drain    sync.Once
	end      context.CancelFunc // of what runs until Close
}

func (cfg Config) withDefaults() Config {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	if cfg.FollowInterval <= 0 {
		cfg.FollowInterval = 200 * time.Millisecond
	}
	if cfg.KeepAlive <= 0 {
		cfg.KeepAlive = 15 * time.Second
	}
	if cfg.MaxWaits <= 0 {
		cfg.MaxWaits = DefaultWaits
	}
	return cfg
}

// New makes a server over a store, an engine and a queue, all of which stay the
// caller's to close, after the server. ctx bounds nothing but the call.
func New(ctx context.Context, store *storage.Store, engine Engine, broker *queue.Broker, cfg Config) (*Server, error) {
	if store == nil || engine == nil || broker == nil {
		return nil, errors.New("controlplane: a store, an engine and a queue are required")
	}
	if cfg.Auth != AuthKeys && cfg.Auth != AuthOff {
		return nil, fmt.Errorf("controlplane: unknown mode of authentication %d", cfg.Auth)
	}
	cfg = cfg.withDefaults()
	if cfg.Secrets == nil {
		cfg.Secrets = secrets.New(store, nil)
	}
	s := &Server{
		store:       store,
		functions:   storage.NewFunctions(store),
		drafts:      storage.NewDrafts(store),
		versions:    storage.NewVersions(store),
		aliases:     storage.NewAliases(store),
		activations: activations.New(store),
		logs:        activations.NewLogs(store),
		tenants:     storage.NewTenants(store),
		keys:        access.NewAPIKeys(store),
		events:      access.NewAudit(store),
		auth:        &authenticator{mode: cfg.Auth, local: localCaller(), results: newAuthentications()},
		queue:       broker,
		bindings:    bindings.New(store),
		secrets:     cfg.Secrets,
		waits:       newWaits(cfg.MaxWaits),
		engine:      engine,
		metrics:     newServerMetrics(),
		tracer:      tracing.New(cfg.Tracer, "controlplane"),
		log:         cfg.Logger,
		clock:       cfg.Clock,
		follow:      cfg.FollowInterval,
		alive:       cfg.KeepAlive,
		patience:    answerTimeout,
		drained:     make(chan struct{}),
	}
	s.publisher = &Publisher{Functions: s.functions, Drafts: s.drafts, Versions: s.versions, Engine: engine, Clock: cfg.Clock}
	var err error
	if s.tasks, err = tasks.New(store, broker, tasks.Config{}); err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	if s.schedules, err = openSchedules(store, broker, cfg); err != nil {
		return nil, err
	}
	if s.documents, err = openDocuments(ctx, store, cfg); err != nil {
		return nil, err
	}
	s.runners = cfg.StorageToken
	s.route(cfg.Version)
	if err := s.openKeys(ctx); err != nil {
		return nil, err
	}
	if err := s.metrics.register(cfg.Metrics, s); err != nil {
		s.Close()
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	return s, nil
}

// openSchedules gives those of cfg, or makes some.
func openSchedules(store *storage.Store, broker *queue.Broker, cfg Config) (Schedules, error) {
	if cfg.Schedules != nil {
		return cfg.Schedules, nil
	}
	ticker, err := scheduler.NewTicker(store, broker, nil, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	return scheduler.NewSchedules(store, broker, ticker)
}

// openDocuments gives the document storage of cfg, or makes one.
func openDocuments(ctx context.Context, store *storage.Store, cfg Config) (*documents.Service, error) {
	if cfg.StorageToken != "" && len(cfg.StorageToken) < MinStorageToken {
		return nil, fmt.Errorf("controlplane: the token of the internal storage endpoint has less than %d bytes", MinStorageToken)
	}
	if cfg.Documents != nil {
		return cfg.Documents, nil
	}
	return documents.New(ctx, store, documents.Config{Quota: documents.DefaultQuota(), Clock: cfg.Clock})
}

// openKeys begins to know keys, until Close.
func (s *Server) openKeys(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	if s.auth.mode == AuthOff {
		return nil
	}
	keys, err := newKeyCache(s.keys, s.clock)
	if err == nil {
		err = s.store.Subscribe(life, keys.onChange)
	}
	if err != nil {
		end()
		return fmt.Errorf("controlplane: %w", err)
	}
	s.auth.keys = keys
	return nil
}

// Close ends what the server does by itself; requests must have ended.
func (s *Server) Close() {
	s.end()
	if s.auth.keys != nil {
		s.auth.keys.close()
	}
}

// Handler answers everything that the platform serves on its public address.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// HealthHandler answers the probes alone, for a replica that does not serve the
// API.
func (s *Server) HealthHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != pathHealthz && r.URL.Path != pathReadyz {
			s.fail(w, r, api.NewRequestID(s.now()), api.Errorf(api.CodeRouteNotFound, "this replica does not serve the API: it has not the role api"))
			return
		}
		s.serve(w, r)
	})
}

// Unready makes /readyz answer 503, so that a load balancer looks elsewhere.
func (s *Server) Unready() { s.unready.Store(true) }

// Drain is Unready, and ends event streams, which might not end by themselves, and
// fetches that wait, while the requests in hand finish.
func (s *Server) Drain() {
	s.Unready()
	s.drain.Do(func() { close(s.drained) })
}

// The server's own bounds on connections. Bodies have theirs in body.go, answers
// in answer.go, from the first byte on: until then they take as long as functions do.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	// Headers between api.MaxHeaderBytes and this get a problem of ours with
	// status 431; beyond it net/http answers 431 by itself and hangs up.
	hardHeaderBytes = 4 * api.MaxHeaderBytes
)

// HTTPServer is an http.Server for addr with bounded connections. The caller
// starts and shuts it down.
func (s *Server) HTTPServer(addr string) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           s.Handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    hardHeaderBytes,
		ErrorLog:          zap.NewStdLog(s.log),
		// Streams have deadlines of their own; this ends a connection that takes nothing.
		HTTP2: &http.HTTP2Config{WriteByteTimeout: answerTimeout},
	}
}

// now is the time in milliseconds since 1970.
func (s *Server) now() int64 { return s.clock().UnixMilli() }

// route builds the router and the OpenAPI document.
func (s *Server) route(version string) {
	router := chi.NewRouter()
	router.Use(nameRoute)
	router.Use(middleware.GetHead) // a HEAD is a GET whose body net/http leaves out
	router.NotFound(s.routeNotFound)
	router.MethodNotAllowed(s.methodNotAllowed(router))

	var document huma.API
	router.Group(func(r chi.Router) {
		r.Use(s.refuseCrossOrigin, s.authorize)
		r.Get(pathHealthz, s.healthz)
		r.Get(pathReadyz, s.readyz)
		r.Get(pathDocs, s.docs)
		r.Get(pathOpenAPI, s.openapiDocument)
		document = newAPI(r, version)
		documentHealth(document)
		s.routeInvoke(r, document)
		s.routeDrafts(r, document)
		s.routeLogs(r, document)
		s.routeEnqueue(r, document)
		s.routeFetch(r, document)
		s.routeSettling(r, document)
		s.routeStorage(r, document)
		r.Group(func(r chi.Router) {
			r.Use(s.buffered(api.MaxRequestBytes))
			typed := typedAPI{API: document, adapter: adapterOn(r), server: s}
			s.routeFunctions(typed)
			s.routeVersions(typed)
			s.routeAliases(typed)
			s.routeActivations(typed)
			s.routeTenants(typed)
			s.routeKeys(typed)
			s.routeAudit(typed)
			s.routeJobs(typed)
			s.routeQueues(typed)
			s.routeBatches(typed)
			s.routeWorkers(typed)
			s.routeSchedules(typed)
			s.routeTasks(typed)
			s.routeBindings(typed)
			s.routeSecrets(typed)
		})
	})
	s.router = router
	completeDocument(document)
	s.openapi = sync.OnceValues(func() ([]byte, error) { return openapiJSON(document.OpenAPI()) })
	s.docsPage = sync.OnceValues(func() ([]byte, error) { return renderDocs(document.OpenAPI()) })
}
