package jobs

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue/tasks"
)

const (
	pathTasks = rest.PathTenant + "/tasks"
	pathTask  = pathTasks + "/{task_type}/{task_id}"
)

// TaskPath holds the parameters of a task's path.
type TaskPath struct {
	rest.TenantPath
	TaskType rest.ResourceName `path:"task_type"`
	TaskID   string            `path:"task_id" doc:"1 to 128 letters, digits, dots, underscores and dashes"`
}

// Resolve refuses a malformed tenant, task type or task id.
func (p *TaskPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateTaskType(string(p.TaskType)), api.ValidateTaskID(p.TaskID))
}

// names returns the path's names as tasks.Tasks takes them.
func (p *TaskPath) names() (tenant, taskType, id string) {
	return string(p.Tenant), string(p.TaskType), p.TaskID
}

type taskInput struct{ TaskPath }

// taskOf is the input of a request about a task that has a body of type B: an api.NewTask,
// which creates it, or one of the reports of workers (taskReport).
type taskOf[B any] struct {
	TaskPath
	Body B
}

type taskOutput struct{ Body api.Task }

// madeTaskOutput is a task with the status of its creation: 201 or 200.
type madeTaskOutput struct {
	Status int
	Body   api.Task
}

type listTasksInput struct {
	rest.TenantPath
	rest.PageQuery
	Type  rest.ResourceName `query:"type" doc:"only tasks of this type"`
	Stuck bool              `query:"stuck" doc:"only stuck tasks: those on which no worker has reported within their timeout"`
}

// taskEndpoints declares the routes of tasks. A task of five steps, which one worker begins
// and another ends after the first one died:
//
//	PUT  T/tasks/import/42         {"step_count": 5}                 201, pending; a job announces it
//	POST T/tasks/import/42:claim   {"worker": "w1"}                  claimed by w1
//	POST T/tasks/import/42:step    {"worker": "w1", "step": 2}       step 2
//	(w1 dies; after the timeout the sweeper makes the task pending and announces it again)
//	POST T/tasks/import/42:claim   {"worker": "w2"}                  claimed by w2, still at step 2
//	POST T/tasks/import/42:step    {"worker": "w1", "step": 3}       409 CS_TASK_STATE_CONFLICT
//	POST T/tasks/import/42:complete {"worker": "w2"}                 completed
func (a *API) taskEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPut, Path: pathTask, Action: access.TaskCreate, Extent: rest.HandlerNamespace,
			ID: "create-task", Tag: "tasks", Summary: "Create a task and announce it on its queue", Status: http.StatusCreated,
			Description: "The default namespace is tasks, and the default queue has the name of the type. A repeated call with the same body answers 200 with the task.",
			Also:        []rest.Answer{{Status: http.StatusOK, Content: rest.JSON(api.Task{})}},
		}, a.createTask),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathTask, Action: access.TaskRead, Extent: rest.HandlerNamespace,
			ID: "get-task", Tag: "tasks", Summary: "Read a task",
		}, func(ctx context.Context, in *taskInput) (*taskOutput, error) {
			return answerTask(a.task(ctx, &in.TaskPath))
		}),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathTasks, Action: access.TaskRead, Extent: rest.HandlerNamespace,
			ID: "list-tasks", Tag: "tasks", Summary: "List tasks that have not ended, without payloads, the least recently changed first",
			Description: "Filters are applied while scanning: a page may be short, even empty, and still have a next_cursor.",
		}, a.listTasks),
		taskReport(a, "claim", "Take up a pending task", a.tasks.Claim),
		taskReport(a, "step", "Report the step that the task has reached; it never decreases", a.tasks.Step),
		taskReport(a, "complete", "End a task that is done", a.tasks.Complete),
		taskReport(a, "fail", "End a task that cannot be done", a.tasks.Fail),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathTask + ":cancel", Action: access.TaskCancel, Extent: rest.HandlerNamespace,
			ID: "cancel-task", Tag: "tasks", Summary: "Cancel a task that has not ended",
			Description: "The worker is notified by the answer to its next report. A repeated call succeeds.",
		}, func(ctx context.Context, in *taskInput) (*taskOutput, error) {
			if err := a.requireTask(ctx, &in.TaskPath); err != nil {
				return nil, err
			}
			tenant, taskType, id := in.names()
			return answerTask(a.tasks.Cancel(ctx, tenant, taskType, id))
		}),
	}
}

// taskReport declares a route by which workers report on a task. The body names the
// worker; a report of another worker than the task's fails with CodeTaskState.
func taskReport[B any](a *API, verb, summary string, do func(ctx context.Context, tenant, taskType, id string, body B) (*api.Task, error)) rest.Endpoint {
	return rest.Operation(rest.Route{
		Method: http.MethodPost, Path: pathTask + ":" + verb, Action: access.TaskWork, Extent: rest.HandlerNamespace,
		ID: verb + "-task", Tag: "tasks", Summary: summary, Description: "A repeat by the same worker succeeds.",
	}, func(ctx context.Context, in *taskOf[B]) (*taskOutput, error) {
		if err := a.requireTask(ctx, &in.TaskPath); err != nil {
			return nil, err
		}
		tenant, taskType, id := in.names()
		return answerTask(do(ctx, tenant, taskType, id, in.Body))
	})
}

// answerTask answers with a task. It takes the results of a method of tasks.Tasks.
func answerTask(task *api.Task, err error) (*taskOutput, error) {
	if err != nil {
		return nil, err
	}
	return &taskOutput{Body: *task}, nil
}

// createTask creates a task and the job that announces it. The caller therefore also needs
// the action access.JobEnqueue, and a key that may enter the namespace of that job: the one in
// the body, or api.DefaultTaskNamespace. It answers 200 for a repeat. Errors: CodeAuthzDenied,
// CodeTaskExists if the task was created with other values, those of tasks.Tasks.Create.
//
// The ids of a type are shared by all namespaces of the tenant. A key of one namespace takes
// only ids that begin with the namespace and a dot, so that it cannot occupy, or find out, those
// of other namespaces. Tasks of its namespace with other ids exist if a key of the whole tenant,
// or an earlier release, created them: it may repeat the creation of these.
func (a *API) createTask(ctx context.Context, in *taskOf[api.NewTask]) (*madeTaskOutput, error) {
	tenant, taskType, id := in.names()
	caller := rest.CallerOf(ctx)
	if namespace := in.Body.WithDefaults(taskType).Namespace; !caller.EntersNamespace(namespace) {
		return nil, api.Errorf(api.CodeAuthzDenied, "the API key is for the namespace %s only", caller.Namespace).
			WithFields(api.FieldError{Path: "namespace", Message: "must be " + caller.Namespace + ", not " + namespace})
	}
	if own := caller.Namespace + "."; caller.Namespace != "" && !strings.HasPrefix(id, own) {
		if _, err := a.task(ctx, &in.TaskPath); err != nil {
			return nil, api.Errorf(api.CodeAuthzDenied, "the API key is for the namespace %s only: the ids of its new tasks begin with %s", caller.Namespace, own).
				WithFields(api.FieldError{Path: "task_id", Message: "must begin with " + own})
		}
	}
	if err := caller.Need(access.JobEnqueue); err != nil { // the task is announced by a job
		return nil, err
	}
	task, created, err := a.tasks.Create(ctx, tenant, taskType, id, in.Body)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return &madeTaskOutput{Status: status, Body: *task}, nil
}

// task returns a task of a namespace that the caller may enter; the path of a task does
// not contain its namespace. Errors: CodeTaskNotFound, also for one of another namespace.
func (a *API) task(ctx context.Context, p *TaskPath) (*api.Task, error) {
	tenant, taskType, id := p.names()
	task, err := a.tasks.Get(ctx, tenant, taskType, id)
	if err == nil && !rest.CallerOf(ctx).EntersNamespace(task.Namespace) {
		return nil, tasks.NotFound(taskType, id)
	}
	return task, err
}

// requireTask returns CodeTaskNotFound for a task in a namespace that the caller may not
// enter. For a caller without a namespace it reads nothing.
func (a *API) requireTask(ctx context.Context, p *TaskPath) error {
	if rest.CallerOf(ctx).Namespace == "" {
		return nil
	}
	_, err := a.task(ctx, p)
	return err
}

// listTasks answers with a page of the tasks that have not ended, of the namespaces
// that the caller may enter, the least recently changed first.
func (a *API) listTasks(ctx context.Context, in *listTasksInput) (*rest.PageOutput[api.Task], error) {
	tenant, taskType := string(in.Tenant), string(in.Type)
	return rest.ReadPage(rest.ListScope("tasks", tenant, taskType, strconv.FormatBool(in.Stuck)), in.Cursor, func(position string) ([]api.Task, string, error) {
		return a.tasks.List(ctx, tasks.List{
			Tenant: tenant, TaskType: taskType, Namespace: rest.CallerOf(ctx).Namespace, Stuck: in.Stuck, Cursor: position, Limit: in.Limit,
		})
	})
}
