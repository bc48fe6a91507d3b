package triggers

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/scheduler"
)

const (
	pathSchedules = rest.PathNamespace + "/schedules"
	pathSchedule  = pathSchedules + "/{schedule}"
)

// SchedulePath holds the parameters of a schedule's path.
type SchedulePath struct {
	rest.NamespacePath
	Schedule rest.ResourceName `path:"schedule"`
}

// Resolve refuses a name that does not match its pattern.
func (p *SchedulePath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("namespace", string(p.Namespace)), api.ValidateName("schedule", string(p.Schedule)))
}

// names returns the path's names as Schedules takes them.
func (p *SchedulePath) names() (tenant, namespace, name string) {
	return string(p.Tenant), string(p.Namespace), string(p.Schedule)
}

type createScheduleInput struct {
	rest.NamespacePath
	IfNoneMatch string `header:"If-None-Match" doc:"* says what holds anyway: the schedule must not exist"`
	Body        api.NewSchedule
}

type listSchedulesInput struct {
	rest.NamespacePath
	rest.PageQuery
}

type scheduleInput struct{ SchedulePath }

type changeScheduleInput struct {
	SchedulePath
	IfMatch string `header:"If-Match" doc:"the ETag that the schedule must have now"`
	Body    changeScheduleBody
}

// changeScheduleBody is a partial update: a field that is left out keeps its value, null
// removes the field or restores its default. A schedule has either every_seconds or cron,
// so a change from one to the other removes the first:
//
//	{"every_seconds": null, "cron": "0 6 * * *"}
type changeScheduleBody struct {
	EverySeconds    rest.Nullable[int64]             `json:"every_seconds,omitzero" doc:"an interval"`
	Cron            rest.Nullable[string]            `json:"cron,omitzero" doc:"five fields, or @hourly and the like"`
	Timezone        rest.Nullable[string]            `json:"timezone,omitzero" doc:"of cron"`
	OverlapPolicy   rest.Nullable[string]            `json:"overlap_policy,omitzero" doc:"skip, queue or parallel"`
	QueueLimit      rest.Nullable[int]               `json:"queue_limit,omitzero" doc:"of the overlap_policy queue"`
	Catchup         rest.Nullable[string]            `json:"catchup,omitzero" doc:"all, latest or none"`
	MaxCatchupTicks rest.Nullable[int]               `json:"max_catchup_ticks,omitzero"`
	Ref             rest.Nullable[api.JobTarget]     `json:"ref,omitzero" doc:"the function to invoke"`
	Queue           rest.Nullable[api.ScheduleQueue] `json:"queue,omitzero" doc:"the queue that gets a job"`
	Payload         rest.Nullable[rest.AnyJSON]      `json:"payload,omitzero"`
	Enabled         *bool                            `json:"enabled,omitempty"`
}

type deleteScheduleInput struct {
	SchedulePath
	IfMatch string `header:"If-Match" doc:"the ETag that the schedule must have now"`
}

// runScheduleInput has no body: a run has the schedule's own payload.
type runScheduleInput struct {
	SchedulePath
	IdempotencyKey string `header:"Idempotency-Key" doc:"at most 255 bytes; a repeat gets the same job" maxLength:"255"`
}

type scheduleOutput struct {
	ETag string `header:"ETag"`
	Body api.ScheduleStatus
}

type runScheduleOutput struct{ Body runScheduleBody }

type runScheduleBody struct {
	JobID        string `json:"job_id"`
	ActivationID string `json:"activation_id,omitempty" doc:"where a function runs"`
}

// scheduleEndpoints declares the routes of schedules. The life of one with an owner that
// changes:
//
//	POST  N/schedules, key K1, {"name": "nightly", …}     ticks run on behalf of K1
//	PATCH N/schedules/nightly, key K2, {"enabled": false} disabled; still of K1
//	PATCH N/schedules/nightly, key K2, {"enabled": true}  ticks run on behalf of K2
//	POST  N/schedules/nightly:run, key K3                 one run on behalf of K2
func (a *API) scheduleEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathSchedules, Action: access.ScheduleCreate, Extent: rest.PathNamespaceOnly,
			ID: "create-schedule", Tag: "schedules", Summary: "Create a schedule", Status: http.StatusCreated,
			Description: "Either every_seconds or cron says when, either ref (a function) or queue says what. " +
				"Its ticks are invoked on behalf of the caller. 409 if it exists.",
		}, a.createSchedule),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathSchedules, Action: access.ScheduleRead, Extent: rest.PathNamespaceOnly,
			ID: "list-schedules", Tag: "schedules", Summary: "List a namespace's schedules by name, with their state",
		}, a.listSchedules),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathSchedule, Action: access.ScheduleRead, Extent: rest.PathNamespaceOnly,
			ID: "get-schedule", Tag: "schedules", Summary: "Read a schedule, its next run and its last one", Description: "The ETag is its revision.",
		}, a.getSchedule),
		rest.Operation(rest.Route{
			Method: http.MethodPatch, Path: pathSchedule, Action: access.ScheduleUpdate, Extent: rest.PathNamespaceOnly,
			ID: "change-schedule", Tag: "schedules", Summary: "Change a schedule, or enable or disable it",
			Description: "Fields that are left out keep their values; null removes a field or restores its default: {\"every_seconds\": null, \"cron\": \"0 6 * * *\"}. " +
				"A schedule whose timing is changed, or that is enabled, starts again from now. If-Match guards the change.",
		}, a.changeSchedule),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathSchedule, Action: access.ScheduleDelete, Extent: rest.PathNamespaceOnly,
			ID: "delete-schedule", Tag: "schedules", Summary: "Delete a schedule", Description: "Jobs that it created continue. If-Match guards the deletion.",
		}, a.deleteSchedule),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathSchedule + ":run", Action: access.ScheduleRun, Extent: rest.PathNamespaceOnly,
			ID: "run-schedule", Tag: "schedules", Summary: "Fire a schedule now",
			Description: "A disabled schedule can be fired, too. The run acts for the caller that changed the schedule last; the caller of this operation must be allowed to use the target as well. " +
				"409 if the overlap policy does not allow the run.",
		}, a.runSchedule),
	}
}

// answerSchedule answers with a schedule. Its ETag is its revision.
func answerSchedule(status *api.ScheduleStatus, err error) (*scheduleOutput, error) {
	if err != nil {
		return nil, err
	}
	return &scheduleOutput{ETag: rest.RevisionTag(status.Revision), Body: *status}, nil
}

// createSchedule creates a schedule that the caller owns. Errors: CodeInvalid,
// CodeValidationName, CodeScheduleExists, CodeScheduleLimit, those of maySchedule.
func (a *API) createSchedule(ctx context.Context, in *createScheduleInput) (*scheduleOutput, error) {
	if err := rest.CreateOnly(in.IfNoneMatch); err != nil {
		return nil, err
	}
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	out, err := answerSchedule(a.schedules.Create(ctx, tenant, namespace, &in.Body, a.author(ctx, tenant, namespace)))
	if err == nil {
		rest.NoteMade(ctx, in.Body.Name)
	}
	return out, err
}

// listSchedules answers with a page of a namespace's schedules by name, with their state.
func (a *API) listSchedules(ctx context.Context, in *listSchedulesInput) (*rest.PageOutput[api.ScheduleStatus], error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	return rest.ReadPage(rest.ListScope("schedules", tenant, namespace), in.Cursor, func(after string) ([]api.ScheduleStatus, string, error) {
		return a.schedules.List(ctx, tenant, namespace, after, in.Limit)
	})
}

// getSchedule answers with a schedule and the state of its last job. Errors:
// CodeScheduleNotFound.
func (a *API) getSchedule(ctx context.Context, in *scheduleInput) (*scheduleOutput, error) {
	return answerSchedule(a.schedules.Get(ctx, string(in.Tenant), string(in.Namespace), string(in.Schedule)))
}

// changeSchedule changes a schedule and makes the caller its owner, unless the change only
// disables it. An empty body changes nothing, not even the owner. Errors:
// CodePreconditionFailed, CodeStoreConflict if others keep changing it, and those of
// createSchedule and getSchedule.
func (a *API) changeSchedule(ctx context.Context, in *changeScheduleInput) (*scheduleOutput, error) {
	tenant, namespace, name := in.names()
	revision, err := a.matchSchedule(ctx, &in.SchedulePath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	b := &in.Body
	return answerSchedule(a.schedules.Update(ctx, tenant, namespace, name, &api.ScheduleChange{
		EverySeconds: b.EverySeconds.Value, Cron: b.Cron.Value, Timezone: b.Timezone.Value,
		OverlapPolicy: b.OverlapPolicy.Value, QueueLimit: b.QueueLimit.Value, Catchup: b.Catchup.Value, MaxCatchupTicks: b.MaxCatchupTicks.Value,
		Ref: b.Ref.Value, Queue: b.Queue.Value, Payload: (*json.RawMessage)(b.Payload.Value), Enabled: b.Enabled,
	}, revision, a.author(ctx, tenant, namespace)))
}

// deleteSchedule deletes a schedule. Jobs of its ticks continue. Errors:
// CodeScheduleNotFound, CodePreconditionFailed.
func (a *API) deleteSchedule(ctx context.Context, in *deleteScheduleInput) (*struct{}, error) {
	tenant, namespace, name := in.names()
	revision, err := a.matchSchedule(ctx, &in.SchedulePath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	return nil, a.schedules.Delete(ctx, tenant, namespace, name, revision)
}

// matchSchedule returns the revision that the schedule must have by an If-Match, 0 for
// any; the store compares it again in the step that writes. Errors:
// CodePreconditionFailed, CodeScheduleNotFound.
func (a *API) matchSchedule(ctx context.Context, p *SchedulePath, ifMatch string) (int64, error) {
	if ifMatch == "" || strings.TrimSpace(ifMatch) == "*" {
		return 0, nil // an update of a schedule that does not exist fails anyway
	}
	tenant, namespace, name := p.names()
	found, err := a.schedules.Get(ctx, tenant, namespace, name)
	if err != nil {
		return 0, err
	}
	if !rest.NamesTag(ifMatch, rest.RevisionTag(found.Revision)) {
		return 0, api.Errorf(api.CodePreconditionFailed, "the schedule does not have the ETag that If-Match names")
	}
	return found.Revision, nil
}

// runSchedule fires a schedule now, on behalf of its author. The caller must be
// allowed to use its target, too: otherwise cs:schedule:run would be a way around the
// roles of a version. With an Idempotency-Key a repeat gets the same job. Errors:
// CodeScheduleNotFound, CodeScheduleBusy by the overlap policy, those of maySchedule.
func (a *API) runSchedule(ctx context.Context, in *runScheduleInput) (*runScheduleOutput, error) {
	tenant, namespace, name := in.names()
	run, activationID, err := a.schedules.Run(ctx, tenant, namespace, name, in.IdempotencyKey, a.mayUse(tenant, namespace))
	if err != nil {
		return nil, err
	}
	rest.NoteMade(ctx, run.JobID)
	return &runScheduleOutput{runScheduleBody{JobID: run.JobID, ActivationID: activationID}}, nil
}

// mayUse returns the check whether the caller may use the target of a schedule in a
// namespace. The scheduler calls it with the schedule that it has read or is to write,
// during the request.
func (a *API) mayUse(tenant, namespace string) scheduler.May {
	return func(ctx context.Context, schedule *api.Schedule) error {
		return a.maySchedule(ctx, tenant, namespace, schedule)
	}
}

// author returns the caller as the author of a schedule: its ticks are invoked on the
// author's behalf.
func (a *API) author(ctx context.Context, tenant, namespace string) scheduler.Author {
	c := rest.CallerOf(ctx)
	return scheduler.Author{Principal: c.Principal(), Access: c.Access(), May: a.mayUse(tenant, namespace)}
}

// maySchedule refuses a schedule whose target does not exist, or that the caller may
// not use: ticks are not authorized again. A queue as the target needs cs:job:enqueue, a
// function cs:function:invoke and the version's invoke_schedule_roles. Errors: those of
// mayRun; CodeAuthzDenied.
func (a *API) maySchedule(ctx context.Context, tenant, namespace string, schedule *api.Schedule) error {
	if schedule.Queue != nil {
		return rest.CallerOf(ctx).Need(access.JobEnqueue)
	}
	return a.mayRun(ctx, tenant, namespace, api.TriggerSchedule, *schedule.Ref, "ref")
}
