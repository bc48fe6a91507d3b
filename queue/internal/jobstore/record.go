package jobstore

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/ledger"
)

// The fields of a job's hash, called its details. An empty value counts as absent. Most
// jobs have no hash at all: a job's spec and its run have keys of their own.
//
//	progress              written by heartbeats, as JSON, after the run; kept until the purge
//	checkpoint            as progress; also by an ack with continue or hold, before the run
//	result                written by an ack, as JSON, before the run that completes the job
//	hold_reason           written before a run with the state held; "" replaces an older one
//	dead_reason           written before a run with the state dead, one of api.DeadAttempts …
//	routing               written with a fail for an error of a provider, whose name it is
//	iteration:N           iteration N of a job with agent, see Iterations
//
// A later state does not remove them, so View shows each only in the state to which it
// belongs.
const (
	fieldProgress   = "progress"
	FieldCheckpoint = "checkpoint"
	fieldResult     = "result"
	FieldHoldReason = "hold_reason"
	FieldDeadReason = "dead_reason"
	FieldRouting    = "routing"
)

// Record is a job as it was read. It is a snapshot: a Move of it is made only if the stored
// run still equals Stored.
type Record struct {
	ID      string
	Stored  string // the stored run, for compare-and-set
	Run     Run
	Spec    *api.JobSpec
	Details map[string]string // those that were read
	Size    int               // bytes of the stored spec and of Details
	Ledger  *ledger.Ledger    // nil unless it was read, see FindWithLedger
}

// Queue returns the queue of r, a job of tenant.
func (r *Record) Queue(tenant string) Queue {
	return Queue{tenant, r.Spec.Namespace, r.Spec.Queue}
}

// Ready returns the run that r gets when nothing but its scheduled time keeps it from running:
// scheduled until then, or pending. now is a Unix time in milliseconds.
func (r *Record) Ready(now int64) Run {
	if r.Spec.RunAtMS > now {
		return r.Run.To(api.JobScheduled, r.Spec.RunAtMS)
	}
	return r.Run.To(api.JobPending, now)
}

// DetailFields are the details that a complete view of a job needs.
var DetailFields = []string{fieldProgress, FieldCheckpoint, fieldResult, FieldHoldReason, FieldDeadReason}

// States returns the states of jobs, in the order of ids, "" for those that do not exist. It
// reads no specs, whose payloads may be large. Errors: CodeStoreUnavailable.
func (s *Store) States(ctx context.Context, tenant string, ids []string) ([]api.JobState, error) {
	out := make([]api.JobState, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	runs := make([]string, len(ids))
	for i, id := range ids {
		runs[i] = s.store.JobKeys(tenant).Run(id)
	}
	reply, err := s.rdb.MGet(ctx, runs...).Result()
	if err != nil {
		return nil, Failure(ctx, "read jobs", err)
	}
	for i, text := range Words(reply) {
		if text != "" {
			now, err := ParseRun(text)
			if err != nil {
				return nil, err
			}
			out[i] = now.State
		}
	}
	return out, nil
}

// NotFound returns the error with CodeJobNotFound for job id.
func NotFound(id string) error {
	return api.Errorf(api.CodeJobNotFound, "job %s does not exist", id)
}

// View returns r, a job of tenant, as the API shows it, without its attempts and errors. Options
// that the job was made without have their defaults. What only the platform needs is left out:
// the score, the caller of an invocation and its rights, the marks of a schedule.
func (r *Record) View(tenant string) *api.Job {
	spec := r.Spec
	j := &api.Job{
		ID: r.ID, Namespace: spec.Namespace, Queue: spec.Queue, Payload: spec.Payload, JobOptions: spec.WithDefaults(),
		CreatedAtMS: spec.CreatedAtMS, Approval: spec.Approval, ChainID: spec.ChainID, ChainStep: spec.ChainStep,
		ActivationID: spec.ActivationID(r.ID), State: r.Run.State, Attempt: r.Run.Attempt, StartedAtMS: r.Run.Started, StateSinceMS: r.Run.At,
	}
	j.ParentID, j.CallbackOf = Origin(tenant, r.ID, spec)
	if len(j.Payload) == 0 {
		j.Payload = json.RawMessage("null")
	}
	if spec.Activation != nil {
		j.RetryOf = spec.Activation.RetryOf
	}
	if tick := spec.Schedule; tick != nil {
		j.Schedule = &api.JobTick{Schedule: tick.Schedule, TickMS: tick.TickMS, TickSeq: tick.TickSeq}
	}
	if r.Run.Worker != none {
		j.WorkerID, j.Host = r.Run.Worker, r.Run.Host
	}
	switch {
	case r.Run.State == api.JobActive:
		j.Lease = &api.Lease{Epoch: r.Run.Epoch, ExpiresMS: r.Run.At, WorkerID: r.Run.Worker}
		j.StateSinceMS = 0
	case r.Run.State == api.JobScheduled || r.Run.State == api.JobRetrying:
		j.DueAtMS, j.StateSinceMS = r.Run.At, 0
	case r.Run.State.Terminal():
		j.EndedAtMS = r.Run.At
	}
	j.Progress, j.Checkpoint = RawOf(r.Details[fieldProgress]), RawOf(r.Details[FieldCheckpoint])
	switch r.Run.State { // the details may be newer than the run: show only those that fit it
	case api.JobCompleted:
		j.Result = RawOf(r.Details[fieldResult])
	case api.JobHeld:
		j.HoldReason = r.Details[FieldHoldReason]
		if rule := spec.Approval.Rule(); rule != nil && spec.Approval.Waits() {
			j.HoldReason = cmp.Or(j.HoldReason, "approval: policy "+rule.Policy)
		}
	case api.JobDead:
		j.DeadReason = r.Details[FieldDeadReason]
	}
	return j
}

// RawOf returns s as JSON, nil if it is empty.
func RawOf(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// Holds reports whether epoch holds r's lease, and whether epoch has settled it in the
// given way before: done then marks a repeated call. An expired lease is held until
// maintenance reclaims the job, because only the epoch is compared.
func (r *Record) Holds(epoch int64, kind string) (holds, done bool) {
	return r.Run.State == api.JobActive && r.Run.Epoch == epoch, r.Run.settledBy(epoch, kind)
}
