package api

// Queue is the configuration of a queue and its number of jobs by state.
type Queue struct {
	Namespace string `json:"namespace"`
	Queue     string `json:"queue"`
	QueueConfig
	Depths          map[JobState]int64 `json:"depths"`
	OldestPendingMS int64              `json:"oldest_pending_ms"` // the age of the first pending job
}

// QueueConfig configures how a queue hands out jobs. A limit of 0 means none.
type QueueConfig struct {
	Paused         bool   `json:"paused"`
	Draining       bool   `json:"draining"` // it accepts no new jobs and hands out the rest
	MaxConcurrency int64  `json:"max_concurrency"`
	RateLimit      int64  `json:"rate_limit"`         // jobs that may start in RateWindowMS
	RateWindowMS   int64  `json:"rate_window_ms"`     // 0: DefaultRateWindowMS
	RetentionMS    int64  `json:"retention_ms"`       // how long ended jobs are kept; 0: as the tenant's others
	Provider       string `json:"provider,omitempty"` // of models, or a route, that jobs without routing have
	Events         string `json:"events" enum:"all,ends,off" doc:"which events of its jobs are recorded: all, ends (completed, dead, cancelled), or off"`
}

// Bounds of a queue's configuration.
const (
	MaxQueueConcurrency = 1_000_000
	MaxRateLimit        = 1_000_000
	MinRateWindowMS     = 100
	MaxRateWindowMS     = 24 * 60 * 60 * 1000
	DefaultRateWindowMS = 1000
)

// Batch is a group of jobs. Its callback is enqueued when the batch is sealed and all
// of its jobs have ended.
type Batch struct {
	ID          string         `json:"id"`
	Namespace   string         `json:"namespace"`
	Callback    *BatchCallback `json:"callback,omitempty"`
	CallbackID  string         `json:"callback_job_id,omitempty"`
	Sealed      bool           `json:"sealed"`
	Total       int64          `json:"total"`
	Pending     int64          `json:"pending"`
	Succeeded   int64          `json:"succeeded"`
	Failed      int64          `json:"failed"`
	CreatedAtMS int64          `json:"created_at_ms"`
	ExpiresAtMS int64          `json:"expires_at_ms,omitempty"` // of an open batch, unless it changes before
}

// OpenBatchRetentionMS is how long an open batch is kept after its last change, 7 days.
const OpenBatchRetentionMS = 7 * 24 * 60 * 60 * 1000

// BatchCallback is the job that is enqueued when a batch has ended.
type BatchCallback struct {
	Queue string `json:"queue"`
	NewJob
	// By is the caller that created the batch. See JobSpec.By.
	By *JobAuthor `json:"-"`
}

// Worker describes a process that fetches jobs, as it reported itself. Namespaces has the
// queues that it fetched from lately, by namespace.
type Worker struct {
	ID              string            `json:"id"`
	Hostname        string            `json:"hostname,omitempty"`
	Namespaces      []WorkerNamespace `json:"namespaces"`
	Version         string            `json:"version,omitempty"`
	StartedAtMS     int64             `json:"started_at_ms"`
	LastHeartbeatMS int64             `json:"last_heartbeat_ms"`
}

// WorkerNamespace is the part of a worker that concerns one namespace.
type WorkerNamespace struct {
	Namespace string   `json:"namespace"`
	Queues    []string `json:"queues"` // in the order of their names
}
