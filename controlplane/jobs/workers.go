package jobs

import (
	"context"
	"net/http"
	"slices"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const pathWorkers = rest.PathTenant + "/workers"

type listWorkersInput struct {
	rest.TenantPath
	rest.PageQuery
}

// workerEndpoints declares the list of workers. A worker is not registered: fetching makes
// it appear, and five minutes of silence remove it.
func (a *API) workerEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathWorkers, Action: access.WorkerRead, Extent: rest.HandlerNamespace,
			ID: "list-workers", Tag: "jobs", Summary: "List the workers that fetched or sent a heartbeat in the last five minutes, by id",
			Description: "A page may be short, even empty, and still have a next_cursor.",
		}, a.listWorkers),
	}
}

// listWorkers answers with a page of the workers that were alive in the last five minutes,
// by id. Namespaces that the caller may not enter are left out, and workers that have no
// other, so a page may be short, even empty, and still have a next_cursor.
func (a *API) listWorkers(ctx context.Context, in *listWorkersInput) (*rest.PageOutput[api.Worker], error) {
	tenant := string(in.Tenant)
	return rest.ReadPage(rest.ListScope("workers", tenant), in.Cursor, func(after string) ([]api.Worker, string, error) {
		items, next, err := a.queue.Workers(ctx, tenant, after, in.Limit)
		caller := rest.CallerOf(ctx)
		for i := range items {
			w := &items[i]
			w.Namespaces = slices.DeleteFunc(w.Namespaces, func(n api.WorkerNamespace) bool { return !caller.EntersNamespace(n.Namespace) })
		}
		items = slices.DeleteFunc(items, func(w api.Worker) bool { return len(w.Namespaces) == 0 })
		return items, next, err
	})
}
