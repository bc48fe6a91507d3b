// Package triggers serves the resources that make functions run by themselves:
// schedules and Cadence worker bindings.
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

// Schedules keeps and runs schedules.
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
	// Authorize returns the error with which an invocation of inv would be refused.
	Authorize(ctx context.Context, inv *api.Invocation) error
}

// API serves schedules and worker bindings.
type API struct {
	schedules Schedules
	bindings  *bindings.Repository
	engine    Engine
	clock     func() time.Time
}

// New returns the API of schedules and of the bindings in a store.
func New(store *storage.Store, schedules Schedules, engine Engine, clock func() time.Time) *API {
	return &API{schedules: schedules, bindings: bindings.New(store), engine: engine, clock: clock}
}

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	return append(a.scheduleEndpoints(), a.bindingEndpoints()...)
}
