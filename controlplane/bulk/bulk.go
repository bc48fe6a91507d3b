// Package bulk serves bulk operations on the jobs that a search selects. Package queue/bulk runs them.
// A key that is limited to a namespace sees only operations of that.
package bulk

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue/bulk"
)

const (
	pathBulk      = rest.PathTenant + "/bulk"
	pathOperation = pathBulk + "/{bulk_id}"
)

// API serves bulk operations. It is safe for concurrent use.
type API struct{ operations *bulk.Operations }

// New returns the API of operations.
func New(operations *bulk.Operations) *API { return &API{operations} }

// OperationPath holds the parameters of the path of an operation.
type OperationPath struct {
	rest.TenantPath
	BulkID string `path:"bulk_id" doc:"a UUID"`
}

// Resolve refuses an id that cannot be an operation's.
func (p *OperationPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateJobID(p.BulkID))
}

type operationInput struct{ OperationPath }

type operationOutput struct{ Body search.Bulk }

type createInput struct {
	rest.TenantPath
	IdempotencyKey string `header:"Idempotency-Key" doc:"at most 255 bytes; a repeat gets the same operation" maxLength:"255"`
	Body           search.NewBulk
}

type createOutput struct {
	Status int
	Body   search.Bulk
}

type previewInput struct {
	rest.TenantPath
	Body search.NewBulk
}

type previewOutput struct{ Body search.BulkPreview }

type listInput struct {
	rest.TenantPath
	rest.PageQuery
}

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathBulk, Action: access.JobSteer, Extent: rest.HandlerNamespace,
			ID: "create-bulk", Tag: "jobs", Summary: "Retry, cancel, move or delete all jobs that a search selects", Status: http.StatusAccepted,
			Description: "The operation runs on replicas with a mirror and continues after any of them dies. It examines the jobs that were created before it, oldest first. " +
				"Each is read in the store and changed only if it still matches; full text is not compared again. delete needs cs:job:delete too. " +
				"A tenant has at most 4 operations that run. With Idempotency-Key it is safe to repeat, and a repeat answers 200.",
			Also: []rest.Answer{{Status: http.StatusOK, Content: rest.JSON(search.Bulk{})}},
		}, a.create),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathBulk + ":preview", Action: access.JobRead, Extent: rest.HandlerNamespace,
			ID: "preview-bulk", Tag: "jobs", Summary: "Count the jobs that a bulk operation would select, and show the oldest",
			Description: "Nothing is changed. At most 10,000 jobs are counted.",
		}, a.preview),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathBulk, Action: access.JobRead, Extent: rest.HandlerNamespace,
			ID: "list-bulk", Tag: "jobs", Summary: "List bulk operations, newest first", Description: "They are kept for 7 days after their end.",
		}, a.list),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathOperation, Action: access.JobRead, Extent: rest.HandlerNamespace,
			ID: "get-bulk", Tag: "jobs", Summary: "Read a bulk operation with its progress",
		}, a.get),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathOperation + ":cancel", Action: access.JobSteer, Extent: rest.HandlerNamespace,
			ID: "cancel-bulk", Tag: "jobs", Summary: "End a bulk operation after the jobs in progress", Description: "Jobs that were changed stay so. A repeat succeeds.",
		}, a.cancel),
	}
}

// enter restricts a selection to the namespace of the caller's key. Errors: CodeValidationName,
// CodeAuthzDenied.
func enter(ctx context.Context, s *search.Selection) error {
	caller := rest.CallerOf(ctx)
	if s.Namespace == "" {
		s.Namespace = caller.Namespace
		return nil
	}
	if err := api.ValidateName("namespace", s.Namespace); err != nil {
		return err
	}
	return caller.NeedNamespace(s.Namespace)
}

// create creates an operation: 202, or 200 for a repeat. Errors: CodeInvalid, CodeBulkLimit,
// CodeIdempotencyMismatch, those of the search.
func (a *API) create(ctx context.Context, in *createInput) (*createOutput, error) {
	if in.Body.Operation == search.BulkDelete {
		if err := rest.CallerOf(ctx).Need(access.JobDelete); err != nil {
			return nil, err
		}
	}
	if err := in.Body.Validate(); err != nil { // before the namespace of the key becomes a filter
		return nil, err
	}
	if err := enter(ctx, &in.Body.Selection); err != nil {
		return nil, err
	}
	made, created, err := a.operations.Create(ctx, string(in.Tenant), in.IdempotencyKey, &in.Body)
	if err != nil {
		return nil, err
	}
	if !created {
		return &createOutput{http.StatusOK, *made}, nil
	}
	return &createOutput{http.StatusAccepted, *made}, nil
}

func (a *API) preview(ctx context.Context, in *previewInput) (*previewOutput, error) {
	if err := in.Body.Validate(); err != nil {
		return nil, err
	}
	if err := enter(ctx, &in.Body.Selection); err != nil {
		return nil, err
	}
	found, err := a.operations.Preview(ctx, string(in.Tenant), &in.Body)
	if err != nil {
		return nil, err
	}
	return &previewOutput{*found}, nil
}

func (a *API) list(ctx context.Context, in *listInput) (*rest.PageOutput[search.Bulk], error) {
	tenant := string(in.Tenant)
	if err := api.ValidateTenant(tenant); err != nil {
		return nil, err
	}
	namespace := rest.CallerOf(ctx).Namespace
	return rest.ReadPage(rest.ListScope("bulk", tenant, namespace), in.Cursor, func(position string) ([]search.Bulk, string, error) {
		return a.operations.List(ctx, tenant, namespace, position, in.Limit)
	})
}

// get answers with an operation of a namespace that the caller may enter.
func (a *API) get(ctx context.Context, in *operationInput) (*operationOutput, error) {
	found, err := a.operations.Get(ctx, string(in.Tenant), in.BulkID)
	if err != nil {
		return nil, err
	}
	if !rest.CallerOf(ctx).EntersNamespace(found.Selection.Namespace) {
		return nil, bulk.NotFound(in.BulkID)
	}
	return &operationOutput{*found}, nil
}

// cancel ends an operation. Errors: CodeBulkNotFound, CodeBulkEnded.
func (a *API) cancel(ctx context.Context, in *operationInput) (*operationOutput, error) {
	if _, err := a.get(ctx, in); err != nil {
		return nil, err
	}
	ended, err := a.operations.Cancel(ctx, string(in.Tenant), in.BulkID)
	if err != nil {
		return nil, err
	}
	return &operationOutput{*ended}, nil
}
