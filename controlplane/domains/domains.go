// Package domains serves the custom domains of tenants: a tenant adds a domain, sets the TXT record
// of the answer in its DNS zone, and has the domain verified (lookup.go). Package web then serves
// the domain's function on it.
package domains

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/domain"
	"github.com/codesous/sous/api/httpstatus"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/domains"
)

const (
	pathDomains = rest.PathTenant + "/domains"
	pathDomain  = pathDomains + "/{domain}"
)

// API serves the custom domains of tenants. It is safe for concurrent use.
type API struct {
	domains  *domains.Repository
	versions *storage.Versions
	reserved domain.Reserved
	lookups  *lookups
	clock    func() time.Time
}

// New returns the API of the domains in a store. resolver looks their records up; no domain that
// is reserved can be added.
func New(store *storage.Store, resolver Resolver, reserved domain.Reserved, clock func() time.Time) *API {
	return &API{domains: domains.New(store), versions: storage.NewVersions(store), reserved: reserved, lookups: newLookups(resolver), clock: clock}
}

type domainName string

// Schema returns the schema of a domain.
func (domainName) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: "a domain such as shop.example.com"}
}

// DomainPath holds the parameters of the path of a domain.
type DomainPath struct {
	rest.TenantPath
	Domain domainName `path:"domain"`
}

// Resolve refuses a name that no domain may have.
func (p *DomainPath) Resolve(huma.Context) []error {
	_, err := domain.Parse(string(p.Domain))
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), err)
}

// names returns the tenant and the domain in its stored form.
func (p *DomainPath) names() (tenant, name string) {
	name, _ = domain.Parse(string(p.Domain)) // Resolve has refused an error
	return string(p.Tenant), name
}

type listDomainsInput struct {
	rest.TenantPath
	rest.PageQuery
}

type domainInput struct{ DomainPath }

// domainFunction is the body of a write.
type domainFunction struct{ domain.Target }

type putDomainInput struct {
	DomainPath
	IfMatch     string `header:"If-Match" doc:"the ETag that the domain must have now"`
	IfNoneMatch string `header:"If-None-Match" doc:"* if the tenant must not have the domain"`
	Body        domainFunction
}

type deleteDomainInput struct {
	DomainPath
	IfMatch string `header:"If-Match" doc:"the ETag that the domain must have now"`
}

type domainOutput struct {
	Status int
	ETag   string `header:"ETag"`
	Body   domain.Domain
}

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathDomains, Action: access.DomainRead, Extent: rest.WholeTenant,
			ID: "list-domains", Tag: "domains", Summary: "List a tenant's custom domains by name",
		}, a.listDomains),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathDomain, Action: access.DomainRead, Extent: rest.WholeTenant,
			ID: "get-domain", Tag: "domains", Summary: "Read a custom domain, its state and its DNS record", Description: "The ETag is its revision.",
		}, a.getDomain),
		rest.Operation(rest.Route{
			Method: http.MethodPut, Path: pathDomain, Action: access.DomainWrite, Extent: rest.WholeTenant,
			ID: "put-domain", Tag: "domains", Summary: "Add a custom domain, or lead it to another function",
			Description: "201 for a domain that the tenant did not have: it is pending until its record, which the answer names, is in the DNS zone and was found by verify. " +
				"A change of the function keeps the state. Without alias and version the alias is prod. " +
				"If-Match with the domain's ETag guards the change; If-None-Match: * only adds.",
			Also: []rest.Answer{{Status: http.StatusCreated, Content: rest.JSON(domain.Domain{})}},
		}, a.putDomain),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathDomain + ":verify", Action: access.DomainVerify, Extent: rest.WholeTenant,
			ID: "verify-domain", Tag: "domains", Summary: "Look the record of a custom domain up, and serve the domain if it is there",
			Description: "409 with the record that was looked for and the values that were found, if it is not there; the call may be repeated. " +
				"Another tenant's domain is taken over only if the record of that tenant is gone. A verified domain is not looked up again.",
		}, a.verifyDomain),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathDomain, Action: access.DomainDelete, Extent: rest.WholeTenant,
			ID: "delete-domain", Tag: "domains", Summary: "Remove a custom domain", Description: "It is not served any more. If-Match guards the removal.",
		}, a.deleteDomain),
	}
}

// answer answers with a domain. Its ETag is its revision.
func answer(status int, d domain.Domain) *domainOutput {
	return &domainOutput{Status: status, ETag: rest.RevisionTag(d.Revision), Body: d}
}

func (a *API) listDomains(ctx context.Context, in *listDomainsInput) (*rest.PageOutput[domain.Domain], error) {
	tenant := string(in.Tenant)
	return rest.ReadPage(rest.ListScope("domains", tenant), in.Cursor, func(after string) ([]domain.Domain, string, error) {
		return a.domains.List(ctx, tenant, after, in.Limit)
	})
}

// getDomain answers with a domain. Errors: CodeDomainNotFound.
func (a *API) getDomain(ctx context.Context, in *domainInput) (*domainOutput, error) {
	tenant, name := in.names()
	d, err := a.domains.Get(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	return answer(http.StatusOK, d), nil
}

// putDomain adds a domain, or changes its function. Errors: CodeDomainReserved, CodeInvalid,
// CodeValidationName, CodePreconditionFailed, CodeTenantQuota, those of mayServe.
func (a *API) putDomain(ctx context.Context, in *putDomainInput) (*domainOutput, error) {
	tenant, name := in.names()
	if err := a.allowed(name); err != nil {
		return nil, err
	}
	to := in.Body.WithDefaults()
	if err := to.Validate(); err != nil {
		return nil, err
	}
	on, err := a.condition(ctx, &in.DomainPath, in.IfMatch, in.IfNoneMatch)
	if err != nil {
		return nil, err
	}
	if err := a.mayServe(ctx, tenant, to); err != nil {
		return nil, err
	}
	d, created, err := a.domains.Put(ctx, tenant, name, to, strings.ToLower(rand.Text()), on, a.clock().UnixMilli())
	if err != nil {
		return nil, err
	}
	if !created {
		return answer(http.StatusOK, d), nil
	}
	rest.NoteMade(ctx, name)
	return answer(http.StatusCreated, d), nil
}

// allowed returns CodeDomainReserved for a domain of the server itself.
func (a *API) allowed(name string) error {
	if a.reserved.Covers(name) {
		return api.Errorf(api.CodeDomainReserved, "the domain %s belongs to this server and cannot be a custom domain", name)
	}
	return nil
}

// condition returns the precondition of a write, which the store checks again in the step that
// writes. Errors: CodePreconditionFailed, CodeInvalid.
func (a *API) condition(ctx context.Context, p *DomainPath, ifMatch, ifNoneMatch string) (domains.Condition, error) {
	if err := rest.OnePrecondition(ifMatch, ifNoneMatch); err != nil {
		return domains.Condition{}, err
	}
	revision, err := a.match(ctx, p, ifMatch)
	return domains.Condition{IfMatch: revision, IfNew: ifNoneMatch != ""}, err
}

// match returns the revision that the domain must have by an If-Match, nil for any. A domain that
// the tenant does not have matches nothing. Errors: CodePreconditionFailed.
func (a *API) match(ctx context.Context, p *DomainPath, ifMatch string) (*int64, error) {
	if ifMatch == "" {
		return nil, nil //nolint:nilnil // documented: no precondition
	}
	tenant, name := p.names()
	found, err := a.domains.Get(ctx, tenant, name)
	if err != nil && api.ErrorCode(err) != api.CodeDomainNotFound {
		return nil, err
	}
	if err == nil && rest.NamesTag(ifMatch, rest.RevisionTag(found.Revision)) {
		return &found.Revision, nil
	}
	return nil, api.Errorf(api.CodePreconditionFailed, "the domain does not have the ETag that If-Match names")
}

// mayServe refuses a function, alias or version that does not exist: a mistake would otherwise
// show only to the visitors of the domain. Errors: CodeFunctionNotFound, CodeAliasNotFound,
// CodeVersionNotFound.
func (a *API) mayServe(ctx context.Context, tenant string, to domain.Target) error {
	_, err := a.versions.Resolve(ctx, tenant, to.Namespace, to.Function, to.Ref())
	if err == nil || httpstatus.Of(api.ErrorCode(err)) != http.StatusNotFound {
		return err
	}
	return api.Wrap(api.ErrorCode(err), err, "the namespace "+to.Namespace+" has no function "+to.Function+" with "+to.Ref().String()).
		WithFields(api.FieldError{Path: "function", Message: "must be a function that exists, with the alias or version"})
}

// verifyDomain looks the record of a domain up. Errors: CodeDomainNotFound, CodeDomainReserved,
// CodeDomainUnverified, CodeDomainTaken, CodeDomainLookup, CodeCapacityLimit.
func (a *API) verifyDomain(ctx context.Context, in *domainInput) (*domainOutput, error) {
	tenant, name := in.names()
	if err := a.allowed(name); err != nil {
		return nil, err
	}
	d, err := a.domains.Verify(ctx, tenant, name, a.lookups.of(tenant), a.clock().UnixMilli())
	if err != nil {
		return nil, err
	}
	return answer(http.StatusOK, d), nil
}

// deleteDomain removes a domain. Errors: CodeDomainNotFound, CodePreconditionFailed.
func (a *API) deleteDomain(ctx context.Context, in *deleteDomainInput) (*struct{}, error) {
	revision, err := a.match(ctx, &in.DomainPath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	tenant, name := in.names()
	return nil, a.domains.Delete(ctx, tenant, name, revision)
}
