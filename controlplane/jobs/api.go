// Package jobs serves jobs with their queues, batches and workers, and tasks. It decodes,
// authorizes and encodes; queue.Broker and tasks.Tasks do the work, and their methods
// document the states and the errors.
//
// The files follow the life of a job: producers add it (enqueue.go), workers take it under a
// lease (fetch.go) and settle it (settle.go), operators read and change it (jobs.go) or its
// queue (queues.go). batches.go, workers.go and tasks.go have the other resources, events.go the
// log of events. stream.go has the stream of workers: stream_session.go reads its frames,
// stream_frame.go carries them out, and stream_fetch.go serves its fetches.
//
// Keys that are limited to one namespace are checked in two ways. The path of a queue
// contains its namespace, which package rest checks. The paths of jobs, tasks and the calls
// of workers do not: their handlers read the record first, and answer that a record of another
// namespace does not exist.
//
// A job that runs a function is authorized when it is enqueued: mayRun examines its target, the
// steps of its chain and the callback of its batch. The job keeps the id and the roles of its
// caller, because the alias may move before it runs: the worker compares them with the list of
// roles of the version that it runs.
package jobs

import (
	"context"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/admission"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/routing"
	"github.com/codesous/sous/queue/tasks"
	"github.com/codesous/sous/storage/events"
)

// Engine authorizes invocations.
type Engine interface {
	// Authorize returns the error with which Invoke would refuse inv, or nil.
	Authorize(ctx context.Context, inv *api.Invocation) error
}

// API serves jobs, queues, batches, workers and tasks. It is safe for concurrent use.
type API struct {
	queue  *queue.Broker
	router *routing.Router // of external workers
	tasks  *tasks.Tasks
	events *events.Log
	engine Engine
	waits  *admission.Waits
	log    *zap.Logger

	taskFeeds     *taskHub
	taskTypeFeeds *taskTypeHub
	eventFeeds    *eventHub

	streams       *streams
	enqueueBodies rest.Decoder[enqueueBody]
	fetchBodies   rest.Decoder[api.FetchRequest]
}

// New returns the API of broker, tasks and events. External workers get their jobs by router. engine
// authorizes the functions that jobs run, and waits limits the fetches that wait and the streams, whose other bounds stream has.
func New(broker *queue.Broker, router *routing.Router, tasks *tasks.Tasks, events *events.Log, engine Engine, waits *admission.Waits, stream StreamConfig, log *zap.Logger) *API {
	a := &API{
		queue:         broker,
		router:        router,
		tasks:         tasks,
		events:        events,
		engine:        engine,
		waits:         waits,
		log:           log,
		taskFeeds:     newTaskHub(),
		taskTypeFeeds: newTaskTypeHub(),
		eventFeeds:    newEventHub(),
		enqueueBodies: rest.NewDecoder[enqueueBody](),
		fetchBodies:   rest.NewDecoder[api.FetchRequest](),
	}
	a.streams = newStreams(a, stream)
	return a
}

// Endpoints returns the declarations of all routes of the API.
func (a *API) Endpoints() []rest.Endpoint {
	var all []rest.Endpoint
	for _, some := range [][]rest.Endpoint{
		a.jobEndpoints(), a.iterationEndpoints(), a.transitionEndpoints(), a.enqueueEndpoints(), a.fetchEndpoints(), a.settleEndpoints(),
		a.queueEndpoints(), a.batchEndpoints(), a.workerEndpoints(), a.taskEndpoints(), a.taskEventEndpoints(), a.eventEndpoints(), a.streamEndpoints(),
	} {
		all = append(all, some...)
	}
	return all
}
