package controlplane

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
)

const (
	pathJobs      = pathTenant + "/jobs"
	pathJob       = pathJobs + "/{job_id}"
	pathQueueJobs = pathQueue + "/jobs"
)

// JobPath is the path of a job.
type JobPath struct {
	TenantPath
	JobID string `path:"job_id" doc:"a UUID"`
}

// Resolve refuses what cannot be a job.
func (p *JobPath) Resolve(huma.Context) []error {
	return problems(api.ValidateTenant(string(p.Tenant)), api.ValidateJobID(p.JobID))
}

type jobInput struct{ JobPath }

type jobOutput struct{ Body api.Job }

type listJobsInput struct {
	QueuePath
	PageQuery
	State    string `query:"state" enum:"waiting,scheduled,held,pending,active,retrying,completed,dead,cancelled" default:"pending"`
	Tag      string `query:"tag" maxLength:"128" doc:"only jobs with this tag"`
	TagValue string `query:"tag_value" maxLength:"128" doc:"and this value of it"`
}

type jobPageOutput struct{ Body api.Page[api.Job] }

type holdJobInput struct {
	JobPath
	Body *holdJobBody
}

type holdJobBody struct {
	Reason string `json:"reason,omitempty" maxLength:"1024" doc:"why, for whoever approves or rejects it"`
}

type moveJobInput struct {
	JobPath
	Body moveJobBody
}

type moveJobBody struct {
	Queue queueName `json:"queue" doc:"another queue of the job's namespace"`
}

func (s *Server) routeJobs(t typedAPI) {
	tags := []string{"jobs"}
	register(t, huma.Operation{
		OperationID: "list-jobs", Method: http.MethodGet, Path: pathQueueJobs, Tags: tags,
		Summary: "List a queue's jobs of one state, without their errors",
		Description: "Ended ones newest first, the others in the order in which their turn comes. A queue that does not exist is empty. " +
			"Filters are applied while scanning: a page may be short, even empty, and still have a next_cursor.",
	}, s.listJobs)
	register(t, huma.Operation{
		OperationID: "get-job", Method: http.MethodGet, Path: pathJob, Tags: tags,
		Summary: "Read a job with its errors",
	}, s.getJob)
	register(t, huma.Operation{
		OperationID: "delete-job", Method: http.MethodDelete, Path: pathJob, Tags: tags,
		Summary: "Delete a job and its record", Description: "One that has not ended is cancelled first. An active one is refused: cancel it.",
	}, s.deleteJob)
	s.routeSteering(t, tags)
}

// routeSteering has the routes by which people take a job to another state.
func (s *Server) routeSteering(t typedAPI, tags []string) {
	steer := func(name, summary string, do func(ctx context.Context, tenant, id string) (*api.Job, error)) {
		register(t, huma.Operation{
			OperationID: name + "-job", Method: http.MethodPost, Path: pathJob + ":" + name, Tags: tags,
			Summary: summary, DefaultStatus: http.StatusOK,
		}, func(ctx context.Context, in *jobInput) (*jobOutput, error) {
			return s.steerJob(ctx, &in.JobPath, do)
		})
	}
	steer("retry", "Give a dead or cancelled job one more attempt, at once", s.queue.Retry)
	steer("cancel", "Cancel a job that has not ended; its worker learns of it by its heartbeat", s.queue.Cancel)
	steer("approve", "Let a held job run, at its time", s.queue.Approve)
	steer("reject", "End a held job as dead", s.queue.Reject)
	register(t, huma.Operation{
		OperationID: "hold-job", Method: http.MethodPost, Path: pathJob + ":hold", Tags: tags,
		Summary: "Keep a job that waits from running until it is approved", DefaultStatus: http.StatusOK,
	}, func(ctx context.Context, in *holdJobInput) (*jobOutput, error) {
		reason := ""
		if in.Body != nil {
			reason = in.Body.Reason
		}
		return s.steerJob(ctx, &in.JobPath, func(ctx context.Context, tenant, id string) (*api.Job, error) {
			return s.queue.Hold(ctx, tenant, id, reason)
		})
	})
	register(t, huma.Operation{
		OperationID: "move-job", Method: http.MethodPost, Path: pathJob + ":move", Tags: tags,
		Summary: "Take a job that waits to another queue of its namespace", DefaultStatus: http.StatusOK,
	}, func(ctx context.Context, in *moveJobInput) (*jobOutput, error) {
		return s.steerJob(ctx, &in.JobPath, func(ctx context.Context, tenant, id string) (*api.Job, error) {
			return s.queue.Move(ctx, tenant, id, string(in.Body.Queue))
		})
	})
}

func (s *Server) steerJob(ctx context.Context, p *JobPath, do func(ctx context.Context, tenant, id string) (*api.Job, error)) (*jobOutput, error) {
	if err := s.entersJob(ctx, p); err != nil {
		return nil, err
	}
	job, err := do(ctx, string(p.Tenant), p.JobID)
	if err != nil {
		return nil, err
	}
	return &jobOutput{Body: *job}, nil
}

// entersJob refuses (CodeJobNotFound) a job of a namespace that the caller does
// not enter: an id says nothing of the namespace.
func (s *Server) entersJob(ctx context.Context, p *JobPath) error {
	if callerOf(ctx).namespace == "" {
		return nil
	}
	_, err := s.job(ctx, p)
	return err
}

// job reads one that the caller enters. CodeJobNotFound.
func (s *Server) job(ctx context.Context, p *JobPath) (*api.Job, error) {
	job, err := s.queue.Get(ctx, string(p.Tenant), p.JobID)
	if err == nil && !callerOf(ctx).entersNamespace(job.Namespace) {
		return nil, jobNotFound(p.JobID)
	}
	return job, err
}

func jobNotFound(id string) *api.Error {
	return api.Errorf(api.CodeJobNotFound, "job %s does not exist", id)
}

func (s *Server) getJob(ctx context.Context, in *jobInput) (*jobOutput, error) {
	job, err := s.job(ctx, &in.JobPath)
	if err != nil {
		return nil, err
	}
	return &jobOutput{Body: *job}, nil
}

func (s *Server) deleteJob(ctx context.Context, in *jobInput) (*struct{}, error) {
	if err := s.entersJob(ctx, &in.JobPath); err != nil {
		return nil, err
	}
	return nil, s.queue.Delete(ctx, string(in.Tenant), in.JobID)
}

func (s *Server) listJobs(ctx context.Context, in *listJobsInput) (*jobPageOutput, error) {
	if in.TagValue != "" && in.Tag == "" {
		return nil, fieldError("tag_value", "must stand beside tag")
	}
	tenant, namespace, name := in.names()
	list := listScope("jobs", tenant, namespace, name, in.State, in.Tag, in.TagValue)
	position, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.queue.List(ctx, queue.List{
		Tenant: tenant, Namespace: namespace, Queue: name, State: api.JobState(in.State),
		Tag: in.Tag, TagValue: in.TagValue, Cursor: position, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return &jobPageOutput{Body: page(items, list.seal(next))}, nil
}
