// Package runs serves the runs of functions with durable steps. queue/runs keeps them.
package runs

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue/runs"
)

const (
	pathRun    = rest.PathTenant + "/runs/{run_id}"
	pathEvents = rest.PathNamespace + "/events"
)

// API serves runs. It is safe for concurrent use.
type API struct{ runs *runs.Runs }

// New returns the API of runs.
func New(runs *runs.Runs) *API { return &API{runs} }

// RunPath holds the parameters of a run's path.
type RunPath struct {
	rest.TenantPath
	RunID string `path:"run_id" doc:"the id of the run's job, a UUID"`
}

// Resolve refuses an id that cannot be a run's.
func (p *RunPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateJobID(p.RunID))
}

type runInput struct{ RunPath }

type runOutput struct{ Body step.Run }

type sendInput struct {
	RunPath
	Body step.NewEvent
}

type broadcastInput struct {
	rest.NamespacePath
	Body step.NewEvent
}

type broadcastOutput struct{ Body step.Sent }

// Endpoints returns the declarations of all routes of the API.
func (a *API) Endpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathRun, Action: access.JobRead, Extent: rest.HandlerNamespace,
			ID: "get-run", Tag: "jobs", Summary: "Read a run with its steps",
			Description: "A run is a job whose function calls cs.step, cs.sleep, cs.waitForEvent or cs.waitForApproval. Its id is that of the job.",
		}, a.get),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathRun + "/events", Action: access.JobEnqueue, Extent: rest.HandlerNamespace,
			ID: "send-run-event", Tag: "jobs", Summary: "Send an event to a run",
			Description: "The run has the event until it waits for one of that name, also if it does not wait yet. At most 100 events wait in a run. " +
				"A call that got no answer may have sent the event.",
		}, a.send),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathEvents, Action: access.JobEnqueue, Extent: rest.PathNamespaceOnly,
			ID: "send-event", Tag: "jobs", Summary: "Send an event to all runs of a namespace that wait for it",
			Description: "A run that begins to wait later does not get the event.",
		}, a.broadcast),
	}
}

// run returns a run of a namespace that the caller may enter. Errors: CodeJobNotFound.
func (a *API) run(ctx context.Context, p *RunPath) (*step.Run, error) {
	run, err := a.runs.Get(ctx, string(p.Tenant), p.RunID)
	if err == nil && !rest.CallerOf(ctx).EntersNamespace(run.Namespace) {
		return nil, api.Errorf(api.CodeJobNotFound, "job %s does not exist", p.RunID)
	}
	return run, err
}

func (a *API) get(ctx context.Context, in *runInput) (*runOutput, error) {
	run, err := a.run(ctx, &in.RunPath)
	if err != nil {
		return nil, err
	}
	return &runOutput{Body: *run}, nil
}

// send sends an event to a run. A run never leaves its namespace, which is checked before.
func (a *API) send(ctx context.Context, in *sendInput) (*struct{}, error) {
	if rest.CallerOf(ctx).Namespace != "" {
		if _, err := a.run(ctx, &in.RunPath); err != nil {
			return nil, err
		}
	}
	return nil, a.runs.Send(ctx, string(in.Tenant), in.RunID, in.Body.Name, in.Body.Payload)
}

func (a *API) broadcast(ctx context.Context, in *broadcastInput) (*broadcastOutput, error) {
	delivered, more, err := a.runs.Broadcast(ctx, string(in.Tenant), string(in.Namespace), in.Body.Name, in.Body.Payload)
	if err != nil {
		return nil, err
	}
	return &broadcastOutput{Body: step.Sent{Delivered: delivered, More: more}}, nil
}
