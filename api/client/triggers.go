package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/trigger"
)

// Triggers returns one page of the namespace's queue triggers, by queue.
func (n *Namespace) Triggers(ctx context.Context, o PageOptions) (api.Page[trigger.QueueTrigger], error) {
	var out api.Page[trigger.QueueTrigger]
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodGet, path: n.path("triggers"), query: o.query()}, nil, &out)
	return out, err
}

// Trigger is the handle of the trigger of a queue.
func (n *Namespace) Trigger(queue string) *Trigger { return &Trigger{n, queue} }

// Trigger is the trigger of one queue of a namespace.
type Trigger struct {
	namespace *Namespace
	queue     string
}

// call calls an operation of the trigger. If revision is not 0, the trigger must have it.
func (t *Trigger) call(ctx context.Context, method string, revision int64, body, out any) error {
	r := &request{method: method, path: t.namespace.path("queues", t.queue, "trigger"), header: ifRevision(revision)}
	_, err := t.namespace.tenant.c.call(ctx, r, body, out)
	return err
}

// Get returns the trigger. CodeTriggerNotFound.
func (t *Trigger) Get(ctx context.Context) (trigger.QueueTrigger, error) {
	var out trigger.QueueTrigger
	err := t.call(ctx, http.MethodGet, 0, nil, &out)
	return out, err
}

// Put creates or replaces the trigger; what n leaves out has its default. If ifMatch is not 0,
// the trigger must have that revision. CodeTriggerExists if the queue triggers another function,
// CodeFunctionNotFound, CodeAliasNotFound, CodeVersionNotFound, CodeTriggerLimit,
// CodePreconditionFailed.
func (t *Trigger) Put(ctx context.Context, n trigger.NewQueueTrigger, ifMatch int64) (trigger.QueueTrigger, error) {
	var out trigger.QueueTrigger
	err := t.call(ctx, http.MethodPut, ifMatch, n, &out)
	return out, err
}

// Delete removes the trigger. If ifMatch is not 0, the trigger must have that revision.
// CodeTriggerNotFound, CodePreconditionFailed.
func (t *Trigger) Delete(ctx context.Context, ifMatch int64) error {
	return t.call(ctx, http.MethodDelete, ifMatch, nil, nil)
}
