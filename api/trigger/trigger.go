// Package trigger is the record of a queue trigger, which runs a function for the jobs of a
// queue, with its request and its validation. The type names are those of the OpenAPI document.
package trigger

import (
	"strings"

	"github.com/codesous/sous/api"
)

// Defaults and bounds of queue triggers.
const (
	MaxQueueTriggers = 256 // of a namespace
	DefaultBatchSize = 10
	MaxBatchSize     = 100
	MaxWindowMS      = 300_000
	MaxConcurrency   = 1000
	// MaxBatchBytes bounds the payloads of a batch together.
	MaxBatchBytes = 4 << 20
)

// NewQueueTrigger is the body of PUT N/queues/{queue}/trigger. Zero values mean the defaults.
type NewQueueTrigger struct {
	// Function of the queue's namespace, by alias (default: api.DefaultAlias) or version.
	Function string `json:"function"`
	Alias    string `json:"alias,omitempty"`
	Version  int64  `json:"version,omitempty"`
	// BatchSize is the largest number of jobs of an activation. A function that is no object
	// with a method queue gets one.
	BatchSize int `json:"batch_size,omitempty"`
	// WindowMS is how long a batch that is not full waits for more jobs.
	WindowMS int64 `json:"window_ms,omitempty"`
	// Concurrency is the largest number of activations at the same time, over all replicas; 0
	// leaves it to the limit of the version.
	Concurrency int   `json:"concurrency,omitempty"`
	Enabled     *bool `json:"enabled,omitempty"` // nil is true
}

// QueueTrigger binds a queue to a function of its namespace, which handles the jobs of the
// queue in batches.
type QueueTrigger struct {
	Queue       string `json:"queue"`
	Function    string `json:"function"`
	Alias       string `json:"alias,omitempty"`
	Version     int64  `json:"version,omitempty"`
	BatchSize   int    `json:"batch_size"`
	WindowMS    int64  `json:"window_ms"`
	Concurrency int    `json:"concurrency"` // 0: the version's limit alone
	Enabled     bool   `json:"enabled"`
	Revision    int64  `json:"revision"` // grows with every change
	CreatedAtMS int64  `json:"created_at_ms"`
	UpdatedAtMS int64  `json:"updated_at_ms"`
}

// Trigger returns the trigger of a queue, with the defaults of empty fields.
func (n *NewQueueTrigger) Trigger(queue string) QueueTrigger {
	t := QueueTrigger{
		Queue: queue, Function: n.Function, Alias: n.Alias, Version: n.Version,
		BatchSize: n.BatchSize, WindowMS: n.WindowMS, Concurrency: n.Concurrency, Enabled: n.Enabled == nil || *n.Enabled,
	}
	if t.Alias == "" && t.Version == 0 {
		t.Alias = api.DefaultAlias
	}
	if t.BatchSize == 0 {
		t.BatchSize = DefaultBatchSize
	}
	return t
}

// Ref returns the alias or version of the function.
func (t *QueueTrigger) Ref() api.Ref { return api.Ref{Alias: t.Alias, Version: t.Version} }

// Target returns the function with its alias or version.
func (t *QueueTrigger) Target() api.JobTarget {
	return api.JobTarget{Function: t.Function, Alias: t.Alias, Version: t.Version}
}

// Validate returns CodeInvalid or CodeValidationName with the field's path, and
// CodeQueueReserved for a queue of the platform.
func (t *QueueTrigger) Validate() error {
	if err := api.ValidateQueue(t.Queue); err != nil {
		return err
	}
	if strings.HasPrefix(t.Queue, api.FunctionQueuePrefix) {
		return api.Errorf(api.CodeQueueReserved, "queue %s is reserved for the platform's own workers", t.Queue)
	}
	if err := api.ValidateName("function", t.Function); err != nil {
		return err
	}
	if err := t.Ref().Validate(); err != nil {
		return err
	}
	for _, f := range []struct {
		name                   string
		value, lowest, highest int64
	}{
		{"batch_size", int64(t.BatchSize), 1, MaxBatchSize},
		{"window_ms", t.WindowMS, 0, MaxWindowMS},
		{"concurrency", int64(t.Concurrency), 0, MaxConcurrency},
	} {
		if f.value < f.lowest || f.value > f.highest {
			return api.InvalidRange(f.name, f.lowest, f.highest)
		}
	}
	return nil
}

// Same reports whether two triggers of a queue do the same.
func (t *QueueTrigger) Same(other *QueueTrigger) bool {
	a, b := *t, *other
	a.Revision, a.CreatedAtMS, a.UpdatedAtMS = b.Revision, b.CreatedAtMS, b.UpdatedAtMS
	return a == b
}

// QueueSource is the source of a trigger of type queue: the queue and the ids of the jobs that
// the activation handles.
type QueueSource struct {
	Queue string   `json:"queue"`
	Jobs  []string `json:"jobs"`
}

// Batches splits jobs into batches of up to size jobs and MaxBatchBytes of payload.
func Batches(jobs []api.FetchedJob, size int) (out [][]api.FetchedJob) {
	begin, bytes := 0, 0
	for i := range jobs {
		bytes += len(jobs[i].Payload)
		if i > begin && (i-begin == size || bytes > MaxBatchBytes) {
			out = append(out, jobs[begin:i])
			begin, bytes = i, len(jobs[i].Payload)
		}
	}
	if begin < len(jobs) {
		out = append(out, jobs[begin:])
	}
	return out
}
