package controlplane

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
)

const (
	pathKeys = pathTenant + "/keys"
	pathKey  = pathKeys + "/{key_id}"
)

// createKeyBody is what a new key is told.
type createKeyBody struct {
	Name        string   `json:"name" doc:"who has the key or what it is for; at most 64 characters"`
	Roles       []string `json:"roles" nullable:"false" doc:"admin, developer, operator, invoker, viewer, or role: and a name of your own"`
	Namespace   string   `json:"namespace,omitempty" doc:"the only namespace that the key enters; all of them if left out"`
	ExpiresAtMS int64    `json:"expires_at_ms,omitempty" doc:"when the key ends by itself; never if left out"`
}

type createKeyInput struct {
	TenantPath
	Body createKeyBody
}

type newKeyOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         api.NewKey
}

type keyInput struct {
	TenantPath
	KeyID string `path:"key_id" doc:"key_ and a ULID"`
}

// Resolve refuses what cannot be a key's id.
func (p *keyInput) Resolve(huma.Context) []error {
	_, err := api.KeyTimeMS(p.KeyID)
	return problems(api.ValidateTenant(string(p.Tenant)), err)
}

type keyOutput struct{ Body api.Key }

type listKeysInput struct {
	TenantPath
	PageQuery
}

type keyPageOutput struct{ Body api.Page[api.Key] }

func (s *Server) routeKeys(t typedAPI) {
	tags := []string{"keys"}
	register(t, huma.Operation{
		OperationID: "create-key", Method: http.MethodPost, Path: pathKeys, Tags: tags,
		Summary: "Make an API key", DefaultStatus: http.StatusCreated,
		Description: "The answer is the only place where the key itself is ever shown.",
	}, s.createKey)
	register(t, huma.Operation{
		OperationID: "list-keys", Method: http.MethodGet, Path: pathKeys, Tags: tags,
		Summary: "List a tenant's API keys, oldest first, without the keys themselves",
	}, s.listKeys)
	register(t, huma.Operation{
		OperationID: "get-key", Method: http.MethodGet, Path: pathKey, Tags: tags,
		Summary: "Read what is known of an API key",
	}, s.getKey)
	register(t, huma.Operation{
		OperationID: "revoke-key", Method: http.MethodDelete, Path: pathKey, Tags: tags,
		Summary: "Revoke an API key", Description: "It stops within 5 seconds, everywhere.",
	}, s.revokeKey)
}

func (s *Server) createKey(ctx context.Context, in *createKeyInput) (*newKeyOutput, error) {
	nowMS := s.now()
	if err := in.Body.validate(nowMS); err != nil {
		return nil, err
	}
	text, id, err := api.NewKeySecret(nowMS, rand.Reader)
	if err != nil {
		return nil, err
	}
	k := api.Key{
		ID: id, Tenant: string(in.Tenant), Name: in.Body.Name, Roles: in.Body.Roles, Namespace: in.Body.Namespace,
		CreatedAtMS: nowMS, CreatedBy: callerOf(ctx).sub, ExpiresAtMS: in.Body.ExpiresAtMS,
	}
	if err := s.keys.Create(ctx, k, api.KeyDigest(text)); err != nil {
		return nil, err
	}
	noteMade(ctx, k.ID+" "+k.Name)
	return &newKeyOutput{CacheControl: "no-store", Body: api.NewKey{Key: k, Secret: text}}, nil
}

// validate refuses what no key can be.
func (b *createKeyBody) validate(nowMS int64) error {
	if err := api.ValidateKeyName(b.Name); err != nil {
		return err
	}
	switch {
	case len(b.Roles) == 0 || len(b.Roles) > api.MaxKeyRoles:
		return fieldError("roles", "must be from 1 to "+strconv.Itoa(api.MaxKeyRoles))
	case b.ExpiresAtMS != 0 && b.ExpiresAtMS <= nowMS:
		return fieldError("expires_at_ms", "must be in the future")
	}
	for i, role := range b.Roles {
		if err := api.ValidateRole(role); err != nil {
			return err
		}
		if slices.Contains(b.Roles[:i], role) {
			return fieldError("roles", "must not name one twice")
		}
	}
	if b.Namespace != "" {
		return api.ValidateName("namespace", b.Namespace)
	}
	return nil
}

func (s *Server) listKeys(ctx context.Context, in *listKeysInput) (*keyPageOutput, error) {
	tenant := string(in.Tenant)
	list := listScope("keys", tenant)
	after, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.keys.List(ctx, tenant, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return &keyPageOutput{Body: page(items, list.seal(next))}, nil
}

func (s *Server) getKey(ctx context.Context, in *keyInput) (*keyOutput, error) {
	k, err := s.keys.Get(ctx, string(in.Tenant), in.KeyID)
	if err != nil {
		return nil, err
	}
	return &keyOutput{Body: k}, nil
}

// revokeKey also drops what this replica knows of the key: it need not wait for
// its own notice.
func (s *Server) revokeKey(ctx context.Context, in *keyInput) (*struct{}, error) {
	err := s.keys.Revoke(ctx, string(in.Tenant), in.KeyID)
	if s.auth.keys != nil {
		s.auth.keys.forget(in.KeyID)
	}
	return nil, err
}
