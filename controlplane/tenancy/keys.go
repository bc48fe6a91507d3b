package tenancy

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathKeys = rest.PathTenant + "/keys"
	pathKey  = pathKeys + "/{key_id}"
)

// createKeyBody is the body of a request for a new key. ExpiresAtMS is in Unix
// milliseconds; 0 is never.
type createKeyBody struct {
	Name        string   `json:"name" doc:"who has the key or what it is for; at most 64 characters"`
	Roles       []string `json:"roles" nullable:"false" doc:"admin, developer, operator, invoker, worker, viewer, or role: and a name of your own"`
	Namespace   string   `json:"namespace,omitempty" doc:"the only namespace that the key may access; all of them if left out"`
	ExpiresAtMS int64    `json:"expires_at_ms,omitempty" doc:"when the key expires; never if left out"`
}

type createKeyInput struct {
	rest.TenantPath
	Body createKeyBody
}

// newKeyOutput is the new key with its text. Cache-Control keeps the text out of caches.
type newKeyOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         api.NewKey
}

type keyInput struct {
	rest.TenantPath
	KeyID string `path:"key_id" doc:"key_ and a ULID"`
}

// Resolve refuses an id that cannot be a key's.
func (p *keyInput) Resolve(huma.Context) []error {
	_, err := api.KeyTimeMS(p.KeyID)
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), err)
}

type keyOutput struct{ Body api.Key }

type listKeysInput struct {
	rest.TenantPath
	rest.PageQuery
}

// keyEndpoints declares the routes of API keys. All are WholeTenant: a key of one namespace
// neither sees nor makes keys, which could reach further than itself.
func (a *API) keyEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathKeys, Action: access.KeyCreate, Extent: rest.WholeTenant,
			ID: "create-key", Tag: "keys", Summary: "Create an API key", Status: http.StatusCreated,
			Description: "The answer is the only place where the key itself is ever shown.",
		}, a.createKey),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathKeys, Action: access.KeyRead, Extent: rest.WholeTenant,
			ID: "list-keys", Tag: "keys", Summary: "List a tenant's API keys, oldest first, without the keys themselves",
		}, a.listKeys),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathKey, Action: access.KeyRead, Extent: rest.WholeTenant,
			ID: "get-key", Tag: "keys", Summary: "Read the record of an API key",
		}, a.getKey),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathKey, Action: access.KeyRevoke, Extent: rest.WholeTenant,
			ID: "revoke-key", Tag: "keys", Summary: "Revoke an API key", Description: "Every replica refuses the key after at most 5 seconds.",
		}, a.revokeKey),
	}
}

// createKey creates a key. Its text is only in this answer: the store keeps a digest. If
// the answer is lost the key exists but is of no use: revoke it and create another.
//
// The caller needs cs:key:create, which only the role admin grants, and no restriction to
// a namespace (WholeTenant): it could grant itself every role anyway, so the roles of the
// new key are not compared with its own. Errors: CodeInvalid, CodeValidationName,
// CodeKeyLimit.
func (a *API) createKey(ctx context.Context, in *createKeyInput) (*newKeyOutput, error) {
	nowMS := a.clock().UnixMilli()
	if err := in.Body.validate(nowMS); err != nil {
		return nil, err
	}
	text, id, err := api.NewKeySecret(nowMS, rand.Reader)
	if err != nil {
		return nil, err
	}
	k := api.Key{
		ID: id, Tenant: string(in.Tenant), Name: in.Body.Name, Roles: in.Body.Roles, Namespace: in.Body.Namespace,
		CreatedAtMS: nowMS, CreatedBy: rest.CallerOf(ctx).Sub, ExpiresAtMS: in.Body.ExpiresAtMS,
	}
	if err := a.keys.Create(ctx, k, api.KeyDigest(text)); err != nil {
		return nil, err
	}
	rest.NoteMade(ctx, k.ID+" "+k.Name)
	return &newKeyOutput{CacheControl: "no-store", Body: api.NewKey{Key: k, Secret: text}}, nil
}

// validate checks the fields of a new key. Errors: CodeInvalid, CodeValidationName for
// the namespace, which need not exist yet.
func (b *createKeyBody) validate(nowMS int64) error {
	if err := api.ValidateKeyName(b.Name); err != nil {
		return err
	}
	switch {
	case len(b.Roles) == 0 || len(b.Roles) > api.MaxKeyRoles:
		return api.InvalidField("roles", "must be from 1 to "+strconv.Itoa(api.MaxKeyRoles))
	case b.ExpiresAtMS != 0 && b.ExpiresAtMS <= nowMS:
		return api.InvalidField("expires_at_ms", "must be in the future")
	}
	for i, role := range b.Roles {
		if err := api.ValidateRole(role); err != nil {
			return err
		}
		if slices.Contains(b.Roles[:i], role) {
			return api.InvalidField("roles", "must not name one twice")
		}
	}
	if b.Namespace != "" {
		return api.ValidateName("namespace", b.Namespace)
	}
	return nil
}

// listKeys answers with a page of the tenant's live keys by id. An id begins with the time
// of its creation, so the oldest is first.
func (a *API) listKeys(ctx context.Context, in *listKeysInput) (*rest.PageOutput[api.Key], error) {
	tenant := string(in.Tenant)
	return rest.ReadPage(rest.ListScope("keys", tenant), in.Cursor, func(after string) ([]api.Key, string, error) {
		return a.keys.List(ctx, tenant, after, in.Limit)
	})
}

// getKey answers with the record of a live key. Errors: CodeKeyNotFound.
func (a *API) getKey(ctx context.Context, in *keyInput) (*keyOutput, error) {
	k, err := a.keys.Get(ctx, string(in.Tenant), in.KeyID)
	if err != nil {
		return nil, err
	}
	return &keyOutput{Body: k}, nil
}

// revokeKey also drops the key from this replica's cache, which would otherwise hold it
// until the notice of the revocation arrives. It does so even after an error, since the
// key may be gone. An interrupted call can be repeated. Errors: CodeKeyNotFound.
func (a *API) revokeKey(ctx context.Context, in *keyInput) (*struct{}, error) {
	err := a.keys.Revoke(ctx, string(in.Tenant), in.KeyID)
	a.auth.ForgetKey(string(in.Tenant), in.KeyID)
	return nil, err
}
