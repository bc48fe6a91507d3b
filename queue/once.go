package queue

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// EnqueueOnce adds a job under an id derived from its cause, where there is none of
// that id: a repeat changes nothing. spec says its namespace and queue. Errors: as
// of Enqueue.
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

// StateOf says where a job stands, "" if there is none, and reads nothing else of it.
func (b *Broker) StateOf(ctx context.Context, tenant, id string) (api.JobState, error) {
	states, err := b.jobs.States(ctx, tenant, []string{id})
	if err != nil {
		return "", err
	}
	return states[0], nil
}

// Draining says whether a queue takes no new jobs.
func (b *Broker) Draining(ctx context.Context, tenant, namespace, queue string) (bool, error) {
	reply, err := b.rdb.HMGet(ctx, b.jobs.Keys(jobstore.Queue{Tenant: tenant, Namespace: namespace, Name: queue}).Config(), jobstore.ConfigFields...).Result()
	if err != nil {
		return false, jobstore.Failure(ctx, "read a queue", err)
	}
	return jobstore.ParseConfig(reply).Draining, nil
}
