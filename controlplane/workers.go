package controlplane

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
)

const pathWorkers = pathTenant + "/workers"

type listWorkersInput struct {
	TenantPath
	PageQuery
}

type workerPageOutput struct{ Body api.Page[api.Worker] }

func (s *Server) routeWorkers(t typedAPI) {
	register(t, huma.Operation{
		OperationID: "list-workers", Method: http.MethodGet, Path: pathWorkers, Tags: []string{"jobs"},
		Summary:     "List the workers that fetched or sent a heartbeat in the last five minutes, by id",
		Description: "A page may be short, even empty, and still have a next_cursor.",
	}, s.listWorkers)
}

func (s *Server) listWorkers(ctx context.Context, in *listWorkersInput) (*workerPageOutput, error) {
	tenant := string(in.Tenant)
	list := listScope("workers", tenant)
	after, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.queue.Workers(ctx, tenant, after, in.Limit)
	if err != nil {
		return nil, err
	}
	items = slices.DeleteFunc(items, func(w api.Worker) bool { return !callerOf(ctx).entersNamespace(w.Namespace) })
	return &workerPageOutput{Body: page(items, list.seal(next))}, nil
}
