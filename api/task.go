package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// TaskState is the state of a task.
type TaskState string

// The states; the last three are terminal.
const (
	TaskPending   TaskState = "pending"
	TaskClaimed   TaskState = "claimed"
	TaskRunning   TaskState = "running"
	TaskCompleted TaskState = "completed"
	TaskFailed    TaskState = "failed"
	TaskCancelled TaskState = "cancelled"
)

// Terminal reports whether the state is final.
func (s TaskState) Terminal() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}

// Defaults and bounds of tasks.
const (
	TaskStuckMS          = 5 * 60_000 // without a change, if no timeout is set
	MinTaskTimeoutMS     = 1000
	MaxTaskTimeoutMS     = 7 * 24 * 60 * 60 * 1000
	MaxTaskRepublishes   = 10
	MaxTaskRefBytes      = 2048 // params_ref, result_ref
	MaxTaskSteps         = 1_000_000
	TaskRetentionMS      = 7 * 24 * 60 * 60 * 1000 // of ended tasks
	MaxTaskErrorBytes    = 8 << 10
	MaxTaskIDLength      = 128
	TaskSweepIntervalMS  = 30_000
	MaxTaskPayloadBytes  = 64 << 10
	DefaultTaskNamespace = "tasks"
)

// Task is the record of a long piece of work that a worker claims and reports on step
// by step. The fields from Namespace on describe the jobs that announce the task to
// workers. In the store the times are named created_at, updated_at and timeout_at.
type Task struct {
	TaskType    string    `json:"task_type"`
	TaskID      string    `json:"task_id"`
	State       TaskState `json:"state"`
	Worker      string    `json:"worker,omitempty"`
	CurrentStep int64     `json:"current_step,omitempty"`
	StepCount   int64     `json:"step_count,omitempty"`
	CreatedAtMS int64     `json:"created_at_ms"`
	UpdatedAtMS int64     `json:"updated_at_ms"` // grows with every change
	TimeoutAtMS int64     `json:"timeout_at_ms,omitempty"`
	Error       string    `json:"error,omitempty"`
	ParamsRef   string    `json:"params_ref,omitempty"`
	ResultRef   string    `json:"result_ref,omitempty"`

	Namespace   string `json:"namespace"`
	Queue       string `json:"queue"` // default: the task's type
	TimeoutMS   int64  `json:"timeout_ms,omitempty"`
	Republished int64  `json:"republished,omitempty"`
	JobID       string `json:"job_id"` // the job of its last announcement
	// Payload is part of every announcement. Lists omit it.
	Payload json.RawMessage `json:"payload,omitempty"`
	Stuck   bool            `json:"stuck,omitempty"` // computed when the task is read; not stored
}

// StuckAt reports whether the task has no worker that makes progress: its timeout has
// passed, or, without a timeout, TaskStuckMS have passed since its last change. A pending
// task that no worker claims is stuck as well. The sweeper announces stuck tasks again.
func (t *Task) StuckAt(nowMS int64) bool {
	switch {
	case t.State.Terminal():
		return false
	case t.TimeoutAtMS > 0:
		return t.TimeoutAtMS <= nowMS
	}
	return t.UpdatedAtMS+TaskStuckMS <= nowMS
}

// NewTask is the request that creates a task.
type NewTask struct {
	Namespace string          `json:"namespace,omitempty"` // default: DefaultTaskNamespace
	Queue     string          `json:"queue,omitempty"`     // default: the task's type
	ParamsRef string          `json:"params_ref,omitempty"`
	StepCount int64           `json:"step_count,omitempty"`
	TimeoutMS int64           `json:"timeout_ms,omitempty"` // of a claim or a step; default: TaskStuckMS
	Payload   json.RawMessage `json:"payload,omitempty"`
}

// WithDefaults returns n with the defaults of empty fields for a task of the type.
func (n NewTask) WithDefaults(taskType string) NewTask {
	if n.Namespace == "" {
		n.Namespace = DefaultTaskNamespace
	}
	if n.Queue == "" {
		n.Queue = taskType
	}
	return n
}

// Digest returns a digest of the request, by which a repeat is distinguished from
// another request for the same id. Call WithDefaults first.
func (n NewTask) Digest() (string, error) {
	raw, err := EncodeJSON(n)
	if err != nil {
		return "", fmt.Errorf("encode a task: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// TaskClaim assigns a pending task to a worker.
type TaskClaim struct {
	Worker    string `json:"worker"`
	TimeoutMS int64  `json:"timeout_ms,omitempty"` // until its next report; default: the task's
}

// TaskStep reports the progress of the worker that claimed a task.
type TaskStep struct {
	Worker    string `json:"worker"`
	Step      int64  `json:"step"`                 // must not decrease; the current one only shows that the worker is alive
	StepCount int64  `json:"step_count,omitempty"` // 0 keeps it
	TimeoutMS int64  `json:"timeout_ms,omitempty"` // as in TaskClaim
}

// TaskCompletion ends a task that succeeded.
type TaskCompletion struct {
	Worker    string `json:"worker"`
	ResultRef string `json:"result_ref,omitempty"`
}

// TaskFailure ends a task that failed.
type TaskFailure struct {
	Worker string `json:"worker"`
	Error  string `json:"error"`
}

// TaskAnnouncement is the payload of the job that announces a task to workers.
type TaskAnnouncement struct {
	TaskType  string          `json:"task_type"`
	TaskID    string          `json:"task_id"`
	ParamsRef string          `json:"params_ref,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Reason    string          `json:"reason"` // TaskCreated or TaskRepublished
}

// The reasons of an announcement.
const (
	TaskCreated     = "created"
	TaskRepublished = "republished" // its worker stopped reporting; continue from current_step
)
