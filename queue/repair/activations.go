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

// Activations checks asynchronous activations that have not ended, at now, a Unix time in
// milliseconds. An activation whose job does not exist is ended as lost, one whose job has ended
// is ended accordingly, and its outcome is sent. Activations with live jobs are not changed.
//
//	the job               since          the activation
//	does not exist        its start      ended as ErrLost after the grace
//	is live               —              left: a worker will run or end it
//	has ended             the job's end  ended as the job ended, after the grace
//	cannot be decoded     —              left, reported in Findings.Unreadable
//
// An error with one record does not stop the check of the others, unless the store is unavailable.
func (r *Repairer) Activations(ctx context.Context, found []*activations.Record, now int64) (findings Findings, err error) {
	jobs := make([]jobstore.Key, len(found))
	for i, a := range found {
		jobs[i] = jobstore.Key{Tenant: a.Tenant, ID: a.JobID}
	}
	seen, err := r.jobs.HeadersOf(ctx, jobs)
	findings.Reads += len(jobs)
	if err != nil {
		return findings, err
	}
	var errs []error
	for i, g := range seen {
		err := r.activation(ctx, found[i], &g, now, &findings)
		if storage.Fatal(ctx, err) {
			return findings, err
		}
		errs = append(errs, err)
	}
	return findings, errors.Join(errs...)
}

// activation checks one activation whose job has the given header.
func (r *Repairer) activation(ctx context.Context, a *activations.Record, job *jobstore.Header, now int64, findings *Findings) error {
	switch {
	case job.Unreadable:
		findings.Unreadable = append(findings.Unreadable, a.Tenant+"/"+a.JobID)
		return nil
	case job.Stored == "":
		if a.StartMS > now-repairGraceMS {
			return nil
		}
		return r.jobless(ctx, a, now, findings)
	case !job.Run.State.Terminal(), job.Run.At > now-repairGraceMS:
		return nil
	}
	found, err := r.jobs.FindWith(ctx, a.Tenant, a.JobID, jobstore.DetailFields...)
	findings.Reads++
	if err != nil || found == nil || !found.Run.State.Terminal() {
		return err
	}
	ended, _, err := r.owner.EndActivation(ctx, a.Tenant, a.ActivationID, found)
	findings.Reads += 2
	if err != nil || !ended {
		return err
	}
	q := found.Queue(a.Tenant)
	findings.addRepair(KindUnfinished, q, a.ActivationID, "its job "+a.JobID+" is "+string(found.Run.State))
	return r.owner.SendOutcome(ctx, a.Tenant, found)
}

// jobless ends an activation whose job does not exist.
func (r *Repairer) jobless(ctx context.Context, a *activations.Record, now int64, findings *Findings) error {
	ended, _, err := r.activations.End(ctx, a.Tenant, a.ActivationID, func(a *activations.Record) {
		a.Status, a.EndMS = api.StatusError, max(now, a.StartMS)
		a.Error = &api.ActivationError{Type: api.ErrLost, Message: "the job of this activation does not exist any more"}
		a.Claim = uuid.NewString() // distinguishes callers that end it in the same millisecond
	})
	findings.Reads += 2
	if ended {
		findings.addRepair(KindJobless, jobstore.Queue{Tenant: a.Tenant, Namespace: a.Namespace, Name: api.FunctionQueuePrefix + a.Function}, a.ActivationID, "its job "+a.JobID+" does not exist")
	}
	if api.ErrorCode(err) == api.CodeActivationNotFound {
		return nil
	}
	return err
}
