package api

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
// where the work is announced.
type Task struct {
	TaskType    string    `json:"task_type"`
	TaskID      string    `json:"task_id"`
	State       TaskState `json:"state"`
	Worker      string    `json:"worker,omitempty"`
	CurrentStep int64     `json:"current_step,omitempty"`
	StepCount   int64     `json:"step_count,omitempty"`
	CreatedAtMS int64     `json:"created_at_ms"`
	UpdatedAtMS int64     `json:"updated_at_ms"`
	TimeoutAtMS int64     `json:"timeout_at_ms,omitempty"`
	Error       string    `json:"error,omitempty"`
	ParamsRef   string    `json:"params_ref,omitempty"`
	ResultRef   string    `json:"result_ref,omitempty"`

	Namespace   string `json:"namespace"`
	Queue       string `json:"queue"` // the task's type, unless it says another
	Republished int64  `json:"republished,omitempty"`
	Stuck       bool   `json:"stuck,omitempty"` // now; not stored
}
