package controlplane

import (
	"context"
	"net/http"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/whoami"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathLimits = "/v1/limits"
	pathWhoAmI = "/v1/whoami"
)

// readyTimeout bounds the ping of the store: probes must not pile up behind it.
const readyTimeout = 2 * time.Second

// healthStatus is the answer to a probe.
type healthStatus struct {
	Status string `json:"status"`
}

type limitsOutput struct{ Body Limits }

type identityOutput struct{ Body whoami.Identity }

// serviceEndpoints declares the routes that are about the server itself. The probes are
// public and are answered even where the store does not answer; an orchestrator restarts
// a process by healthz and routes requests by readyz.
func (s *Server) serviceEndpoints(cfg *Config) []rest.Endpoint {
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodGet, Path: rest.PathHealthz, Action: access.Public, Extent: rest.NoNamespace,
			ID: "healthz", Tag: "service", Summary: "Report that the process answers", Answer: rest.JSON(healthStatus{}),
		}, s.healthz),
		rest.Handle(rest.Route{
			Method: http.MethodGet, Path: rest.PathReadyz, Action: access.Public, Extent: rest.NoNamespace,
			ID: "readyz", Tag: "service", Summary: "Report whether requests are served", Answer: rest.JSON(healthStatus{}),
		}, s.readyz),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathLimits, Action: access.AnyKey, Extent: rest.NoNamespace,
			ID: "get-limits", Tag: "service", Summary: "List every limit in force",
		}, func(ctx context.Context, _ *struct{}) (*limitsOutput, error) {
			tenant := rest.CallerOf(ctx).Tenant // or api.AllTenants, which no setting names
			return &limitsOutput{Body: limitsInForce(retentions{
				activations: s.store.ActivationRetentionMS(tenant, 0), jobs: cfg.JobRetention.Or(api.JobRetentionMS).MS(tenant, 0),
			})}, nil
		}),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathWhoAmI, Action: access.AnyKey, Extent: rest.NoNamespace,
			ID: "whoami", Tag: "service", Summary: "Describe the key of the request, and the server that answers",
		}, func(ctx context.Context, _ *struct{}) (*identityOutput, error) {
			out := &identityOutput{Body: rest.CallerOf(ctx).Identity()}
			out.Body.ServerVersion, out.Body.ServerTimeMS = cfg.Version, cfg.Clock().UnixMilli()
			return out, nil
		}),
	}
}

// healthz answers while the process runs. It does not ask the store: a restart would not
// repair it.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) error {
	return rest.WriteJSON(w, r, http.StatusOK, healthStatus{"ok"})
}

// readyz answers 200 if the server takes requests and the store answers. Errors:
// CodeShuttingDown, CodeStoreUnavailable.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if !s.rest.Ready() {
		return api.Errorf(api.CodeShuttingDown, "the server is shutting down")
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		return api.Wrap(api.CodeStoreUnavailable, err, "the store does not answer")
	}
	return rest.WriteJSON(w, r, http.StatusOK, healthStatus{"ready"})
}
