package rest

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/controlplane/access"
)

// authorize refuses requests whose caller may not make them, before any of their body
// is read. The caller becomes the actor of the changes that the request makes.
func (s *Server) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.admit(r)
		if x := exchangeOf(r.Context()); err == nil && x != nil && x.tenant != "" {
			err = Charge(w, x.tenant)
		}
		if err == nil {
			err = s.pace(w, r)
		}
		if err != nil {
			s.fail(w, r, RequestID(r.Context()), err)
			return
		}
		if c := CallerOf(r.Context()); c.Sub != "" && r.Method != http.MethodGet {
			r = r.WithContext(event.WithActor(r.Context(), c.Sub))
		}
		next.ServeHTTP(w, r)
	})
}

// admit authorizes a request by its route's declaration, and records its caller. The order
// matters: another tenant's resources do not exist for the caller, so that a 403
// cannot tell what a 404 hides. For GET /v1/tenants/t_other1/keys with a key of t_acme01:
//
//	no key                           401 CS_AUTHN_REQUIRED
//	an expired key                   401 CS_AUTHN_INVALID
//	any valid key of t_acme01        404 CS_TENANT_NOT_FOUND, also if t_other1 exists
//
// and for the same path of its own tenant:
//
//	a key with the role viewer       403 CS_AUTHZ_DENIED: no role grants cs:key:read
//	an admin's key of one namespace  403 CS_AUTHZ_DENIED: the route is WholeTenant
func (s *Server) admit(r *http.Request) error {
	ctx := r.Context()
	route := s.routeOf(r)
	if route == nil || route.Action == "" {
		return api.Errorf(api.CodeAuthzDenied, "this route is not open to any caller")
	}
	switch route.Action {
	case access.Public:
		return nil
	case access.Runner:
		return s.admitRunner(r.Header)
	}
	c, err := s.auth.Authenticate(ctx, r.Header)
	if err != nil {
		return err
	}
	tenant := PathParam(r, "tenant")
	ActFor(ctx, c, route.Action, tenant)
	if tenant != "" && !c.Enters(tenant) {
		if err := api.ValidateTenant(tenant); err != nil {
			return err
		}
		return TenantNotFound(tenant)
	}
	if route.Action != access.AnyKey {
		if err := c.Need(route.Action); err != nil {
			return err
		}
	}
	switch route.Extent {
	case HandlerNamespace, NoNamespace:
		return nil
	case Platform:
		if c.Tenant != api.AllTenants {
			return api.Errorf(api.CodeAuthzDenied, "this needs a key for all tenants: only the administrator of the platform may do it")
		}
		return nil
	case PathNamespaceOnly:
		return c.NeedNamespace(PathParam(r, "namespace"))
	}
	return c.NeedNamespace("") // all of them
}

// TenantNotFound returns the CodeTenantNotFound for a tenant that does not exist, or that
// the caller may not enter: both answers are equal.
func TenantNotFound(tenant string) error {
	return api.Errorf(api.CodeTenantNotFound, "tenant %q does not exist", tenant)
}

// admitRunner admits requests with the runners' token. Errors: CodeRouteNotFound where
// no token is configured, CodeAuthnRequired, CodeAuthnInvalid.
func (s *Server) admitRunner(h http.Header) error {
	if s.runners == "" {
		return routeNotFound()
	}
	text, ok := access.Bearer(h)
	if !ok {
		return api.Errorf(api.CodeAuthnRequired, "this needs the runners' token: Authorization: Bearer <token>")
	}
	// The digests have one length, whatever was sent: the comparison takes constant time.
	sent, want := sha256.Sum256([]byte(text)), sha256.Sum256([]byte(s.runners))
	if subtle.ConstantTimeCompare(sent[:], want[:]) != 1 {
		return api.Errorf(api.CodeAuthnInvalid, "the token is not the runners'")
	}
	return nil
}
