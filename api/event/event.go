// Package event defines the events of a tenant, as the API lists and streams them: the changes of
// its jobs and of its other resources. Their attributes are those of CloudEvents 1.0.
package event

import (
	"slices"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// The types of events. A job has one for each change of its state:
//
//	job.enqueued    it was added: pending, scheduled, waiting or held
//	job.started     a worker has it
//	job.completed   it ended well
//	job.failed      an attempt failed, or its lease ran out; job.retrying or job.dead follows
//	job.retrying    it runs again, after its backoff, a snooze or a lost lease
//	job.continued   its worker acked a step of it; it runs again
//	job.held        it waits for an approval
//	job.released    it runs when its time has come: it was approved, or its dependencies ended
//	job.dead        it ended without success
//	job.cancelled   it was cancelled
//	job.revived     an operator retried it after its end
//
// A queue records the events that its configuration names: see RecordAll. A version names those
// of its activations: see api.Recording. Events of other resources:
//
//	function.created, function.deleted   also of a deleted function that comes back
//	version.published                    a publish of the latest version again is no event
//	alias.set, alias.deleted             it points at another version; it is gone
//	schedule.created, schedule.updated, schedule.deleted
//	schedule.paused, schedule.resumed    it was disabled; it was enabled again
//	schedule.fired                       it made a job
//	batch.created, batch.sealed
//	batch.ended                          it is sealed, and all of its jobs have ended
//	task.created
//	task.claimed                         a worker has it
//	task.republished                     its worker was silent: it waits for another one
//	task.completed, task.failed, task.cancelled
//	activation.started, activation.ended
//	budget.exceeded, budget.reset        its limit is reached; the next day has begun
//	approval.requested                   a job is held until it is approved; its subject is that job
//	approval.decided                     the job was approved or rejected, also by its expiry
//	webhook.disabled                     the platform disabled it: it failed for days, or its receiver is gone
const (
	JobEnqueued  = "job.enqueued"
	JobStarted   = "job.started"
	JobCompleted = "job.completed"
	JobFailed    = "job.failed"
	JobRetrying  = "job.retrying"
	JobContinued = "job.continued"
	JobHeld      = "job.held"
	JobReleased  = "job.released"
	JobDead      = "job.dead"
	JobCancelled = "job.cancelled"
	JobRevived   = "job.revived"

	FunctionCreated  = "function.created"
	FunctionDeleted  = "function.deleted"
	VersionPublished = "version.published"
	AliasSet         = "alias.set"
	AliasDeleted     = "alias.deleted"

	ScheduleCreated = "schedule.created"
	ScheduleUpdated = "schedule.updated"
	ScheduleDeleted = "schedule.deleted"
	SchedulePaused  = "schedule.paused"
	ScheduleResumed = "schedule.resumed"
	ScheduleFired   = "schedule.fired"

	BatchCreated = "batch.created"
	BatchSealed  = "batch.sealed"
	BatchEnded   = "batch.ended"

	TaskCreated     = "task.created"
	TaskClaimed     = "task.claimed"
	TaskRepublished = "task.republished"
	TaskCompleted   = "task.completed"
	TaskFailed      = "task.failed"
	TaskCancelled   = "task.cancelled"

	ActivationStarted = "activation.started"
	ActivationEnded   = "activation.ended"

	BudgetExceeded = "budget.exceeded"
	BudgetReset    = "budget.reset"

	ApprovalRequested = "approval.requested"
	ApprovalDecided   = "approval.decided"

	WebhookDisabled = "webhook.disabled"
	WebhookTest     = "webhook.test" // of a test delivery; it is in no log
)

// Types are all types of events, sorted.
var Types = []string{
	ActivationEnded, ActivationStarted,
	AliasDeleted, AliasSet,
	ApprovalDecided, ApprovalRequested,
	BatchCreated, BatchEnded, BatchSealed,
	BudgetExceeded, BudgetReset,
	FunctionCreated, FunctionDeleted,
	JobCancelled, JobCompleted, JobContinued, JobDead, JobEnqueued, JobFailed, JobHeld, JobReleased, JobRetrying, JobRevived, JobStarted,
	ScheduleCreated, ScheduleDeleted, ScheduleFired, SchedulePaused, ScheduleResumed, ScheduleUpdated,
	TaskCancelled, TaskClaimed, TaskCompleted, TaskCreated, TaskFailed, TaskRepublished,
	VersionPublished,
	WebhookDisabled,
}

// The values of the setting events of a queue: which events of its jobs are recorded; and of
// api.Recording: which ones of a version's activations.
const (
	RecordAll  = "all"
	RecordEnds = "ends" // the default of a queue: completed, dead and cancelled jobs
	RecordOff  = "off"  // the default of a version
)

// Recorded returns which events of the activations of a version are recorded, "" for none.
func Recorded(c *api.VersionConfig) string {
	if c.Record == nil || c.Record.Events == RecordOff {
		return ""
	}
	return c.Record.Events
}

// Event is one event. ID is unique within the tenant; the ids of a list ascend. An event may be
// recorded twice, with two ids, if the store or a replica is killed in the middle of the change, or
// an answer of the store is lost. Subject, Type and the attempt tell that it is the same.
type Event struct {
	SpecVersion string `json:"specversion" doc:"1.0"`
	ID          string `json:"id" doc:"the position in the tenant's log, such as 1760000001000-0.3"`
	Source      string `json:"source" doc:"the tenant, such as /v1/tenants/t_acme01"`
	Type        string `json:"type" doc:"what happened, such as job.completed"`
	Subject     string `json:"subject" doc:"the resource, such as jobs/01JC… or functions/shop/hello/versions/7"`
	Time        string `json:"time" doc:"when, as RFC 3339 with milliseconds"`
	Actor       string `json:"actor,omitempty" doc:"who made the change: the id of an API key, or a part of the server, such as sous/schedules"`
	Data        Data   `json:"data"`
}

// Data describes the change. Fields that do not apply are left out.
type Data struct {
	Namespace string       `json:"namespace,omitempty"`
	Queue     string       `json:"queue,omitempty"`
	Function  string       `json:"function,omitempty" doc:"the function, also of its jobs and schedules"`
	Attempt   int          `json:"attempt,omitempty" doc:"the number of the present or last attempt"`
	WorkerID  string       `json:"worker_id,omitempty" doc:"the last worker"`
	Status    string       `json:"status,omitempty" doc:"of an activation that ended"`
	Duration  int64        `json:"duration_ms,omitempty" doc:"of an activation that ended, in milliseconds"`
	Error     string       `json:"error,omitempty" doc:"of the attempt, the activation or the task, at most 256 bytes of it"`
	Reason    string       `json:"reason,omitempty" doc:"why a job is dead or held; the type of the error of an activation"`
	Version   int64        `json:"version,omitempty" doc:"of the function; of an alias, the one that it has now"`
	Previous  int64        `json:"previous_version,omitempty" doc:"the version that the alias had before"`
	Alias     string       `json:"alias,omitempty"`
	JobID     string       `json:"job_id,omitempty" doc:"the job that a schedule made, that a batch called back with, that announced a task, or that runs an activation"`
	Decision  string       `json:"decision,omitempty" doc:"of an approval: approved, rejected or expired"`
	Batch     *BatchCounts `json:"batch,omitempty" doc:"how many jobs of the batch have ended"`
}

// BatchCounts are the numbers of jobs of a batch that has ended.
type BatchCounts struct {
	Total     int64 `json:"total"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
}

// Page is a page of a list of events, oldest first. It always has a cursor: later events appear
// there.
type Page struct {
	Items      []Event `json:"items"`
	NextCursor *string `json:"next_cursor"`
	More       bool    `json:"more,omitempty" doc:"there were more events when the page was read, which the filters may select"`
	Gap        bool    `json:"gap,omitempty" doc:"events before these may be missing: they are no longer kept"`
}

// Filter selects events. A zero field selects all.
type Filter struct {
	Types     []string // such as job.completed, or job.* for all of jobs
	Namespace string
	Queue     string
	Function  string
}

// Validate reports types that do not exist: CodeInvalid.
func (f *Filter) Validate() error {
	for _, want := range f.Types {
		if !slices.ContainsFunc(Types, func(t string) bool { return typeMatches(want, t) }) {
			return api.InvalidField("types", "has the unknown type "+strconv.Quote(want)+": types are "+strings.Join(Types, ", ")+", and prefixes such as job.*")
		}
	}
	return nil
}

// Matches reports whether the filter selects e.
func (f *Filter) Matches(e *Event) bool {
	return (len(f.Types) == 0 || slices.ContainsFunc(f.Types, func(t string) bool { return typeMatches(t, e.Type) })) &&
		(f.Namespace == "" || f.Namespace == e.Data.Namespace) && (f.Queue == "" || f.Queue == e.Data.Queue) &&
		(f.Function == "" || f.Function == e.Data.Function)
}

// typeMatches reports whether a type of a filter, which may end in *, is t.
func typeMatches(of, t string) bool {
	prefix, all := strings.CutSuffix(of, "*")
	return of == t || all && strings.HasPrefix(t, prefix)
}
