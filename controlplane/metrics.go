package controlplane

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
)

// serverMetrics is what a Server counts. docs/metrics.md says what each metric
// means. No label value comes from a request: routes are the router's patterns,
// and what is not known to HTTP is metrics.Other.
type serverMetrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inFlight  prometheus.Gauge

	counted metrics.Memo[answerKey, prometheus.Counter]
	timed   metrics.Memo[string, prometheus.Observer]
}

// answerKey is what an answer is counted under.
type answerKey struct {
	route, method string
	status        int
}

// requestSeconds are the bounds of the buckets of an answer's duration.
var requestSeconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// knownMethods have a label value of their own.
var knownMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

func newServerMetrics() *serverMetrics {
	return &serverMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "http_requests_total",
			Help: "Answered requests, by route, method and status; status 0 is a connection that was cut in place of an answer.",
		}, []string{"route", "method", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "http_request_duration_seconds",
			Help: "How long answers took, from the request's header to the answer's end.", Buckets: requestSeconds,
		}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "http_requests_in_flight",
			Help: "Requests that are being answered, followed logs included.",
		}),
	}
}

// register exports the metrics of s.
func (m *serverMetrics) register(reg prometheus.Registerer, s *Server) error {
	collectors := []prometheus.Collector{m.requests, m.durations, m.inFlight, s.auth.results}
	if keys := s.auth.keys; keys != nil {
		collectors = append(collectors, metrics.NewCache("keys", keys.known), metrics.NewCache("wrong_keys", keys.wrong))
	}
	return metrics.Register(reg, collectors...)
}

// begin counts a request that arrived; its answer is counted by the function that
// it gives, even where the handler panics.
func (m *serverMetrics) begin(w *trackedWriter, method string) (end func()) {
	began := time.Now()
	m.inFlight.Inc()
	return func() {
		m.inFlight.Dec()
		key := answerKey{route: w.route, method: method, status: w.status}
		if key.route == "" {
			key.route = metrics.Other
		}
		if !slices.Contains(knownMethods, method) {
			key.method = metrics.Other
		}
		if http.StatusText(key.status) == "" && key.status != 0 {
			key.status = -1 // a function's own invention
		}
		m.counted.Get(key, m.counter).Inc()
		m.timed.Get(key.route, func(route string) prometheus.Observer { return m.durations.WithLabelValues(route) }).Observe(time.Since(began).Seconds())
	}
}

func (m *serverMetrics) counter(key answerKey) prometheus.Counter {
	code := metrics.Other
	if key.status >= 0 {
		code = strconv.Itoa(key.status)
	}
	return m.requests.WithLabelValues(key.route, key.method, code)
}

// routeWeb is the route of all functions' endpoints.
var routeWeb = strings.TrimSuffix(webPrefix, "/")

// nameRoute remembers which of the router's patterns a request matched.
func nameRoute(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		defer func() { // after the router has looked, and also of a handler that panics
			if x != nil && x.code != api.CodeRouteNotFound && x.code != api.CodeMethodNotAllowed {
				x.answer.route = chi.RouteContext(r.Context()).RoutePattern()
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// The results of an authentication.
const (
	authOK          = "ok"
	authMissing     = "missing"     // no key where one is needed
	authInvalid     = "invalid"     // unknown, malformed, expired or revoked
	authUnavailable = "unavailable" // the store does not say
	authOff         = "off"         // there are no keys
	authPublic      = "public"      // a public endpoint: no key was looked at
)

func newAuthentications() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metrics.Namespace, Name: "authentications_total",
		Help: "Requests by what was found out of their caller.",
	}, []string{"result"})
}

// authResult is what an authentication that ended with err is counted as.
func authResult(mode AuthMode, err error) string {
	switch {
	case err == nil && mode == AuthOff:
		return authOff
	case err == nil:
		return authOK
	}
	switch api.ErrorCode(err) {
	case api.CodeAuthnRequired:
		return authMissing
	case api.CodeAuthnInvalid:
		return authInvalid
	}
	return authUnavailable
}
