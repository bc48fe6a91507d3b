package activations

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Queued returns the record of the activation that a job runs, before its first attempt;
// nil where the job does not run one.
func Queued(tenant, jobID string, spec *api.JobSpec) *Record {
	if spec.Target == nil {
		return nil
	}
	a := &Record{Activation: api.Activation{
		ActivationID: spec.ActivationID(jobID), Tenant: tenant, Namespace: spec.Namespace, Function: spec.Target.Function,
		Ref: spec.Target.Ref(), Trigger: api.Trigger{Type: api.TriggerQueue}, Status: api.StatusQueued,
		StartMS: spec.CreatedAtMS, JobID: jobID,
	}}
	if of := spec.Activation; of != nil {
		a.Trigger.Type, a.RequestID, a.RetryOf, a.EventSHA256 = of.Trigger.Type, of.RequestID, of.RetryOf, of.Fingerprint
		a.StartMS = max(a.StartMS, of.RetriedAtMS)
	}
	if s := spec.Schedule; s != nil && a.Trigger.Type == api.TriggerSchedule {
		// A struct of texts and numbers always encodes.
		a.Trigger.Source, _ = json.Marshal(api.ScheduleSource{Schedule: s.Schedule, Cron: s.Cron, TickMS: s.TickMS, TickSeq: s.TickSeq})
	}
	a.InQueue(spec.Queue, 0)
	return a
}

// InQueue stores in a's trigger which attempt of its job runs it, unless the trigger names
// the tick of a schedule. An attempt of 0 is none yet.
func (a *Record) InQueue(queue string, attempt int) {
	if a.Trigger.Type == api.TriggerSchedule && a.Trigger.Source != nil {
		return
	}
	a.Trigger.Source = json.RawMessage(fmt.Sprintf(`{"queue":%q,"job_id":%q,"attempt":%d}`, queue, a.JobID, attempt))
}

// Begin stores the record of an asynchronous activation that begins an attempt under a.LeaseEpoch.
// It does so if the stored record has not ended, belongs to the job a.JobID and to an earlier lease,
// or does not exist yet. Otherwise won is false and current is the stored record. A repeat of the
// same record wins.
//
// A job with one retry, as status and lease of the record:
//
//	queued 0     accepted
//	running 1    Begin: the worker that holds the first lease
//	queued 1     Requeue: the attempt failed, the job is retried later
//	running 2    Begin
//	success 2    Finish
//
// If the first lease expires and a second worker begins an attempt, every write of the first worker
// finds the second lease and loses.
func (r *Repository) Begin(ctx context.Context, a *Record) (won bool, current *Record, err error) {
	return r.attempt(ctx, a, a.LeaseEpoch-1)
}

// Requeue stores the record of an asynchronous activation that returns to its queue. It is Begin for
// a record that is of the lease a.LeaseEpoch, or of an earlier one.
func (r *Repository) Requeue(ctx context.Context, a *Record) (won bool, current *Record, err error) {
	return r.attempt(ctx, a, a.LeaseEpoch)
}

// attempt writes a if the stored record has a lease of epoch at most.
func (r *Repository) attempt(ctx context.Context, a *Record, epoch int64) (won bool, current *Record, err error) {
	raw, err := encodeRecord(a)
	if err != nil {
		return false, nil, err
	}
	reply, err := r.s.CommitScript(ctx, a.ActivationID, scriptAttempt,
		[]string{
			r.s.Keys().ActivationMeta(a.Tenant, a.ActivationID),
			r.s.Keys().ActivationIndex(a.Tenant, a.Namespace, a.Function),
			r.s.JobKeys(a.Tenant).Events(),
		},
		raw, epoch, a.JobID, r.keep(a).Milliseconds(), a.ActivationID, a.StartMS, changeText(r.change(a)))
	if err != nil {
		return false, nil, err
	}
	if heldRaw, lost := reply.(string); lost {
		held, err := r.join(ctx, heldRaw)
		return false, held, err
	}
	return true, a, nil
}

// End applies change to an activation that has not ended, which must end it, and stores
// the result. change is called again, on the record as it is then, where another writer was
// first. ended reports whether this call ended it; current is the stored record. One that had
// ended before is no error. CodeActivationNotFound; CodeStoreConflict where other writers
// keep changing it.
func (r *Repository) End(ctx context.Context, tenant, id string, change func(*Record)) (ended bool, current *Record, err error) {
	err = storage.RetryConflicts(ctx, func() error {
		held, _, err := r.read(ctx, tenant, id)
		if err != nil {
			return err
		}
		current = held
		if held.Status.Terminal() {
			return nil
		}
		a := *held
		change(&a)
		ended, current, err = r.Finish(ctx, &a)
		if err != nil || ended {
			return err
		}
		return api.Errorf(api.CodeStoreConflict, "the activation changed meanwhile")
	})
	return ended, current, err
}
