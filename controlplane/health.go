package controlplane

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
)

const (
	pathHealthz = "/healthz"
	pathReadyz  = "/readyz"
)

// readyTimeout bounds the look at the store; a probe must not pile up behind it.
const readyTimeout = 2 * time.Second

// healthStatus answers a probe.
type healthStatus struct {
	Status string `json:"status"`
}

func documentHealth(a huma.API) {
	for path, summary := range map[string]string{
		pathHealthz: "Say that the process answers",
		pathReadyz:  "Say whether requests would be served",
	} {
		document(a, documented{
			method: http.MethodGet, path: path, id: strings.TrimPrefix(path, "/"), tag: "service", summary: summary,
			status: http.StatusOK, answer: map[string]any{contentTypeJSON: healthStatus{}},
		})
	}
}

// healthz says that the process answers.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	s.writeJSON(w, r, healthStatus{"ok"})
}

// readyz says whether requests would be served: not while draining, and not
// without the store.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.unready.Load() {
		s.fail(w, r, requestIDOf(r.Context()), api.Errorf(api.CodeShuttingDown, "the server is shutting down"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		s.fail(w, r, requestIDOf(r.Context()), api.Wrap(api.CodeStoreUnavailable, err, "the store does not answer"))
		return
	}
	s.writeJSON(w, r, healthStatus{"ready"})
}
