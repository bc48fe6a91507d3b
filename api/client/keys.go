package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
)

// NewKey is the request that creates an API key. An empty Namespace means all namespaces
// of the tenant, an ExpiresAtMS of 0 that the key does not expire.
type NewKey struct {
	Name        string   `json:"name"`
	Roles       []string `json:"roles"`
	Namespace   string   `json:"namespace,omitempty"`
	ExpiresAtMS int64    `json:"expires_at_ms,omitempty"`
}

// CreateKey creates an API key of the tenant. Secret in the result is the key's text,
// which cannot be read again. CodeKeyLimit, CodeInvalid.
func (t *Tenant) CreateKey(ctx context.Context, k NewKey) (api.NewKey, error) {
	var out api.NewKey
	_, err := t.c.call(ctx, &request{method: http.MethodPost, path: t.path("keys")}, k, &out)
	return out, err
}

// Keys returns one page of the tenant's API keys, oldest first.
func (t *Tenant) Keys(ctx context.Context, o PageOptions) (api.Page[api.Key], error) {
	var out api.Page[api.Key]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("keys"), query: o.query()}, nil, &out)
	return out, err
}

// Key returns the record of an API key. CodeKeyNotFound.
func (t *Tenant) Key(ctx context.Context, id string) (api.Key, error) {
	var out api.Key
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("keys", id)}, nil, &out)
	return out, err
}

// RevokeKey revokes an API key. Every replica rejects it within five seconds.
// CodeKeyNotFound.
func (t *Tenant) RevokeKey(ctx context.Context, id string) error {
	_, err := t.c.call(ctx, &request{method: http.MethodDelete, path: t.path("keys", id)}, nil, nil)
	return err
}
