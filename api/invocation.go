package api

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/step"
)

// Invocation is a call of a function, as every trigger passes it to the engine.
type Invocation struct {
	Tenant    string
	Namespace string
	Function  string
	Ref       Ref // alias or version
	Trigger   Trigger
	Principal Principal
	// Access is the access that Principal was granted. The zero value allows only
	// public HTTP endpoints.
	Access    Access
	Event     json.RawMessage // valid JSON
	RequestID string
	// IdempotencyKey makes the invocation safe to repeat; "" for none.
	IdempotencyKey string
	// IdempotencyScope separates callers that Principal does not tell apart: the same key
	// in another scope is another key. "" where Principal identifies the caller.
	IdempotencyScope string
	// Fingerprint identifies the request of an IdempotencyKey: a repeat must have the
	// same one. Empty means Event.
	Fingerprint []byte
	// MaxTimeout bounds the version's timeout; zero means no bound.
	MaxTimeout time.Duration
	// ActivationID is the activation's id if the caller derived it from the cause of
	// the invocation: the first call that writes the record runs the function, a
	// repeat gets that record's outcome. "" creates a new id.
	ActivationID string
	// Attempt is the number of the attempt, from 1; 0 means 1.
	Attempt int
	// Deadline is the caller's deadline; zero means none.
	Deadline time.Time
	// WaitForSlot waits for a free slot until Deadline instead of failing with
	// CodeConcurrencyLimit or CodeCapacityLimit.
	WaitForSlot bool
	// Started is called when the function starts; it may be nil.
	Started func()
	// OwnWait is called when the invocation begins to wait for others of its tenant; it may be
	// nil.
	OwnWait func()
	// Heartbeat receives the details of heartbeats (JSON, empty for none), and
	// LastHeartbeat is the last details of the previous attempt. Only the trigger
	// cadence sets them.
	Heartbeat     func(details json.RawMessage) error
	LastHeartbeat json.RawMessage
	// AllNamespaces is set if the caller may invoke in every namespace of the tenant,
	// not only in this one.
	AllNamespaces bool
	// Early lets Invoke return the handler's answer while the activation still runs,
	// because promises of ctx.waitUntil have not settled. The end of Invoke's ctx does
	// not stop it then.
	Early bool
	// Stream lets Invoke return an answer that the function streams (Outcome.Stream). It
	// requires Early. The end of Invoke's ctx stops the function until the answer has
	// ended.
	Stream bool
	// CheckResult returns why a result is malformed, nil if it is not: the activation
	// ends as ErrResultInvalid with that text. It may be nil.
	CheckResult func(result json.RawMessage) error
	// Messages is the number of jobs that a queue trigger's invocation handles, 0 for none. For
	// one job, Event is its payload and Job is set. For several, Event is a MessageBatch.
	Messages int
	Job      *InvokedJob
	// Callers are the activations that wait for this one by cs.invoke, outermost
	// first.
	Callers []Caller
}

// DerivedID returns the activation id of inv under its IdempotencyKey.
func (inv *Invocation) DerivedID() string {
	if inv.IdempotencyScope == "" {
		return DerivedActivationID(inv.Tenant, inv.Namespace, inv.Function, inv.Ref, inv.IdempotencyKey)
	}
	return derivedID(inv.Tenant, inv.Namespace, inv.Function, inv.Ref.String(), inv.IdempotencyKey, inv.IdempotencyScope)
}

// InvokedJob is the single job that an invocation of a queue trigger handles. Update receives
// its progress and its checkpoints, Run keeps the steps of its run: one of progress and checkpoint is nil. A larger order is
// newer.
type InvokedJob struct {
	RunningJob
	Checkpoint json.RawMessage
	Run        *step.Activation
	Update     func(order int64, progress *JobProgress, checkpoint json.RawMessage)
	// Spend adds what the function uses of models to the job. It returns when it is stored.
	Spend func(ctx context.Context, u agent.Usage) error
}

// Limits of calls by cs.invoke. MaxInvokesAtOnce also bounds the results that are kept
// for a function that does not read them.
const (
	MaxInvokeDepth   = 8 // how deep they nest
	MaxInvokesAtOnce = 8 // of one activation; more of them wait
)

// Caller is an activation that waits for an activation that it invoked.
type Caller struct {
	Namespace, Function string
	Version             int64
	ActivationID        string
}

// CallSource is the source of a trigger of type api whose caller is a function, by
// cs.invoke. Depth is 1 if no other function called the caller.
type CallSource struct {
	ActivationID string `json:"activation_id"` // the caller's
	Function     string `json:"function"`      // the caller, namespace/name
	Depth        int    `json:"depth"`
}

// Access is the access of an invocation's caller.
type Access int

const (
	// AccessPublic allows versions whose Authz makes HTTP public.
	AccessPublic Access = iota
	// AccessGranted allows versions whose Authz accepts the caller.
	AccessGranted
	// AccessUnrestricted allows all versions. The platform itself has it, and every
	// caller of a server without API keys.
	AccessUnrestricted
)

// Outcome is a terminal activation as its caller sees it. Activation.Result is complete,
// up to MaxResultBytes, unless the outcome is a replay whose stored result is truncated.
// Replayed means that an earlier call with the same idempotency key ran.
//
// If Stream is not nil, the activation still produces its answer, and Activation.Result is
// empty. The caller reads the stream to its end, or ends the ctx of Invoke.
//
// Verdicts has what the handler decided about each of the Invocation's Messages; it is nil if
// the handler decided nothing.
type Outcome struct {
	Activation Activation
	Replayed   bool
	Stream     Stream
	Verdicts   []MessageVerdict
}

// Stream is an answer that is still produced.
type Stream interface {
	// Head returns the status, 200 to 599, and the headers as the function set them.
	Head() (status int, headers [][2]string)
	// Next waits for the next chunk; more reports whether another one is there already. A call
	// confirms the delivery of the previous chunk. After the last chunk, err is io.EOF if the
	// answer is complete, and another error if not. If ctx ends, err is its error.
	Next(ctx context.Context) (chunk []byte, more bool, err error)
	// OnFailure registers f, which is called if the answer fails. f may run on any goroutine.
	// After OnFailure(nil) returns, it is no longer called.
	OnFailure(f func())
}

// Queued is the response to an asynchronous invocation. A repeat has the current status
// of the activation.
type Queued struct {
	ActivationID string `json:"activation_id"`
	Status       Status `json:"status"`
	Replayed     bool   `json:"-"`
}

// The modes of an invoke.
const (
	ModeSync  = "sync" // the default
	ModeAsync = "async"
)

// InvokeRequest is the body of POST F:invoke.
type InvokeRequest struct {
	Ref   Ref             `json:"ref"`
	Mode  string          `json:"mode,omitempty"`
	Event json.RawMessage `json:"event,omitempty"`
}

// InvokeResponse is the response to POST F:invoke for a terminal activation.
type InvokeResponse struct {
	ActivationID    string           `json:"activation_id"`
	Status          Status           `json:"status"`
	Result          json.RawMessage  `json:"result,omitempty"`
	ResultTruncated bool             `json:"result_truncated,omitempty"`
	Error           *ActivationError `json:"error,omitempty"`
	DurationMS      int64            `json:"duration_ms"`
}

// Page is one page of a list; NextCursor is null at its end. A page can be short, even
// empty, and still have a next cursor: continue until it is null.
type Page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// Bounds of a page's size.
const (
	DefaultPageLimit = 50
	MaxPageLimit     = 500
)

// CallChain returns the names of the functions that led to inv, and its own: default/a → default/b.
func (inv *Invocation) CallChain() string {
	var b strings.Builder
	for _, c := range inv.Callers {
		b.WriteString(c.Namespace + "/" + c.Function + " → ")
	}
	return b.String() + inv.Namespace + "/" + inv.Function
}

// Ref names a version of a function, by number or by alias. A request sets one of
// them. A record sets both: the requested alias and the version that it pointed at.
type Ref struct {
	Alias   string `json:"alias,omitempty"`
	Version int64  `json:"version,omitempty"`
}

// String returns the alias if there is one, else the version number.
func (r Ref) String() string {
	if r.Alias != "" {
		return r.Alias
	}
	return strconv.FormatInt(r.Version, 10)
}

// Validate returns CodeInvalid unless the ref has either an alias or a version, and
// CodeValidationName if that one is malformed.
func (r Ref) Validate() error {
	switch {
	case (r.Alias == "") == (r.Version == 0):
		return Errorf(CodeInvalid, "ref must have either an alias or a version").
			WithFields(FieldError{Path: "ref", Message: "must have either an alias or a version"})
	case r.Alias != "":
		return ValidateAlias(r.Alias)
	case r.Version < 1 || r.Version > MaxVersion:
		return nameError("version", strconv.FormatInt(r.Version, 10), versionRule)
	}
	return nil
}
