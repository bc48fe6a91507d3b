// Package controlplane is the platform's HTTP server: the REST API and the endpoints of
// functions. It wires the packages below it:
//
//	rest       the steps that every request passes; read its package comment first
//	access     authentication by API key, actions and roles
//	functions  functions, drafts, versions, aliases, invocations, activations, logs
//	jobs       queues, jobs, batches, workers, tasks
//	runs       runs of functions with durable steps, and the events that they wait for
//	triggers   schedules and Cadence worker bindings
//	documents  the document storage, in its own dialect of errors
//	tenancy    tenants, namespaces, API keys, secrets, the audit
//	domains    custom domains
//	webhooks   webhooks and their deliveries
//	providers  providers of models
//	mirror     the state of the mirror
//	search     searches of jobs across queues, from the mirror
//	bulk       operations on the jobs of a search
//	mcp        the Model Context Protocol
//	web        the HTTP endpoints of functions, past the router
//	docsite    the documentation
//	console    the web interface, with its sessions
//
// Each of them but web returns its Endpoints; New collects them and hands them to
// rest.NewServer. None of them imports another, except rest and access.
//
// Files: server.go wires, health.go has the probes, limits.go has GET /v1/limits. A new
// route is one declaration in one of the packages (see rest.Endpoint), a line in the table
// of access_test.go, which calls every route with the keys of different roles, and a line
// in docs/api.md and docs/access.md.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/domain"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/admission"
	approvalsapi "github.com/codesous/sous/controlplane/approvals"
	budgetsapi "github.com/codesous/sous/controlplane/budgets"
	bulkapi "github.com/codesous/sous/controlplane/bulk"
	"github.com/codesous/sous/controlplane/console"
	"github.com/codesous/sous/controlplane/docsite"
	documentsapi "github.com/codesous/sous/controlplane/documents"
	domainsapi "github.com/codesous/sous/controlplane/domains"
	"github.com/codesous/sous/controlplane/functions"
	"github.com/codesous/sous/controlplane/jobs"
	mcpapi "github.com/codesous/sous/controlplane/mcp"
	mirrorapi "github.com/codesous/sous/controlplane/mirror"
	providersapi "github.com/codesous/sous/controlplane/providers"
	"github.com/codesous/sous/controlplane/rest"
	runsapi "github.com/codesous/sous/controlplane/runs"
	searchapi "github.com/codesous/sous/controlplane/search"
	spendingapi "github.com/codesous/sous/controlplane/spending"
	"github.com/codesous/sous/controlplane/tenancy"
	"github.com/codesous/sous/controlplane/triggers"
	"github.com/codesous/sous/controlplane/web"
	webhooksapi "github.com/codesous/sous/controlplane/webhooks"
	"github.com/codesous/sous/docs"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/bulk"
	"github.com/codesous/sous/queue/routing"
	"github.com/codesous/sous/queue/runs"
	"github.com/codesous/sous/queue/tasks"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	storeaccess "github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/domains"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/mirror"
	mirrorsearch "github.com/codesous/sous/storage/mirror/search"
	"github.com/codesous/sous/storage/quotas"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/sessions"
)

// Engine is the part of the invoker that the control plane uses to execute functions. It
// must be safe for concurrent use.
type Engine interface {
	// Authorize returns the error with which Invoke would refuse inv. Nothing runs.
	Authorize(ctx context.Context, inv *api.Invocation) error
	functions.Engine
	functions.CallCounter
	triggers.Engine
}

// MinStorageToken is the least length of Config.StorageToken, in bytes.
const MinStorageToken = 16

// Config configures a Server. Zero values mean the documented defaults.
type Config struct {
	// Logger receives failures, and every request at debug level (default: none).
	Logger *zap.Logger
	// Metrics is where the server's metrics are registered (default: nowhere).
	Metrics prometheus.Registerer
	// Tracer receives the spans of requests (default: none are made).
	Tracer trace.TracerProvider
	// Auth selects how callers are authenticated (default: access.Keys).
	Auth access.Mode
	// Clock dates drafts, functions and request ids, and ends keys (default: time.Now).
	Clock func() time.Time
	// Version is the version that the OpenAPI document states (default "dev").
	Version string
	// FollowInterval is how often a followed log is read again, and how often the key of
	// its reader is examined (default 200 ms).
	FollowInterval time.Duration
	// KeepAlive is how often a silent event stream sends a comment (default 15 s).
	KeepAlive time.Duration
	// AnswerTimeout is how long a client may take to read the first bytes of an answer
	// (default 30 s); large answers have more time.
	AnswerTimeout time.Duration
	// MaxWaits limits the fetches of jobs, the followed logs and the followed feeds of
	// documents that wait at the same time on this replica. One tenant may have at most half
	// of them (default admission.DefaultWaits).
	MaxWaits int
	// Streams bounds the streams of workers (default: the defaults of jobs.StreamConfig).
	Streams jobs.StreamConfig
	// Rates limits the requests of each client a second on this replica (default: no limit).
	Rates admission.RateConfig
	// BodyBudget bounds the bytes of request bodies and answers in memory (default
	// admission.MinBudget).
	BodyBudget int64
	// MaxWorking bounds the requests in which the platform is at work (default
	// admission.DefaultLimit). Under overload the limit is less.
	MaxWorking int
	// Proxies are the addresses of the proxies whose X-Forwarded-For is believed (default:
	// none).
	Proxies []netip.Prefix
	// Schedules keeps the schedules (default: a service over the server's store and
	// queue, whose manual runs are not counted in metrics).
	Schedules triggers.Schedules
	// Secrets keeps the secrets (default: those of the server's store, without an
	// encryption key, so that none can be written).
	Secrets *secrets.Secrets
	// Quotas keeps the quotas of tenants (default: one over the server's store with the default
	// limits, which does not limit the store).
	Quotas *quotas.Keeper
	// Documents is the document store (default: one over the server's store with the
	// default quotas, whose operations are not counted in metrics).
	Documents *documents.Service
	// JobRetention is how long the queue keeps ended jobs, for the list of limits (default
	// api.JobRetentionMS).
	JobRetention storage.Retention
	// Mirror is the view that searches read (default: none, so that they answer
	// CodeMirrorUnavailable).
	Mirror mirrorsearch.View
	// StorageToken is the token that runners send to the internal endpoint of the
	// document store, of at least MinStorageToken bytes (default: the endpoint answers
	// 404).
	StorageToken string
	// ShowErrors has the endpoints of functions answer with the messages of their errors.
	// They are for the function's owner: only a server for development may show them.
	ShowErrors bool
	// FunctionDomain is the domain below which each function has a host of its own; "" for none.
	FunctionDomain string
	// DomainResolver looks up the records of custom domains (default: the DNS servers of this
	// machine).
	DomainResolver domainsapi.Resolver
	// ReservedDomains are domains of the operator. Neither they nor names below them, nor those of
	// FunctionDomain, can be custom domains.
	ReservedDomains []string
	// Bulk has the bulk operations (default: those of the store, which this process does not run).
	Bulk *bulk.Operations
	// MirrorControl is the mirror whose state is shown and which can be rebuilt (default: none).
	MirrorControl *mirror.Mirror
	// Unconfined serves functions without the protection from each other that browsers need.
	// It is for a server that no browser can reach.
	Unconfined bool
}

// Server answers the platform's HTTP requests. It is safe for concurrent use. Its life is
// New, Handler or HTTPServer, Unready, Drain, the end of all requests, Close.
type Server struct {
	store *storage.Store
	auth  *access.Authenticator
	rest  *rest.Server
	// console is before rest, for hosts that are not claimed.
	console *console.Console
	claimed func(host string) bool
	life    context.Context    //nolint:containedctx // of the background work, until Close
	end     context.CancelFunc // ends life
	loops   sync.WaitGroup     // the background work
}

// withDefaults sets the defaults that need nothing but the store. Those of Schedules and
// Documents can fail, and are opened by openSchedules and openDocuments.
func (cfg Config) withDefaults(store *storage.Store) Config {
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
	if cfg.Secrets == nil {
		cfg.Secrets = secrets.New(store, nil)
	}
	if cfg.DomainResolver == nil {
		cfg.DomainResolver = domainsapi.NewResolver("")
	}
	return cfg
}

// New returns a server over a store, an engine and a queue. The caller closes these
// after the server. ctx applies to New only; it is not retained. Errors are those of the
// configuration, of the registration of metrics, and of the subscription to the store's
// notices.
func New(ctx context.Context, store *storage.Store, engine Engine, broker *queue.Broker, cfg Config) (*Server, error) {
	if store == nil || engine == nil || broker == nil {
		return nil, errors.New("controlplane: a store, an engine and a queue are required")
	}
	if cfg.Auth != access.Keys && cfg.Auth != access.Off {
		return nil, fmt.Errorf("controlplane: unknown mode of authentication %d", cfg.Auth)
	}
	cfg = cfg.withDefaults(store)
	s := &Server{store: store}
	if err := s.openAuth(ctx, &cfg); err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	endpoints, err := s.endpoints(ctx, engine, broker, &cfg)
	var hosts *domains.Index
	if err == nil {
		hosts, err = s.openDomains(ctx, &cfg)
	}
	if err == nil {
		direct := web.New(storage.NewVersions(store), engine, s.auth, web.Config{
			Logger: cfg.Logger, ShowErrors: cfg.ShowErrors, FunctionDomain: cfg.FunctionDomain, Domains: hosts, Unconfined: cfg.Unconfined,
		}).Direct()
		s.claimed = func(host string) bool { _, claimed := direct.Host(host); return claimed }
		s.rest, err = rest.NewServer(rest.Config{
			Auth: s.auth, Audit: storeaccess.NewAudit(store), Logger: cfg.Logger, Clock: cfg.Clock,
			Metrics: cfg.Metrics, Tracer: cfg.Tracer, Version: cfg.Version,
			KeepAlive: cfg.KeepAlive, AnswerTimeout: cfg.AnswerTimeout, RunnerToken: cfg.StorageToken,
			BodyBudget: cfg.BodyBudget, MaxWorking: cfg.MaxWorking, Rates: cfg.Rates, Proxies: cfg.Proxies,
			Direct: direct,
		}, endpoints)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	return s, nil
}

// endpoints makes the APIs of all resources and returns their endpoints. Fetches of jobs
// and feeds of documents share one limit, waits.
func (s *Server) endpoints(ctx context.Context, engine Engine, broker *queue.Broker, cfg *Config) ([]rest.Endpoint, error) {
	schedules, err := openSchedules(s.store, broker, cfg)
	if err != nil {
		return nil, err
	}
	documentService, err := openDocuments(ctx, s.store, cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Quotas == nil {
		cfg.Quotas, err = quotas.New(ctx, s.store, quotas.Config{})
		if err != nil {
			return nil, err
		}
	}
	waits := admission.NewWaits(cfg.MaxWaits)
	all := s.serviceEndpoints(cfg)
	jobsAPI, err := s.openJobs(engine, broker, waits, cfg)
	if err != nil {
		return nil, err
	}
	mcp := mcpapi.New(mcpapi.Config{Store: s.store, Engine: engine, REST: s.Handler, Logger: cfg.Logger, Version: cfg.Version})
	if err := s.store.Subscribe(s.life, mcp.OnChange); err != nil {
		return nil, err
	}
	searcher := mirrorsearch.New(cfg.Mirror, 0)
	if cfg.Bulk == nil {
		cfg.Bulk, err = bulk.New(s.store, broker, searcher, cfg.Logger)
		if err != nil {
			return nil, err
		}
	}
	s.console, err = console.New(s.auth, sessions.New(s.store), console.Config{Version: cfg.Version, Clock: cfg.Clock, Unconfined: cfg.Unconfined})
	if err != nil {
		return nil, err
	}
	for _, resource := range []interface{ Endpoints() []rest.Endpoint }{
		functions.New(s.store, engine, engine, searcher, cfg.Clock, cfg.FollowInterval, waits),
		jobsAPI,
		runsapi.New(runs.New(s.store, broker)),
		searchapi.New(searcher),
		bulkapi.New(cfg.Bulk),
		documentsapi.New(documentService, waits),
		tenancy.New(s.store, cfg.Quotas, cfg.Secrets, s.auth, cfg.Clock),
		spendingapi.New(s.store, broker.Prices()),
		budgetsapi.New(broker.Budgets()),
		approvalsapi.New(s.store, broker, s.auth),
		providersapi.New(s.store, cfg.Clock),
		triggers.New(s.store, schedules, engine, cfg.Clock),
		domainsapi.New(s.store, cfg.DomainResolver, cfg.reserved(), cfg.Clock),
		webhooksapi.New(s.store, cfg.Secrets),
		mirrorapi.New(cfg.MirrorControl),
		mcp,
		docsite.New(docs.Pages),
		s.console,
	} {
		all = append(all, resource.Endpoints()...)
	}
	return all, nil
}

// openJobs returns the API of jobs, and registers its metrics.
func (s *Server) openJobs(engine Engine, broker *queue.Broker, waits *admission.Waits, cfg *Config) (*jobs.API, error) {
	taskService, err := tasks.New(s.store, broker, tasks.Config{})
	if err != nil {
		return nil, err
	}
	router, err := s.openRouter(broker, cfg)
	if err != nil {
		return nil, err
	}
	a := jobs.New(broker, router, taskService, events.New(s.store), engine, waits, cfg.Streams, cfg.Logger)
	return a, metrics.Register(cfg.Metrics, a.Collectors()...)
}

// openRouter returns the router of jobs to providers of models, which follows the store until Close.
func (s *Server) openRouter(broker *queue.Broker, cfg *Config) (*routing.Router, error) {
	router, err := routing.New(broker, s.store, cfg.Logger)
	if err != nil {
		return nil, err
	}
	return router, s.store.Subscribe(s.life, router.OnChange)
}

// openSchedules returns the schedules of cfg, or the default.
func openSchedules(store *storage.Store, broker *queue.Broker, cfg *Config) (triggers.Schedules, error) {
	if cfg.Schedules != nil {
		return cfg.Schedules, nil
	}
	ticker, err := scheduler.NewTicker(store, broker, nil, cfg.Logger)
	if err != nil {
		return nil, err
	}
	return scheduler.NewSchedules(store, broker, ticker)
}

// openDocuments returns the document store of cfg, or the default. It refuses a
// StorageToken that is too short to be a secret.
func openDocuments(ctx context.Context, store *storage.Store, cfg *Config) (*documents.Service, error) {
	if cfg.StorageToken != "" && len(cfg.StorageToken) < MinStorageToken {
		return nil, fmt.Errorf("the token of the internal storage endpoint has less than %s", api.SizeText(MinStorageToken))
	}
	if cfg.Documents != nil {
		return cfg.Documents, nil
	}
	return documents.New(ctx, store, documents.Config{Quota: documents.DefaultQuota(), Clock: cfg.Clock})
}

// reserved returns the domains that cannot be custom domains.
func (cfg *Config) reserved() domain.Reserved {
	return append(slices.Clone(cfg.ReservedDomains), cfg.FunctionDomain)
}

// firstRead bounds the read of the custom domains at the start.
const firstRead = 5 * time.Second

// openDomains returns the view of the custom domains, which follows the store until Close. It reads
// them before the first request: a host that is not in the view is one of the API. A store that does
// not answer does not prevent the start.
func (s *Server) openDomains(ctx context.Context, cfg *Config) (*domains.Index, error) {
	hosts := domains.NewIndex(domains.New(s.store), cfg.reserved())
	if err := s.store.Subscribe(s.life, hosts.OnChange); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, firstRead)
	defer cancel()
	if err := hosts.Read(bounded); err != nil {
		cfg.Logger.Warn("reading custom domains failed; until they are read, their hosts are not served", zap.Error(err))
	}
	s.loops.Go(func() { hosts.Follow(s.life, cfg.Logger) })
	return hosts, nil
}

// openAuth makes the authenticator, which receives the store's notices of revoked keys
// until Close. The subscription must not end with ctx, which ends with New.
func (s *Server) openAuth(ctx context.Context, cfg *Config) error {
	auth, err := access.NewAuthenticator(cfg.Auth, storeaccess.NewAPIKeys(s.store), cfg.Clock)
	if err != nil {
		return err
	}
	s.auth = auth
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	if cfg.Auth == access.Off {
		return nil
	}
	if err := s.store.Subscribe(s.life, auth.OnChange); err != nil {
		s.Close()
		return err
	}
	return nil
}

// Close ends the server's background work. Requests must have ended.
func (s *Server) Close() {
	if s.rest != nil {
		s.rest.Close()
	}
	s.end()
	s.loops.Wait()
	s.auth.Close()
}

// Handler answers everything that the platform serves on its public address.
func (s *Server) Handler() http.Handler { return s.console.Front(s.claimed, s.rest.Handler()) }

// HealthHandler answers only the probes, for a replica that does not serve the API.
func (s *Server) HealthHandler() http.Handler { return s.rest.HealthHandler() }

// GuardHost refuses requests to next whose Host is not a loopback name. It protects
// handlers beside the API that have no keys and that browsers could reach.
func (s *Server) GuardHost(next http.Handler) http.Handler { return s.rest.GuardHost(next) }

// HTTPServer returns an http.Server for addr with bounded connections. The caller
// starts it and shuts it down.
func (s *Server) HTTPServer(addr string) *http.Server {
	server := s.rest.HTTPServer(addr)
	server.Handler = s.Handler()
	return server
}

// Unready makes /readyz answer 503, so that a load balancer sends requests elsewhere.
func (s *Server) Unready() { s.rest.Unready() }

// Drain calls Unready, and ends event streams and waiting fetches while other requests
// finish.
func (s *Server) Drain() { s.rest.Drain() }
