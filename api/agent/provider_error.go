package agent

// The kinds of failures of a provider.
const (
	FailureRateLimit  = "rate_limit" // the provider refuses calls beyond its limits
	FailureOverloaded = "overloaded" // it refuses calls for its load
	FailureError      = "error"      // anything else, such as an answer of 500 or a broken connection
)

// MaxRetryAfterMS bounds the time for which a provider asks.
const MaxRetryAfterMS = 600_000

// ProviderError is a failure of a provider of models that a worker has met. A rate limit or an overload
// opens the circuit of the provider for all workers at once, an error the third one in a row.
type ProviderError struct {
	Provider     string `json:"provider" doc:"the provider of the fetched job"`
	Kind         string `json:"kind" enum:"rate_limit,overloaded,error"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty" doc:"how long the provider asks to wait"`
}

// Check returns the first member that is not valid, and the rule for it; "" if all are.
func (e *ProviderError) Check() (field, rule string) {
	switch {
	case e.Provider == "" || len(e.Provider) > MaxNameLength:
		return "provider_error.provider", "must name a provider"
	case e.Kind != FailureRateLimit && e.Kind != FailureOverloaded && e.Kind != FailureError:
		return "provider_error.kind", "must be rate_limit, overloaded or error"
	case e.RetryAfterMS < 0 || e.RetryAfterMS > MaxRetryAfterMS:
		return "provider_error.retry_after_ms", "must be from 0 to 600000"
	}
	return "", ""
}
