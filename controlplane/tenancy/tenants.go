package tenancy

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// tenantRecord is a tenant that exists: at least one record was written for it.
type tenantRecord struct {
	Tenant string `json:"tenant"`
}

// namespaceRecord is a namespace that exists.
type namespaceRecord struct {
	Namespace string `json:"namespace"`
}

type tenantInput struct{ rest.TenantPath }

type tenantOutput struct{ Body tenantRecord }

type listNamespacesInput struct {
	rest.TenantPath
	rest.PageQuery
}

type namespacePageOutput struct{ Body api.Page[namespaceRecord] }

// tenantEndpoints declares the routes that read tenants and namespaces. No route creates or
// deletes them: the first record of a tenant or namespace creates it, and it exists from then on.
func (a *API) tenantEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: rest.PathTenant, Action: access.TenantRead, Extent: rest.NoNamespace,
			ID: "get-tenant", Tag: "tenants", Summary: "Report whether a tenant exists", Description: "A tenant is created by its first record.",
		}, a.getTenant),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: rest.PathNamespaces, Action: access.TenantRead, Extent: rest.HandlerNamespace,
			ID: "list-namespaces", Tag: "tenants", Summary: "List a tenant's namespaces by name",
		}, a.listNamespaces),
	}
}

// getTenant reports that a tenant exists. Errors: CodeTenantNotFound, which a caller also
// gets for tenants that it may not enter.
func (a *API) getTenant(ctx context.Context, in *tenantInput) (*tenantOutput, error) {
	tenant := string(in.Tenant)
	if err := a.requireTenant(ctx, tenant); err != nil {
		return nil, err
	}
	return &tenantOutput{Body: tenantRecord{tenant}}, nil
}

// requireTenant returns CodeTenantNotFound for a tenant without any record. A record counts
// for ever: deleting all of a tenant's functions does not remove the tenant.
func (a *API) requireTenant(ctx context.Context, tenant string) error {
	exists, err := a.tenants.Exists(ctx, tenant)
	if err == nil && !exists {
		err = rest.TenantNotFound(tenant)
	}
	return err
}

// listNamespaces answers with a page of the namespaces that the caller may enter. Errors:
// CodeTenantNotFound, CodeValidationCursor.
func (a *API) listNamespaces(ctx context.Context, in *listNamespacesInput) (*namespacePageOutput, error) {
	tenant := string(in.Tenant)
	list := rest.ListScope("namespaces", tenant)
	after, err := list.Open(in.Cursor)
	if err != nil {
		return nil, err
	}
	if err := a.requireTenant(ctx, tenant); err != nil {
		return nil, err
	}
	names, next, err := a.namespaces(ctx, tenant, after, in.Limit)
	if err != nil {
		return nil, err
	}
	items := make([]namespaceRecord, len(names))
	for i, name := range names {
		items[i].Namespace = name
	}
	return &namespacePageOutput{Body: rest.NewPage(items, list.Seal(next))}, nil
}

// namespaces returns a page of the namespaces that the caller may enter. For a key of one
// namespace the page has at most that name: the names of others are not shown.
func (a *API) namespaces(ctx context.Context, tenant, after string, limit int) (names []string, next string, err error) {
	own := rest.CallerOf(ctx).Namespace
	if own == "" {
		return a.tenants.Namespaces(ctx, tenant, after, limit)
	}
	exists, err := a.tenants.HasNamespace(ctx, tenant, own)
	if exists && own > after {
		names = []string{own}
	}
	return names, "", err
}
