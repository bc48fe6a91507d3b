package controlplane

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
)

// AuthMode says how the server knows its callers.
type AuthMode int

const (
	// AuthKeys asks every caller for an API key.
	AuthKeys AuthMode = iota
	// AuthOff takes every caller for an administrator. The server must then listen
	// on loopback only, and keeps pages of other sites out (guard.go).
	AuthOff
)

// caller is who sent a request.
type caller struct {
	sub       string // the key's id
	tenant    string // or api.AllTenants
	namespace string // the only one that it may enter, "" for all
	roles     []string
	expiresMS int64     // since 1970; 0 is never
	digest    keyDigest // of the key, to look again whether it still holds
	local     bool      // there are no keys: nobody can be told apart
}

// keyDigest is the SHA-256 of a key's text.
type keyDigest [sha256.Size]byte

// localCaller is everybody under AuthOff.
func localCaller() *caller {
	return &caller{sub: "local", tenant: api.AllTenants, roles: []string{api.RoleAdmin}, local: true}
}

// principal is what a function is told of its caller.
func (c *caller) principal() api.Principal { return api.Principal{Sub: c.sub, Roles: c.roles} }

// access is what a caller has that may invoke.
func (c *caller) access() api.Access {
	if c.local {
		return api.AccessUnrestricted
	}
	return api.AccessGranted
}

// calls makes c, who may invoke, the caller of inv.
func (c *caller) calls(inv *api.Invocation) {
	inv.Principal, inv.Access, inv.AllNamespaces = c.principal(), c.access(), c.namespace == ""
}

// enters says whether a tenant's resources exist for c.
func (c *caller) enters(tenant string) bool { return c.tenant == tenant || c.tenant == api.AllTenants }

// entersNamespace says the same of a namespace of a tenant that c enters.
func (c *caller) entersNamespace(namespace string) bool {
	return c.namespace == "" || c.namespace == namespace
}

// needNamespace refuses (CodeAuthzDenied) a namespace that c does not enter.
func (c *caller) needNamespace(namespace string) error {
	if c.entersNamespace(namespace) {
		return nil
	}
	return api.Errorf(api.CodeAuthzDenied, "the API key is for the namespace %s only", c.namespace)
}

// need refuses (CodeAuthzDenied) an action that no role of c grants.
func (c *caller) need(action Action) error {
	if granted(c.roles, action) {
		return nil
	}
	return api.Errorf(api.CodeAuthzDenied, "this needs %s, which the API key's roles (%s) do not grant", action, strings.Join(c.roles, ", "))
}

// authenticator finds out who sends requests.
type authenticator struct {
	mode  AuthMode
	local *caller
	keys  *keyCache // nil under AuthOff
	// results counts what was found out.
	results *prometheus.CounterVec
}

// authenticate gives the caller that a request's headers name. Errors:
// CodeAuthnRequired without a key, CodeAuthnInvalid for one that is unknown,
// malformed, expired or revoked, CodeStoreUnavailable where nobody can tell.
func (a *authenticator) authenticate(ctx context.Context, h http.Header) (*caller, error) {
	c, err := a.identify(ctx, h)
	a.results.WithLabelValues(authResult(a.mode, err)).Inc()
	return c, err
}

// identify is authenticate, not counted.
func (a *authenticator) identify(ctx context.Context, h http.Header) (*caller, error) {
	if a.mode == AuthOff {
		return a.local, nil
	}
	text, ok := bearer(h)
	if !ok {
		return nil, api.Errorf(api.CodeAuthnRequired, "this needs an API key: Authorization: Bearer <key>")
	}
	if !api.LooksLikeKey(text) {
		return nil, invalidKey()
	}
	return a.keys.find(ctx, sha256.Sum256([]byte(text)))
}

// again is authenticate for the caller of a request that takes long.
func (a *authenticator) again(ctx context.Context, c *caller) error {
	if c.local {
		return nil
	}
	_, err := a.keys.find(ctx, c.digest)
	return err
}

func invalidKey() error {
	return api.Errorf(api.CodeAuthnInvalid, "the API key is unknown, malformed, expired or revoked")
}

const headerAuthorization = "Authorization"

// bearer gives the token of a request, which may be "", and false where none was
// meant. Two headers are a malformed one: whoever is in between may have looked
// at either.
func bearer(h http.Header) (token string, ok bool) {
	values := h[headerAuthorization]
	if len(values) != 1 {
		return "", len(values) > 1
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.Trim(token, " \t"), true
}

// withoutCredentials leaves out the values of an Authorization header that hold
// one of our keys: they were meant for the platform, and a function could use
// them. All others are between the function and its callers.
func withoutCredentials(values []string) []string {
	if !slices.ContainsFunc(values, api.HoldsKey) {
		return values
	}
	var kept []string
	for _, value := range values {
		if !api.HoldsKey(value) {
			kept = append(kept, value)
		}
	}
	return kept
}
