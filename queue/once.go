package queue

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// EnqueueOnce adds a job under an id derived from its cause to the queue that spec names. If a
// job with this id exists, it changes nothing, even if the job has another spec or has ended.
// A job that has been purged is made again. Errors: as of Enqueue.
func (b *Broker) EnqueueOnce(ctx context.Context, tenant, id string, spec *api.JobSpec) error {
	job := api.NewJob{Payload: spec.Payload, JobOptions: spec.JobOptions}
	if err := job.Validate(b.store.NowMS()); err != nil {
		return err
	}
	if err := b.checkOptions(spec.Queue, &spec.JobOptions); err != nil {
		return err
	}
	_, err := b.enqueueTogether(ctx, jobstore.Queue{Tenant: tenant, Namespace: spec.Namespace, Name: spec.Queue}, []string{id}, []*api.JobSpec{spec}, false)
	return err
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
