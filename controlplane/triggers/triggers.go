// Package triggers serves the resources that make functions run by themselves:
// schedules (schedules.go), queue triggers (queues.go) and Cadence worker bindings (bindings.go).
//
// All of them act later, without the caller. So the caller that creates or changes one becomes
// its owner: its principal is stored with the record, its right to invoke is examined then
// (maySchedule, mayTrigger, mayBind), and runs have its principal. A key that is revoked later does not
// stop them. A change that does nothing but disable the resource keeps the owner and needs
// no right to invoke: a caller that may not run the functions may still stop them.
package triggers

import (
	"context"
	"slices"
	"time"

	"github.com/codesous/sous/api"
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
	// Authorize returns the error with which an invocation of inv would be refused; it
	// runs nothing.
	Authorize(ctx context.Context, inv *api.Invocation) error
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

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	return slices.Concat(a.scheduleEndpoints(), a.queueEndpoints(), a.bindingEndpoints())
}
