// Package traffic has the summaries of the calls of functions.
package traffic

import "github.com/codesous/sous/api"

// FunctionCalls is a function with what it serves, and a summary of its latest calls. The
// calls are those that ended since SinceMS, the beginning of the hour 23 hours ago; failures
// are those of them with the status error or timeout. Durations has only buckets with calls,
// the fastest first. P50MS and P99MS are interpolated in Durations, null without calls.
type FunctionCalls struct {
	api.FunctionDetail
	SinceMS     int64            `json:"since_ms"`
	Calls       int64            `json:"calls"`
	Failures    int64            `json:"failures"`
	P50MS       *int64           `json:"p50_ms"`
	P99MS       *int64           `json:"p99_ms"`
	Durations   []DurationCount  `json:"durations"`
	LastFailure *FunctionFailure `json:"last_failure"`
}

// DurationCount is the number of calls that took less than BelowMS, and at least half of it.
type DurationCount struct {
	BelowMS int64 `json:"below_ms"`
	Calls   int64 `json:"calls"`
}

// FunctionFailure is the last failed activation of a function. Its message is shortened to
// MaxMessageBytes.
type FunctionFailure struct {
	AtMS         int64         `json:"at_ms"`
	ActivationID string        `json:"activation_id"`
	Status       api.Status    `json:"status"`
	Type         api.ErrorType `json:"type"`
	Message      string        `json:"message"`
}

// MaxMessageBytes bounds the message of a FunctionFailure.
const MaxMessageBytes = 256
