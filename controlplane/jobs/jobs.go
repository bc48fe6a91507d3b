package jobs

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue"
)

const (
	pathJobs      = rest.PathTenant + "/jobs"
	pathJob       = pathJobs + "/{job_id}"
	pathQueueJobs = pathQueue + "/jobs"
)

// JobPath holds the parameters of a job's path.
type JobPath struct {
	rest.TenantPath
	JobID string `path:"job_id" doc:"a UUID"`
}

// Resolve refuses an id that cannot be a job's.
func (p *JobPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateJobID(p.JobID))
}

type jobInput struct{ JobPath }

type jobOutput struct{ Body api.Job }

// getJobInput may ask for the job's timeline, which takes more reads of the store than the job.
type getJobInput struct {
	JobPath
	Include string `query:"include" enum:"timeline" doc:"timeline adds the changes of the job, from the log of events and from its record"`
}

type jobHistoryOutput struct{ Body event.JobHistory }

// listJobsInput selects the jobs of one state, by default pending. TagValue needs a Tag.
type listJobsInput struct {
	QueuePath
	rest.PageQuery
	State    string `query:"state" enum:"waiting,scheduled,held,pending,active,retrying,completed,dead,cancelled" default:"pending"`
	Tag      string `query:"tag" maxLength:"128" doc:"only jobs with this tag"`
	TagValue string `query:"tag_value" maxLength:"128" doc:"and this value of it"`
	ID       string `query:"id" minLength:"4" maxLength:"36" doc:"the beginning or the end of the id"`
}

// holdJobInput has an optional body: a hold needs no reason.
type holdJobInput struct {
	JobPath
	Body *holdJobBody
}

type holdJobBody struct {
	Reason string `json:"reason,omitempty" maxLength:"1024" doc:"why, shown to the user who approves or rejects the job"`
}

// decideJobInput has an optional body: a decision needs no comment.
type decideJobInput struct {
	JobPath
	Body *decideJobBody
}

type decideJobBody struct {
	Comment string `json:"comment,omitempty" maxLength:"1024" doc:"for a run that awaits the approval, which gets it"`
}

type moveJobInput struct {
	JobPath
	Body moveJobBody
}

type moveJobBody struct {
	Queue queueName `json:"queue" doc:"another queue of the job's namespace"`
}

// jobEndpoints declares the routes that read and delete jobs.
func (a *API) jobEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathQueueJobs, Action: access.JobRead, Extent: rest.PathNamespaceOnly,
			ID: "list-jobs", Tag: "jobs", Summary: "List a queue's jobs of one state, without their attempts and errors",
			Description: "Ended jobs newest first, others in the order in which they are due. A queue that does not exist is empty. " +
				"Filters are applied while scanning: a page may be short, even empty, and still have a next_cursor.",
		}, a.listJobs),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathJob, Action: access.JobRead, Extent: rest.HandlerNamespace,
			ID: "get-job", Tag: "jobs", Summary: "Read a job with its attempts and errors",
			Description: "The timeline has the events of the job that the log still has, and what the record of the job has besides. " +
				"At most 10,000 events of the log are read. Where changes may be missing, complete is false, and missing has the reasons.",
		}, a.getJob),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathJob, Action: access.JobDelete, Extent: rest.HandlerNamespace,
			ID: "delete-job", Tag: "jobs", Summary: "Delete a job and its record", Description: "One that has not ended is cancelled first. An active one is refused: cancel it.",
		}, a.deleteJob),
	}
}

// transitionEndpoints declares the routes by which operators move a job to another state. The
// broker decides which states a verb accepts; others are refused with CodeJobState:
//
//	retry     dead, cancelled            to pending
//	cancel    any that has not ended     to cancelled
//	hold      any that is not active and has not ended, to held
//	approve   held                       to pending, or scheduled until its time
//	reject    held                       to dead, or to pending for a run that awaits an approval
//	move      any that is not active and has not ended, to the other queue
func (a *API) transitionEndpoints() []rest.Endpoint {
	transition := func(verb, summary string, do func(ctx context.Context, tenant, id string) (*api.Job, error)) rest.Endpoint {
		return rest.Operation(transitionRoute(verb, summary), func(ctx context.Context, in *jobInput) (*jobOutput, error) {
			return a.transitionJob(ctx, &in.JobPath, do)
		})
	}
	return []rest.Endpoint{
		transition("retry", "Give a dead or cancelled job one more attempt, at once", a.queue.Retry),
		transition("cancel", "Cancel a job that has not ended; its worker learns of it by its heartbeat", a.queue.Cancel),
		rest.Operation(transitionRoute("approve", "Let a held job run, at its time"), a.decideJob(true)),
		rest.Operation(transitionRoute("reject", "End a held job as dead; a run that awaits an approval continues with the rejection"), a.decideJob(false)),
		rest.Operation(transitionRoute("hold", "Keep a job that waits from running until it is approved"), a.holdJob),
		rest.Operation(transitionRoute("move", "Take a job that waits to another queue of its namespace"), a.moveJob),
	}
}

// transitionRoute returns the route of one of transitionEndpoints.
func transitionRoute(verb, summary string) rest.Route {
	return rest.Route{
		Method: http.MethodPost, Path: pathJob + ":" + verb, Action: access.JobSteer, Extent: rest.HandlerNamespace,
		ID: verb + "-job", Tag: "jobs", Summary: summary,
	}
}

// holdJob keeps a job from running until it is approved or rejected. The reason is shown
// to the people who decide. A repeat succeeds and keeps the first reason.
func (a *API) holdJob(ctx context.Context, in *holdJobInput) (*jobOutput, error) {
	reason := ""
	if in.Body != nil {
		reason = in.Body.Reason
	}
	return a.transitionJob(ctx, &in.JobPath, func(ctx context.Context, tenant, id string) (*api.Job, error) {
		return a.queue.Hold(ctx, tenant, id, reason)
	})
}

// decideJob returns the handler that approves or rejects a held job.
func (a *API) decideJob(approved bool) func(ctx context.Context, in *decideJobInput) (*jobOutput, error) {
	return func(ctx context.Context, in *decideJobInput) (*jobOutput, error) {
		comment := ""
		if in.Body != nil {
			comment = in.Body.Comment
		}
		return a.transitionJob(ctx, &in.JobPath, func(ctx context.Context, tenant, id string) (*api.Job, error) {
			return a.queue.Decide(ctx, tenant, id, approved, comment)
		})
	}
}

// moveJob moves a job to another queue of its namespace. Errors: those of transitionJob,
// CodeQueueReserved for fn queues.
func (a *API) moveJob(ctx context.Context, in *moveJobInput) (*jobOutput, error) {
	return a.transitionJob(ctx, &in.JobPath, func(ctx context.Context, tenant, id string) (*api.Job, error) {
		return a.queue.Move(ctx, tenant, id, string(in.Body.Queue))
	})
}

// transitionJob changes the state of a job by do, and answers with the job after the
// change. The check of the namespace and the change are two steps, but a job never leaves
// its namespace. Errors: CodeJobNotFound, also for a job in a namespace that the caller may
// not enter; those of do.
func (a *API) transitionJob(ctx context.Context, p *JobPath, do func(ctx context.Context, tenant, id string) (*api.Job, error)) (*jobOutput, error) {
	if err := a.requireJob(ctx, p); err != nil {
		return nil, err
	}
	job, err := do(ctx, string(p.Tenant), p.JobID)
	if err != nil {
		return nil, err
	}
	return &jobOutput{Body: *job}, nil
}

// requireJob returns CodeJobNotFound for a job in a namespace that the caller may not
// enter; the path of a job does not contain its namespace. For callers of the whole tenant
// it reads nothing.
func (a *API) requireJob(ctx context.Context, p *JobPath) error {
	if rest.CallerOf(ctx).Namespace == "" {
		return nil
	}
	_, err := a.job(ctx, p)
	return err
}

// job returns a job of a namespace that the caller may enter. Errors: CodeJobNotFound.
func (a *API) job(ctx context.Context, p *JobPath) (*api.Job, error) {
	job, err := a.queue.Get(ctx, string(p.Tenant), p.JobID)
	if err == nil && !rest.CallerOf(ctx).EntersNamespace(job.Namespace) {
		return nil, jobNotFound(p.JobID)
	}
	return job, err
}

// jobNotFound returns the error of the broker for a missing job, so that a job of another
// namespace has the same error.
func jobNotFound(id string) *api.Error {
	return api.Errorf(api.CodeJobNotFound, "job %s does not exist", id)
}

// getJob answers with a job and its attempts, and with its timeline if the caller asks for it.
func (a *API) getJob(ctx context.Context, in *getJobInput) (*jobHistoryOutput, error) {
	job, err := a.job(ctx, &in.JobPath)
	if err != nil {
		return nil, err
	}
	out := &jobHistoryOutput{Body: event.JobHistory{Job: *job}}
	if in.Include != "" {
		out.Body.Timeline, err = a.queue.Timeline(ctx, string(in.Tenant), job)
	}
	return out, err
}

// deleteJob deletes a job and its record. One that has not ended is cancelled first; an
// active one is a CodeJobState.
func (a *API) deleteJob(ctx context.Context, in *jobInput) (*struct{}, error) {
	if err := a.requireJob(ctx, &in.JobPath); err != nil {
		return nil, err
	}
	return nil, a.queue.Delete(ctx, string(in.Tenant), in.JobID)
}

// listJobs answers with a page of a queue's jobs of one state. A queue that does not exist
// is empty. tag_value without tag is a CodeInvalid.
func (a *API) listJobs(ctx context.Context, in *listJobsInput) (*rest.PageOutput[api.Job], error) {
	if in.TagValue != "" && in.Tag == "" {
		return nil, api.InvalidField("tag_value", "must stand beside tag")
	}
	tenant, namespace, name := in.names()
	return rest.ReadPage(rest.ListScope("jobs", tenant, namespace, name, in.State, in.Tag, in.TagValue, in.ID), in.Cursor, func(position string) ([]api.Job, string, error) {
		return a.queue.List(ctx, queue.List{
			Tenant: tenant, Namespace: namespace, Queue: name, State: api.JobState(in.State),
			Tag: in.Tag, TagValue: in.TagValue, ID: in.ID, Cursor: position, Limit: in.Limit,
		})
	})
}
