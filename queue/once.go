package queue

import (
	"context"

	"github.com/codesous/sous/api"
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
	_, err := b.enqueueTogether(ctx, queueKey{tenant, spec.Namespace, spec.Queue}, []string{id}, []*api.JobSpec{spec}, false)
	return err
}

// StateOf says where a job stands, "" if there is none, and reads nothing else of it.
func (b *Broker) StateOf(ctx context.Context, tenant, id string) (api.JobState, error) {
	states, err := b.statesOf(ctx, tenant, []string{id})
	if err != nil {
		return "", err
	}
	return states[0], nil
}

// Draining says whether a queue takes no new jobs.
func (b *Broker) Draining(ctx context.Context, tenant, namespace, queue string) (bool, error) {
	reply, err := b.rdb.HMGet(ctx, b.keys(queueKey{tenant, namespace, queue}).Config(), configFields...).Result()
	if err != nil {
		return false, b.failure(ctx, "read a queue", err)
	}
	return configOf(reply).Draining, nil
}
