package api

import (
	"encoding/json"
	"time"
)

// Invocation is what every trigger hands to the engine.
type Invocation struct {
	Tenant    string
	Namespace string
	Function  string
	Ref       Ref // alias or version
	Trigger   Trigger
	Principal Principal
	// Access is what Principal was found to be allowed; its zero value opens
	// public HTTP endpoints only.
	Access    Access
	Event     json.RawMessage // valid JSON
	RequestID string
	// IdempotencyKey makes the invocation safe to repeat; "" means it is not.
	IdempotencyKey string
	// Fingerprint is what a repeat under IdempotencyKey must equal to be the
	// same call; empty means Event.
	Fingerprint []byte
	// MaxTimeout clamps the version's timeout; zero leaves it.
	MaxTimeout time.Duration
	// ActivationID is the activation's id where the caller derived it from what it
	// was told to do: whoever writes its record first may run, and a repeat gets
	// that record's outcome. "" makes a new one.
	ActivationID string
	// Attempt is the number that the function is told, 0 for the first.
	Attempt int
	// Deadline is when the caller's own time ends; zero means that it does not.
	Deadline time.Time
	// Patient waits for a place as long as the caller does.
	Patient bool
	// Started is called when the function begins; nil is allowed.
	Started func()
	// Heartbeat takes a heartbeat's details (JSON, empty for none), and LastHeartbeat
	// is what the attempt before recorded last; of the trigger cadence alone.
	Heartbeat     func(details json.RawMessage) error
	LastHeartbeat json.RawMessage
	// AllNamespaces: the caller may invoke in every namespace of the tenant, not in
	// this one alone.
	AllNamespaces bool
	// Callers are the activations that wait for this one by cs.invoke, the first
	// caller first.
	Callers []Caller
}

// Bounds of calls by cs.invoke. That of those at once bounds the results that wait for
// a function which does not take them.
const (
	MaxInvokeDepth   = 8 // how deep they nest
	MaxInvokesAtOnce = 8 // of one activation; more of them wait
)

// Caller is an activation that waits for one that it called.
type Caller struct {
	Namespace, Function string
	Version             int64
	ActivationID        string
}

// CallSource is the source of a trigger of type api that is a function's call by
// cs.invoke. Depth is 1 for what no other function has called.
type CallSource struct {
	ActivationID string `json:"activation_id"` // the caller's
	Function     string `json:"function"`      // the caller, namespace/name
	Depth        int    `json:"depth"`
}

// Access is how far an invocation's caller was found to be allowed.
type Access int

const (
	// AccessPublic runs what a version opens to everybody under HTTP.
	AccessPublic Access = iota
	// AccessGranted is a caller that may invoke; the version's Authz decides.
	AccessGranted
	// AccessUnrestricted is the platform itself, and everybody where there are
	// no keys: no version's Authz applies.
	AccessUnrestricted
)

// Outcome is a terminal activation as its caller sees it: Activation.Result is
// whole (up to MaxResultBytes) unless the outcome is a replay of a cut one.
type Outcome struct {
	Activation Activation
	Replayed   bool
}

// Queued answers an asynchronous invocation: with its status now, where it is a
// repeat.
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

// InvokeResponse answers POST F:invoke once the activation is terminal.
type InvokeResponse struct {
	ActivationID    string           `json:"activation_id"`
	Status          Status           `json:"status"`
	Result          json.RawMessage  `json:"result,omitempty"`
	ResultTruncated bool             `json:"result_truncated,omitempty"`
	Error           *ActivationError `json:"error,omitempty"`
	DurationMS      int64            `json:"duration_ms"`
}

// Page is one page of a list; NextCursor is null at its end.
type Page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// Bounds of a page's size.
const (
	DefaultPageLimit = 50
	MaxPageLimit     = 500
)
