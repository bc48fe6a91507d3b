package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/domain"
)

// Domains returns one page of the tenant's custom domains, by name.
func (t *Tenant) Domains(ctx context.Context, o PageOptions) (api.Page[domain.Domain], error) {
	var out api.Page[domain.Domain]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("domains"), query: o.query()}, nil, &out)
	return out, err
}

// Domain returns the handle of a custom domain. It sends no request.
func (t *Tenant) Domain(name string) *Domain { return &Domain{t, name} }

// Domain is one custom domain of a tenant.
type Domain struct {
	tenant *Tenant
	name   string
}

// call calls an operation of the domain. If revision is not 0, the domain must have it.
func (d *Domain) call(ctx context.Context, method, path string, revision int64, body any) (domain.Domain, error) {
	var out domain.Domain
	_, err := d.tenant.c.call(ctx, &request{method: method, path: path, header: ifRevision(revision)}, body, &out)
	return out, err
}

func (d *Domain) path() string { return d.tenant.path("domains", d.name) }

// Put adds the domain, or leads it to another function. Its record is in the result. If
// ifMatch is not 0, the domain must have that revision. CodeValidationName, CodeDomainReserved,
// CodeFunctionNotFound, CodeAliasNotFound, CodeVersionNotFound, CodeTenantQuota,
// CodePreconditionFailed.
func (d *Domain) Put(ctx context.Context, to domain.Target, ifMatch int64) (domain.Domain, error) {
	return d.call(ctx, http.MethodPut, d.path(), ifMatch, to)
}

// Get returns the domain. CodeDomainNotFound.
func (d *Domain) Get(ctx context.Context) (domain.Domain, error) {
	return d.call(ctx, http.MethodGet, d.path(), 0, nil)
}

// Verify looks the record of the domain up. CodeDomainNotFound, CodeDomainUnverified,
// CodeDomainTaken, CodeDomainLookup if the DNS did not answer.
func (d *Domain) Verify(ctx context.Context) (domain.Domain, error) {
	return d.call(ctx, http.MethodPost, d.path()+":verify", 0, nil)
}

// Delete removes the domain. If ifMatch is not 0, the domain must have that revision.
// CodeDomainNotFound, CodePreconditionFailed.
func (d *Domain) Delete(ctx context.Context, ifMatch int64) error {
	_, err := d.tenant.c.call(ctx, &request{method: http.MethodDelete, path: d.path(), header: ifRevision(ifMatch)}, nil, nil)
	return err
}
