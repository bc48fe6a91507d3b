package repair

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
)

// Activations looks at asynchronous activations that have not ended: one whose job is
// gone is ended as lost, one whose job has ended gets the end that it should have got.
// Those whose jobs live are left.
func (r *Repairer) Activations(ctx context.Context, found []*activations.Record, now int64) (look Look, err error) {
	jobs := make([]jobstore.Key, len(found))
	for i, a := range found {
		jobs[i] = jobstore.Key{Tenant: a.Tenant, Id: a.JobID}
	}
	seen, err := r.jobs.HeadersOf(ctx, jobs)
	look.Reads += len(jobs)
	if err != nil {
		return look, err
	}
	var errs []error
	for i, g := range seen {
		err := r.activation(ctx, found[i], &g, now, &look)
		if storage.Fatal(ctx, err) {
			return look, err
		}
		errs = append(errs, err)
	}
	return look, errors.Join(errs...)
}

func (r *Repairer) activation(ctx context.Context, a *activations.Record, job *jobstore.Header, now int64, look *Look) error {
	switch {
	case job.Unreadable:
		look.Unreadable = append(look.Unreadable, a.Tenant+"/"+a.JobID)
		return nil
	case job.Stored == "":
		if a.StartMS > now-repairGraceMS {
			return nil
		}
		return r.jobless(ctx, a, now, look)
	case !job.Run.State.Terminal(), job.Run.At > now-repairGraceMS:
		return nil
	}
	found, err := r.jobs.Load(ctx, a.Tenant, []string{a.JobID}, jobstore.DetailFields...)
	look.Reads++
	if err != nil || found[0] == nil || !found[0].Run.State.Terminal() {
		return err
	}
	ended, _, err := r.owner.EndActivation(ctx, a.Tenant, a.ActivationID, found[0])
	look.Reads += 2
	if err != nil || !ended {
		return err
	}
	q := found[0].Queue(a.Tenant)
	look.mended(KindUnfinished, q, a.ActivationID, "its job "+a.JobID+" is "+string(found[0].Run.State))
	return r.owner.SendOutcome(ctx, a.Tenant, found[0])
}

// jobless ends an activation that no job will run.
func (r *Repairer) jobless(ctx context.Context, a *activations.Record, now int64, look *Look) error {
	ended, _, err := r.activations.End(ctx, a.Tenant, a.ActivationID, func(a *activations.Record) {
		a.Status, a.EndMS, a.DurationMS = api.StatusError, max(now, a.StartMS), max(0, now-a.StartMS)
		a.Error = &api.ActivationError{Type: api.ErrLost, Message: "the job that was to run this activation is gone"}
		a.Claim = uuid.NewString() // of two who end it in one millisecond one has
	})
	look.Reads += 2
	if ended {
		look.mended(KindJobless, jobstore.Queue{Tenant: a.Tenant, Namespace: a.Namespace, Name: api.FunctionQueuePrefix + a.Function}, a.ActivationID, "its job "+a.JobID+" is gone")
	}
	if api.ErrorCode(err) == api.CodeActivationNotFound {
		return nil
	}
	return err
}
