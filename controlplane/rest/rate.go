package rest

import (
	"net/http"
	"strings"

	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/admission"
)

// pace lets a request of the API wait for its turn where its client sends more than it may. Calls
// of functions do not count: tenants have quotas of them. Errors: CodeCapacityLimit, that of the
// request's context.
func (s *Server) pace(w http.ResponseWriter, r *http.Request) error {
	route := s.routeOf(r)
	switch route.Action {
	case access.Public, access.Runner, access.FunctionInvoke:
		return nil
	}
	wait, err := s.rates.Take(clientOf(r, CallerOf(r.Context())), writes(r.Method, route.Action), s.clock())
	if err != nil {
		return s.metrics.refuse(refusedRate, err)
	}
	if wait == 0 {
		return nil
	}
	trackedOf(w).ticket.Waits()
	return sleep.For(r.Context(), wait)
}

// clientOf returns the client that the rate of a request is for.
func clientOf(r *http.Request, caller *access.Caller) admission.Client {
	return admission.ClientOf(caller.Tenant, caller.Identity().KeyID, r.RemoteAddr)
}

// writes reports whether requests of an action count as writes. Fetches of jobs do not: queues limit them.
func writes(method string, action access.Action) bool {
	return method != http.MethodGet && method != http.MethodHead && action != access.JobFetch && !strings.HasSuffix(string(action), ":read")
}
