package api

import (
	"encoding/json"

	"github.com/codesous/sous/api/approval"
)

// JobSpec is the stored part of a job that seldom changes after its enqueue. The part that
// changes is the run; queue/internal/jobstore stores both.
type JobSpec struct {
	Namespace string          `json:"namespace"`
	Queue     string          `json:"queue"`
	Payload   json.RawMessage `json:"payload"`
	JobOptions
	CreatedAtMS int64  `json:"created_at_ms"`
	ParentID    string `json:"parent_id,omitempty"`   // the job that made this one
	CallbackOf  string `json:"callback_of,omitempty"` // the batch whose callback this is
	ChainID     string `json:"chain_id,omitempty"`    // the chain's first job
	ChainStep   int    `json:"chain_step,omitempty"`
	// Score orders the job within its queue; see queue/internal/jobstore/score.go.
	Score int64 `json:"score"`
	// Activation is the part of an asynchronous invocation beside its event; nil for
	// other jobs.
	Activation *AsyncActivation `json:"activation,omitempty"`
	// Schedule is the tick that created the job, nil for other jobs.
	Schedule *ScheduledTick `json:"schedule,omitempty"`
	// By is the client for which the job or its chain runs functions, nil for other jobs and for
	// those of release 0.1.0: a version with a list of roles does not run for these.
	By *JobAuthor `json:"by,omitempty"`
	// Approval is what policies have asked for, nil for a job that no policy and no vote concerned.
	Approval *approval.Request `json:"approval,omitempty"`
}

// JobAuthor is a caller for which jobs run functions later, with the roles that it had then.
type JobAuthor struct {
	Principal Principal `json:"principal"`
	Access    Access    `json:"access,omitempty"`
}

// AsyncActivation is the part of an asynchronous invocation that its job keeps
// beside the event and the target.
type AsyncActivation struct {
	// ActivationID is the activation's id if that is not the job's: an operator's
	// retry of an ended job creates a new activation. RetryOf is the previous one.
	ActivationID string    `json:"activation_id,omitempty"`
	RetryOf      string    `json:"retry_of,omitempty"`
	RetriedAtMS  int64     `json:"retried_at_ms,omitempty"`
	Trigger      Trigger   `json:"trigger"`
	Principal    Principal `json:"principal"`
	Access       Access    `json:"access,omitempty"`
	// AllNamespaces is Invocation.AllNamespaces.
	AllNamespaces bool   `json:"all_namespaces,omitempty"`
	RequestID     string `json:"request_id,omitempty"`
	// Fingerprint is the digest that a repeated call with the idempotency key must
	// have, "" without a key.
	Fingerprint string       `json:"fingerprint,omitempty"`
	OnSuccess   *Destination `json:"on_success,omitempty"`
	OnFailure   *Destination `json:"on_failure,omitempty"`
	// Hops counts the destinations that led here; see MaxDestinationHops.
	Hops int `json:"hops,omitempty"`
	// Traceparent and Tracestate are the W3C trace context that the job's spans
	// continue, "" for none.
	Traceparent string `json:"traceparent,omitempty"`
	Tracestate  string `json:"tracestate,omitempty"`
}

// MaxDestinationHops bounds a chain of destinations: functions can be each other's destination.
const MaxDestinationHops = 16

// ActivationID returns the id of the activation that job id runs, "" if it runs none.
func (s *JobSpec) ActivationID(id string) string {
	switch {
	case s.Target == nil:
		return ""
	case s.Activation != nil && s.Activation.ActivationID != "":
		return s.Activation.ActivationID
	}
	return id
}
