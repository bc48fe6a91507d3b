package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// TaskState is where a task stands.
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

// Terminal says whether nothing can change the state any more.
func (s TaskState) Terminal() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}

// Defaults and bounds of tasks.
const (
	TaskStuckMS          = 5 * 60_000 // without a change, where no timeout is set
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

// Task is the state of one long piece of work that workers take up from a queue
// and report on step by step. The store's fields are named as in the seed
// (created_at, updated_at, timeout_at for the times); those from Namespace on say
// where, how often and by which job the task is announced.
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
	Queue       string `json:"queue"` // the task's type, unless it says another
	TimeoutMS   int64  `json:"timeout_ms,omitempty"`
	Republished int64  `json:"republished,omitempty"`
	JobID       string `json:"job_id"` // the job of its last announcement
	// Payload goes with every announcement. Lists leave it out.
	Payload json.RawMessage `json:"payload,omitempty"`
	Stuck   bool            `json:"stuck,omitempty"` // now; not stored
}

// StuckAt says whether nobody can be expected to work on the task any more: its
// timeout has passed, or, where none is set, TaskStuckMS since its last change.
func (t *Task) StuckAt(nowMS int64) bool {
	switch {
	case t.State.Terminal():
		return false
	case t.TimeoutAtMS > 0:
		return t.TimeoutAtMS <= nowMS
	}
	return t.UpdatedAtMS+TaskStuckMS <= nowMS
}

// NewTask is what a task is made of.
type NewTask struct {
	Namespace string          `json:"namespace,omitempty"` // default: DefaultTaskNamespace
	Queue     string          `json:"queue,omitempty"`     // default: the task's type
	ParamsRef string          `json:"params_ref,omitempty"`
	StepCount int64           `json:"step_count,omitempty"`
	TimeoutMS int64           `json:"timeout_ms,omitempty"` // of a claim or a step; default: TaskStuckMS
	Payload   json.RawMessage `json:"payload,omitempty"`
}

// WithDefaults fills in what was left out for a task of the type.
func (n NewTask) WithDefaults(taskType string) NewTask {
	if n.Namespace == "" {
		n.Namespace = DefaultTaskNamespace
	}
	if n.Queue == "" {
		n.Queue = taskType
	}
	return n
}

// Digest tells tasks apart that are made otherwise; defaults must be filled in.
func (n NewTask) Digest() (string, error) {
	raw, err := EncodeJSON(n)
	if err != nil {
		return "", fmt.Errorf("encode a task: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// TaskClaim is a worker that takes up a pending task.
type TaskClaim struct {
	Worker    string `json:"worker"`
	TimeoutMS int64  `json:"timeout_ms,omitempty"` // until its next report; default: the task's
}

// TaskStep is how far the worker that holds a task has come.
type TaskStep struct {
	Worker    string `json:"worker"`
	Step      int64  `json:"step"`                 // must not go back; the present one says that the worker lives
	StepCount int64  `json:"step_count,omitempty"` // 0 leaves it
	TimeoutMS int64  `json:"timeout_ms,omitempty"` // as in TaskClaim
}

// TaskCompletion is the end of a task that went well.
type TaskCompletion struct {
	Worker    string `json:"worker"`
	ResultRef string `json:"result_ref,omitempty"`
}

// TaskFailure is the end of a task that did not.
type TaskFailure struct {
	Worker string `json:"worker"`
	Error  string `json:"error"`
}

// TaskAnnouncement is the payload of the job by which a task finds its worker.
type TaskAnnouncement struct {
	TaskType  string          `json:"task_type"`
	TaskID    string          `json:"task_id"`
	ParamsRef string          `json:"params_ref,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Reason    string          `json:"reason"` // TaskCreated or TaskRepublished
}

// Why a task is announced.
const (
	TaskCreated     = "created"
	TaskRepublished = "republished" // whoever had it fell silent; current_step tells where to go on
)
