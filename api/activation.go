package api

import (
	"encoding/json"
)

// Status is the status of an activation. An activation is queued and running in turns
// until it reaches a terminal status, which never changes:
//
//	synchronous    running → success, error, timeout or cancelled
//	asynchronous   queued → running → success, or queued again for a retry, or a terminal one
type Status string

// The statuses; those from StatusSuccess on are terminal.
const (
	StatusQueued    Status = "queued"
	StatusRunning   Status = "running"
	StatusSuccess   Status = "success"
	StatusError     Status = "error"
	StatusTimeout   Status = "timeout"
	StatusCancelled Status = "cancelled"
)

// Terminal reports whether the status is final.
func (s Status) Terminal() bool { return s != StatusQueued && s != StatusRunning }

// Trigger describes the cause of an invocation. The shape of Source depends on Type:
// CallSource, ScheduleSource and CadenceSource are three of them.
type Trigger struct {
	Type   string          `json:"type"`
	Source json.RawMessage `json:"source,omitempty"`
}

// The trigger types.
const (
	TriggerHTTP     = "http"
	TriggerAPI      = "api"
	TriggerSchedule = "schedule"
	TriggerCadence  = "cadence"
	TriggerQueue    = "queue"
)

// Principal identifies the caller of an invocation: the id of its API key and its roles.
// Functions see it in their context. Schedules, bindings and jobs store it.
type Principal struct {
	Sub   string   `json:"sub"`
	Roles []string `json:"roles"`
}

// ErrorType classifies how an activation failed.
type ErrorType string

// The error types.
const (
	ErrException      ErrorType = "Exception"
	ErrTimeout        ErrorType = "Timeout"
	ErrMemoryLimit    ErrorType = "MemoryLimit"
	ErrCPULimit       ErrorType = "CPULimit"
	ErrSandboxCrash   ErrorType = "SandboxCrash"
	ErrLost           ErrorType = "Lost"
	ErrUnsettled      ErrorType = "Unsettled"
	ErrResultInvalid  ErrorType = "ResultInvalid"
	ErrResultTooLarge ErrorType = "ResultTooLarge"
	ErrExpired        ErrorType = "Expired"
	ErrRefused        ErrorType = "Refused"
)

// ActivationError describes why an activation failed. Code is the code property of the
// error that the function threw, "" without one.
type ActivationError struct {
	Type    ErrorType `json:"type"`
	Message string    `json:"message"`
	Stack   string    `json:"stack,omitempty"`
	Code    string    `json:"code,omitempty"`
}

// Bytes returns the size of the message and the stack, 0 for no error.
func (e *ActivationError) Bytes() int {
	if e == nil {
		return 0
	}
	return len(e.Message) + len(e.Stack)
}

// Limits of an activation. A result of up to MaxResultBytes is returned to the caller,
// up to MaxStoredResultBytes of it are stored, and up to MaxInlineResultBytes within
// the record. ActivationTTLMS is how long the record is kept
// after its last write, unless a retention is set.
const (
	MaxResultBytes       = 6 << 20
	MaxStoredResultBytes = 256 << 10
	MaxStreamBytes       = 256 << 20 // of a streamed answer
	MaxSentBytes         = 1 << 30   // of all that a function passes to the server, but a streamed answer
	MaxInlineResultBytes = 4 << 10
	MaxErrorMessageBytes = 64 << 10
	MaxErrorStackBytes   = 8 << 10
	MaxErrorCodeBytes    = 128
	MaxLogBytes          = 1 << 20
	LogChunkBytes        = 64 << 10
	ActivationTTLMS      = 7 * 24 * 60 * 60 * 1000
	LostGraceMS          = 10_000
)

// Activation is the record of one invocation; docs/storage.md lists its fields.
//
// An activation with a JobID is asynchronous. Its StartMS is the time at which it was
// accepted, Attempt the current or last attempt (0: none yet), and DurationMS the
// duration of that attempt (0: it has not ended, or did not end by itself). While it is
// queued for a retry, Error describes why the last attempt failed.
//
// Result is absent while the function runs, if the handler returned undefined, and in
// lists. EgressBytes are those that the activation sent and received by fetch and WebSocket.
// Of a streamed answer it has the status and the headers; StreamBytes is the size of
// its body, and FirstByteMS the time to the first of them. If ResultTruncated is set, Result is a JSON string with the first
// MaxStoredResultBytes of the result's text.
type Activation struct {
	ActivationID    string           `json:"activation_id"`
	Tenant          string           `json:"tenant"`
	Namespace       string           `json:"namespace"`
	Function        string           `json:"function"`
	Ref             Ref              `json:"ref"`
	Trigger         Trigger          `json:"trigger"`
	Status          Status           `json:"status"`
	StartMS         int64            `json:"start_ms"`
	EndMS           int64            `json:"end_ms,omitempty"`
	DurationMS      int64            `json:"duration_ms"`
	DeadlineMS      int64            `json:"deadline_ms"`
	Attempt         int              `json:"attempt"`
	JobID           string           `json:"job_id,omitempty"`
	RetryOf         string           `json:"retry_of,omitempty"`
	RequestID       string           `json:"request_id,omitempty"`
	Result          json.RawMessage  `json:"result,omitempty"`
	ResultTruncated bool             `json:"result_truncated"`
	LogsTruncated   bool             `json:"logs_truncated"`
	ColdStart       bool             `json:"cold_start"`
	CPUMS           float64          `json:"cpu_ms"`
	MemoryPeakBytes int64            `json:"memory_peak_bytes"`
	EgressBytes     int64            `json:"egress_bytes,omitempty"`
	StreamBytes     int64            `json:"stream_bytes,omitempty"`
	FirstByteMS     float64          `json:"first_byte_ms,omitempty"`
	Error           *ActivationError `json:"error"`
}

// FailureCode returns the code for the way in which a terminal activation failed, ""
// for a success.
func (a *Activation) FailureCode() Code {
	switch a.Status {
	case StatusSuccess:
		return ""
	case StatusTimeout:
		return CodeRuntimeTimeout
	case StatusCancelled:
		return CodeRuntimeCancelled
	}
	if a.Error != nil {
		switch a.Error.Type {
		case ErrMemoryLimit:
			return CodeRuntimeMemoryLimit
		case ErrCPULimit:
			return CodeRuntimeCPULimit
		case ErrResultTooLarge:
			return CodeRuntimeResultTooLarge
		case ErrTimeout:
			return CodeRuntimeTimeout
		}
	}
	return CodeRuntimeException
}

// Lost reports whether the replica that ran the activation must have died: it is
// running, has no job that would be retried, and is LostGraceMS past its deadline. A live
// replica ends it at the deadline.
func (a *Activation) Lost(nowMS int64) bool {
	return a.Status == StatusRunning && a.JobID == "" && nowMS > a.DeadlineMS+LostGraceMS
}

// LogLine is one line of an activation's log. Message is any JSON value, usually a
// string.
type LogLine struct {
	TSMS    int64           `json:"ts_ms"`
	Level   string          `json:"level"`
	Message json.RawMessage `json:"message"`
	Attempt int             `json:"attempt"`
}
