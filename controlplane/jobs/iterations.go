package jobs

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

type listIterationsInput struct {
	JobPath
	rest.PageQuery
}

// iterationEndpoints declares the list of a job's iterations.
func (a *API) iterationEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathJob + "/iterations", Action: access.JobRead, Extent: rest.HandlerNamespace,
			ID: "list-iterations", Tag: "jobs", Summary: "List the iterations of a job with agent, oldest first",
			Description: "Each ack with continue or hold ends one. The last 100 that ended are kept as long as the job, and the current one is the last. " +
				"A page may be short and still have a next_cursor: it also ends with 4 MiB.",
		}, a.listIterations),
	}
}

// listIterations answers with a page of a job's iterations, which is empty for a job without agent.
func (a *API) listIterations(ctx context.Context, in *listIterationsInput) (*rest.PageOutput[agent.Iteration], error) {
	if err := a.requireJob(ctx, &in.JobPath); err != nil {
		return nil, err
	}
	tenant := string(in.Tenant)
	return rest.ReadPage(rest.ListScope("iterations", tenant, in.JobID), in.Cursor, func(position string) ([]agent.Iteration, string, error) {
		return a.queue.Iterations(ctx, tenant, in.JobID, position, in.Limit)
	})
}
