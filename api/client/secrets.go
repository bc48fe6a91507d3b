package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/codesous/sous/api"
)

// Secret is the handle of a secret of the namespace.
func (n *Namespace) Secret(name string) *Secret { return &Secret{n, name} }

// Secret is one secret of a namespace. Its value can be written, and read by functions
// alone.
type Secret struct {
	namespace *Namespace
	name      string
}

// SecretCondition guards a write of a secret.
type SecretCondition struct {
	IfMatch int64 // where not 0, the version that the secret must have now
	IfNew   bool  // it must not exist
}

// Secrets gives one page of the namespace's secrets, by name and without values.
func (n *Namespace) Secrets(ctx context.Context, o PageOptions) (api.Page[api.Secret], error) {
	var out api.Page[api.Secret]
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodGet, path: n.path("secrets"), query: o.query()}, nil, &out)
	return out, err
}

func (s *Secret) request(method string, on SecretCondition) *request {
	r := &request{method: method, path: s.namespace.path("secrets", s.name), header: http.Header{}}
	if on.IfMatch != 0 {
		r.header.Set("If-Match", strconv.Quote(strconv.FormatInt(on.IfMatch, 10)))
	}
	if on.IfNew {
		r.header.Set("If-None-Match", "*")
	}
	return r
}

func (s *Secret) client() *Client { return s.namespace.tenant.c }

// Set writes the secret's value, as its next version. CodeSecretKeyMissing where the
// server has no key, CodeSecretLimit, CodePreconditionFailed.
func (s *Secret) Set(ctx context.Context, value string, on SecretCondition) (api.Secret, error) {
	var out api.Secret
	body := struct {
		Value string `json:"value"`
	}{value}
	_, err := s.client().call(ctx, s.request(http.MethodPut, on), body, &out)
	return out, err
}

// Get tells of the secret all but its value. CodeSecretNotFound.
func (s *Secret) Get(ctx context.Context) (api.Secret, error) {
	var out api.Secret
	_, err := s.client().call(ctx, s.request(http.MethodGet, SecretCondition{}), nil, &out)
	return out, err
}

// Delete removes the secret; with ifMatch, where that is not 0, only if it has this
// version. CodeSecretNotFound, CodePreconditionFailed.
func (s *Secret) Delete(ctx context.Context, ifMatch int64) error {
	_, err := s.client().call(ctx, s.request(http.MethodDelete, SecretCondition{IfMatch: ifMatch}), nil, nil)
	return err
}

// RewrapSecrets has some of the tenant's secrets sealed anew with the server's first
// key, from where the report of the call before says; "" is the start.
func (t *Tenant) RewrapSecrets(ctx context.Context, cursor string) (api.RewrapReport, error) {
	var out api.RewrapReport
	r := &request{method: http.MethodPost, path: t.path("secrets:rewrap"), again: true}
	if cursor != "" {
		r.query = url.Values{"cursor": {cursor}}
	}
	_, err := t.c.call(ctx, r, nil, &out)
	return out, err
}
