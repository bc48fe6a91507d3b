// Package rest is the framework of the control plane's HTTP API: the steps that every
// request passes before and after its handler (request ids, limits, authentication,
// authorization, the audit log, metrics, traces, problems), and the OpenAPI document.
//
// The packages beside it declare what the API serves: each returns a list of
// Endpoints, and an Endpoint names its route, the action that a caller needs, its
// description and its handler in one place. Server mounts them.
//
// A request passes these stations; the first that refuses it answers with a problem
// (problem.go):
//
//	serve           request.go    request id, span, metrics, deadlines, size of URL and headers
//	  enter         admission.go  429 and 503: the caller holds too much, or the replica is overloaded
//	  Direct.Serve  request.go    endpoints of functions part here; the rest goes to the router
//	serveAPI        request.go    the exchange, and the audit event at the end (audit.go)
//	router          server.go     404 and 405
//	refuseCrossOrigin  guard.go   only without API keys
//	authorize       authorize.go  401, 403, or 404 for another tenant's resources
//	buffered        body.go       the body, for Operations only
//	handler         endpoint.go   decoded and encoded by huma, or by itself under Handle
//
// Invariants: a handler never chooses the status of an error, which follows from its
// code (api/httpstatus). No part of a body is read before the caller is authorized.
// Paths in logs and audit events, and the texts of problems, pass api.WithoutKeys, since
// a client may have put an API key in the wrong place.
package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
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
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/admission"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/tracing"
)

// AuditLog keeps audit events.
type AuditLog interface {
	// Append stores an event for tenant. It may store it twice if the store's answer is
	// lost.
	Append(ctx context.Context, tenant string, event api.AuditEvent) error
}

// Config is the environment of a Server. Auth, Audit, Logger, Clock and KeepAlive are
// required; controlplane.Config has the defaults for users.
type Config struct {
	Auth   *access.Authenticator
	Audit  AuditLog
	Logger *zap.Logger
	Clock  func() time.Time
	// Metrics is where the server's metrics are registered (nil: nowhere).
	Metrics prometheus.Registerer
	// Tracer receives the spans of requests (nil: none are made).
	Tracer trace.TracerProvider
	// Version is the version that the OpenAPI document states.
	Version string
	// KeepAlive is how often a silent event stream sends a comment, so that proxies do
	// not close it. It must be positive.
	KeepAlive time.Duration
	// AnswerTimeout is how long a client may take to read the first bytes of an answer
	// (0: 30 s); large answers have more time.
	AnswerTimeout time.Duration
	// RunnerToken is the token that access.Runner asks for; "" makes such routes
	// answer 404.
	RunnerToken string
	// BodyBudget bounds the bytes of request bodies and answers in memory
	// (0: admission.MinBudget).
	BodyBudget int64
	// MaxWorking bounds the requests in which the platform is at work
	// (0: admission.DefaultLimit).
	MaxWorking int
	// Rates limits the requests of each client a second.
	Rates admission.RateConfig
	// Proxies are the addresses of the proxies whose X-Forwarded-For is believed.
	Proxies []netip.Prefix
	// Direct serves requests that bypass the router.
	Direct Direct
}

// Direct serves the requests whose path begins with Prefix. They pass the limits, the
// metrics and the log, but neither the router nor authorisation: they may have any
// method, and they are on the hot path.
//
// Requests to a host that Host claims are served whatever their path is, and those to other hosts
// never: the API and its probes do not answer on a host of a function.
type Direct struct {
	Prefix string
	// Host returns the path below Prefix that a request's Host stands for, "" if there is
	// none, and whether the host is claimed. nil claims no host.
	Host func(host string) (root string, claimed bool)
	// Serve answers a request, or returns why it does not; the server then answers
	// with the problem. An error must not be returned after a part of the answer was
	// written.
	Serve func(w http.ResponseWriter, r *http.Request, requestID string) error
	// Names returns the names in a path, for the log; they are "" where the path has
	// none.
	Names func(path string) (tenant, namespace, function string)
	// Operations describes the requests in the OpenAPI document. The server adds the errors and
	// the security.
	Operations []*huma.Operation
}

// Server answers the requests of the API. It is safe for concurrent use.
type Server struct {
	auth     *access.Authenticator
	audits   AuditLog
	refusals *refusalLog
	log      *zap.Logger
	clock    func() time.Time
	metrics  *serverMetrics
	tracer   trace.Tracer // nil for none
	runners  string       // the runners' token, "" for none
	direct   Direct
	alive    time.Duration

	budget     *admission.Budget
	limiter    *admission.Limiter
	rates      *admission.Rates
	addresses  admission.Addresses
	overloaded atomic.Int64 // Unix nanoseconds of the last log line about an overload

	answerTimeout time.Duration
	router        http.Handler
	routes        map[string]*Route // by "METHOD pattern"
	openapi       func() ([]byte, error)
	docsPage      func() ([]byte, error)
	unready       atomic.Bool
	drained       chan struct{} // closed by Drain
	drain         sync.Once
}

// NewServer returns a server of the endpoints, and of the OpenAPI document and the page
// that describe them. The error is that of the registration of its metrics. An endpoint
// that cannot be mounted (a malformed pattern, a type that huma cannot describe) is a
// mistake in the program and panics.
func NewServer(cfg Config, endpoints []Endpoint) (*Server, error) {
	s := &Server{
		auth:          cfg.Auth,
		audits:        cfg.Audit,
		refusals:      newRefusalLog(cfg.Audit, cfg.Logger),
		log:           cfg.Logger,
		clock:         cfg.Clock,
		metrics:       newServerMetrics(),
		tracer:        tracing.New(cfg.Tracer, "controlplane"),
		runners:       cfg.RunnerToken,
		direct:        cfg.Direct,
		alive:         cfg.KeepAlive,
		budget:        admission.NewBudget(cmp.Or(cfg.BodyBudget, admission.MinBudget)),
		limiter:       admission.NewLimiter(cfg.MaxWorking),
		rates:         admission.NewRates(cfg.Rates),
		addresses:     admission.Addresses{Proxies: cfg.Proxies},
		answerTimeout: cmp.Or(cfg.AnswerTimeout, answerTimeout),
		routes:        map[string]*Route{},
		drained:       make(chan struct{}),
	}
	s.mount(append(s.documentEndpoints(), endpoints...), cfg.Version)
	collectors := slices.Concat(s.metrics.collectors(), s.admissionCollectors(), s.auth.Collectors(), []prometheus.Collector{s.refusals.total})
	if err := metrics.Register(cfg.Metrics, collectors...); err != nil {
		return nil, fmt.Errorf("rest: %w", err)
	}
	return s, nil
}

// Close writes the audit events that are still counted. Requests must have ended.
func (s *Server) Close() { s.refusals.close() }

// mount builds the router and the OpenAPI document. All routes share refuseCrossOrigin
// and authorize. Operations stand behind buffered as well; Handle routes read their own
// bodies, with limits of their own.
func (s *Server) mount(endpoints []Endpoint, version string) {
	router := chi.NewRouter()
	router.Use(nameRoute)
	router.Use(middleware.GetHead) // a HEAD is a GET whose body net/http leaves out
	router.NotFound(s.routeNotFound)
	router.MethodNotAllowed(s.methodNotAllowed(router))

	var document huma.API
	router.Group(func(r chi.Router) {
		r.Use(s.refuseCrossOrigin, s.authorize)
		document = newAPI(r, version)
		typed := r.With(s.buffered(api.MaxRequestBytes))
		on := mounting{server: s, router: r, document: document, typed: typedAPI{API: document, adapter: adapterOn(typed)}}
		for _, e := range endpoints {
			route := e.Route
			s.routes[route.Method+" "+route.Path] = &route
			e.mount(&on, &route)
		}
	})
	s.router = router
	s.completeDocument(document)
	exemplified := sync.OnceValue(func() error { return addExamples(document.OpenAPI()) })
	rendered := func(render func(*huma.OpenAPI) ([]byte, error)) func() ([]byte, error) {
		return sync.OnceValues(func() ([]byte, error) {
			if err := exemplified(); err != nil {
				return nil, err
			}
			return render(document.OpenAPI())
		})
	}
	s.openapi, s.docsPage = rendered(openapiJSON), rendered(renderDocs)
}

// Routes returns the routes that the server answers, in no order. Tests use it to find
// routes that are not documented or whose access is not tested.
func (s *Server) Routes() []Route {
	routes := make([]Route, 0, len(s.routes))
	for _, route := range s.routes {
		routes = append(routes, *route)
	}
	return routes
}

// routeOf returns the route that the router matched, nil where it has none: before the
// router has run, for unknown paths, and for requests of Direct.
func (s *Server) routeOf(r *http.Request) *Route {
	routed := chi.RouteContext(r.Context())
	if routed == nil {
		return nil
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return s.routes[method+" "+routed.RoutePattern()]
}

// The paths of the probes. They are not traced, and HealthHandler serves them alone.
const (
	PathHealthz = "/healthz"
	PathReadyz  = "/readyz"
)

// Handler answers everything that the platform serves on its public address.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// HealthHandler answers only the probes, for a replica that does not serve the API.
func (s *Server) HealthHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := s.direct.path(r); path != PathHealthz && path != PathReadyz {
			s.fail(w, r, api.NewRequestID(s.now()), api.Errorf(api.CodeRouteNotFound, "this replica does not run the api role"))
			return
		}
		s.serve(w, r)
	})
}

// Unready makes Ready false, so that a load balancer sends requests elsewhere.
func (s *Server) Unready() { s.unready.Store(true) }

// Ready reports whether the server takes requests: Unready has not been called.
func (s *Server) Ready() bool { return !s.unready.Load() }

// Drain calls Unready, and ends event streams and waiting fetches while other requests
// finish. It may be called repeatedly, and does not wait. A shutdown is: Unready, a pause
// in which load balancers notice it, Drain, http.Server.Shutdown.
func (s *Server) Drain() {
	s.Unready()
	s.drain.Do(func() { close(s.drained) })
}

// The bounds on connections. Bodies have theirs in body.go. Answers have theirs in
// answer.go; the time before their first byte is bounded by the functions' timeouts.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	// Headers between api.MaxHeaderBytes and this size are answered with a problem of
	// status 431. Beyond it net/http answers 431 itself and closes the connection.
	hardHeaderBytes = 4 * api.MaxHeaderBytes
	// maxStreams bounds the requests that one HTTP/2 connection sends at the same time, and so
	// their bodies. Go's default is 250.
	maxStreams = 64
	// maxFrameBytes bounds a frame of HTTP/2, for which a connection has a buffer as soon as its
	// length has arrived. Go's default is 1 MiB. The protocol admits no less.
	maxFrameBytes = 16 << 10
	// receiveBytes bounds the bytes of bodies that an HTTP/2 connection holds before a handler reads
	// them. Go's default is 1 MiB.
	receiveBytes = 256 << 10
)

// HTTPServer returns an http.Server for addr with bounded connections. The caller
// starts it and shuts it down.
func (s *Server) HTTPServer(addr string) *http.Server {
	// The stream of workers needs HTTP/2 also where there is no TLS.
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Protocols:         protocols,
		Addr:              addr,
		Handler:           s.Handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    hardHeaderBytes,
		ErrorLog:          zap.NewStdLog(s.log),
		// Streams have deadlines of their own; this ends a connection that takes nothing.
		HTTP2: &http.HTTP2Config{
			WriteByteTimeout: answerTimeout, MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrameBytes,
			MaxReceiveBufferPerConnection: receiveBytes, MaxReceiveBufferPerStream: receiveBytes,
		},
	}
}

// now returns the time in Unix milliseconds.
func (s *Server) now() int64 { return s.clock().UnixMilli() }
