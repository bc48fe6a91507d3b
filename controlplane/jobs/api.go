// Package jobs serves jobs with their queues, batches and workers, and tasks. It decodes,
// authorizes and encodes; queue.Broker and tasks.Tasks do the work, and their methods
// document the states and the errors.
//
// A job passes through the files: producers add it (enqueue.go), workers take it under a
// lease (fetch.go) and settle it (settle.go), people look at it and steer it (jobs.go) or its
// queue (queues.go). batches.go, workers.go and tasks.go have the other resources.
//
// Two rules concern keys that are limited to one namespace. The path of a queue contains
// its namespace, and the kernel judges it. The path of a job, of a task, and of the calls of
// workers does not: the handlers look it up, and what lies in another namespace does not
// exist for the caller.
//
// A job that runs a function is authorized when it is enqueued, not when it runs: mayRun
// examines its target, the steps of its chain and the callback of its batch.
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

// API serves jobs and what belongs to them. It is safe for concurrent use.
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
