package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
)

// NewKey is what an API key is made of. Namespace "" is all of the tenant's,
// ExpiresAtMS 0 never.
type NewKey struct {
	Name        string   `json:"name"`
	Roles       []string `json:"roles"`
	Namespace   string   `json:"namespace,omitempty"`
	ExpiresAtMS int64    `json:"expires_at_ms,omitempty"`
}

// CreateKey makes an API key of the tenant. The answer's Secret is the key, and
// nobody can ask for it again. CodeKeyLimit, CodeValidation.
func (t *Tenant) CreateKey(ctx context.Context, k NewKey) (api.NewKey, error) {
	var out api.NewKey
	_, err := t.c.call(ctx, &request{method: http.MethodPost, path: t.path("keys")}, k, &out)
	return out, err
}

// Keys gives one page of the tenant's API keys, oldest first.
func (t *Tenant) Keys(ctx context.Context, o PageOptions) (api.Page[api.Key], error) {
	var out api.Page[api.Key]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("keys"), query: o.query()}, nil, &out)
	return out, err
}

// Key gives what is known of an API key. CodeKeyNotFound.
func (t *Tenant) Key(ctx context.Context, id string) (api.Key, error) {
	var out api.Key
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("keys", id)}, nil, &out)
	return out, err
}

// RevokeKey ends an API key; every replica knows within five seconds.
// CodeKeyNotFound.
func (t *Tenant) RevokeKey(ctx context.Context, id string) error {
	_, err := t.c.call(ctx, &request{method: http.MethodDelete, path: t.path("keys", id)}, nil, nil)
	return err
}
