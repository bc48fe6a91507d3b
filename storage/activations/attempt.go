package activations

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Queued is the record of the activation that a job runs, before its
// first attempt; nil where the job runs none.
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
		a.Trigger.Source = json.RawMessage(fmt.Sprintf(`{"schedule":%q,"tick_ms":%d,"tick_seq":%d}`, s.Schedule, s.TickMS, s.TickSeq))
	}
	a.InQueue(spec.Queue, 0)
	return a
}

// InQueue says in a's trigger which attempt of its job runs it, unless it says which
// tick made it.
func (a *Record) InQueue(queue string, attempt int) {
	if a.Trigger.Type == api.TriggerSchedule && a.Trigger.Source != nil {
		return
	}
	a.Trigger.Source = json.RawMessage(fmt.Sprintf(`{"queue":%q,"job_id":%q,"attempt":%d}`, queue, a.JobID, attempt))
}

// Attempt stores the record of an asynchronous activation that begins an attempt
// (running) or goes back into its queue (queued), if what is stored has not ended
// and stands at attempt upTo at most. current is what stands there otherwise. One
// that was never stored is stored now.
func (r *Repository) Attempt(ctx context.Context, a *Record, upTo int) (won bool, current *Record, err error) {
	raw, err := encodeRecord(a)
	if err != nil {
		return false, nil, err
	}
	reply, err := r.s.CommitScript(ctx, a.ActivationID, scriptAttempt,
		[]string{
			r.s.Keys().ActivationMeta(a.Tenant, a.ActivationID),
			r.s.Keys().ActivationIndex(a.Tenant, a.Namespace, a.Function),
		},
		raw, upTo, a.JobID, int64(api.ActivationTTLMS), a.ActivationID, a.StartMS)
	if err != nil {
		return false, nil, err
	}
	if heldRaw, lost := reply.(string); lost {
		held, err := r.join(ctx, heldRaw)
		return false, held, err
	}
	return true, a, nil
}

// End ends an activation that has not, as change says; ended is false where it
// had. It gives what is stored then. CodeActivationNotFound.
func (r *Repository) End(ctx context.Context, tenant, id string, change func(*Record)) (ended bool, current *Record, err error) {
	err = storage.RetryConflicts(ctx, func() error {
		held, _, err := r.read(ctx, tenant, id)
		if err != nil {
			return err
		}
		if current = held; held.Status.Terminal() {
			return nil
		}
		a := *held
		change(&a)
		if ended, current, err = r.Finish(ctx, &a, held.Attempt); err != nil || ended {
			return err
		}
		return api.Errorf(api.CodeStoreConflict, "the activation changed meanwhile")
	})
	return ended, current, err
}
