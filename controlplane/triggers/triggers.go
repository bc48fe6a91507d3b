// Package triggers serves the resources that make functions run by themselves:
// schedules (schedules.go) and Cadence worker bindings (bindings.go).
//
// Both act later, without the caller. So the caller that creates or changes one becomes
// its owner: its principal is stored with the record, its right to invoke is examined then
// (maySchedule, mayBind), and runs have its principal. A key that is revoked later does not
// stop them. A change that does nothing but disable the resource keeps the owner and needs
// no right to invoke: a caller that may not run the functions may still stop them.
package triggers

import (
	"context"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
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

// API serves schedules and worker bindings. It is safe for concurrent use.
type API struct {
	schedules Schedules
	bindings  *bindings.Repository
	engine    Engine
	clock     func() time.Time
}

// New returns the API of schedules and of the bindings in a store. engine authorizes owners.
func New(store *storage.Store, schedules Schedules, engine Engine, clock func() time.Time) *API {
	return &API{schedules: schedules, bindings: bindings.New(store), engine: engine, clock: clock}
}

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	return append(a.scheduleEndpoints(), a.bindingEndpoints()...)
}
