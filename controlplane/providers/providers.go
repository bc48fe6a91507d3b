// Package providers serves the providers of models, and the routes over several of them, that functions
// call by cs.ai. storage/providers keeps them.
package providers

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/providers"
)

const (
	pathProviders = rest.PathTenant + "/providers"
	pathProvider  = pathProviders + "/{provider}"
)

// API serves providers. It is safe for concurrent use.
type API struct {
	providers *providers.Repository
	clock     func() time.Time
}

// New returns the API of the providers in a store.
func New(store *storage.Store, clock func() time.Time) *API {
	return &API{providers: providers.New(store), clock: clock}
}

// ProviderPath holds the parameters of the path of a provider.
type ProviderPath struct {
	rest.TenantPath
	Provider rest.ResourceName `path:"provider"`
}

// Resolve refuses a name that does not match its pattern.
func (p *ProviderPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("provider", string(p.Provider)))
}

type listInput struct{ rest.TenantPath }

type providerInput struct{ ProviderPath }

type putInput struct {
	ProviderPath
	IfMatch     string `header:"If-Match" doc:"the ETag that the provider must have now"`
	IfNoneMatch string `header:"If-None-Match" doc:"* if the provider must not exist"`
	Body        ai.ProviderSettings
}

type deleteInput struct {
	ProviderPath
	IfMatch string `header:"If-Match" doc:"the ETag that the provider must have now"`
}

// providerStatus is a provider with its circuit.
type providerStatus struct {
	ai.Provider
	Circuit *providerCircuit `json:"circuit,omitempty" doc:"left out while calls reach the provider"`
}

// providerCircuit is the state of a provider that fails.
type providerCircuit struct {
	State    string `json:"state" enum:"open,half_open,closed" doc:"open: no calls until until_ms; half_open: one call at a time"`
	UntilMS  int64  `json:"until_ms"`
	Failures int64  `json:"failures" doc:"in a row"`
}

type providerOutput struct {
	Status int
	ETag   string `header:"ETag"`
	Body   providerStatus
}

type listOutput struct {
	Body struct {
		Providers []providerStatus `json:"providers"`
	}
}

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathProviders, Action: access.ProviderRead, Extent: rest.WholeTenant,
			ID: "list-providers", Tag: "providers", Summary: "List a tenant's providers of models by name",
		}, a.list),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathProvider, Action: access.ProviderRead, Extent: rest.WholeTenant,
			ID: "get-provider", Tag: "providers", Summary: "Read a provider of models and its circuit", Description: "The ETag is its revision.",
		}, a.get),
		rest.Operation(rest.Route{
			Method: http.MethodPut, Path: pathProvider, Action: access.ProviderWrite, Extent: rest.WholeTenant,
			ID: "put-provider", Tag: "providers", Summary: "Create or change a provider of models, or a route over several",
			Description: "The body replaces all settings. 201 for a provider that did not exist. A change applies on all replicas within 5 s. " +
				"The key is that of a secret, which functions do not see. Targets of a route must exist, and must not lead back to it. " +
				"If-Match with the provider's ETag guards the change; If-None-Match: * only creates.",
			Also: []rest.Answer{{Status: http.StatusCreated, Content: rest.JSON(providerStatus{})}},
		}, a.put),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathProvider, Action: access.ProviderDelete, Extent: rest.WholeTenant,
			ID: "delete-provider", Tag: "providers", Summary: "Delete a provider of models", Description: "409 for a target of a route. If-Match guards the deletion.",
		}, a.delete),
	}
}

// statusOf returns a provider with its circuit.
func (a *API) statusOf(p *ai.Provider, c providers.Circuit) providerStatus {
	out := providerStatus{Provider: *p}
	if c == (providers.Circuit{}) {
		return out
	}
	out.Circuit = &providerCircuit{State: "closed", UntilMS: c.UntilMS, Failures: c.Failures}
	switch {
	case c.UntilMS > a.clock().UnixMilli():
		out.Circuit.State = "open"
	case c.UntilMS > 0:
		out.Circuit.State = "half_open"
	}
	return out
}

// answer answers with a provider. Its ETag is its revision.
func (a *API) answer(code int, p *ai.Provider, c providers.Circuit) *providerOutput {
	return &providerOutput{Status: code, ETag: rest.RevisionTag(p.Revision), Body: a.statusOf(p, c)}
}

func (a *API) list(ctx context.Context, in *listInput) (*listOutput, error) {
	tenant := string(in.Tenant)
	found, err := a.providers.List(ctx, tenant)
	if err != nil {
		return nil, err
	}
	circuits, err := a.providers.Circuits(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out := &listOutput{}
	out.Body.Providers = make([]providerStatus, 0, len(found))
	for i := range found {
		out.Body.Providers = append(out.Body.Providers, a.statusOf(&found[i], circuits[found[i].Name]))
	}
	return out, nil
}

// get answers with a provider. Errors: CodeProviderNotFound.
func (a *API) get(ctx context.Context, in *providerInput) (*providerOutput, error) {
	tenant, name := string(in.Tenant), string(in.Provider)
	p, err := a.providers.Get(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	circuits, err := a.providers.Circuits(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return a.answer(http.StatusOK, p, circuits[name]), nil
}

// put creates or changes a provider. Errors: CodeInvalid, CodePreconditionFailed, CodeProviderNotFound for
// a target, CodeProviderCycle, CodeProviderLimit.
func (a *API) put(ctx context.Context, in *putInput) (*providerOutput, error) {
	if err := rest.OnePrecondition(in.IfMatch, in.IfNoneMatch); err != nil {
		return nil, err
	}
	settings := in.Body
	settings.Normalize()
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	revision, err := a.match(ctx, &in.ProviderPath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	tenant, name := string(in.Tenant), string(in.Provider)
	p, created, err := a.providers.Put(ctx, tenant, name, settings, providers.Condition{IfMatch: revision, IfNew: in.IfNoneMatch != ""}, a.clock().UnixMilli())
	if err != nil {
		return nil, err
	}
	if !created {
		return a.answer(http.StatusOK, p, providers.Circuit{}), nil
	}
	rest.NoteMade(ctx, name)
	return a.answer(http.StatusCreated, p, providers.Circuit{}), nil
}

// match returns the revision that the provider must have by an If-Match, nil for any. A provider that does
// not exist matches nothing. Errors: CodePreconditionFailed.
func (a *API) match(ctx context.Context, path *ProviderPath, ifMatch string) (*int64, error) {
	if ifMatch == "" {
		return nil, nil //nolint:nilnil // documented: no precondition
	}
	found, err := a.providers.Get(ctx, string(path.Tenant), string(path.Provider))
	if err != nil && api.ErrorCode(err) != api.CodeProviderNotFound {
		return nil, err
	}
	if err == nil && rest.NamesTag(ifMatch, rest.RevisionTag(found.Revision)) {
		return &found.Revision, nil
	}
	return nil, api.Errorf(api.CodePreconditionFailed, "the provider does not have the ETag that If-Match names")
}

// delete deletes a provider. Errors: CodeProviderNotFound, CodePreconditionFailed, CodeProviderUsed.
func (a *API) delete(ctx context.Context, in *deleteInput) (*struct{}, error) {
	revision, err := a.match(ctx, &in.ProviderPath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	return nil, a.providers.Delete(ctx, string(in.Tenant), string(in.Provider), revision)
}
