package controlplane

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/scheduler"
)

// Schedules is what is done with schedules: scheduler.Schedules, as far as this
// package needs it.
type Schedules interface {
	Create(ctx context.Context, tenant, namespace string, n *api.NewSchedule, by scheduler.Author) (*api.ScheduleStatus, error)
	Get(ctx context.Context, tenant, namespace, name string) (*api.ScheduleStatus, error)
	List(ctx context.Context, tenant, namespace, after string, limit int) ([]api.ScheduleStatus, string, error)
	Update(ctx context.Context, tenant, namespace, name string, c *api.ScheduleChange, revision int64, by scheduler.Author) (*api.ScheduleStatus, error)
	Delete(ctx context.Context, tenant, namespace, name string, revision int64) error
	Run(ctx context.Context, tenant, namespace, name, key string, may scheduler.May) (*api.ScheduleRun, string, error)
}

const (
	pathSchedules = pathNamespaces + "/{namespace}/schedules"
	pathSchedule  = pathSchedules + "/{schedule}"
)

// SchedulePath is the path of a schedule.
type SchedulePath struct {
	NamespacePath
	Schedule resourceName `path:"schedule"`
}

// Resolve refuses a name out of its pattern.
func (p *SchedulePath) Resolve(huma.Context) []error {
	return problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("namespace", string(p.Namespace)), api.ValidateName("schedule", string(p.Schedule)))
}

// names are the path's names as the service takes them.
func (p *SchedulePath) names() (tenant, namespace, name string) {
	return string(p.Tenant), string(p.Namespace), string(p.Schedule)
}

type createScheduleInput struct {
	NamespacePath
	IfNoneMatch string `header:"If-None-Match" doc:"* says what holds anyway: the schedule must not exist"`
	Body        api.NewSchedule
}

type listSchedulesInput struct {
	NamespacePath
	PageQuery
}

type scheduleInput struct{ SchedulePath }

type changeScheduleInput struct {
	SchedulePath
	IfMatch string `header:"If-Match" doc:"the ETag that the schedule must have now"`
	Body    changeScheduleBody
}

type changeScheduleBody struct {
	EverySeconds    nullable[int64]             `json:"every_seconds,omitzero" doc:"an interval"`
	Cron            nullable[string]            `json:"cron,omitzero" doc:"five fields, or @hourly and the like"`
	Timezone        nullable[string]            `json:"timezone,omitzero" doc:"of cron"`
	OverlapPolicy   nullable[string]            `json:"overlap_policy,omitzero" doc:"skip, queue or parallel"`
	QueueLimit      nullable[int]               `json:"queue_limit,omitzero" doc:"of the overlap_policy queue"`
	Catchup         nullable[string]            `json:"catchup,omitzero" doc:"all, latest or none"`
	MaxCatchupTicks nullable[int]               `json:"max_catchup_ticks,omitzero"`
	Ref             nullable[api.JobTarget]     `json:"ref,omitzero" doc:"the function to invoke"`
	Queue           nullable[api.ScheduleQueue] `json:"queue,omitzero" doc:"the queue that gets a job"`
	Payload         nullable[anyJSON]           `json:"payload,omitzero"`
	Enabled         *bool                       `json:"enabled,omitempty"`
}

type deleteScheduleInput struct {
	SchedulePath
	IfMatch string `header:"If-Match" doc:"the ETag that the schedule must have now"`
}

type runScheduleInput struct {
	SchedulePath
	IdempotencyKey string `header:"Idempotency-Key" doc:"at most 255 bytes; a repeat gets the same job" maxLength:"255"`
}

type scheduleOutput struct {
	ETag string `header:"ETag"`
	Body api.ScheduleStatus
}

type schedulePageOutput struct{ Body api.Page[api.ScheduleStatus] }

type runScheduleOutput struct{ Body runScheduleBody }

type runScheduleBody struct {
	JobID        string `json:"job_id"`
	ActivationID string `json:"activation_id,omitempty" doc:"where a function runs"`
}

func (s *Server) routeSchedules(t typedAPI) {
	tags := []string{"schedules"}
	register(t, huma.Operation{
		OperationID: "create-schedule", Method: http.MethodPost, Path: pathSchedules, Tags: tags,
		Summary: "Create a schedule", DefaultStatus: http.StatusCreated,
		Description: "Either every_seconds or cron says when, either ref (a function) or queue says what. " +
			"Its ticks are invoked on behalf of the caller. 409 if it exists.",
	}, s.createSchedule)
	register(t, huma.Operation{
		OperationID: "list-schedules", Method: http.MethodGet, Path: pathSchedules, Tags: tags,
		Summary: "List a namespace's schedules by name, with how they stand",
	}, s.listSchedules)
	register(t, huma.Operation{
		OperationID: "get-schedule", Method: http.MethodGet, Path: pathSchedule, Tags: tags,
		Summary: "Read a schedule, its next run and its last one", Description: "The ETag is its revision.",
	}, s.getSchedule)
	register(t, huma.Operation{
		OperationID: "change-schedule", Method: http.MethodPatch, Path: pathSchedule, Tags: tags,
		Summary: "Change a schedule, or enable or disable it",
		Description: "What is left out stays; null removes, or gives the default: {\"every_seconds\": null, \"cron\": \"0 6 * * *\"}. " +
			"A change of its timing, or enabling it, begins anew from now. If-Match guards the change.",
	}, s.changeSchedule)
	register(t, huma.Operation{
		OperationID: "delete-schedule", Method: http.MethodDelete, Path: pathSchedule, Tags: tags,
		Summary: "Delete a schedule", Description: "Jobs that it made go on. If-Match guards it.",
	}, s.deleteSchedule)
	register(t, huma.Operation{
		OperationID: "run-schedule", Method: http.MethodPost, Path: pathSchedule + ":run", Tags: tags,
		Summary: "Fire a schedule now", DefaultStatus: http.StatusOK,
		Description: "Also one that is disabled, on behalf of whoever changed it last; the caller must be allowed to use its target, too. " +
			"409 where its overlap policy does not let the run begin.",
	}, s.runSchedule)
}

func answerSchedule(status *api.ScheduleStatus, err error) (*scheduleOutput, error) {
	if err != nil {
		return nil, err
	}
	return &scheduleOutput{ETag: revisionTag(status.Revision), Body: *status}, nil
}

func (s *Server) createSchedule(ctx context.Context, in *createScheduleInput) (*scheduleOutput, error) {
	if err := createOnly(in.IfNoneMatch); err != nil {
		return nil, err
	}
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	out, err := answerSchedule(s.schedules.Create(ctx, tenant, namespace, &in.Body, s.author(ctx, tenant, namespace)))
	if err == nil {
		noteMade(ctx, in.Body.Name)
	}
	return out, err
}

func (s *Server) listSchedules(ctx context.Context, in *listSchedulesInput) (*schedulePageOutput, error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	list := listScope("schedules", tenant, namespace)
	after, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.schedules.List(ctx, tenant, namespace, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return &schedulePageOutput{Body: page(items, list.seal(next))}, nil
}

func (s *Server) getSchedule(ctx context.Context, in *scheduleInput) (*scheduleOutput, error) {
	return answerSchedule(s.schedules.Get(ctx, string(in.Tenant), string(in.Namespace), string(in.Schedule)))
}

func (s *Server) changeSchedule(ctx context.Context, in *changeScheduleInput) (*scheduleOutput, error) {
	tenant, namespace, name := in.names()
	revision, err := s.matchSchedule(ctx, &in.SchedulePath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	b := &in.Body
	return answerSchedule(s.schedules.Update(ctx, tenant, namespace, name, &api.ScheduleChange{
		EverySeconds: b.EverySeconds.given, Cron: b.Cron.given, Timezone: b.Timezone.given,
		OverlapPolicy: b.OverlapPolicy.given, QueueLimit: b.QueueLimit.given, Catchup: b.Catchup.given, MaxCatchupTicks: b.MaxCatchupTicks.given,
		Ref: b.Ref.given, Queue: b.Queue.given, Payload: (*rawJSON)(b.Payload.given), Enabled: b.Enabled,
	}, revision, s.author(ctx, tenant, namespace)))
}

func (s *Server) deleteSchedule(ctx context.Context, in *deleteScheduleInput) (*struct{}, error) {
	tenant, namespace, name := in.names()
	revision, err := s.matchSchedule(ctx, &in.SchedulePath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	return nil, s.schedules.Delete(ctx, tenant, namespace, name, revision)
}

// matchSchedule turns an If-Match into the revision that the schedule must have, 0 for
// any. CodePreconditionFailed, CodeScheduleNotFound.
func (s *Server) matchSchedule(ctx context.Context, p *SchedulePath, ifMatch string) (int64, error) {
	if ifMatch == "" || strings.TrimSpace(ifMatch) == "*" {
		return 0, nil // what is to be changed must exist anyway
	}
	tenant, namespace, name := p.names()
	found, err := s.schedules.Get(ctx, tenant, namespace, name)
	if err != nil {
		return 0, err
	}
	if !namesTag(ifMatch, revisionTag(found.Revision)) {
		return 0, api.Errorf(api.CodePreconditionFailed, "the schedule does not have the ETag that If-Match names")
	}
	return found.Revision, nil
}

func (s *Server) runSchedule(ctx context.Context, in *runScheduleInput) (*runScheduleOutput, error) {
	tenant, namespace, name := in.names()
	run, activationID, err := s.schedules.Run(ctx, tenant, namespace, name, in.IdempotencyKey, s.mayUse(tenant, namespace))
	if err != nil {
		return nil, err
	}
	noteMade(ctx, run.JobID)
	return &runScheduleOutput{runScheduleBody{JobID: run.JobID, ActivationID: activationID}}, nil
}

// mayUse asks whether the caller may use the target of a schedule in a namespace.
func (s *Server) mayUse(tenant, namespace string) scheduler.May {
	return func(ctx context.Context, schedule *api.Schedule) error {
		return s.maySchedule(ctx, tenant, namespace, schedule)
	}
}

// author is the caller as whoever a schedule's ticks are invoked for.
func (s *Server) author(ctx context.Context, tenant, namespace string) scheduler.Author {
	c := callerOf(ctx)
	return scheduler.Author{Principal: c.principal(), Access: c.access(), May: s.mayUse(tenant, namespace)}
}

// maySchedule refuses a schedule whose target is not there, or is not the caller's to
// use: nobody asks them again when it ticks. Errors: those of Engine.Authorize,
// CodeAuthzDenied.
func (s *Server) maySchedule(ctx context.Context, tenant, namespace string, schedule *api.Schedule) error {
	c := callerOf(ctx)
	if schedule.Queue != nil {
		return c.need(actionJobEnqueue)
	}
	if err := c.need(actionFunctionInvoke); err != nil {
		return err
	}
	err := s.engine.Authorize(ctx, &api.Invocation{
		Tenant: tenant, Namespace: namespace, Function: schedule.Ref.Function, Ref: schedule.Ref.Ref(),
		Trigger: api.Trigger{Type: api.TriggerSchedule}, Principal: c.principal(), Access: c.access(),
	})
	var refused *api.Error
	if errors.As(err, &refused) && statusOf(refused.Code) == http.StatusNotFound {
		return api.Wrap(refused.Code, err, refused.Message).WithFields(api.FieldError{Path: "ref", Message: "must be a function that exists, with the alias or version"})
	}
	return err
}
