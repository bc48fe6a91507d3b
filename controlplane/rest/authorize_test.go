package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
)

// A route without a declaration, or without an action, is closed, to administrators too.
func TestUndeclaredRoutesAreClosed(t *testing.T) {
	t.Parallel()
	auth, err := access.NewAuthenticator(access.Off, nil, time.Now)
	if err != nil {
		t.Fatalf("NewAuthenticator: %v", err)
	}
	for name, routes := range map[string]map[string]*Route{
		"no route":  nil,
		"no action": {"GET /v1/forgotten": {Method: http.MethodGet, Path: "/v1/forgotten", Extent: NoNamespace}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Server{auth: auth, log: zap.NewNop(), routes: routes}
			router := chi.NewRouter()
			router.With(s.authorize).Get("/v1/forgotten", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
			w := httptest.NewRecorder()
			router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/forgotten", nil))
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), string(api.CodeAuthzDenied)) {
				t.Errorf("GET /v1/forgotten = %d %s, want 403 %s", w.Code, w.Body, api.CodeAuthzDenied)
			}
		})
	}
}

// A route whose declaration says nothing of namespaces is for the whole tenant.
func TestTheZeroExtentIsTheWholeTenant(t *testing.T) {
	t.Parallel()
	var route Route
	if route.Extent != WholeTenant {
		t.Errorf("extent of a zero Route = %d, want WholeTenant", route.Extent)
	}
}

// Outside of a request the caller may do nothing.
func TestCallerOfNoRequestIsUnknown(t *testing.T) {
	t.Parallel()
	if got := CallerOf(t.Context()); got.Enters("t_abc123") || got.EntersNamespace("payments") || got.Need(access.FunctionRead) == nil {
		t.Errorf("CallerOf(no request) = %+v, want access.Unknown", got)
	}
}
