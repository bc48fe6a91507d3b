package tasks

import (
	"context"
	"fmt"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/statestore/kvrocks"
)

// announcementID returns the id of the job that announces a task for the nth time after its
// creation, because of its last change at updatedAtMS. The id is derived, so that a repeat
// creates no second job. The time of creation is part of it: a task that has expired may be
// created again under the same id.
func announcementID(r *record, updatedAtMS, n int64) string {
	return api.DerivedJobID("task", r.tenant, r.TaskType, r.TaskID,
		strconv.FormatInt(r.CreatedAtMS, 10), strconv.FormatInt(updatedAtMS, 10), strconv.FormatInt(n, 10))
}

// announcement returns the job that announces a pending task. Its payload is an
// api.TaskAnnouncement, whose reason says if it is the first one.
func announcement(r *record) (*api.JobSpec, error) {
	reason := api.TaskCreated
	if r.Republished > 0 {
		reason = api.TaskRepublished
	}
	payload, err := api.EncodeJSON(api.TaskAnnouncement{
		TaskType: r.TaskType, TaskID: r.TaskID, ParamsRef: r.ParamsRef, Payload: r.Payload, Reason: reason,
	})
	if err != nil {
		return nil, fmt.Errorf("encode a task's announcement: %w", err)
	}
	return &api.JobSpec{Namespace: r.Namespace, Queue: r.Queue, Payload: payload}, nil
}

// announce creates the job that a pending task's record names, unless it exists. Error:
// CodeQueueDraining.
func (t *Tasks) announce(ctx context.Context, r *record, quotasTaken bool) error {
	spec, err := announcement(r)
	if err != nil {
		return err
	}
	return t.broker.EnqueueOnce(ctx, r.tenant, r.JobID, spec, quotasTaken)
}

// admit takes the quotas of a new task: of its announcement, its record and the events that it has
// at least. Errors: CodeTenantQuota, CodeTenantRate.
func (t *Tasks) admit(ctx context.Context, r *record, created kvrocks.Event) error {
	spec, err := announcement(r)
	if err != nil {
		return err
	}
	const events = 3 // creation, claim and end
	return t.broker.Admit(ctx, r.tenant, spec, len(r.Payload)+len(r.ParamsRef)+events*len(created.Body))
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
