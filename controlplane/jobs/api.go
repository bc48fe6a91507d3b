// Package jobs serves jobs with their queues, batches and workers, and tasks.
package jobs

import (
	"context"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/tasks"
)

// Engine authorizes invocations.
type Engine interface {
	// Authorize returns the error with which an invocation of inv would be refused.
	Authorize(ctx context.Context, inv *api.Invocation) error
}

// API serves jobs and what belongs to them.
type API struct {
	queue  *queue.Broker
	tasks  *tasks.Tasks
	engine Engine
	waits  *rest.Waits
	log    *zap.Logger

	enqueueBodies rest.Decoder[enqueueBody]
	fetchBodies   rest.Decoder[api.FetchRequest]
}

// New returns the API of the jobs of a broker and of tasks. Fetches that wait are
// counted against waits.
func New(broker *queue.Broker, tasks *tasks.Tasks, engine Engine, waits *rest.Waits, log *zap.Logger) *API {
	return &API{
		queue:         broker,
		tasks:         tasks,
		engine:        engine,
		waits:         waits,
		log:           log,
		enqueueBodies: rest.NewDecoder[enqueueBody](),
		fetchBodies:   rest.NewDecoder[api.FetchRequest](),
	}
}

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	var all []rest.Endpoint
	for _, some := range [][]rest.Endpoint{
		a.jobEndpoints(), a.steeringEndpoints(), a.enqueueEndpoints(), a.fetchEndpoints(), a.settleEndpoints(),
		a.queueEndpoints(), a.batchEndpoints(), a.workerEndpoints(), a.taskEndpoints(),
	} {
		all = append(all, some...)
	}
	return all
}
