package controlplane

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
)

// tenantRecord is what exists of a tenant: it has had a record.
type tenantRecord struct {
	Tenant string `json:"tenant"`
}

// namespaceRecord is a namespace that has had a record.
type namespaceRecord struct {
	Namespace string `json:"namespace"`
}

type tenantInput struct{ TenantPath }

type tenantOutput struct{ Body tenantRecord }

type listNamespacesInput struct {
	TenantPath
	PageQuery
}

type namespacePageOutput struct{ Body api.Page[namespaceRecord] }

type limitsOutput struct{ Body Limits }

func (s *Server) routeTenants(t typedAPI) {
	tags := []string{"tenants"}
	register(t, huma.Operation{
		OperationID: "get-tenant", Method: http.MethodGet, Path: pathTenant, Tags: tags,
		Summary: "Say whether a tenant exists", Description: "Tenants come into being with their first record.",
	}, s.getTenant)
	register(t, huma.Operation{
		OperationID: "list-namespaces", Method: http.MethodGet, Path: pathNamespaces, Tags: tags,
		Summary: "List a tenant's namespaces by name",
	}, s.listNamespaces)
	register(t, huma.Operation{
		OperationID: "get-limits", Method: http.MethodGet, Path: pathLimits, Tags: []string{"service"},
		Summary: "List every limit in force",
	}, func(context.Context, *struct{}) (*limitsOutput, error) {
		return &limitsOutput{Body: limitsInForce()}, nil
	})
}

func (s *Server) getTenant(ctx context.Context, in *tenantInput) (*tenantOutput, error) {
	tenant := string(in.Tenant)
	if err := s.tenantExists(ctx, tenant); err != nil {
		return nil, err
	}
	return &tenantOutput{Body: tenantRecord{tenant}}, nil
}

func (s *Server) tenantExists(ctx context.Context, tenant string) error {
	exists, err := s.tenants.Exists(ctx, tenant)
	if err == nil && !exists {
		err = tenantNotFound(tenant)
	}
	return err
}

// tenantNotFound is also what is said of tenants that the caller does not enter.
func tenantNotFound(tenant string) error {
	return api.Errorf(api.CodeTenantNotFound, "tenant %q does not exist", tenant)
}

func (s *Server) listNamespaces(ctx context.Context, in *listNamespacesInput) (*namespacePageOutput, error) {
	tenant := string(in.Tenant)
	list := listScope("namespaces", tenant)
	after, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	if err := s.tenantExists(ctx, tenant); err != nil {
		return nil, err
	}
	names, next, err := s.namespaces(ctx, tenant, after, in.Limit)
	if err != nil {
		return nil, err
	}
	items := make([]namespaceRecord, len(names))
	for i, name := range names {
		items[i].Namespace = name
	}
	return &namespacePageOutput{Body: page(items, list.seal(next))}, nil
}

// namespaces is a page of those that the caller enters.
func (s *Server) namespaces(ctx context.Context, tenant, after string, limit int) (names []string, next string, err error) {
	own := callerOf(ctx).namespace
	if own == "" {
		return s.tenants.Namespaces(ctx, tenant, after, limit)
	}
	exists, err := s.tenants.HasNamespace(ctx, tenant, own)
	if exists && own > after {
		names = []string{own}
	}
	return names, "", err
}
