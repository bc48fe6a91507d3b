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

// Attempt stores the record of an asynchronous activation that begins an attempt (running)
// or returns to its queue (queued). It does so if the stored record has not ended, belongs to
// the job a.JobID and is at attempt upTo at most, or does not exist yet. Otherwise won is
// false and current is the stored record. A repeat of the same record wins.
//
// A job with one retry, as status and attempt of the record:
//
//	queued 0     accepted
//	running 1    Attempt(a, 0): the worker that holds the lease of attempt 1
//	queued 1     Attempt(a, 1): the attempt failed, the job is retried later
//	running 2    Attempt(a, 1)
//	success 2    Finish(a, 2)
//
// If the lease of attempt 1 expires and a second worker begins attempt 2, every write of the
// first worker finds attempt 2 and loses.
func (r *Repository) Attempt(ctx context.Context, a *Record, upTo int) (won bool, current *Record, err error) {
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
		raw, upTo, a.JobID, r.keep(a).Milliseconds(), a.ActivationID, a.StartMS, changeText(r.change(a)))
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
		ended, current, err = r.Finish(ctx, &a, held.Attempt)
		if err != nil || ended {
			return err
		}
		return api.Errorf(api.CodeStoreConflict, "the activation changed meanwhile")
	})
	return ended, current, err
}
