// Package step describes the durable steps of the run of a function: a job whose function calls
// cs.step, cs.sleep, cs.waitForEvent or cs.waitForApproval. A run has the id of its job. Each
// activation of the run replays the function from its beginning, with the results of the steps that
// are recorded.
package step

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Limits of a run. Bytes counts the records of its steps, with their results.
const (
	MaxSteps       = 1000
	MaxResultBytes = 256 << 10
	MaxRunBytes    = 4 << 20
	MaxNameBytes   = 128
	MaxErrorBytes  = 4 << 10
	MaxEvents      = 100 // that wait in a run
	MaxWaitMS      = 365 * 24 * 3600 * 1000
)

// Kind is the kind of a step.
type Kind string

// The kinds of steps.
const (
	KindStep     Kind = "step"
	KindSleep    Kind = "sleep"
	KindEvent    Kind = "event"
	KindApproval Kind = "approval"
)

// Status is the status of a step.
type Status string

// The statuses of steps. The last two are final: a step that has one does not run again.
const (
	StatusWaiting   Status = "waiting"  // of a sleep, an event or an approval
	StatusRetrying  Status = "retrying" // an attempt failed, and another follows
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
)

// Final reports whether a step with the status never changes.
func (s Status) Final() bool { return s == StatusCompleted || s == StatusFailed }

// Step is the record of a step. Kind, Name and N identify it in its run: N counts the steps of that
// kind and name, from 1, in the order in which the function asks for them.
type Step struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	N    int    `json:"n"`
	// Seq orders the steps of the run that have ended, from 1. A replay delivers their results in
	// this order.
	Seq         int             `json:"seq,omitempty"`
	Status      Status          `json:"status"`
	Attempts    int             `json:"attempts,omitempty"`
	StartedAtMS int64           `json:"started_at_ms,omitempty"`
	EndedAtMS   int64           `json:"ended_at_ms,omitempty"`
	DueAtMS     int64           `json:"due_at_ms,omitempty"` // when a sleep, a wait or a backoff ends
	Result      json.RawMessage `json:"result,omitempty"`    // missing for undefined
	Error       *Failure        `json:"error,omitempty"`     // of the last attempt that failed
	Message     string          `json:"message,omitempty"`   // of an approval
	Taken       string          `json:"-"`                   // the Arrival that ended it, in the store only
	LeaseEpoch  int64           `json:"lease_epoch,omitempty"`
}

// Failure describes what an attempt of a step threw.
type Failure struct {
	Name    string `json:"name,omitempty"`
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
}

// Key identifies the step in its run.
func (s *Step) Key() string { return string(s.Kind) + ":" + s.Name + "#" + strconv.Itoa(s.N) }

// Label names the step in messages: its name, and its number if it is not the first.
func (s *Step) Label() string {
	if s.N == 1 {
		return s.Name
	}
	return s.Name + " #" + strconv.Itoa(s.N)
}

// Arrival ends a wait: an event, a decision, or the time. ID identifies an event or a
// decision, so that it ends one wait only; it is "" for the time.
type Arrival struct {
	Key   string          `json:"key"`
	ID    string          `json:"id,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Decision is the value of an Arrival that ends the wait for an approval.
type Decision struct {
	Approved bool   `json:"approved"`
	By       string `json:"by,omitempty"`
	Comment  string `json:"comment,omitempty"`
	AtMS     int64  `json:"at_ms"`

	Voters []string `json:"voters,omitempty"` // the names of the keys that voted
}

// Lease identifies the lease under which a run writes its steps.
type Lease struct {
	Tenant, Namespace, ID string
	Epoch                 int64
}

// Park is the state in which an activation leaves its run: asleep until DueMS, an event or a
// decision.
type Park struct {
	DueMS    int64
	Events   []string        // the names that it waits for
	Approval bool            // it waits for a decision
	Message  string          // of the approval
	Taken    map[string]bool // the ids of arrivals that have ended a wait
}

// Activation is an activation of a run. It is safe for concurrent use.
type Activation struct {
	Lease

	mu    sync.Mutex
	taken map[string]bool
	park  *Park
}

// NewActivation returns an activation under a lease.
func NewActivation(l Lease) *Activation { return &Activation{Lease: l, taken: map[string]bool{}} }

// Took notes that an arrival ended a wait.
func (a *Activation) Took(id string) {
	if id == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken[id] = true
}

// Taken returns a copy of the ids of the arrivals that have ended waits.
func (a *Activation) Taken() map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(map[string]bool, len(a.taken))
	for id := range a.taken {
		out[id] = true
	}
	return out
}

// Park sets the state in which the activation leaves its run.
func (a *Activation) Park(p *Park) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.park = p
}

// Parked returns what Park set; nil if the activation ends its run, or a is nil.
func (a *Activation) Parked() *Park {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.park
}

// CheckName returns the problem of the name of a step or of an event, "" for none.
func CheckName(name string) string {
	if name == "" || len(name) > MaxNameBytes || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "must be 1 to " + strconv.Itoa(MaxNameBytes) + " bytes of UTF-8 without control characters"
	}
	return ""
}

// The beginnings of the ids of arrivals.
const (
	ArrivalEvent    = "event:"
	ArrivalDecision = "decision:"
)

// IsArrival reports whether a text has the form of the id of an arrival.
func IsArrival(id string) bool {
	return strings.HasPrefix(id, ArrivalEvent) || strings.HasPrefix(id, ArrivalDecision)
}
