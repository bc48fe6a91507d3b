package tasks

import (
	"context"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/statestore"
)

// Create creates a pending task and announces it on its queue. created is false if the task
// existed already with the same content: the call can be repeated. The record is written first
// and the job second; a crash in between, or a queue that begins to drain, leaves a pending task
// that the sweeper announces. A repeat announces the task again if it still is pending: the id
// of the job is stored in the record, so the job is made once. The quotas of both are taken before.
// Errors: CodeTaskExists (with other content), CodeQueueDraining, CodeQueueReserved, CodeTenantQuota,
// CodeTenantRate, CodeBodyLimit, CodeInvalid….
func (t *Tasks) Create(ctx context.Context, tenant, taskType, id string, made api.NewTask) (task *api.Task, created bool, err error) {
	if err := validate(tenant, taskType, id); err != nil {
		return nil, false, err
	}
	made = made.WithDefaults(taskType)
	if err := made.Validate(); err != nil {
		return nil, false, err
	}
	r, err := t.newRecord(tenant, taskType, id, made)
	if err != nil {
		return nil, false, err
	}
	r, created, err = t.insert(ctx, r)
	if err != nil {
		return nil, false, err
	}
	if r.State == api.TaskPending && r.Republished == 0 {
		if err := t.announce(ctx, r, true); err != nil && api.ErrorCode(err) != api.CodeQueueDraining {
			return nil, false, err
		}
	}
	return t.show(r), created, nil
}

// newRecord returns the record of a new task: pending, and naming the job of its first
// announcement.
func (t *Tasks) newRecord(tenant, taskType, id string, made api.NewTask) (*record, error) {
	digest, err := made.Digest()
	if err != nil {
		return nil, err
	}
	now := t.store.NowMS()
	r := &record{tenant: tenant, digest: digest, Task: api.Task{
		TaskType: taskType, TaskID: id, State: api.TaskPending, CreatedAtMS: now, UpdatedAtMS: now,
		StepCount: made.StepCount, ParamsRef: made.ParamsRef, Namespace: made.Namespace, Queue: made.Queue,
		TimeoutMS: made.TimeoutMS, Payload: made.Payload,
	}}
	r.JobID = announcementID(r, now, 0)
	return r, nil
}

// insert stores r unless its task exists, and returns the stored record and whether it is r.
// Error: CodeTaskExists if the task has other content.
func (t *Tasks) insert(ctx context.Context, r *record) (*record, bool, error) {
	draining, err := t.broker.Draining(ctx, r.tenant, r.Namespace, r.Queue)
	if err != nil {
		return nil, false, err
	}
	for range maxTries {
		found, err := t.find(ctx, r.tenant, r.TaskType, r.TaskID)
		switch {
		case err == nil && found.digest == r.digest:
			return found, false, nil
		case err == nil:
			return nil, false, api.Errorf(api.CodeTaskExists, "task %s/%s exists with other content", r.TaskType, r.TaskID)
		case api.ErrorCode(err) != api.CodeTaskNotFound:
			return nil, false, err
		case draining:
			return nil, false, api.Errorf(api.CodeQueueDraining, "queue %q is draining and takes no new tasks", r.Queue)
		}
		if err := t.enter(ctx, r.tenant); err != nil {
			return nil, false, err
		}
		e, err := t.event(ctx, nil, r)
		if err == nil {
			err = t.admit(ctx, r, e)
		}
		if err != nil {
			return nil, false, err
		}
		done := false
		err = t.store.Taking(ctx, r.tenant, func() (err error) {
			done, err = t.states.CompareAndPublish(ctx, t.key(r), statestore.Fields{fieldState: nil}, r.fields(), e)
			return err
		}, storage.One(quota.Tasks))
		if err != nil {
			return nil, false, fmt.Errorf("create a task: %w", err)
		}
		if done {
			return r, true, nil
		}
	}
	return nil, false, api.Errorf(api.CodeStoreConflict, "task %s/%s keeps changing", r.TaskType, r.TaskID)
}
