package storage

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// QueuedActivation is the record of the activation that a job runs, before its
// first attempt; nil where the job runs none.
func QueuedActivation(tenant, jobID string, spec *api.JobSpec) *StoredActivation {
	if spec.Target == nil {
		return nil
	}
	a := &StoredActivation{Activation: api.Activation{
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
func (a *StoredActivation) InQueue(queue string, attempt int) {
	if a.Trigger.Type == api.TriggerSchedule && a.Trigger.Source != nil {
		return
	}
	a.Trigger.Source = json.RawMessage(fmt.Sprintf(`{"queue":%q,"job_id":%q,"attempt":%d}`, queue, a.JobID, attempt))
}

// Attempt stores the record of an asynchronous activation that begins an attempt
// (running) or goes back into its queue (queued), if what is stored has not ended
// and stands at attempt upTo at most. current is what stands there otherwise. One
// that was never stored is stored now.
func (r *Activations) Attempt(ctx context.Context, a *StoredActivation, upTo int) (won bool, current *StoredActivation, err error) {
	raw, err := encodeActivation(a)
	if err != nil {
		return false, nil, err
	}
	w := &scriptWrite{
		script: r.s.scripts[scriptActivationAttempt],
		keys: []string{
			r.s.keys.activationMeta(a.Tenant, a.ActivationID),
			r.s.keys.activationIndex(a.Tenant, a.Namespace, a.Function),
		},
		args: []any{raw, upTo, a.JobID, int64(api.ActivationTTLMS), a.ActivationID, a.StartMS},
	}
	reply, err := r.commitScript(ctx, a.ActivationID, scriptActivationAttempt, w)
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
func (r *Activations) End(ctx context.Context, tenant, id string, change func(*StoredActivation)) (ended bool, current *StoredActivation, err error) {
	err = retryConflicts(ctx, func() error {
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

// commitScript runs a script of the hot path with those of other activations.
func (r *Activations) commitScript(ctx context.Context, id, name string, w *scriptWrite) (any, error) {
	if err := r.s.commits.do(ctx, id, w); err != nil {
		return nil, failure(ctx, name, err)
	}
	reply, err := w.reply.Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return r.s.eval(ctx, name, w.keys, w.args...)
	}
	return reply, scriptFailure(ctx, name, err)
}

// scriptWrite is a script's share of a group commit.
type scriptWrite struct {
	script *redis.Script
	keys   []string
	args   []any

	reply *redis.Cmd
}

func (w *scriptWrite) indexEntry() (key string, entry redis.Z) { return "", redis.Z{} }

func (w *scriptWrite) queue(ctx context.Context, pipe redis.Pipeliner, _ *redis.IntCmd) {
	w.reply = w.script.EvalSha(ctx, pipe, w.keys, w.args...)
}
