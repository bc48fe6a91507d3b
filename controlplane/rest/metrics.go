package rest

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
)

// serverMetrics are the metrics of a Server; docs/metrics.md describes them. Label
// values never come from a request: routes are the router's patterns, and methods that
// HTTP does not define are metrics.Other.
type serverMetrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inFlight  prometheus.Gauge
	refused   *prometheus.CounterVec

	counted metrics.Memo[answerKey, prometheus.Counter]
	timed   metrics.Memo[string, prometheus.Observer]
}

// answerKey holds the labels of an answer.
type answerKey struct {
	route, method string
	status        int
}

// requestSeconds are the bucket bounds of an answer's duration.
var requestSeconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// knownMethods are the methods with a label value of their own.
var knownMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

func newServerMetrics() *serverMetrics {
	m := &serverMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "http_requests_total",
			Help: "Answered requests, by route, method and status; status 0 is a connection that was cut instead of an answer.",
		}, []string{"route", "method", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "http_request_duration_seconds",
			Help: "Time from a request's header to the end of its answer.", Buckets: requestSeconds,
		}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "http_requests_in_flight",
			Help: "Requests that are being answered, including followed logs.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "http_refused_total",
			Help: "Requests refused to protect the replica or other callers, by reason.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{refusedLoad, refusedBytes, refusedWaits, refusedConnection, refusedSlowBody} {
		m.refused.WithLabelValues(reason)
	}
	return m
}

// refuse counts a request that is refused with err, and returns err.
func (m *serverMetrics) refuse(reason string, err error) error {
	m.refused.WithLabelValues(reason).Inc()
	return err
}

// admissionCollectors returns the metrics of the budget and of the limiter.
func (s *Server) admissionCollectors() []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: metrics.Namespace, Name: name, Help: help}, value)
	}
	return []prometheus.Collector{
		gauge("http_held_bytes", "Bytes of request bodies and answers in memory.", func() float64 { return float64(s.budget.Used()) }),
		gauge("http_held_bytes_max", "Maximum number of these bytes.", func() float64 { return float64(s.budget.Limit()) }),
		gauge("http_working_requests", "Requests in which the platform is at work: no function of theirs runs, and they do not wait for events.", func() float64 { return float64(s.limiter.InFlight()) }),
		gauge("http_working_requests_max", "Number of these requests beyond which further ones are refused; it falls under overload.", func() float64 { return float64(s.limiter.Limit()) }),
	}
}

// collectors returns the metrics, to be registered.
func (m *serverMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.durations, m.inFlight, m.refused}
}

// begin counts a request that arrived. The function that it returns counts the answer,
// even after a panic of the handler.
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

// counter returns the counter of an answer's labels.
func (m *serverMetrics) counter(key answerKey) prometheus.Counter {
	code := metrics.Other
	if key.status >= 0 {
		code = strconv.Itoa(key.status)
	}
	return m.requests.WithLabelValues(key.route, key.method, code)
}

// nameRoute records the pattern that a request matched, for metrics and traces.
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
