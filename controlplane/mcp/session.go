package mcp

import (
	"cmp"
	"context"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// The tenant and namespace of callers that may enter several and name none. The first is that of the
// command line.
const (
	defaultTenant    = "t_default"
	defaultNamespace = "default"
)

// session is one request to the endpoint: its caller, and where its tools work.
type session struct {
	api       *API
	request   *http.Request
	caller    *access.Caller
	tenant    string
	namespace string
	message   *message
}

type sessionKey struct{}

// sessionOf returns the session of a method of the SDK, whose context has the values of the request.
func sessionOf(ctx context.Context) *session {
	s, _ := ctx.Value(sessionKey{}).(*session)
	return s
}

// newSession returns the session of a request. Errors: CodeTenantNotFound, CodeAuthzDenied,
// CodeValidationName, those of rest.Charge.
func (a *API) newSession(w http.ResponseWriter, r *http.Request) (*session, error) {
	caller, query := rest.CallerOf(r.Context()), r.URL.Query()
	own := caller.Tenant
	if own == api.AllTenants {
		own = defaultTenant
	}
	s := &session{
		api: a, request: r, caller: caller, tenant: cmp.Or(query.Get("tenant"), own),
		namespace: cmp.Or(query.Get("namespace"), caller.Namespace, defaultNamespace),
	}
	if err := cmp.Or(api.ValidateTenant(s.tenant), api.ValidateName("namespace", s.namespace)); err != nil {
		return nil, err
	}
	if !caller.Enters(s.tenant) {
		return nil, rest.TenantNotFound(s.tenant)
	}
	if err := caller.NeedNamespace(s.namespace); err != nil {
		return nil, err
	}
	return s, rest.Charge(w, s.tenant)
}

// may reports whether a role of the caller grants an action. It only decides which tools are listed: the
// routes decide what the caller may do.
func (s *session) may(action access.Action) bool { return s.caller.Need(action) == nil }
