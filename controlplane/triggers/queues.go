package triggers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage/triggers"
)

const (
	pathTriggers     = rest.PathNamespace + "/triggers"
	pathQueueTrigger = rest.PathNamespace + "/queues/{queue}/trigger"
)

// QueueTriggerPath holds the parameters of the path of a queue's trigger.
type QueueTriggerPath struct {
	rest.NamespacePath
	Queue rest.ResourceName `path:"queue"`
}

// Resolve refuses a name that does not match its pattern.
func (p *QueueTriggerPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("namespace", string(p.Namespace)), api.ValidateQueue(string(p.Queue)))
}

func (p *QueueTriggerPath) names() (tenant, namespace, queue string) {
	return string(p.Tenant), string(p.Namespace), string(p.Queue)
}

type listTriggersInput struct {
	rest.NamespacePath
	rest.PageQuery
	Function string `query:"function" doc:"only the triggers of this function"`
}

type triggerInput struct{ QueueTriggerPath }

type putTriggerInput struct {
	QueueTriggerPath
	IfMatch string `header:"If-Match" doc:"the ETag that the trigger must have now"`
	Body    trigger.NewQueueTrigger
}

type deleteTriggerInput struct {
	QueueTriggerPath
	IfMatch string `header:"If-Match" doc:"the ETag that the trigger must have now"`
}

type triggerOutput struct {
	Status int
	ETag   string `header:"ETag"`
	Body   trigger.QueueTrigger
}

// queueEndpoints declares the routes of queue triggers.
func (a *API) queueEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathTriggers, Action: access.TriggerRead, Extent: rest.PathNamespaceOnly,
			ID: "list-triggers", Tag: "queues", Summary: "List a namespace's queue triggers by queue",
		}, a.listTriggers),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathQueueTrigger, Action: access.TriggerRead, Extent: rest.PathNamespaceOnly,
			ID: "get-trigger", Tag: "queues", Summary: "Read the trigger of a queue", Description: "The ETag is its revision.",
		}, a.getTrigger),
		rest.Operation(rest.Route{
			Method: http.MethodPut, Path: pathQueueTrigger, Action: access.TriggerWrite, Extent: rest.PathNamespaceOnly,
			ID: "put-trigger", Tag: "queues", Summary: "Let the jobs of a queue invoke a function",
			Description: "The function gets the jobs in batches, as its method queue takes them; a function that is no such object gets one job at a time. " +
				"Fields that are left out have their defaults. 201 for a new trigger; 409 if the queue triggers another function. " +
				"The activations act for the caller, which needs cs:function:invoke, cs:job:fetch and a role of the version's invoke_http_roles.",
			Also: []rest.Answer{{Status: http.StatusCreated, Content: rest.JSON(trigger.QueueTrigger{})}},
		}, a.putTrigger),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathQueueTrigger, Action: access.TriggerDelete, Extent: rest.PathNamespaceOnly,
			ID: "delete-trigger", Tag: "queues", Summary: "Delete the trigger of a queue", Description: "Activations that run continue, and the jobs stay in their queue.",
		}, a.deleteTrigger),
	}
}

// answerTrigger answers with a trigger. Its ETag is its revision.
func answerTrigger(status int, t *trigger.QueueTrigger) *triggerOutput {
	return &triggerOutput{Status: status, ETag: rest.RevisionTag(t.Revision), Body: *t}
}

func (a *API) listTriggers(ctx context.Context, in *listTriggersInput) (*rest.PageOutput[trigger.QueueTrigger], error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	return rest.ReadPage(rest.ListScope("triggers", tenant, namespace, in.Function), in.Cursor, func(after string) ([]trigger.QueueTrigger, string, error) {
		return a.queues.List(ctx, tenant, namespace, in.Function, after, in.Limit)
	})
}

// getTrigger answers with the trigger of a queue. Errors: CodeTriggerNotFound.
func (a *API) getTrigger(ctx context.Context, in *triggerInput) (*triggerOutput, error) {
	tenant, namespace, queue := in.names()
	t, err := a.queues.Get(ctx, tenant, namespace, queue)
	if err != nil {
		return nil, err
	}
	return answerTrigger(http.StatusOK, &t.QueueTrigger), nil
}

// putTrigger creates or replaces the trigger of a queue and makes the caller its owner. Errors:
// CodeInvalid, CodeTriggerExists, CodeTriggerLimit, CodePreconditionFailed, those of mayTrigger.
func (a *API) putTrigger(ctx context.Context, in *putTriggerInput) (*triggerOutput, error) {
	tenant, namespace, queue := in.names()
	t := in.Body.Trigger(queue)
	if err := t.Validate(); err != nil {
		return nil, err
	}
	revision, err := a.matchTrigger(ctx, &in.QueueTriggerPath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	if err := a.mayTrigger(ctx, tenant, namespace, &t); err != nil {
		return nil, err
	}
	c := rest.CallerOf(ctx)
	record := triggers.Record{QueueTrigger: t, Principal: c.Principal(), Access: c.Access()}
	out, created, err := a.queues.Put(ctx, tenant, namespace, record, revision, a.clock().UnixMilli())
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		rest.NoteMade(ctx, queue)
	}
	return answerTrigger(status, &out), nil
}

// deleteTrigger deletes the trigger of a queue. Errors: CodeTriggerNotFound,
// CodePreconditionFailed.
func (a *API) deleteTrigger(ctx context.Context, in *deleteTriggerInput) (*struct{}, error) {
	revision, err := a.matchTrigger(ctx, &in.QueueTriggerPath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	tenant, namespace, queue := in.names()
	return nil, a.queues.Delete(ctx, tenant, namespace, queue, revision)
}

// matchTrigger returns the revision that the trigger must have by an If-Match, nil for any.
// Errors: CodePreconditionFailed, CodeTriggerNotFound.
func (a *API) matchTrigger(ctx context.Context, p *QueueTriggerPath, ifMatch string) (*int64, error) {
	if ifMatch == "" {
		return nil, nil
	}
	tenant, namespace, queue := p.names()
	found, err := a.queues.Get(ctx, tenant, namespace, queue)
	if err != nil {
		return nil, err
	}
	if !rest.NamesTag(ifMatch, rest.RevisionTag(found.Revision)) {
		return nil, api.Errorf(api.CodePreconditionFailed, "the trigger does not have the ETag that If-Match names")
	}
	return &found.Revision, nil
}

// mayTrigger refuses a trigger whose function the caller may not invoke or feed with jobs:
// activations are not authorized again by action, only by the list of roles. Errors: those of
// mayRun; CodeAuthzDenied.
func (a *API) mayTrigger(ctx context.Context, tenant, namespace string, t *trigger.QueueTrigger) error {
	if err := rest.CallerOf(ctx).Need(access.JobFetch); err != nil {
		return err
	}
	return a.mayRun(ctx, tenant, namespace, api.TriggerQueue, t.Target(), "function")
}
