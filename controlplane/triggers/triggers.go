// Package triggers serves the resources that make functions run by themselves:
// schedules (schedules.go), queue triggers (queues.go) and Cadence worker bindings (bindings.go).
//
// All of them act later, without the caller. So the caller that creates or changes one becomes
// its owner: its principal is stored with the record, its right to invoke is examined then
// (maySchedule, mayTrigger, mayBind), and runs have its principal. A key that is revoked later does not
// stop them. A change that does nothing but disable a schedule or a binding keeps the owner and
// needs no right to invoke: a caller that may not run the functions may still stop them. For a
// queue trigger, such a caller deletes it or pauses the queue.
package triggers

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/httpstatus"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
	"github.com/codesous/sous/storage/triggers"
)

// Schedules keeps and runs schedules. scheduler.Schedules implements it and documents the
// methods.
type Schedules interface {
	Create(ctx context.Context, tenant, namespace string, n *api.NewSchedule, by scheduler.Author) (*api.ScheduleStatus, error)
	Get(ctx context.Context, tenant, namespace, name string) (*api.ScheduleStatus, error)
	List(ctx context.Context, tenant, namespace, after string, limit int) ([]api.ScheduleStatus, string, error)
	Update(ctx context.Context, tenant, namespace, name string, c *api.ScheduleChange, revision int64, by scheduler.Author) (*api.ScheduleStatus, error)
	Delete(ctx context.Context, tenant, namespace, name string, revision int64) error
	Run(ctx context.Context, tenant, namespace, name, key string, may scheduler.May) (*api.ScheduleRun, string, error)
}

// Engine authorizes invocations.
type Engine interface {
	// AuthorizeTrigger returns the error with which an invocation of inv would be refused, or
	// CodeInvalid if the version has no handler for its trigger; it runs nothing.
	AuthorizeTrigger(ctx context.Context, inv *api.Invocation) error
}

// API serves schedules, queue triggers and worker bindings. It is safe for concurrent use.
type API struct {
	schedules Schedules
	bindings  *bindings.Repository
	queues    *triggers.Repository
	engine    Engine
	clock     func() time.Time
}

// New returns the API of schedules, and of the triggers and bindings in a store. engine authorizes owners.
func New(store *storage.Store, schedules Schedules, engine Engine, clock func() time.Time) *API {
	return &API{schedules: schedules, bindings: bindings.New(store), queues: triggers.New(store), engine: engine, clock: clock}
}

// mayRun refuses a target that does not exist, that has no handler for the trigger, or that the
// caller may not invoke. Errors: those of Engine.AuthorizeTrigger, where one about the target
// names field; CodeAuthzDenied.
func (a *API) mayRun(ctx context.Context, tenant, namespace, trigger string, target api.JobTarget, field string) error {
	c := rest.CallerOf(ctx)
	if err := c.Need(access.FunctionInvoke); err != nil {
		return err
	}
	err := a.engine.AuthorizeTrigger(ctx, &api.Invocation{
		Tenant: tenant, Namespace: namespace, Function: target.Function, Ref: target.Ref(),
		Trigger: api.Trigger{Type: trigger}, Principal: c.Principal(), Access: c.Access(),
	})
	var refused *api.Error
	if !errors.As(err, &refused) {
		return err
	}
	problem := "must be a function that exists, with the alias or version"
	switch {
	case refused.Code == api.CodeInvalid:
		problem = refused.Message
	case httpstatus.Of(refused.Code) != http.StatusNotFound:
		return err
	}
	return api.Wrap(refused.Code, err, refused.Message).WithFields(api.FieldError{Path: field, Message: problem})
}

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	return slices.Concat(a.scheduleEndpoints(), a.queueEndpoints(), a.bindingEndpoints())
}
