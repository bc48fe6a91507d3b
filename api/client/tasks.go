package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/codesous/sous/api"
)

// CreateTask creates a task, which is announced on its queue. created is false if the task
// exists and was created by the same request. CodeTaskExists, CodeQueueDraining,
// CodeQueueReserved.
func (t *Tenant) CreateTask(ctx context.Context, taskType, id string, n api.NewTask) (task api.Task, created bool, err error) {
	a, err := t.c.call(ctx, &request{method: http.MethodPut, path: t.path("tasks", taskType, id)}, n, &task)
	return task, err == nil && a.status == http.StatusCreated, err
}

// Task returns one task. CodeTaskNotFound.
func (t *Tenant) Task(ctx context.Context, taskType, id string) (api.Task, error) {
	var out api.Task
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("tasks", taskType, id)}, nil, &out)
	return out, err
}

// TaskFilter narrows a list of tasks; its zero value selects all that have not ended.
type TaskFilter struct {
	Type  string
	Stuck bool // only stuck tasks; see api.Task.StuckAt
}

// Tasks returns one page of the tasks that have not ended, without their payloads, the
// least recently changed first. A page may be shorter than its limit and
// still have a cursor.
func (t *Tenant) Tasks(ctx context.Context, f TaskFilter, o PageOptions) (api.Page[api.Task], error) {
	query := o.query()
	if f.Type != "" {
		query.Set("type", f.Type)
	}
	if f.Stuck {
		query.Set("stuck", "true")
	}
	var out api.Page[api.Task]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("tasks"), query: query}, nil, &out)
	return out, err
}

// TaskEvents returns a page of the changes of the tasks of a type, each the task after the
// change, without its payload; of one task only where id is not "". A page always has a cursor:
// later changes appear there.
func (t *Tenant) TaskEvents(ctx context.Context, taskType, id string, o PageOptions) (api.Page[api.Task], error) {
	var out api.Page[api.Task]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.taskEvents(taskType, id), query: o.query()}, nil, &out)
	return out, err
}

func (t *Tenant) taskEvents(taskType, id string) string {
	if id == "" {
		return t.path("tasks", taskType) + ":events"
	}
	return t.path("tasks", taskType, id) + ":events"
}

// FollowTask calls handle with a task as it is, and again whenever it has changed, until it has
// ended; changes within half a second may be one call. A broken stream is opened again, at most
// MaxAttempts times in a row without a change in between. An error of handle ends it and is
// returned. CodeTaskNotFound.
func (t *Tenant) FollowTask(ctx context.Context, taskType, id string, handle func(api.Task) error) error {
	return t.followTasks(ctx, taskType, id, "", handle)
}

// FollowTasks calls handle with the tasks of a type after each change, from the cursor of a page
// of TaskEvents on, or else from the next change on, until ctx ends or handle fails.
func (t *Tenant) FollowTasks(ctx context.Context, taskType, cursor string, handle func(api.Task) error) error {
	return t.followTasks(ctx, taskType, "", cursor, handle)
}

func (t *Tenant) followTasks(ctx context.Context, taskType, id, cursor string, handle func(api.Task) error) error {
	follow := &stream{c: t.c, path: t.taskEvents(taskType, id), query: PageOptions{Cursor: cursor}.query(), take: func(e sentEvent) (bool, error) {
		if e.name != eventProgress && e.name != eventTerminal {
			return false, nil // ignore other events
		}
		var task api.Task
		if err := json.Unmarshal(e.data, &task); err != nil {
			return true, fmt.Errorf("event of task type %s: %w", taskType, err)
		}
		return id != "" && e.name == eventTerminal, handle(task)
	}}
	return follow.run(ctx)
}

// ClaimTask claims a pending task for a worker. This and the methods below are safe to
// repeat by the same worker; the client repeats them if the server asks for it. CodeTaskNotFound, CodeTaskState.
func (t *Tenant) ClaimTask(ctx context.Context, taskType, id string, c api.TaskClaim) (api.Task, error) {
	return t.reportTask(ctx, taskType, id, "claim", c)
}

// StepTask reports the progress of a task and that its worker is alive. CodeTaskNotFound,
// CodeTaskState.
func (t *Tenant) StepTask(ctx context.Context, taskType, id string, s api.TaskStep) (api.Task, error) {
	return t.reportTask(ctx, taskType, id, "step", s)
}

// CompleteTask ends a task that succeeded. CodeTaskNotFound, CodeTaskState.
func (t *Tenant) CompleteTask(ctx context.Context, taskType, id string, c api.TaskCompletion) (api.Task, error) {
	return t.reportTask(ctx, taskType, id, "complete", c)
}

// FailTask ends a task that failed. CodeTaskNotFound, CodeTaskState.
func (t *Tenant) FailTask(ctx context.Context, taskType, id string, f api.TaskFailure) (api.Task, error) {
	return t.reportTask(ctx, taskType, id, "fail", f)
}

// CancelTask ends a task that has not ended, for any worker. CodeTaskNotFound,
// CodeTaskState.
func (t *Tenant) CancelTask(ctx context.Context, taskType, id string) (api.Task, error) {
	return t.reportTask(ctx, taskType, id, "cancel", nil)
}

func (t *Tenant) reportTask(ctx context.Context, taskType, id, verb string, in any) (api.Task, error) {
	var out api.Task
	r := &request{method: http.MethodPost, path: t.path("tasks", taskType, id) + ":" + verb, again: true}
	_, err := t.c.call(ctx, r, in, &out)
	return out, err
}
