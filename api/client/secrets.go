package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/codesous/sous/api"
)

// Secret returns the handle of a secret of the namespace. It sends no request.
func (n *Namespace) Secret(name string) *Secret { return &Secret{n, name} }

// Secret is one secret of a namespace. Only functions can read its value.
type Secret struct {
	namespace *Namespace
	name      string
}

// SecretCondition makes a write of a secret conditional. The zero value sets no condition.
type SecretCondition struct {
	IfMatch int64 // the version that the secret must have, 0 for any
	IfNew   bool  // the secret must not exist
}

// Secrets returns one page of the namespace's secrets, by name and without values.
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

// Set writes the secret's value as its next version. CodeSecretKeyMissing if the server has
// no key, CodeSecretLimit, CodePreconditionFailed.
func (s *Secret) Set(ctx context.Context, value string, on SecretCondition) (api.Secret, error) {
	var out api.Secret
	body := struct {
		Value string `json:"value"`
	}{value}
	_, err := s.client().call(ctx, s.request(http.MethodPut, on), body, &out)
	return out, err
}

// Get returns the secret's metadata. CodeSecretNotFound.
func (s *Secret) Get(ctx context.Context) (api.Secret, error) {
	var out api.Secret
	_, err := s.client().call(ctx, s.request(http.MethodGet, SecretCondition{}), nil, &out)
	return out, err
}

// Delete removes the secret. If ifMatch is not 0, the secret must have that version.
// CodeSecretNotFound, CodePreconditionFailed.
func (s *Secret) Delete(ctx context.Context, ifMatch int64) error {
	_, err := s.client().call(ctx, s.request(http.MethodDelete, SecretCondition{IfMatch: ifMatch}), nil, nil)
	return err
}

// RewrapSecrets re-encrypts some of the tenant's secrets with the server's first key. cursor
// is the NextCursor of the previous call's report, "" for the start.
func (t *Tenant) RewrapSecrets(ctx context.Context, cursor string) (api.RewrapReport, error) {
	var out api.RewrapReport
	r := &request{method: http.MethodPost, path: t.path("secrets:rewrap"), again: true}
	if cursor != "" {
		r.query = url.Values{"cursor": {cursor}}
	}
	_, err := t.c.call(ctx, r, nil, &out)
	return out, err
}
