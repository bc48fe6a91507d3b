package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
)

const (
	pathQueues = pathNamespaces + "/{namespace}/queues"
	pathQueue  = pathQueues + "/{queue}"
)

// QueuePath is the path of a queue.
type QueuePath struct {
	NamespacePath
	Queue queueName `path:"queue"`
}

// Resolve refuses a name out of its pattern.
func (p *QueuePath) Resolve(huma.Context) []error {
	return problems(validateQueuePath(p.names()))
}

// names are the path's names as the broker takes them.
func (p *QueuePath) names() (tenant, namespace, queue string) {
	return string(p.Tenant), string(p.Namespace), string(p.Queue)
}

func validateQueuePath(tenant, namespace, queue string) error {
	if err := api.ValidateTenant(tenant); err != nil {
		return err
	}
	if err := api.ValidateName("namespace", namespace); err != nil {
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
	NamespacePath
	PageQuery
}

type queuePageOutput struct{ Body api.Page[api.Queue] }

// QueueCondition is the precondition of a change of a queue.
type QueueCondition struct {
	IfMatch     string `header:"If-Match" doc:"the ETag that the configuration must have now"`
	IfNoneMatch string `header:"If-None-Match" doc:"* if the queue must not exist"`
}

type configureQueueInput struct {
	QueuePath
	QueueCondition
	Body configureQueueBody
}

type configureQueueBody struct {
	Paused         *bool  `json:"paused,omitempty" doc:"hand out no jobs"`
	MaxConcurrency *int64 `json:"max_concurrency,omitempty" doc:"how many jobs may be active; 0 for any number"`
	RateLimit      *int64 `json:"rate_limit,omitempty" doc:"how many jobs may begin in a window; 0 for any number"`
	RateWindowMS   *int64 `json:"rate_window_ms,omitempty" doc:"the window, which slides"`
}

type deleteQueueInput struct {
	QueuePath
	IfMatch string `header:"If-Match" doc:"the ETag that the configuration must have now"`
}

type redriveQueueInput struct {
	QueuePath
	Body *redriveBody
}

type redriveBody struct {
	IDs      []string `json:"ids,omitempty" maxItems:"1000" doc:"these jobs only"`
	Reason   string   `json:"reason,omitempty" enum:"attempts,fatal,crashed,expired,rejected,dependency" doc:"only those that died of it"`
	Tag      string   `json:"tag,omitempty" maxLength:"128" doc:"only those with this tag"`
	TagValue string   `json:"tag_value,omitempty" maxLength:"128" doc:"and this value of it"`
	FromMS   int64    `json:"from_ms,omitempty" minimum:"0" doc:"they died at or after"`
	ToMS     int64    `json:"to_ms,omitempty" minimum:"0" doc:"they died before"`
	Limit    int      `json:"limit,omitempty" minimum:"0" doc:"at most so many; 0 for all"`
}

type clearedOutput struct{ Body clearedBody }

type clearedBody struct {
	Cleared int `json:"cleared" doc:"jobs that were removed"`
}

type redrivenOutput struct{ Body redrivenBody }

type redrivenBody struct {
	Redriven int `json:"redriven" doc:"jobs that have one more attempt"`
}

func (s *Server) routeQueues(t typedAPI) {
	tags := []string{"queues"}
	register(t, huma.Operation{
		OperationID: "list-queues", Method: http.MethodGet, Path: pathQueues, Tags: tags,
		Summary: "List a namespace's queues by name, with their depths",
	}, s.listQueues)
	register(t, huma.Operation{
		OperationID: "get-queue", Method: http.MethodGet, Path: pathQueue, Tags: tags,
		Summary: "Read a queue's configuration and depths", Description: "The ETag is the configuration's.",
	}, s.getQueue)
	register(t, huma.Operation{
		OperationID: "configure-queue", Method: http.MethodPatch, Path: pathQueue, Tags: tags,
		Summary: "Change how a queue serves",
		Description: "What is left out stays. The queue comes into being with it. If-Match with the configuration's ETag guards the change; " +
			"If-None-Match: * only makes new ones.",
	}, s.configureQueue)
	register(t, huma.Operation{
		OperationID: "delete-queue", Method: http.MethodDelete, Path: pathQueue, Tags: tags,
		Summary: "Delete a queue with all its jobs", Description: "Refused while one of them is active. It can be repeated where it was cut short.",
	}, s.deleteQueue)
	register(t, huma.Operation{
		OperationID: "clear-queue", Method: http.MethodPost, Path: pathQueue + ":clear", Tags: tags,
		Summary: "Remove the jobs that wait", DefaultStatus: http.StatusOK,
		Description: "Those that are active go on, those that ended stay. What depends on a removed job learns of it as of a cancelled one.",
	}, s.clearQueue)
	register(t, huma.Operation{
		OperationID: "drain-queue", Method: http.MethodPost, Path: pathQueue + ":drain", Tags: tags,
		Summary: "Take no new jobs, and serve those that are there", DefaultStatus: http.StatusOK,
	}, s.drainQueue)
	register(t, huma.Operation{
		OperationID: "resume-queue", Method: http.MethodPost, Path: pathQueue + ":resume", Tags: tags,
		Summary: "End a pause and a drain", DefaultStatus: http.StatusOK,
	}, s.resumeQueue)
	register(t, huma.Operation{
		OperationID: "redrive-queue", Method: http.MethodPost, Path: pathQueue + ":redrive", Tags: tags,
		Summary: "Give dead jobs one more attempt", DefaultStatus: http.StatusOK, Description: "All of them, or those that the body describes.",
	}, s.redriveQueue)
}

// queueTag is the ETag of a configuration: its values.
func queueTag(c api.QueueConfig) string {
	return fmt.Sprintf(`"%t.%t.%d.%d.%d"`, c.Paused, c.Draining, c.MaxConcurrency, c.RateLimit, c.RateWindowMS)
}

func answerQueue(q *api.Queue, err error) (*queueOutput, error) {
	if err != nil {
		return nil, err
	}
	return &queueOutput{ETag: queueTag(q.QueueConfig), Body: *q}, nil
}

func (s *Server) listQueues(ctx context.Context, in *listQueuesInput) (*queuePageOutput, error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	list := listScope("queues", tenant, namespace)
	after, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.queue.Queues(ctx, tenant, namespace, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return &queuePageOutput{Body: page(items, list.seal(next))}, nil
}

func (s *Server) getQueue(ctx context.Context, in *queueInput) (*queueOutput, error) {
	return answerQueue(s.queue.GetQueue(ctx, string(in.Tenant), string(in.Namespace), string(in.Queue)))
}

func (s *Server) configureQueue(ctx context.Context, in *configureQueueInput) (*queueOutput, error) {
	tenant, namespace, name := in.names()
	now, err := s.matchQueue(ctx, &in.QueuePath, in.QueueCondition)
	if err != nil {
		return nil, err
	}
	return answerQueue(s.queue.Configure(ctx, tenant, namespace, name, queue.Change{
		Paused: in.Body.Paused, MaxConcurrency: in.Body.MaxConcurrency, RateLimit: in.Body.RateLimit, RateWindowMS: in.Body.RateWindowMS, Now: now,
	}))
}

// matchQueue turns a precondition into the configuration that the queue must have
// when it is changed, nil for any. Errors: CodePreconditionFailed, CodeValidation.
func (s *Server) matchQueue(ctx context.Context, p *QueuePath, c QueueCondition) (*api.QueueConfig, error) {
	switch {
	case c.IfMatch == "" && c.IfNoneMatch == "":
		return nil, nil //nolint:nilnil // documented: no precondition
	case c.IfMatch == "" && strings.TrimSpace(c.IfNoneMatch) != "*":
		return nil, fieldError("If-None-Match", "must be *")
	case c.IfMatch != "" && c.IfNoneMatch != "":
		return nil, fieldError("If-None-Match", "cannot stand beside If-Match")
	}
	tenant, namespace, name := p.names()
	found, err := s.queue.GetQueue(ctx, tenant, namespace, name)
	if err != nil && api.ErrorCode(err) != api.CodeQueueNotFound {
		return nil, err
	}
	switch {
	case c.IfMatch == "" && err == nil:
		return nil, api.Errorf(api.CodePreconditionFailed, "the queue exists, and If-None-Match says that it must not")
	case c.IfMatch == "":
		return &api.QueueConfig{}, nil
	case err == nil && namesTag(c.IfMatch, queueTag(found.QueueConfig)):
		return &found.QueueConfig, nil
	}
	return nil, api.Errorf(api.CodePreconditionFailed, "the queue's configuration does not have the ETag that If-Match names")
}

func (s *Server) deleteQueue(ctx context.Context, in *deleteQueueInput) (*struct{}, error) {
	tenant, namespace, name := in.names()
	if in.IfMatch != "" {
		if _, err := s.matchQueue(ctx, &in.QueuePath, QueueCondition{IfMatch: in.IfMatch}); err != nil {
			return nil, err
		}
	}
	return nil, s.queue.DeleteQueue(ctx, tenant, namespace, name)
}

// existing refuses (CodeQueueNotFound) what a misspelt name would do nothing to.
func (s *Server) existing(ctx context.Context, p *QueuePath) error {
	tenant, namespace, name := p.names()
	_, err := s.queue.GetQueue(ctx, tenant, namespace, name)
	return err
}

func (s *Server) clearQueue(ctx context.Context, in *queueInput) (*clearedOutput, error) {
	if err := s.existing(ctx, &in.QueuePath); err != nil {
		return nil, err
	}
	tenant, namespace, name := in.names()
	n, err := s.queue.Clear(ctx, tenant, namespace, name)
	if err != nil {
		return nil, err
	}
	return &clearedOutput{clearedBody{n}}, nil
}

func (s *Server) drainQueue(ctx context.Context, in *queueInput) (*queueOutput, error) {
	on := true
	return s.changeExisting(ctx, &in.QueuePath, queue.Change{Draining: &on})
}

func (s *Server) resumeQueue(ctx context.Context, in *queueInput) (*queueOutput, error) {
	off := false
	return s.changeExisting(ctx, &in.QueuePath, queue.Change{Paused: &off, Draining: &off})
}

func (s *Server) changeExisting(ctx context.Context, p *QueuePath, change queue.Change) (*queueOutput, error) {
	if err := s.existing(ctx, p); err != nil {
		return nil, err
	}
	tenant, namespace, name := p.names()
	return answerQueue(s.queue.Configure(ctx, tenant, namespace, name, change))
}

func (s *Server) redriveQueue(ctx context.Context, in *redriveQueueInput) (*redrivenOutput, error) {
	tenant, namespace, name := in.names()
	f := queue.Redrive{Tenant: tenant, Namespace: namespace, Queue: name}
	if b := in.Body; b != nil {
		if b.TagValue != "" && b.Tag == "" {
			return nil, fieldError("tag_value", "must stand beside tag")
		}
		for i, id := range b.IDs {
			if api.ValidateJobID(id) != nil {
				return nil, fieldError(fmt.Sprintf("ids[%d]", i), "must be the id of a job")
			}
		}
		f.IDs, f.Reason, f.Tag, f.TagValue, f.FromMS, f.ToMS, f.Limit = b.IDs, b.Reason, b.Tag, b.TagValue, b.FromMS, b.ToMS, b.Limit
	}
	if err := s.existing(ctx, &in.QueuePath); err != nil {
		return nil, err
	}
	n, err := s.queue.Redrive(ctx, f)
	if err != nil {
		return nil, err
	}
	return &redrivenOutput{redrivenBody{n}}, nil
}
