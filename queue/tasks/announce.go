package tasks

import (
	"context"
	"fmt"
	"strconv"

	"github.com/codesous/sous/api"
)

// announcementID returns the id of the job that announces a task for the nth time after its
// creation, because of its last change at updatedAtMS. The id is derived, so that a repeat
// creates no second job. The time of creation is part of it: a task that has expired may be
// created again under the same id.
func announcementID(r *record, updatedAtMS, n int64) string {
	return api.DerivedJobID("task", r.tenant, r.TaskType, r.TaskID,
		strconv.FormatInt(r.CreatedAtMS, 10), strconv.FormatInt(updatedAtMS, 10), strconv.FormatInt(n, 10))
}

// announce creates the job that a pending task's record names, unless it exists. The payload of
// the job is an api.TaskAnnouncement, whose reason says if it is the first one. Error:
// CodeQueueDraining.
func (t *Tasks) announce(ctx context.Context, r *record) error {
	reason := api.TaskCreated
	if r.Republished > 0 {
		reason = api.TaskRepublished
	}
	payload, err := api.EncodeJSON(api.TaskAnnouncement{
		TaskType: r.TaskType, TaskID: r.TaskID, ParamsRef: r.ParamsRef, Payload: r.Payload, Reason: reason,
	})
	if err != nil {
		return fmt.Errorf("encode a task's announcement: %w", err)
	}
	return t.broker.EnqueueOnce(ctx, r.tenant, r.JobID, &api.JobSpec{Namespace: r.Namespace, Queue: r.Queue, Payload: payload})
}

// enter adds the tenant to those whose tasks are swept. It must precede the tenant's first task:
// a tenant without tasks costs the sweeper one command, a task without its tenant is never swept.
func (t *Tasks) enter(ctx context.Context, tenant string) error {
	if _, ok := t.known.GetIfPresent(tenant); ok {
		return nil
	}
	if err := t.tenants.RegisterTasks(ctx, tenant); err != nil {
		return err
	}
	t.known.Set(tenant, struct{}{})
	return nil
}
