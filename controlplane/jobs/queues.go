package jobs

import (
	"context"
	"fmt"
	"net/http"
	"regexp"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue"
)

const (
	pathQueues = rest.PathNamespace + "/queues"
	pathQueue  = pathQueues + "/{queue}"
)

type queueName string

// Schema returns the pattern of queues.
func (queueName) Schema(huma.Registry) *huma.Schema {
	return rest.PatternSchema(`(` + regexp.QuoteMeta(api.FunctionQueuePrefix) + `)?` + api.NamePattern)
}

// QueuePath holds the parameters of a queue's path.
type QueuePath struct {
	rest.NamespacePath
	Queue queueName `path:"queue"`
}

// Resolve refuses a name that does not match its pattern.
func (p *QueuePath) Resolve(huma.Context) []error {
	return rest.Problems(validateQueuePath(p.names()))
}

// names returns the path's names as the broker takes them.
func (p *QueuePath) names() (tenant, namespace, queue string) {
	return string(p.Tenant), string(p.Namespace), string(p.Queue)
}

// validateQueuePath returns CodeValidationName for the path of a queue that cannot exist.
func validateQueuePath(tenant, namespace, queue string) error {
	if err := rest.ValidateNamespacePath(tenant, namespace); err != nil {
		return err
	}
	return api.ValidateQueue(queue)
}

type queueInput struct{ QueuePath }

type queueOutput struct {
	ETag string `header:"ETag"`
	Body api.Queue
}

type listQueuesInput struct {
	rest.NamespacePath
	rest.PageQuery
}

// QueueCondition holds the precondition of a change to a queue. At most one of the two may
// be set.
type QueueCondition struct {
	IfMatch     string `header:"If-Match" doc:"the ETag that the configuration must have now"`
	IfNoneMatch string `header:"If-None-Match" doc:"* if the queue must not exist"`
}

type configureQueueInput struct {
	QueuePath
	QueueCondition
	Body configureQueueBody
}

// configureQueueBody is a partial update: nil keeps the value. draining is not part of it;
// :drain and :resume set it.
type configureQueueBody struct {
	Paused         *bool   `json:"paused,omitempty" doc:"hand out no jobs"`
	MaxConcurrency *int64  `json:"max_concurrency,omitempty" doc:"how many jobs may be active; 0 for any number"`
	RateLimit      *int64  `json:"rate_limit,omitempty" doc:"how many jobs may begin in a window; 0 for any number"`
	RateWindowMS   *int64  `json:"rate_window_ms,omitempty" doc:"the window, which slides"`
	RetentionMS    *int64  `json:"retention_ms,omitempty" doc:"how long ended jobs are kept, 1 hour to 365 days; 0 for the retention of the tenant"`
	Provider       *string `json:"provider,omitempty" maxLength:"128" doc:"the provider of models, or the route, of jobs without routing; an empty text for none"`
	Events         *string `json:"events,omitempty" enum:"all,ends,off" doc:"which events of its jobs are recorded: all, those of ends (completed, dead, cancelled), or none"`
}

type deleteQueueInput struct {
	QueuePath
	IfMatch string `header:"If-Match" doc:"the ETag that the configuration must have now"`
}

type redriveQueueInput struct {
	QueuePath
	Body *redriveBody
}

// redriveBody selects dead jobs; a job must match all of it. Without a body all match.
// FromMS and ToMS are Unix milliseconds, in [from_ms, to_ms); 0 leaves an end open.
type redriveBody struct {
	IDs      []string `json:"ids,omitempty" maxItems:"1000" doc:"these jobs only"`
	Reason   string   `json:"reason,omitempty" enum:"attempts,fatal,crashed,expired,rejected,dependency,iterations,cost,iteration_timeout,budget" doc:"only jobs that died for this reason"`
	Tag      string   `json:"tag,omitempty" maxLength:"128" doc:"only those with this tag"`
	TagValue string   `json:"tag_value,omitempty" maxLength:"128" doc:"and this value of it"`
	FromMS   int64    `json:"from_ms,omitempty" minimum:"0" doc:"only jobs that died at or after this time"`
	ToMS     int64    `json:"to_ms,omitempty" minimum:"0" doc:"only jobs that died before this time"`
	Limit    int      `json:"limit,omitempty" minimum:"0" doc:"the maximum number of jobs; 0 for all"`
}

type clearedOutput struct{ Body clearedBody }

type clearedBody struct {
	Cleared int `json:"cleared" doc:"jobs that were removed"`
}

type redrivenOutput struct{ Body redrivenBody }

type redrivenBody struct {
	Redriven int `json:"redriven" doc:"jobs that have one more attempt"`
}

// queueEndpoints declares the routes of queues. Only configureQueue creates a queue; the
// other verbs answer 404 for a queue that does not exist.
func (a *API) queueEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathQueues, Action: access.QueueRead, Extent: rest.PathNamespaceOnly,
			ID: "list-queues", Tag: "queues", Summary: "List a namespace's queues by name, with their depths",
		}, a.listQueues),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathQueue, Action: access.QueueRead, Extent: rest.PathNamespaceOnly,
			ID: "get-queue", Tag: "queues", Summary: "Read a queue's configuration and depths", Description: "The ETag is the configuration's.",
		}, a.getQueue),
		rest.Operation(rest.Route{
			Method: http.MethodPatch, Path: pathQueue, Action: access.QueueConfigure, Extent: rest.PathNamespaceOnly,
			ID: "configure-queue", Tag: "queues", Summary: "Change the configuration of a queue",
			Description: "Fields that are left out keep their values. A queue that does not exist is created. If-Match with the configuration's ETag guards the change; " +
				"If-None-Match: * only creates.",
		}, a.configureQueue),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathQueue, Action: access.QueueDelete, Extent: rest.PathNamespaceOnly,
			ID: "delete-queue", Tag: "queues", Summary: "Delete a queue with all its jobs", Description: "Refused while one of the jobs is active. An interrupted deletion can be repeated.",
		}, a.deleteQueue),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathQueue + ":clear", Action: access.QueueClear, Extent: rest.PathNamespaceOnly,
			ID: "clear-queue", Tag: "queues", Summary: "Remove the waiting jobs of a queue",
			Description: "Active jobs continue, and ended jobs stay. For its dependents, a removed job counts as cancelled.",
		}, a.clearQueue),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathQueue + ":drain", Action: access.QueueConfigure, Extent: rest.PathNamespaceOnly,
			ID: "drain-queue", Tag: "queues", Summary: "Refuse new jobs, and serve the existing ones",
		}, a.drainQueue),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathQueue + ":resume", Action: access.QueueConfigure, Extent: rest.PathNamespaceOnly,
			ID: "resume-queue", Tag: "queues", Summary: "End a pause and a drain",
		}, a.resumeQueue),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathQueue + ":redrive", Action: access.JobSteer, Extent: rest.PathNamespaceOnly,
			ID: "redrive-queue", Tag: "queues", Summary: "Make dead jobs pending again, for one more attempt", Description: "All of them, or those that the body describes.",
		}, a.redriveQueue),
	}
}

// queueTag returns the ETag of a configuration, which is made of its values: a queue has
// no revision, and its depths must not change the tag. A queue that is paused, with at most
// 10 active jobs and no rate limit:
//
//	"true.false.10.0.0.0.ends."    paused.draining.max_concurrency.rate_limit.rate_window_ms.retention_ms.events.provider
func queueTag(c api.QueueConfig) string {
	return fmt.Sprintf(`"%t.%t.%d.%d.%d.%d.%s.%s"`, c.Paused, c.Draining, c.MaxConcurrency, c.RateLimit, c.RateWindowMS, c.RetentionMS, c.Events, c.Provider)
}

// answerQueue answers with a queue. It takes the results of a method of the broker.
func answerQueue(q *api.Queue, err error) (*queueOutput, error) {
	if err != nil {
		return nil, err
	}
	return &queueOutput{ETag: queueTag(q.QueueConfig), Body: *q}, nil
}

// listQueues answers with a page of a namespace's queues by name. The depths are counted
// while the page is read, so they need not add up over pages.
func (a *API) listQueues(ctx context.Context, in *listQueuesInput) (*rest.PageOutput[api.Queue], error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	return rest.ReadPage(rest.ListScope("queues", tenant, namespace), in.Cursor, func(after string) ([]api.Queue, string, error) {
		return a.queue.Queues(ctx, tenant, namespace, after, in.Limit)
	})
}

// getQueue answers with a queue's configuration and depths. Errors: CodeQueueNotFound.
func (a *API) getQueue(ctx context.Context, in *queueInput) (*queueOutput, error) {
	return answerQueue(a.queue.GetQueue(ctx, string(in.Tenant), string(in.Namespace), string(in.Queue)))
}

// configureQueue changes the fields of a configuration that the body has, and creates
// the queue if it does not exist. Errors: CodeInvalid, CodeProviderNotFound, CodePreconditionFailed,
// CodeStoreConflict if others keep changing it.
func (a *API) configureQueue(ctx context.Context, in *configureQueueInput) (*queueOutput, error) {
	tenant, namespace, name := in.names()
	if p := in.Body.Provider; p != nil {
		if err := a.router.Check(ctx, tenant, *p); err != nil {
			return nil, err
		}
	}
	now, err := a.matchQueue(ctx, &in.QueuePath, in.QueueCondition)
	if err != nil {
		return nil, err
	}
	return answerQueue(a.queue.Configure(ctx, tenant, namespace, name, queue.Change{
		Paused: in.Body.Paused, MaxConcurrency: in.Body.MaxConcurrency, RateLimit: in.Body.RateLimit, RateWindowMS: in.Body.RateWindowMS, RetentionMS: in.Body.RetentionMS,
		Provider: in.Body.Provider, Events: in.Body.Events, Now: now,
	}))
}

// matchQueue returns the configuration that the queue must have when it is changed, nil
// for any; the zero configuration is that of a queue that does not exist. The broker
// compares it again in the step that writes. Errors: CodePreconditionFailed, CodeInvalid.
func (a *API) matchQueue(ctx context.Context, p *QueuePath, c QueueCondition) (*api.QueueConfig, error) {
	if err := rest.OnePrecondition(c.IfMatch, c.IfNoneMatch); err != nil {
		return nil, err
	}
	if c.IfMatch == "" && c.IfNoneMatch == "" {
		return nil, nil //nolint:nilnil // documented: no precondition
	}
	tenant, namespace, name := p.names()
	found, err := a.queue.GetQueue(ctx, tenant, namespace, name)
	if err != nil && api.ErrorCode(err) != api.CodeQueueNotFound {
		return nil, err
	}
	switch {
	case c.IfMatch == "" && err == nil:
		return nil, api.Errorf(api.CodePreconditionFailed, "the queue exists, and If-None-Match says that it must not")
	case c.IfMatch == "":
		return &api.QueueConfig{Events: event.RecordEnds}, nil
	case err == nil && rest.NamesTag(c.IfMatch, queueTag(found.QueueConfig)):
		return &found.QueueConfig, nil
	}
	return nil, api.Errorf(api.CodePreconditionFailed, "the queue's configuration does not have the ETag that If-Match names")
}

// deleteQueue deletes a queue with all its jobs. If-Match is checked before, not in
// the same step: it protects from a stale view, not from a concurrent change.
func (a *API) deleteQueue(ctx context.Context, in *deleteQueueInput) (*struct{}, error) {
	tenant, namespace, name := in.names()
	if in.IfMatch != "" {
		if _, err := a.matchQueue(ctx, &in.QueuePath, QueueCondition{IfMatch: in.IfMatch}); err != nil {
			return nil, err
		}
	}
	return nil, a.queue.DeleteQueue(ctx, tenant, namespace, name)
}

// existing returns CodeQueueNotFound for a queue that does not exist. Without it, an
// operation on a misspelt name would succeed and do nothing.
func (a *API) existing(ctx context.Context, p *QueuePath) error {
	tenant, namespace, name := p.names()
	_, err := a.queue.GetQueue(ctx, tenant, namespace, name)
	return err
}

// clearQueue removes the jobs of an existing queue that have not started, page by page. An
// interrupted call has removed some of them and can be repeated.
func (a *API) clearQueue(ctx context.Context, in *queueInput) (*clearedOutput, error) {
	if err := a.existing(ctx, &in.QueuePath); err != nil {
		return nil, err
	}
	tenant, namespace, name := in.names()
	n, err := a.queue.Clear(ctx, tenant, namespace, name)
	if err != nil {
		return nil, err
	}
	return &clearedOutput{clearedBody{n}}, nil
}

// drainQueue makes an existing queue refuse new jobs (CodeQueueDraining) until resumeQueue.
func (a *API) drainQueue(ctx context.Context, in *queueInput) (*queueOutput, error) {
	on := true
	return a.changeExisting(ctx, &in.QueuePath, queue.Change{Draining: &on})
}

// resumeQueue ends both a pause and a drain of an existing queue.
func (a *API) resumeQueue(ctx context.Context, in *queueInput) (*queueOutput, error) {
	off := false
	return a.changeExisting(ctx, &in.QueuePath, queue.Change{Paused: &off, Draining: &off})
}

// changeExisting changes the configuration of a queue that exists. A queue that is deleted
// between the two steps is created again, empty. Errors: CodeQueueNotFound.
func (a *API) changeExisting(ctx context.Context, p *QueuePath, change queue.Change) (*queueOutput, error) {
	if err := a.existing(ctx, p); err != nil {
		return nil, err
	}
	tenant, namespace, name := p.names()
	return answerQueue(a.queue.Configure(ctx, tenant, namespace, name, change))
}

// redriveQueue makes the dead jobs that match the body pending again, for one more
// attempt each; without a body, all dead jobs of the queue. tag_value needs a tag, as in
// listJobs. Errors: CodeInvalid, CodeQueueNotFound.
func (a *API) redriveQueue(ctx context.Context, in *redriveQueueInput) (*redrivenOutput, error) {
	tenant, namespace, name := in.names()
	f := queue.Redrive{Tenant: tenant, Namespace: namespace, Queue: name}
	if b := in.Body; b != nil {
		if b.TagValue != "" && b.Tag == "" {
			return nil, api.InvalidField("tag_value", "must stand beside tag")
		}
		for i, id := range b.IDs {
			if api.ValidateJobID(id) != nil {
				return nil, api.InvalidField(fmt.Sprintf("ids[%d]", i), "must be the id of a job")
			}
		}
		f.IDs, f.Reason, f.Tag, f.TagValue, f.FromMS, f.ToMS, f.Limit = b.IDs, b.Reason, b.Tag, b.TagValue, b.FromMS, b.ToMS, b.Limit
	}
	if err := a.existing(ctx, &in.QueuePath); err != nil {
		return nil, err
	}
	n, err := a.queue.Redrive(ctx, f)
	if err != nil {
		return nil, err
	}
	return &redrivenOutput{redrivenBody{n}}, nil
}
