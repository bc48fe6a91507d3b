// Package agent has the vocabulary of jobs that run in iterations, and of what they spend on models:
// their options and limits, their iterations, usage, prices and sums. Amounts are USD, which has no
// floating point.
package agent

import (
	"encoding/json"
	"strconv"
)

// Bounds of iterations.
const (
	DefaultMaxIterations = 1000
	MaxIterations        = 100_000
	KeptIterations       = 100 // of a job, the last ones
	MaxTraceBytes        = 64 << 10
	MaxResultBytes       = 64 << 10 // of an iteration; that of a job may be larger
	MinTimeoutMS         = 1_000
	MaxTimeoutMS         = 12 * 60 * 60 * 1000
)

// What happens to a job that reaches a limit.
const (
	OnLimitFail = "fail" // it is dead; the default
	OnLimitHold = "hold" // it is held: each approval allows one more iteration
)

// Why a job is dead that has reached a limit of its Options.
const (
	DeadIterations = "iterations"
	DeadCost       = "cost"
	DeadTimeout    = "iteration_timeout"
)

// Options make a job run in iterations, each of which ends with an ack that has continue or hold.
// Zero values: MaxIterations DefaultMaxIterations, MaxCostUSD no limit, IterationTimeoutMS no limit,
// OnLimit OnLimitFail.
type Options struct {
	MaxIterations      int64  `json:"max_iterations,omitempty"`
	MaxCostUSD         USD    `json:"max_cost_usd,omitempty"`
	IterationTimeoutMS int64  `json:"iteration_timeout_ms,omitempty"`
	OnLimit            string `json:"on_limit,omitempty"`
}

// Check returns the path and the rule of the first field that is out of its range, "" for none. o may
// be nil.
func (o *Options) Check() (path, rule string) {
	switch {
	case o == nil:
	case o.MaxIterations < 0 || o.MaxIterations > MaxIterations:
		return "agent.max_iterations", "must be from 1 to " + strconv.Itoa(MaxIterations)
	case !o.MaxCostUSD.valid():
		return "agent.max_cost_usd", usdRule
	case o.IterationTimeoutMS != 0 && (o.IterationTimeoutMS < MinTimeoutMS || o.IterationTimeoutMS > MaxTimeoutMS):
		return "agent.iteration_timeout_ms", "must be from 1000 to " + strconv.Itoa(MaxTimeoutMS)
	case o.OnLimit != "" && o.OnLimit != OnLimitFail && o.OnLimit != OnLimitHold:
		return "agent.on_limit", "must be fail or hold"
	}
	return "", ""
}

// Iterations returns the largest number of iterations.
func (o *Options) Iterations() int64 {
	if o.MaxIterations == 0 {
		return DefaultMaxIterations
	}
	return o.MaxIterations
}

// How an iteration ended, or that it has not.
const (
	IterationRunning   = "running"   // it has begun and not ended; an attempt may have failed
	IterationContinued = "continued" // by an ack with continue
	IterationHeld      = "held"      // by an ack with hold, or by a limit
	IterationCompleted = "completed" // with the job
	IterationFailed    = "failed"    // with the job, which is dead
	IterationCancelled = "cancelled" // with the job
)

// Iteration is a part of a job between two acks with continue or hold. WorkerID, LeaseEpoch and the
// times are those of the attempt that ended it, or of its last one. Model and Provider are those of
// the last usage; Usage has the sums of each phase, provider and model.
type Iteration struct {
	Iteration   int64           `json:"iteration"`
	Status      string          `json:"status" enum:"running,continued,held,completed,failed,cancelled"`
	Attempt     int             `json:"attempt"`
	LeaseEpoch  int64           `json:"lease_epoch"`
	WorkerID    string          `json:"worker_id,omitempty"`
	StartedAtMS int64           `json:"started_at_ms,omitempty"`
	EndedAtMS   int64           `json:"ended_at_ms,omitempty"`
	HoldReason  string          `json:"hold_reason,omitempty"`
	Checkpoint  json.RawMessage `json:"checkpoint,omitempty"`
	Trace       json.RawMessage `json:"trace,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Model       string          `json:"model,omitempty"`
	Provider    string          `json:"provider,omitempty"`
	Sums
	Usage []Line `json:"usage,omitempty"`
}
