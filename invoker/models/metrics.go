package models

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/metrics"
)

// The outcomes of requests, for the metrics.
const (
	outcomeServed  = "success"
	outcomeLimited = "rate_limited"
	outcomeLoad    = "overloaded"
	outcomeFailing = "failed"
	outcomeRefused = "refused"
	outcomeEnded   = "not_sent"
)

// counters are the metrics of a Client.
type counters struct {
	requests *prometheus.CounterVec
	tokens   *prometheus.CounterVec
}

func newCounters() *counters {
	c := &counters{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "ai_requests_total",
			Help: "Requests of cs.ai to providers of models, by outcome.",
		}, []string{"outcome"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "ai_tokens_total",
			Help: "Tokens that calls of cs.ai have used, by kind.",
		}, []string{"kind"}),
	}
	for _, outcome := range []string{outcomeServed, outcomeLimited, outcomeLoad, outcomeFailing, outcomeRefused, outcomeEnded} {
		c.requests.WithLabelValues(outcome)
	}
	return c
}

// Register registers the metrics of c; nil stands for nowhere.
func (c *Client) Register(registry prometheus.Registerer) error {
	return metrics.Register(registry, c.metrics.requests, c.metrics.tokens)
}

// ended counts a request; f is nil unless the provider failed.
func (c *counters) ended(err error, f *failure) {
	outcome := outcomeEnded
	switch {
	case err == nil:
		outcome = outcomeServed
	case f != nil:
		outcome = [...]string{rateLimited: outcomeLimited, overloaded: outcomeLoad, failing: outcomeFailing, refused: outcomeRefused}[f.kind]
	}
	c.requests.WithLabelValues(outcome).Inc()
}

// spent counts tokens.
func (c *counters) spent(u *agent.Usage) {
	for kind, n := range map[string]int64{"input": u.InputTokens, "output": u.OutputTokens, "cache_creation": u.CacheCreationTokens, "cache_read": u.CacheReadTokens} {
		c.tokens.WithLabelValues(kind).Add(float64(n))
	}
}
