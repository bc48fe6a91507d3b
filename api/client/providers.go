package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api/ai"
)

// Providers returns the tenant's providers of models, by name.
func (t *Tenant) Providers(ctx context.Context) ([]ai.Provider, error) {
	var out struct {
		Providers []ai.Provider `json:"providers"`
	}
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("providers")}, nil, &out)
	return out.Providers, err
}

// Provider returns a provider of models. CodeProviderNotFound.
func (t *Tenant) Provider(ctx context.Context, name string) (ai.Provider, error) {
	var out ai.Provider
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("providers", name)}, nil, &out)
	return out, err
}

// PutProvider creates a provider of models, or replaces its settings. If ifMatch is not 0, the provider
// must have that revision. CodeInvalid, CodeProviderNotFound for a target, CodeProviderCycle,
// CodeProviderLimit, CodePreconditionFailed.
func (t *Tenant) PutProvider(ctx context.Context, name string, settings ai.ProviderSettings, ifMatch int64) (ai.Provider, error) {
	var out ai.Provider
	_, err := t.c.call(ctx, &request{method: http.MethodPut, path: t.path("providers", name), header: ifRevision(ifMatch)}, settings, &out)
	return out, err
}

// DeleteProvider deletes a provider of models. If ifMatch is not 0, it must have that revision.
// CodeProviderNotFound, CodeProviderUsed, CodePreconditionFailed.
func (t *Tenant) DeleteProvider(ctx context.Context, name string, ifMatch int64) error {
	_, err := t.c.call(ctx, &request{method: http.MethodDelete, path: t.path("providers", name), header: ifRevision(ifMatch)}, nil, nil)
	return err
}
