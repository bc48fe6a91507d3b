package jobs

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue"
)

// enqueueBody is the body of an enqueue: one job, or a list of them. Both forms are one
// type, since the fields of a single job stand beside jobs:
//
//	{"payload": {"n": 1}, "tags": {"customer": "7"}}
//	{"jobs": [{"payload": {"n": 1}}, {"payload": {"n": 2}}]}
type enqueueBody struct {
	api.NewJob
	// Jobs points to a nil list before the decoding: it still does if the body has no jobs,
	// and is nil if they are null.
	Jobs *[]api.NewJob `json:"jobs,omitempty" doc:"several jobs instead of one; all of them are added, or none"`
}

// enqueuedBody is the answer to an enqueue.
type enqueuedBody struct {
	Jobs []api.EnqueuedJob `json:"jobs" doc:"in the order of the request"`
}

// enqueueEndpoints declares the route that adds jobs. It is a Handle route, since a call may
// have 8 MiB.
func (a *API) enqueueEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodPost, Path: pathQueueJobs, Action: access.JobEnqueue, Extent: rest.PathNamespaceOnly,
			ID: "enqueue-jobs", Tag: "jobs", Summary: "Add one job to a queue, or up to 1,000",
			Description: "Answers when the jobs are durable: 201, or 200 if every job is a duplicate by its unique_key or the call is a repeat under its Idempotency-Key. " +
				"One invalid job refuses all; errors name its index. The queue comes into being with its first job.",
			Parameters: []*huma.Param{
				rest.PathParameter("tenant", rest.TenantName("").Schema(nil)),
				rest.PathParameter("namespace", rest.ResourceName("").Schema(nil)),
				rest.PathParameter("queue", queueName("").Schema(nil)),
				rest.HeaderParameter("Idempotency-Key", "at most 255 bytes; a repeat within a day gets the same jobs"),
			},
			Request: rest.JSON(enqueueBody{}),
			Status:  http.StatusCreated, Answer: rest.JSON(enqueuedBody{}),
			Also: []rest.Answer{{Status: http.StatusOK, Content: rest.JSON(enqueuedBody{})}},
		}, a.postJobs),
	}
}

// postJobs answers 201 if at least one of the jobs is new, and 200 if all are
// duplicates or the request is a repeat under its idempotency key. The jobs are durable
// when it answers.
func (a *API) postJobs(w http.ResponseWriter, r *http.Request) error {
	made, err := a.enqueueJobs(w, r)
	if err != nil {
		return err
	}
	status := http.StatusOK
	for _, job := range made {
		if !job.Duplicate && !job.Replayed {
			status = http.StatusCreated
		}
		if job.Replayed {
			w.Header()[rest.HeaderReplayed] = []string{"true"}
		}
	}
	return rest.WriteJSON(w, r, status, enqueuedBody{made})
}

// enqueueJobs decodes the request and adds its jobs to the queue, all or none. Jobs of a
// caller that is limited to one namespace may only refer to jobs and batches of it
// (Confined). Errors: CodeQueueReserved for fn queues, those of mayRun and of
// queue.Broker.Enqueue.
func (a *API) enqueueJobs(w http.ResponseWriter, r *http.Request) ([]api.EnqueuedJob, error) {
	tenant, namespace, name := rest.PathParam(r, "tenant"), rest.PathParam(r, "namespace"), rest.PathParam(r, "queue")
	if err := validateQueuePath(tenant, namespace, name); err != nil {
		return nil, err
	}
	if err := refuseReserved(name); err != nil {
		return nil, err
	}
	key, err := rest.IdempotencyKey(r)
	if err != nil {
		return nil, err
	}
	body, err := rest.ReadBody(w, r, api.MaxEnqueueBytes)
	if err != nil {
		return nil, err
	}
	request := enqueueBody{Jobs: new([]api.NewJob)}
	if err := a.enqueueBodies.DecodeInto(body, &request); err != nil {
		return nil, err
	}
	jobs, err := request.list()
	if err != nil {
		return nil, err
	}
	return a.enqueue(r.Context(), queue.Enqueue{Tenant: tenant, Namespace: namespace, Queue: name, Jobs: jobs, IdempotencyKey: key})
}

// refuseReserved returns CodeQueueReserved for the queue of a function.
func refuseReserved(name string) error {
	if !strings.HasPrefix(name, api.FunctionQueuePrefix) {
		return nil
	}
	return api.Errorf(api.CodeQueueReserved, "queue %s is the platform's: invoke the function asynchronously", name)
}

// enqueue adds jobs for the caller of ctx, whose names are valid. Errors: those of mayRun, of
// routing.Router.Check and of queue.Broker.Enqueue.
func (a *API) enqueue(ctx context.Context, e queue.Enqueue) ([]api.EnqueuedJob, error) {
	for i := range e.Jobs {
		if err := a.mayRun(ctx, e.Tenant, e.Namespace, &e.Jobs[i].JobOptions); err != nil {
			return nil, err
		}
		if err := a.router.Check(ctx, e.Tenant, e.Jobs[i].Routing); err != nil {
			return nil, err
		}
	}
	e.Confined, e.By = rest.CallerOf(ctx).Namespace != "", author(ctx)
	return a.queue.Enqueue(ctx, e)
}

// list returns the jobs of the request. An empty list is returned as it is; the broker
// refuses it. Errors: CodeInvalid if the body has both one job and a list, or if jobs is null:
// such a body must not count as one job without a payload.
func (b *enqueueBody) list() ([]api.NewJob, error) {
	switch {
	case b.Jobs == nil:
		return nil, api.InvalidField("jobs", "must be a list")
	case *b.Jobs == nil:
		return []api.NewJob{b.NewJob}, nil
	case !reflect.ValueOf(b.NewJob).IsZero():
		return nil, api.InvalidField("jobs", "stands alone: the options of each job stand in it")
	}
	return *b.Jobs, nil
}

// author returns the caller as the one for which jobs run functions.
func author(ctx context.Context) *api.JobAuthor {
	c := rest.CallerOf(ctx)
	return &api.JobAuthor{Principal: c.Principal(), Access: c.Access()}
}

// mayRun refuses options that run a function which the caller may not invoke: when their jobs
// run, only the list of roles is checked again, for the author. It examines the target and the
// targets of all steps of the chain, each once. Options without a target need no permission
// beyond the route's. Errors: CodeAuthzDenied, CodeValidationName, those of Engine.Authorize.
func (a *API) mayRun(ctx context.Context, tenant, namespace string, o *api.JobOptions) error {
	targets := []*api.JobTarget{o.Target}
	if o.Chain != nil {
		for i := range o.Chain.Steps {
			targets = append(targets, o.Chain.Steps[i].Target)
		}
		for _, step := range []*api.ChainStep{o.Chain.OnFailure, o.Chain.OnExit} {
			if step != nil {
				targets = append(targets, step.Target)
			}
		}
	}
	c := rest.CallerOf(ctx)
	checked := map[api.JobTarget]bool{}
	for _, target := range targets {
		if target == nil || checked[*target] {
			continue
		}
		checked[*target] = true
		if err := c.Need(access.FunctionInvoke); err != nil {
			return err
		}
		if err := api.ValidateName("function", target.Function); err != nil {
			return err
		}
		if err := a.engine.Authorize(ctx, &api.Invocation{
			Tenant: tenant, Namespace: namespace, Function: target.Function, Ref: target.Ref(),
			Trigger: api.Trigger{Type: api.TriggerAPI}, Principal: c.Principal(), Access: c.Access(),
		}); err != nil {
			return err
		}
	}
	return nil
}
