package step

import "encoding/json"

// Run is a run of a function as the API shows it: its job, and its steps.
type Run struct {
	ID         string          `json:"id"`
	Namespace  string          `json:"namespace"`
	Queue      string          `json:"queue"`
	State      string          `json:"state" doc:"the state of the job: a run that sleeps or waits for an event is scheduled, one that waits for an approval is held"`
	Attempt    int             `json:"attempt" doc:"the attempts since the run began or slept last"`
	CreatedAt  int64           `json:"created_at_ms"`
	EndedAt    int64           `json:"ended_at_ms,omitempty"`
	DueAt      int64           `json:"due_at_ms,omitempty" doc:"when a run that sleeps continues at the latest"`
	HoldReason string          `json:"hold_reason,omitempty" doc:"the message of the approval that it waits for"`
	DeadReason string          `json:"dead_reason,omitempty"`
	Error      string          `json:"error,omitempty" doc:"of the last attempt that failed"`
	Result     json.RawMessage `json:"result,omitempty" doc:"of a job that a queue trigger ran"`
	Activation string          `json:"activation_id,omitempty" doc:"of an asynchronous invocation"`
	Steps      []Step          `json:"steps" doc:"those that have ended, in that order, and then the others"`
	Events     []string        `json:"events,omitempty" doc:"the names of the events that the run has not taken yet"`
}

// NewEvent is an event that is sent to runs.
type NewEvent struct {
	Name    string          `json:"name" minLength:"1" maxLength:"128" doc:"the name that cs.waitForEvent waits for"`
	Payload json.RawMessage `json:"payload,omitempty" doc:"any JSON of at most 256 KiB; null if it is left out"`
}

// Sent is the outcome of an event for all runs of a namespace that wait for it.
type Sent struct {
	Delivered int  `json:"delivered" doc:"the number of runs that got the event"`
	More      bool `json:"more" doc:"more than 10,000 runs waited, of which the others did not get it"`
}
