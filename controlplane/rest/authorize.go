package rest

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
)

// authorize refuses requests whose caller may not make them, before any of their body
// is read.
func (s *Server) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.admit(r); err != nil {
			s.fail(w, r, RequestID(r.Context()), err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit judges a request by its route's declaration, and notes its caller. The order
// matters: another tenant's resources do not exist for the caller, so that a 403
// cannot tell what a 404 hides.
func (s *Server) admit(r *http.Request) error {
	ctx := r.Context()
	route := s.routeOf(r)
	if route == nil {
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
	if x := exchangeOf(ctx); x != nil {
		x.caller, x.action, x.tenant = c, route.Action, tenant
	}
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
	case PathNamespaceOnly:
		return c.NeedNamespace(PathParam(r, "namespace"))
	}
	return c.NeedNamespace("") // all of them
}

// TenantNotFound is the answer for a tenant that does not exist, or that the caller
// may not enter.
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
