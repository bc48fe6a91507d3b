package search

import (
	"slices"
	"strings"

	"github.com/codesous/sous/api"
)

// BulkOperation is an operation on each job of a selection.
type BulkOperation string

// The operations.
const (
	BulkRetry  BulkOperation = "retry"
	BulkCancel BulkOperation = "cancel"
	BulkMove   BulkOperation = "move"
	BulkDelete BulkOperation = "delete"
)

// BulkOperations returns all operations.
func BulkOperations() []BulkOperation {
	return []BulkOperation{BulkRetry, BulkCancel, BulkMove, BulkDelete}
}

// BulkState is the state of a bulk operation.
type BulkState string

// The states; all but the first are terminal.
const (
	BulkRunning   BulkState = "running"
	BulkCompleted BulkState = "completed" // every selected job was examined, or the limit is reached
	BulkFailed    BulkState = "failed"    // the selection cannot be read
	BulkCancelled BulkState = "cancelled"
)

// The bounds of bulk operations.
const (
	MaxBulkRunning  = 4 // of a tenant
	MaxBulkLimit    = 10_000_000
	MaxBulkErrors   = 20                      // the last ones
	BulkRetentionMS = 7 * 24 * 60 * 60 * 1000 // after the end
	BulkSample      = 10                      // jobs of a dry run
)

// NewBulk is a call that creates a bulk operation.
type NewBulk struct {
	Operation BulkOperation `json:"operation" enum:"retry,cancel,move,delete"`
	Selection Selection     `json:"selection" doc:"the filters of the search, at least one"`
	Target    string        `json:"target,omitempty" doc:"of move: the queue to which jobs are moved"`
	Limit     int64         `json:"limit,omitempty" minimum:"0" maximum:"10000000" doc:"ends the operation after it has changed so many jobs, the oldest ones; 0 for all"`
}

// Validate refuses calls that no state of the jobs can make valid. The search checks the filters.
// Errors: CodeInvalid, CodeValidationName, CodeQueueReserved.
func (n *NewBulk) Validate() error {
	q := n.Selection.Jobs()
	switch {
	case !slices.Contains(BulkOperations(), n.Operation):
		return api.InvalidField("operation", "must be retry, cancel, move or delete")
	case len(q.Values()) == 0:
		return api.InvalidField("selection", "must have at least one filter")
	case n.Limit < 0 || n.Limit > MaxBulkLimit:
		return api.InvalidField("limit", "must be from 0 to 10,000,000")
	case n.Operation != BulkMove && n.Target != "":
		return api.InvalidField("target", "stands only beside the operation move")
	case n.Operation == BulkMove && n.Target == "":
		return api.InvalidField("target", "must be the queue to which jobs are moved")
	case n.Target == "":
		return nil
	case strings.HasPrefix(n.Target, api.FunctionQueuePrefix):
		return api.Errorf(api.CodeQueueReserved, "queues fn.… are reserved for the platform: jobs cannot be moved to them")
	}
	return api.ValidateQueue(n.Target)
}

// Bulk is a bulk operation with its progress.
type Bulk struct {
	ID          string        `json:"id"`
	Operation   BulkOperation `json:"operation" enum:"retry,cancel,move,delete"`
	Selection   Selection     `json:"selection"`
	Target      string        `json:"target,omitempty"`
	Limit       int64         `json:"limit,omitempty"`
	State       BulkState     `json:"state" enum:"running,completed,failed,cancelled"`
	Matched     MatchCount    `json:"matched" doc:"how many jobs matched when the operation was created"`
	Done        int64         `json:"done" doc:"jobs that were changed"`
	Skipped     int64         `json:"skipped" doc:"jobs that no longer matched, or whose state does not allow the operation"`
	Failed      int64         `json:"failed" doc:"jobs for which the operation failed"`
	Errors      []BulkError   `json:"errors,omitempty" nullable:"false" doc:"the last errors, at most 20"`
	Error       string        `json:"error,omitempty" doc:"why the operation failed"`
	CreatedBy   string        `json:"created_by,omitempty" doc:"the API key"`
	CreatedAtMS int64         `json:"created_at_ms"`
	UpdatedAtMS int64         `json:"updated_at_ms"`
	EndedAtMS   int64         `json:"ended_at_ms,omitempty"`
}

// Query returns the jobs that the operation selects, oldest first: only those that were created before
// the operation, and for retries only those that had ended before, so that none is retried twice.
func (b *Bulk) Query() Jobs {
	q := b.Selection.Jobs()
	q.Created.ToMS = earlier(q.Created.ToMS, b.CreatedAtMS)
	if b.Operation == BulkRetry {
		q.Ended.ToMS = earlier(q.Ended.ToMS, b.CreatedAtMS)
	}
	q.Order = Order{Ascending: true}
	return q
}

// earlier returns the earlier end of a range, of which 0 is open.
func earlier(a, b int64) int64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// BulkError is the error of one job.
type BulkError struct {
	JobID   string   `json:"job_id"`
	Code    api.Code `json:"code"`
	Message string   `json:"message"`
}

// BulkPreview describes the selection of an operation before it is created.
type BulkPreview struct {
	Matched MatchCount  `json:"matched"`
	Sample  []api.Job   `json:"sample" nullable:"false" doc:"the oldest jobs, at most 10"`
	Mirror  MirrorState `json:"mirror"`
}
