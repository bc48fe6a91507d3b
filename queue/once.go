package queue

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// Admit takes the quotas of a job that EnqueueOnce will add to the queue that spec names, and of more
// bytes that are stored with it. Errors: as of Enqueue.
func (b *Broker) Admit(ctx context.Context, tenant string, spec *api.JobSpec, more int) error {
	q, err := b.checkOnce(tenant, spec)
	if err == nil {
		err = b.admission.Jobs(ctx, q, []*api.JobSpec{spec}, false)
	}
	if err == nil {
		err = b.admission.Bytes(ctx, tenant, more)
	}
	return err
}

// EnqueueOnce adds a job under an id derived from its cause to the queue that spec names. If a
// job with this id exists, it changes nothing, even if the job has another spec or has ended.
// A job that has been purged is made again. If quotasTaken is set,
// Admit has taken its quotas. Errors: as of Enqueue.
func (b *Broker) EnqueueOnce(ctx context.Context, tenant, id string, spec *api.JobSpec, quotasTaken bool) error {
	q, err := b.checkOnce(tenant, spec)
	if err != nil {
		return err
	}
	from := ofCaller
	if quotasTaken {
		from = admitted
	}
	items, err := b.items(ctx, q, []string{id}, []*api.JobSpec{spec}, from)
	if err == nil {
		_, err = b.addTogether(ctx, q, items)
	}
	return err
}

// checkOnce validates spec and returns its queue.
func (b *Broker) checkOnce(tenant string, spec *api.JobSpec) (jobstore.Queue, error) {
	q := jobstore.Queue{Tenant: tenant, Namespace: spec.Namespace, Name: spec.Queue}
	job := api.NewJob{Payload: spec.Payload, JobOptions: spec.JobOptions}
	if err := job.Validate(b.store.NowMS()); err != nil {
		return q, err
	}
	return q, b.checkOptions(spec.Queue, &spec.JobOptions, schema.NewBudget())
}

// StateOf returns the state of a job, "" if it does not exist, and reads nothing else of it.
// Errors: CodeStoreUnavailable.
func (b *Broker) StateOf(ctx context.Context, tenant, id string) (api.JobState, error) {
	states, err := b.jobs.States(ctx, tenant, []string{id})
	if err != nil {
		return "", err
	}
	return states[0], nil
}

// Draining reports whether a queue is draining, which means that it accepts no new jobs.
// Errors: CodeStoreUnavailable.
func (b *Broker) Draining(ctx context.Context, tenant, namespace, queue string) (bool, error) {
	reply, err := b.rdb.HMGet(ctx, b.jobs.Keys(jobstore.Queue{Tenant: tenant, Namespace: namespace, Name: queue}).Config(), jobstore.ConfigFields...).Result()
	if err != nil {
		return false, jobstore.Failure(ctx, "read a queue", err)
	}
	return jobstore.ParseConfig(reply).Draining, nil
}
