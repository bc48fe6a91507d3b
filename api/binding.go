package api

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Defaults and bounds of worker bindings.
const (
	MaxBindings            = 256 // of a namespace
	MaxActivityTypes       = 64  // of a binding
	MaxCadenceNameBytes    = 255 // a domain, a tasklist, an activity or workflow type
	DefaultActivityPollers = 8
	MaxActivityPollers     = 64
	DefaultInflightTasks   = 256
	MaxInflightTasks       = 10_000
	MaxActivityResultBytes = 1 << 20  // of the result that completes a task
	MaxHeartbeatBytes      = 64 << 10 // of a heartbeat's details
)

// WorkerBinding makes the platform a Cadence worker: it polls the domain's tasklist
// for the activity types of ActivityMap and runs each by a function of the
// binding's namespace.
type WorkerBinding struct {
	Name        string               `json:"name"`
	Domain      string               `json:"domain"`
	Tasklist    string               `json:"tasklist"`
	WorkerID    string               `json:"worker_id"`    // the identity that Cadence shows; default: the name
	ActivityMap map[string]JobTarget `json:"activity_map"` // by activity type
	Pollers     BindingPollers       `json:"pollers"`      // for each replica
	Limits      BindingLimits        `json:"limits"`       // for each replica
	Enabled     bool                 `json:"enabled"`
	Revision    int64                `json:"revision"` // grows with every change
	CreatedAtMS int64                `json:"created_at_ms"`
	UpdatedAtMS int64                `json:"updated_at_ms"`
}

// BindingPollers is the number of concurrent polls for tasks of a replica; 0 means the default.
type BindingPollers struct {
	Activity int `json:"activity"`
}

// BindingLimits is the number of tasks that a replica runs at once; 0 means the default.
type BindingLimits struct {
	MaxInflightTasks int `json:"max_inflight_tasks"`
}

// Normalize sets the defaults of empty fields. It changes the entries of b.ActivityMap.
func (b *WorkerBinding) Normalize() {
	if b.WorkerID == "" {
		b.WorkerID = b.Name
	}
	if b.Pollers.Activity == 0 {
		b.Pollers.Activity = DefaultActivityPollers
	}
	if b.Limits.MaxInflightTasks == 0 {
		b.Limits.MaxInflightTasks = DefaultInflightTasks
	}
	for kind, target := range b.ActivityMap {
		if target.Alias == "" && target.Version == 0 {
			target.Alias = DefaultAlias
			b.ActivityMap[kind] = target
		}
	}
}

// Validate returns CodeInvalid or CodeValidationName for a binding that cannot be
// stored. Call Normalize first.
func (b *WorkerBinding) Validate() error {
	if err := ValidateName("name", b.Name); err != nil {
		return err
	}
	if err := ValidateWorkerID(b.WorkerID); err != nil {
		return err
	}
	if err := validateCadenceName("domain", b.Domain); err != nil {
		return err
	}
	if err := validateCadenceName("tasklist", b.Tasklist); err != nil {
		return err
	}
	switch {
	case b.Pollers.Activity < 1 || b.Pollers.Activity > MaxActivityPollers:
		return InvalidRange("pollers.activity", 1, MaxActivityPollers)
	case b.Limits.MaxInflightTasks < 1 || b.Limits.MaxInflightTasks > MaxInflightTasks:
		return InvalidRange("limits.max_inflight_tasks", 1, MaxInflightTasks)
	case len(b.ActivityMap) < 1 || len(b.ActivityMap) > MaxActivityTypes:
		return bindingField("activity_map", fmt.Sprintf("must have from 1 to %d activity types", MaxActivityTypes))
	}
	for _, kind := range b.ActivityTypes() {
		if err := validateCadenceName("activity_map", kind); err != nil {
			return err
		}
		if err := b.validateTarget(kind); err != nil {
			return err
		}
	}
	return nil
}

// validateTarget returns CodeInvalid unless the target names a function and a ref.
func (b *WorkerBinding) validateTarget(kind string) error {
	target := b.ActivityMap[kind]
	path := "activity_map." + kind
	if ValidateName("function", target.Function) != nil {
		return bindingField(path+".function", NameRule)
	}
	switch ref := target.Ref(); {
	case ref.Alias != "" && ref.Version != 0:
		return bindingField(path, "must have either an alias or a version")
	case ref.Validate() != nil:
		return bindingField(path, refRule)
	}
	return nil
}

// validateCadenceName returns CodeInvalid for an invalid name. A Cadence server
// itself allows nearly everything.
func validateCadenceName(path, s string) error {
	switch {
	case s == "":
		return bindingField(path, "must not be empty")
	case len(s) > MaxCadenceNameBytes:
		return bindingField(path, "must be at most "+SizeText(MaxCadenceNameBytes))
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) || strings.TrimSpace(s) != s:
		return bindingField(path, "must be text without control characters, and without blanks around it")
	}
	return nil
}

func bindingField(path, rule string) error {
	return Errorf(CodeInvalid, "%s %s", path, rule).WithFields(FieldError{Path: path, Message: rule})
}

// BindingState summarizes the workers of a binding.
type BindingState string

// The states.
const (
	BindingRunning  BindingState = "running"              // a replica polls for tasks or runs the last ones
	BindingStarting BindingState = "starting"             // it was changed just now, or its worker connects
	BindingWaiting  BindingState = "waiting_for_domain"   // the domain does not exist yet
	BindingFailing  BindingState = "failing"              // the Cadence server does not answer, or rejects the calls
	BindingNoServer BindingState = "no server configured" // no replica has a Cadence server configured
	BindingDisabled BindingState = "disabled"             // Enabled is false
	BindingStopped  BindingState = "stopped"              // no replica has the cadence role
)

// BindingStatus is a binding with the state of its workers. The counts add up the live
// replicas, each since its start.
type BindingStatus struct {
	WorkerBinding
	Status BindingCounts    `json:"status"`
	Shares []BindingReplica `json:"replicas"`
}

// BindingCounts is the state of a binding's workers and their counts of tasks.
type BindingCounts struct {
	State      BindingState `json:"state"`
	Reason     string       `json:"reason,omitempty"`       // why it is not running, or a problem of a running one
	LastPollMS int64        `json:"last_poll_ms,omitempty"` // when the server last answered a poll
	Taken      int64        `json:"taken"`
	Completed  int64        `json:"completed"`
	Failed     int64        `json:"failed"` // timeouts of functions included
	Cancelled  int64        `json:"cancelled"`
	InFlight   int64        `json:"in_flight"`
}

// BindingReplica is the part of one replica in a BindingStatus.
type BindingReplica struct {
	Replica string `json:"replica"`
	BindingCounts
	ReportedAtMS int64 `json:"reported_at_ms"`
}

// CadenceSource is the source of a trigger of type cadence.
type CadenceSource struct {
	Domain       string `json:"domain"`
	Tasklist     string `json:"tasklist"`
	WorkflowID   string `json:"workflowId"`
	RunID        string `json:"runId"`
	ActivityID   string `json:"activityId"`
	ActivityType string `json:"activityType"`
	Attempt      int32  `json:"attempt"` // Cadence's: it counts from 0
}

// TaskActivationID returns the activation id of a Cadence task, the UUIDv5 of its
// token. A second delivery of the task has the same token, another attempt has not.
func TaskActivationID(token []byte) string {
	return uuid.NewSHA1(idSpace, append([]byte("cadence task:"), token...)).String()
}
