package api

import (
	"encoding/json"
	"strconv"
)

// Status of an activation. It goes queued ⇄ running → a terminal one, and
// nothing leaves a terminal one.
type Status string

// The statuses.
const (
	StatusQueued    Status = "queued"
	StatusRunning   Status = "running"
	StatusSuccess   Status = "success"
	StatusError     Status = "error"
	StatusTimeout   Status = "timeout"
	StatusCancelled Status = "cancelled"
)

// Terminal says whether nothing can change the status any more.
func (s Status) Terminal() bool { return s != StatusQueued && s != StatusRunning }

// Ref names a version of a function, directly or by alias. In a record both are
// set: the alias that was asked for and the version that it meant.
type Ref struct {
	Alias   string `json:"alias,omitempty"`
	Version int64  `json:"version,omitempty"`
}

// String is the alias if there is one, else the version number.
func (r Ref) String() string {
	if r.Alias != "" {
		return r.Alias
	}
	return strconv.FormatInt(r.Version, 10)
}

// Validate refuses a ref that names neither or both of alias and version.
func (r Ref) Validate() error {
	switch {
	case (r.Alias == "") == (r.Version == 0):
		return Errorf(CodeValidation, "ref must have either an alias or a version").
			WithFields(FieldError{Path: "ref", Message: "must have either an alias or a version"})
	case r.Alias != "":
		return ValidateAlias(r.Alias)
	case r.Version < 1 || r.Version > MaxVersion:
		return nameError("version", strconv.FormatInt(r.Version, 10), versionRule)
	}
	return nil
}

// Trigger is what made an invocation; the shape of Source depends on Type.
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

// Principal is who asked for an invocation.
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
	ErrSandboxCrash   ErrorType = "SandboxCrash"
	ErrLost           ErrorType = "Lost"
	ErrUnsettled      ErrorType = "Unsettled"
	ErrResultInvalid  ErrorType = "ResultInvalid"
	ErrResultTooLarge ErrorType = "ResultTooLarge"
	ErrExpired        ErrorType = "Expired"
	ErrRefused        ErrorType = "Refused"
)

// ActivationError is why an activation failed. Code is what the function threw
// with, if its error had one.
type ActivationError struct {
	Type    ErrorType `json:"type"`
	Message string    `json:"message"`
	Stack   string    `json:"stack,omitempty"`
	Code    string    `json:"code,omitempty"`
}

// Limits of what an activation keeps, in bytes, and of its life, in milliseconds.
const (
	MaxResultBytes       = 6 << 20
	MaxStoredResultBytes = 256 << 10
	MaxInlineResultBytes = 4 << 10
	MaxErrorMessageBytes = 64 << 10
	MaxErrorStackBytes   = 8 << 10
	MaxLogBytes          = 1 << 20
	LogChunkBytes        = 64 << 10
	ActivationTTLMS      = 7 * 24 * 60 * 60 * 1000
	LostGraceMS          = 10_000
)

// Activation is the record of one invocation: the seed's fields and those of
// docs/storage.md. One with a JobID is asynchronous: StartMS is when it was
// accepted, Attempt the one that runs or ran last (0: none yet), DurationMS how
// long that took, and Error, while it is queued again, why that failed. Result is absent while it runs, where the handler returned
// undefined, and in lists. Where ResultTruncated is set it is a JSON string: the
// first MaxStoredResultBytes of the result's text.
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
	Error           *ActivationError `json:"error"`
}

// FailureCode says by a code how a terminal activation failed; "" for a success.
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
		case ErrResultTooLarge:
			return CodeRuntimeResultTooLarge
		case ErrTimeout:
			return CodeRuntimeTimeout
		}
	}
	return CodeRuntimeException
}

// Lost says whether a's replica must have died: it runs without a job past its
// deadline and the grace.
func (a *Activation) Lost(nowMS int64) bool {
	return a.Status == StatusRunning && a.JobID == "" && nowMS > a.DeadlineMS+LostGraceMS
}

// LogLine is one line of an activation's log. Message is a JSON string or any
// other JSON value. ID is the line's place, for cursors and Last-Event-ID.
type LogLine struct {
	TSMS    int64           `json:"ts_ms"`
	Level   string          `json:"level"`
	Message json.RawMessage `json:"message"`
	Attempt int             `json:"attempt"`
}
