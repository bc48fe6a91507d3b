package api

import (
	"encoding/json"
	"iter"
	"time"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/approval"
)

// JobState is the state of a job. The table of transitions is in
// queue/internal/jobstore/states.go.
type JobState string

// The states; the last three are terminal.
const (
	JobWaiting   JobState = "waiting"   // for the jobs that it depends on
	JobScheduled JobState = "scheduled" // for its time
	JobHeld      JobState = "held"      // for approval by an operator
	JobPending   JobState = "pending"   // for a worker
	JobActive    JobState = "active"    // under a worker's lease
	JobRetrying  JobState = "retrying"  // for its backoff
	JobCompleted JobState = "completed"
	JobDead      JobState = "dead"
	JobCancelled JobState = "cancelled"
)

// JobStates returns all states in the order of a job's life.
func JobStates() []JobState {
	return []JobState{JobWaiting, JobScheduled, JobHeld, JobPending, JobActive, JobRetrying, JobCompleted, JobDead, JobCancelled}
}

// Terminal reports whether the job has ended: only an operator can bring it back.
func (s JobState) Terminal() bool {
	return s == JobCompleted || s == JobDead || s == JobCancelled
}

// Priority is the priority of a job within its queue.
type Priority string

// The priorities, first served first.
const (
	PriorityCritical Priority = "critical"
	PriorityHigh     Priority = "high"
	PriorityNormal   Priority = "normal" // the default
	PriorityLow      Priority = "low"
)

// Priorities returns all priorities, first served first.
func Priorities() []Priority {
	return []Priority{PriorityCritical, PriorityHigh, PriorityNormal, PriorityLow}
}

// Backoff is the strategy by which the delay before a retry grows.
type Backoff string

// The backoff strategies; after attempt n the delay is:
const (
	BackoffNone        Backoff = "none"        // 0
	BackoffFixed       Backoff = "fixed"       // base
	BackoffLinear      Backoff = "linear"      // base × n
	BackoffExponential Backoff = "exponential" // base × 2^(n−1), the default
)

// Why a job is dead.
const (
	DeadFatal      = "fatal"      // its worker reported that retries are useless
	DeadCrashed    = "crashed"    // its workers kept dying
	DeadExpired    = "expired"    // its expire_at passed
	DeadRejected   = "rejected"   // it was held and rejected
	DeadDependency = "dependency" // a job that it depends on did not complete
	DeadAttempts   = "attempts"   // every attempt failed
)

// What happens to a job if one that it depends on ends without completing.
const (
	DependencyFail     = "fail"     // it becomes dead too; the default
	DependencyContinue = "continue" // as if it had completed
	DependencyHold     = "hold"     // it is held
)

// Defaults and bounds of jobs.
const (
	DefaultMaxAttempts    = 4
	MaxMaxAttempts        = 1000
	DefaultBaseDelayMS    = 5_000
	DefaultMaxDelayMS     = 600_000
	MaxDelayMS            = 30 * 24 * 60 * 60 * 1000
	DefaultLeaseMS        = 30_000
	MinLeaseMS            = 1_000
	MaxLeaseMS            = 12 * 60 * 60 * 1000
	JobRetentionMS        = 7 * 24 * 60 * 60 * 1000
	DefaultUniqueTTLMS    = 24 * 60 * 60 * 1000
	MaxUniqueTTLMS        = 30 * 24 * 60 * 60 * 1000
	IdempotencyTTLMS      = 24 * 60 * 60 * 1000
	MaxJobPayloadBytes    = 1 << 20
	MaxJobResultBytes     = 1 << 20
	MaxJobErrorBytes      = 64 << 10
	MaxJobStackBytes      = 8 << 10
	MaxCheckpointBytes    = 256 << 10
	MaxProgressMessage    = 1024 // bytes
	MaxEnqueueJobs        = 1000
	MaxEnqueueBytes       = 8 << 20
	MaxEnqueueSchemas     = 100 // result schemas that differ
	MaxFetchJobs          = 1000
	MaxFetchQueues        = 64
	MaxFetchWaitMS        = 60_000
	MaxSettleJobs         = 1000
	MaxUniqueKeyLength    = 255
	MaxTags               = 32
	MaxTagLength          = 128
	MaxDependencies       = 100
	MaxChainSteps         = 100
	MaxWorkerIDLength     = 128
	FunctionQueuePrefix   = "fn."
	MaxJobScheduleAheadMS = 10 * 365 * 24 * 60 * 60 * 1000
)

// JobOptions is the part of a job that controls when and how it runs. Zero values mean
// the documented defaults.
type JobOptions struct {
	Priority            Priority          `json:"priority,omitempty"`
	RunAtMS             int64             `json:"run_at_ms,omitempty"`
	ExpireAtMS          int64             `json:"expire_at_ms,omitempty"`
	UniqueKey           string            `json:"unique_key,omitempty"`
	UniqueTTLMS         int64             `json:"unique_ttl_ms,omitempty"`
	MaxAttempts         int               `json:"max_attempts,omitempty"`
	Backoff             Backoff           `json:"backoff,omitempty"`
	BaseDelayMS         *int64            `json:"base_delay_ms,omitempty"`
	MaxDelayMS          int64             `json:"max_delay_ms,omitempty"`
	Jitter              bool              `json:"jitter,omitempty"`
	Tags                map[string]string `json:"tags,omitempty"`
	DependsOn           []string          `json:"depends_on,omitempty"`
	OnDependencyFailure string            `json:"on_dependency_failure,omitempty"`
	BatchID             string            `json:"batch_id,omitempty"`
	Hold                bool              `json:"hold,omitempty"`
	ResultSchema        json.RawMessage   `json:"result_schema,omitempty"`
	Chain               *Chain            `json:"chain,omitempty"`
	Target              *JobTarget        `json:"target,omitempty"`
	Agent               *agent.Options    `json:"agent,omitempty"`
	Routing             string            `json:"routing,omitempty" doc:"the provider of models, or the route, that the worker is given; by default that of the queue"`
}

// NewJob is one job of an enqueue. An absent Payload is null.
type NewJob struct {
	Payload json.RawMessage `json:"payload,omitempty"`
	JobOptions
}

// JobTarget names a function by alias or version: that of a job, schedule, queue trigger or
// activity.
type JobTarget struct {
	Function string `json:"function"`
	Alias    string `json:"alias,omitempty"`
	Version  int64  `json:"version,omitempty"`
}

// Chain lists the jobs that follow a job. Each step starts when the previous one has
// completed. OnFailure runs if a step is dead or cancelled, OnExit at the end of the
// chain in any case. A job with the steps B and C:
//
//	A completed, B completed, C completed   then OnExit
//	A completed, B dead                     then OnFailure and OnExit; C never exists
type Chain struct {
	Steps     []ChainStep `json:"steps,omitempty"`
	OnFailure *ChainStep  `json:"on_failure,omitempty"`
	OnExit    *ChainStep  `json:"on_exit,omitempty"`
}

// ChainStep is a job of a chain. An empty Queue means the queue of the previous job.
type ChainStep struct {
	Queue string `json:"queue,omitempty"`
	NewJob
}

// Job is a job with its current state, as the API returns it. Attempt is the number of the
// current or last attempt, 0 before the first; WorkerID, Host and StartedAtMS are its worker, the
// host that the worker named, and its start. StartedAtMS is 0 for attempts that release 0.1.0
// started. Lease is set while the job is active, DueAtMS while it waits for a time, EndedAtMS once
// it has ended. Lists leave out Attempts and Errors.
type Job struct {
	ID        string          `json:"id"`
	Namespace string          `json:"namespace"`
	Queue     string          `json:"queue"`
	Payload   json.RawMessage `json:"payload"`
	JobOptions
	CreatedAtMS int64  `json:"created_at_ms"`
	ParentID    string `json:"parent_id,omitempty"`   // the previous job of the chain, or the job whose outcome this job delivers
	CallbackOf  string `json:"callback_of,omitempty"` // the batch whose callback this is
	ChainID     string `json:"chain_id,omitempty"`    // the chain's first job
	ChainStep   int    `json:"chain_step,omitempty"`
	// ActivationID is the activation that the job runs, "" if it runs none. RetryOf is the
	// activation before an operator's retry of the ended job.
	ActivationID string          `json:"activation_id,omitempty"`
	RetryOf      string          `json:"retry_of,omitempty"`
	Schedule     *JobTick        `json:"schedule,omitempty"` // the tick that made the job
	State        JobState        `json:"state"`
	Attempt      int             `json:"attempt"`
	WorkerID     string          `json:"worker_id,omitempty"`
	Host         string          `json:"host,omitempty"`
	StartedAtMS  int64           `json:"started_at_ms,omitempty"`
	Lease        *Lease          `json:"lease,omitempty"`
	DueAtMS      int64           `json:"due_at_ms,omitempty"`
	EndedAtMS    int64           `json:"ended_at_ms,omitempty"`
	Progress     json.RawMessage `json:"progress,omitempty"`
	Checkpoint   json.RawMessage `json:"checkpoint,omitempty"`
	Result       json.RawMessage `json:"result,omitempty"`
	HoldReason   string          `json:"hold_reason,omitempty"`
	DeadReason   string          `json:"dead_reason,omitempty"`
	Errors       []JobError      `json:"errors,omitempty"`
	Attempts     []JobAttempt    `json:"attempts,omitempty"`
	StateSinceMS int64           `json:"state_since_ms,omitempty"`
	Iteration    int64           `json:"iteration,omitempty"` // the current or last one, of a job with Agent
	Usage        *agent.Sums     `json:"usage,omitempty"`     // of all iterations

	Approval *approval.Request `json:"approval,omitempty"` // what policies have asked for, and the votes
}

// JobTick is the tick of a schedule that made a job. TickSeq is 0 for a manual run.
type JobTick struct {
	Schedule string `json:"schedule"`
	TickMS   int64  `json:"tick_ms"`
	TickSeq  int64  `json:"tick_seq"`
}

// Lease assigns an active job to a worker until ExpiresMS. A call that settles the job
// must name the lease's epoch; a job's epochs increase with every lease. A worker that was
// frozen past ExpiresMS still names the old epoch, and is refused with CodeJobLeaseLost.
type Lease struct {
	Epoch     int64  `json:"epoch"`
	ExpiresMS int64  `json:"expires_ms"`
	WorkerID  string `json:"worker_id"`
}

// JobError describes why one attempt failed.
type JobError struct {
	Attempt int    `json:"attempt"`
	Error   string `json:"error"`
	Stack   string `json:"stack,omitempty"`
	AtMS    int64  `json:"at_ms"`
}

// The outcomes of attempts.
const (
	AttemptRunning   = "running"
	AttemptCompleted = "completed"
	AttemptFailed    = "failed"    // its worker reported an error
	AttemptLost      = "lost"      // its lease ran out
	AttemptSnoozed   = "snoozed"   // its worker postponed the job: it does not count
	AttemptReleased  = "released"  // its worker had not begun, and gave the job back: it does not count
	AttemptContinued = "continued" // by an ack with continue, after which attempts are counted from 1
	AttemptHeld      = "held"      // by an ack with hold, after which attempts are counted from 1
	AttemptCancelled = "cancelled" // the job was cancelled
)

// JobAttempt is one lease of a job: the time in which a worker had it. Attempt is the count at that
// time, which an attempt that does not count repeats; LeaseEpoch identifies the attempt. A job has
// its last 100 attempts, oldest first. Error has at most 256 bytes: the job's errors have all of
// it. Code is set for attempts that the platform ended. Attempts that ended under an earlier
// release have no worker and no start, and those that did not fail are missing.
type JobAttempt struct {
	Attempt     int    `json:"attempt"`
	LeaseEpoch  int64  `json:"lease_epoch"`
	WorkerID    string `json:"worker_id,omitempty"`
	Host        string `json:"host,omitempty"`
	StartedAtMS int64  `json:"started_at_ms,omitempty"`
	EndedAtMS   int64  `json:"ended_at_ms,omitempty"`
	Outcome     string `json:"outcome"`
	Code        Code   `json:"code,omitempty"`
	Error       string `json:"error,omitempty"`
}

// JobProgress is a worker's report of its progress.
type JobProgress struct {
	Current int64  `json:"current"`
	Total   int64  `json:"total,omitempty"`
	Message string `json:"message,omitempty"`
}

// EnqueuedJob is the result for one job of an enqueue. If Duplicate is set, another job
// has the unique key, and ID is that job.
type EnqueuedJob struct {
	ID        string   `json:"id"`
	State     JobState `json:"state"`
	Duplicate bool     `json:"duplicate"`
	// Replayed is set if the whole call is a repeat under its idempotency key.
	Replayed bool `json:"-"`
}

// FetchedJob is a job that is leased to a worker.
type FetchedJob struct {
	ID             string            `json:"id"`
	Namespace      string            `json:"namespace"`
	Queue          string            `json:"queue"`
	Payload        json.RawMessage   `json:"payload"`
	Attempt        int               `json:"attempt"`
	MaxAttempts    int               `json:"max_attempts"`
	LeaseEpoch     int64             `json:"lease_epoch"`
	LeaseExpiresMS int64             `json:"lease_expires_ms"`
	Checkpoint     json.RawMessage   `json:"checkpoint,omitempty"`
	Tags           map[string]string `json:"tags,omitempty"`
	ParentID       string            `json:"parent_id,omitempty"`
	CallbackOf     string            `json:"callback_of,omitempty"` // the batch whose callback this is
	Provider       string            `json:"provider,omitempty"`    // of models, as the routing of the job or of its queue chose it
	Model          string            `json:"model,omitempty"`       // that the worker should ask, "" if the provider names none
	CreatedAtMS    int64             `json:"created_at_ms"`
	// Spec is the job's complete spec, for the platform's own workers.
	Spec *JobSpec `json:"-"`
}

// RunningJob describes to a function the job that it runs for.
type RunningJob struct {
	ID          string `json:"id"`
	Queue       string `json:"queue"`
	Attempt     int    `json:"attempt"`
	MaxAttempts int    `json:"max_attempts"`
	CreatedAtMS int64  `json:"created_at_ms"`
}

// MessageBatch is the event of an activation that handles several jobs of a queue.
type MessageBatch struct {
	Queue    string         `json:"queue"`
	Messages []QueueMessage `json:"messages"`
}

// QueueMessage is a job as the handler queue sees it.
type QueueMessage struct {
	ID          string          `json:"id"`
	CreatedAtMS int64           `json:"created_at_ms"`
	Attempt     int             `json:"attempt"`
	Body        json.RawMessage `json:"body"`
}

// MessageVerdict is what a handler decided about a job. Without a decision the job completes
// if the activation succeeds, and its attempt fails otherwise.
type MessageVerdict struct {
	Acked   bool   // the job is complete
	Retried bool   // the attempt has failed
	DelayMS *int64 // until the next attempt, at most MaxMessageRetryMS; nil for the backoff
	Reason  string // of the retry, at most MaxRetryReasonBytes; "" if the handler gave none
}

// MaxRetryReasonBytes bounds the reason of the retry that a function asks for.
const MaxRetryReasonBytes = 1024

// RetryText returns the message of the error of an attempt whose handler asked for a retry.
func (v *MessageVerdict) RetryText() string {
	const asked = "the handler asked for a retry of the message"
	if v.Reason == "" {
		return asked
	}
	return asked + ": " + v.Reason
}

// MaxMessageRetryMS bounds the delay of the retry that a function asks for, in milliseconds: 12
// hours.
const MaxMessageRetryMS = 12 * 60 * 60 * 1000

// FetchRequest is the body of POST T/jobs:fetch. Queues are searched in order. Zero values:
// Count 1, LeaseMS DefaultLeaseMS, WaitMS no wait.
type FetchRequest struct {
	Namespace string   `json:"namespace"`
	Queues    []string `json:"queues"`
	WorkerID  string   `json:"worker_id"`
	Count     int      `json:"count,omitempty"`
	LeaseMS   int64    `json:"lease_ms,omitempty"`
	WaitMS    int64    `json:"wait_ms,omitempty"`
	Hostname  string   `json:"hostname,omitempty"`
	Version   string   `json:"version,omitempty"`
}

// JobAck settles an attempt that succeeded. Continue makes the job pending again, a
// Hold that is not empty holds it for approval with that reason; without either it is
// completed. Trace is kept with the iteration that the ack ends, see agent.Iteration.
type JobAck struct {
	ID         string          `json:"id"`
	LeaseEpoch int64           `json:"lease_epoch"`
	Result     json.RawMessage `json:"result,omitempty"`
	Continue   bool            `json:"continue,omitempty"`
	Hold       string          `json:"hold,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
	Trace      json.RawMessage `json:"trace,omitempty"`
	Usage      []agent.Usage   `json:"usage,omitempty"`
}

// JobFail settles an attempt that failed. RetryAfterMS replaces the backoff, SnoozeMS
// retries the job without counting the attempt, Fatal makes it dead.
type JobFail struct {
	ID           string        `json:"id"`
	LeaseEpoch   int64         `json:"lease_epoch"`
	Error        string        `json:"error"`
	Stack        string        `json:"stack,omitempty"`
	RetryAfterMS *int64        `json:"retry_after_ms,omitempty"`
	SnoozeMS     *int64        `json:"snooze_ms,omitempty"`
	Fatal        bool          `json:"fatal,omitempty"`
	Usage        []agent.Usage `json:"usage,omitempty"`
	// ProviderError retries the job at another target of its routing, without counting the attempt.
	ProviderError *agent.ProviderError `json:"provider_error,omitempty"`
}

// JobHeartbeat extends a lease by LeaseMS (0: DefaultLeaseMS) from now.
type JobHeartbeat struct {
	ID         string          `json:"id"`
	LeaseEpoch int64           `json:"lease_epoch"`
	LeaseMS    int64           `json:"lease_ms,omitempty"`
	Progress   *JobProgress    `json:"progress,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
	Usage      []agent.Usage   `json:"usage,omitempty"`
}

// JobOutcome is the result for one job of an ack, a fail or a heartbeat, in the order
// of the request. State distinguishes a cancelled job from a lost lease.
type JobOutcome struct {
	ID             string   `json:"id"`
	OK             bool     `json:"ok"`
	Code           Code     `json:"code,omitempty"`
	Message        string   `json:"message,omitempty"`
	State          JobState `json:"state,omitempty"`
	LeaseExpiresMS int64    `json:"lease_expires_ms,omitempty"`
}

// Rank returns 0 for the priority that is served first, and -1 for an unknown one.
func (p Priority) Rank() int {
	switch p {
	case PriorityCritical:
		return 0
	case PriorityHigh:
		return 1
	case "", PriorityNormal:
		return 2
	case PriorityLow:
		return 3
	}
	return -1
}

// Ref returns the alias or version that the target names.
func (t *JobTarget) Ref() Ref { return Ref{Alias: t.Alias, Version: t.Version} }

// WithDefaults returns the options with the defaults of empty fields, except for
// OnDependencyFailure: "" means DependencyFail. Options are stored without defaults, so that a
// spec is small.
func (o JobOptions) WithDefaults() JobOptions {
	if o.Priority == "" {
		o.Priority = PriorityNormal
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = DefaultMaxAttempts
	}
	if o.Backoff == "" {
		o.Backoff = BackoffExponential
	}
	if o.BaseDelayMS == nil {
		base := int64(DefaultBaseDelayMS)
		o.BaseDelayMS = &base
	}
	if o.MaxDelayMS == 0 {
		o.MaxDelayMS = DefaultMaxDelayMS
	}
	if o.UniqueKey != "" && o.UniqueTTLMS == 0 {
		o.UniqueTTLMS = DefaultUniqueTTLMS
	}
	return o
}

// Delay returns the delay after attempt n, which counts from 1. With jitter the delay is
// multiplied by random, which must be in [0, 1). With the defaults (exponential, 5 s, at
// most 600 s) the delays after attempts 1, 2, 3, 4, … are 5 s, 10 s, 20 s, 40 s, ….
func (o *JobOptions) Delay(n int, random float64) time.Duration {
	base, ceiling := int64(DefaultBaseDelayMS), o.MaxDelayMS
	if o.BaseDelayMS != nil {
		base = *o.BaseDelayMS
	}
	if ceiling == 0 {
		ceiling = DefaultMaxDelayMS
	}
	delay := base
	switch o.Backoff {
	case BackoffNone:
		return 0
	case BackoffFixed:
	case BackoffLinear:
		delay = base * int64(n)
	default:
		for i := 1; i < n && delay < ceiling; i++ {
			delay *= 2
		}
	}
	delay = min(delay, ceiling)
	if o.Jitter {
		delay = int64(float64(delay) * random)
	}
	return time.Duration(delay) * time.Millisecond
}

// All yields o and the options of all steps of its chain.
func (o *JobOptions) All() iter.Seq[*JobOptions] {
	return func(yield func(*JobOptions) bool) {
		if !yield(o) || o.Chain == nil {
			return
		}
		for i := range o.Chain.Steps {
			if !yield(&o.Chain.Steps[i].JobOptions) {
				return
			}
		}
		for _, step := range []*ChainStep{o.Chain.OnFailure, o.Chain.OnExit} {
			if step != nil && !yield(&step.JobOptions) {
				return
			}
		}
	}
}
