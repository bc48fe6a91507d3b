package controlplane

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/tasks"
)

const (
	pathTasks = pathTenant + "/tasks"
	pathTask  = pathTasks + "/{task_type}/{task_id}"
)

// TaskPath is the path of a task.
type TaskPath struct {
	TenantPath
	TaskType resourceName `path:"task_type"`
	TaskID   string       `path:"task_id" doc:"1 to 128 letters, digits, dots, underscores and dashes"`
}

// Resolve refuses what cannot be a task.
func (p *TaskPath) Resolve(huma.Context) []error {
	return problems(api.ValidateTenant(string(p.Tenant)), api.ValidateTaskType(string(p.TaskType)), api.ValidateTaskID(p.TaskID))
}

// names are the path's names as tasks take them.
func (p *TaskPath) names() (tenant, taskType, id string) {
	return string(p.Tenant), string(p.TaskType), p.TaskID
}

type taskInput struct{ TaskPath }

// taskOf is the path of a task and what a caller says about it.
type taskOf[B any] struct {
	TaskPath
	Body B
}

type taskOutput struct{ Body api.Task }

type madeTaskOutput struct {
	Status int
	Body   api.Task
}

type listTasksInput struct {
	TenantPath
	PageQuery
	Type  resourceName `query:"type" doc:"only tasks of this type"`
	Stuck bool         `query:"stuck" doc:"only those of which nobody has heard in time"`
}

type taskPageOutput struct{ Body api.Page[api.Task] }

func (s *Server) routeTasks(t typedAPI) {
	tags := []string{"tasks"}
	register(t, huma.Operation{
		OperationID: "create-task", Method: http.MethodPut, Path: pathTask, Tags: tags,
		Summary: "Create a task and announce it on its queue", DefaultStatus: http.StatusCreated,
		Description: "The namespace is tasks, and the queue is called as the type, unless the body says otherwise. A repeat of the same answers 200 with the task.",
		Responses: map[string]*huma.Response{"200": {
			Description: "OK", Content: content(t.OpenAPI().Components.Schemas, map[string]any{contentTypeJSON: api.Task{}}),
		}},
	}, s.createTask)
	register(t, huma.Operation{
		OperationID: "get-task", Method: http.MethodGet, Path: pathTask, Tags: tags,
		Summary: "Read a task",
	}, func(ctx context.Context, in *taskInput) (*taskOutput, error) {
		return answerTask(s.task(ctx, &in.TaskPath))
	})
	register(t, huma.Operation{
		OperationID: "list-tasks", Method: http.MethodGet, Path: pathTasks, Tags: tags,
		Summary:     "List tasks that have not ended, those first that changed longest ago, without their payloads",
		Description: "Filters are applied while scanning: a page may be short, even empty, and still have a next_cursor.",
	}, s.listTasks)
	work(t, s, "claim", "Take up a pending task", s.tasks.Claim)
	work(t, s, "step", "Say how far the task has come; the step does not go back", s.tasks.Step)
	work(t, s, "complete", "End a task that is done", s.tasks.Complete)
	work(t, s, "fail", "End a task that cannot be done", s.tasks.Fail)
	register(t, huma.Operation{
		OperationID: "cancel-task", Method: http.MethodPost, Path: pathTask + ":cancel", Tags: tags,
		Summary: "Cancel a task that has not ended", DefaultStatus: http.StatusOK,
		Description: "Its worker learns of it by its next report. A repeat succeeds.",
	}, func(ctx context.Context, in *taskInput) (*taskOutput, error) {
		if err := s.entersTask(ctx, &in.TaskPath); err != nil {
			return nil, err
		}
		tenant, taskType, id := in.names()
		return answerTask(s.tasks.Cancel(ctx, tenant, taskType, id))
	})
}

// work registers a call by which workers report on a task.
func work[B any](t typedAPI, s *Server, verb, summary string, do func(ctx context.Context, tenant, taskType, id string, body B) (*api.Task, error)) {
	register(t, huma.Operation{
		OperationID: verb + "-task", Method: http.MethodPost, Path: pathTask + ":" + verb, Tags: []string{"tasks"},
		Summary: summary, DefaultStatus: http.StatusOK, Description: "A repeat by the same worker succeeds.",
	}, func(ctx context.Context, in *taskOf[B]) (*taskOutput, error) {
		if err := s.entersTask(ctx, &in.TaskPath); err != nil {
			return nil, err
		}
		tenant, taskType, id := in.names()
		return answerTask(do(ctx, tenant, taskType, id, in.Body))
	})
}

func answerTask(task *api.Task, err error) (*taskOutput, error) {
	if err != nil {
		return nil, err
	}
	return &taskOutput{Body: *task}, nil
}

func (s *Server) createTask(ctx context.Context, in *taskOf[api.NewTask]) (*madeTaskOutput, error) {
	tenant, taskType, id := in.names()
	caller := callerOf(ctx)
	if namespace := in.Body.WithDefaults(taskType).Namespace; !caller.entersNamespace(namespace) {
		return nil, api.Errorf(api.CodeAuthzDenied, "the API key is for the namespace %s only", caller.namespace).
			WithFields(api.FieldError{Path: "namespace", Message: "must be " + caller.namespace + ", and the task would be announced in " + namespace})
	}
	if err := caller.need(actionJobEnqueue); err != nil { // its announcement is a job
		return nil, err
	}
	task, created, err := s.tasks.Create(ctx, tenant, taskType, id, in.Body)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return &madeTaskOutput{Status: status, Body: *task}, nil
}

// task reads one. An id says nothing of the namespace: what the caller does not
// enter does not exist. CodeTaskNotFound.
func (s *Server) task(ctx context.Context, p *TaskPath) (*api.Task, error) {
	tenant, taskType, id := p.names()
	task, err := s.tasks.Get(ctx, tenant, taskType, id)
	if err == nil && !callerOf(ctx).entersNamespace(task.Namespace) {
		return nil, tasks.NotFound(taskType, id)
	}
	return task, err
}

// entersTask refuses (CodeTaskNotFound) a task of a namespace that the caller does
// not enter.
func (s *Server) entersTask(ctx context.Context, p *TaskPath) error {
	if callerOf(ctx).namespace == "" {
		return nil
	}
	_, err := s.task(ctx, p)
	return err
}

func (s *Server) listTasks(ctx context.Context, in *listTasksInput) (*taskPageOutput, error) {
	tenant, taskType := string(in.Tenant), string(in.Type)
	list := listScope("tasks", tenant, taskType, strconv.FormatBool(in.Stuck))
	position, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.tasks.List(ctx, tasks.List{
		Tenant: tenant, TaskType: taskType, Namespace: callerOf(ctx).namespace, Stuck: in.Stuck, Cursor: position, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return &taskPageOutput{Body: page(items, list.seal(next))}, nil
}
