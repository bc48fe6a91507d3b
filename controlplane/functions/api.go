// Package functions serves functions with their drafts, versions and aliases, their
// invocation, and activations with their logs. One file has one resource: its types, its
// endpoints and its handlers.
//
// The life of a version runs through the files: POST N/functions (functions.go) creates
// the function, PUT F/draft (drafts.go) stores files for a day, POST F/versions
// (versions.go) has the Publisher (publish.go) check the draft and write the next version,
// PUT F/aliases/prod (aliases.go) points an alias at it, and POST F:invoke (invoke.go) runs
// what the alias names. GET T/activations/{id} (activations.go) and its logs (logs.go) show
// the result.
//
// Functions, drafts, versions and aliases have their namespace in the path, and package rest
// checks it. The path of an activation has none: its handlers read the record first, and
// an activation of another namespace does not exist for the caller.
package functions

import (
	"context"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/admission"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/calls"
	"github.com/codesous/sous/storage/mirror/search"
)

// Engine checks and executes functions. invoker.Invoker implements it.
type Engine interface {
	Compiler
	// Invoke runs a function to a terminal activation, whatever its status. An error
	// means that the activation did not reach one: it was refused, or its end could not be
	// recorded.
	Invoke(ctx context.Context, inv api.Invocation) (*api.Outcome, error)
	// Enqueue accepts an invocation that is run later. It is durable on return: the
	// activation exists and a job runs it.
	Enqueue(ctx context.Context, inv api.Invocation) (*api.Queued, error)
	// Cancel ends an activation that is queued or running, and returns it. Errors:
	// CodeActivationNotFound, CodeActivationTerminal.
	Cancel(ctx context.Context, tenant, id string) (*api.Activation, error)
}

// CallCounter holds the calls that ended on this replica and are not in the store yet.
// invoker.Invoker implements it.
type CallCounter interface {
	// FlushCalls writes those of a namespace.
	FlushCalls(ctx context.Context, tenant, namespace string)
}

// API serves functions and what belongs to them. It is safe for concurrent use.
type API struct {
	functions   *storage.Functions
	drafts      *storage.Drafts
	versions    *storage.Versions
	aliases     *storage.Aliases
	activations *activations.Repository
	logs        *activations.Logs
	calls       *calls.Repository
	searcher    *search.Searcher
	engine      Engine
	counter     CallCounter
	publisher   *Publisher

	clock          func() time.Time
	followInterval time.Duration
	waits          *admission.Waits
	logFeeds       *logHub

	invokeBodies rest.Decoder[api.InvokeRequest]
	draftBodies  rest.Decoder[draftBody]
}

// New returns the API of the functions in a store. searcher answers lists of activations whose filters
// the store has no index for. A followed log is read again every
// followInterval. Followed logs are counted against waits.
func New(store *storage.Store, engine Engine, counter CallCounter, searcher *search.Searcher, clock func() time.Time, followInterval time.Duration, waits *admission.Waits) *API {
	a := &API{
		functions:      storage.NewFunctions(store),
		drafts:         storage.NewDrafts(store),
		versions:       storage.NewVersions(store),
		aliases:        storage.NewAliases(store),
		activations:    activations.New(store),
		logs:           activations.NewLogs(store),
		calls:          calls.New(store),
		searcher:       searcher,
		engine:         engine,
		counter:        counter,
		clock:          clock,
		followInterval: followInterval,
		waits:          waits,
		logFeeds:       newLogHub(followInterval),
		invokeBodies:   rest.NewDecoder[api.InvokeRequest](),
		draftBodies:    rest.NewDecoder[draftBody](),
	}
	a.publisher = &Publisher{Functions: a.functions, Drafts: a.drafts, Versions: a.versions, Engine: engine, Clock: clock}
	return a
}

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	var all []rest.Endpoint
	for _, some := range [][]rest.Endpoint{
		a.functionEndpoints(), a.draftEndpoints(), a.versionEndpoints(), a.aliasEndpoints(),
		a.invokeEndpoints(), a.activationEndpoints(), a.logEndpoints(),
	} {
		all = append(all, some...)
	}
	return all
}
