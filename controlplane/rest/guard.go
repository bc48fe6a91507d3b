package rest

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
)

// Under access.Off whoever reaches the server is its administrator, and it therefore
// listens on loopback only. Loopback alone does not keep a browser out, which
// will send requests there for any page it shows:
//
//   - DNS rebinding: evil.example resolves to its own server first and to
//     127.0.0.1 afterwards, so that the page may read our answers as its own
//     origin. The Host header still says evil.example: checkHost refuses it.
//   - Cross-site requests: a page posts a form or a "simple" fetch to
//     http://localhost:8080. Host is ours, but Sec-Fetch-Site and Origin tell
//     where it comes from: crossOrigin refuses what would change something.
//
// Functions under /v1/web are meant to be called from pages, and their CORS
// configuration says from which; only checkHost applies to them.
//
// Under access.Keys neither is needed: a browser adds no key by itself, so that a
// page can send no more than anybody.

// checkHost refuses requests whose Host is not a loopback name, under access.Off.
func (s *Server) checkHost(r *http.Request) error {
	if s.auth.Mode() == access.Keys {
		return nil
	}
	return loopbackHost(r)
}

func loopbackHost(r *http.Request) error {
	if isLoopback(r.Host) {
		return nil
	}
	return api.Errorf(api.CodeHostRefused, "this server answers only on loopback names such as localhost")
}

// GuardHost lets only requests through whose Host is a loopback name, for
// handlers beside the API that have no keys and that browsers could reach.
func (s *Server) GuardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := loopbackHost(r); err != nil {
			s.fail(w, r, api.NewRequestID(s.now()), err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopback knows localhost, *.localhost, 127.0.0.0/8 and [::1], with or
// without a port.
func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if addr, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return addr.Unmap().IsLoopback()
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// refuseCrossOrigin refuses requests that a browser sent for another site and
// that could change something, under access.Off.
func (s *Server) refuseCrossOrigin(next http.Handler) http.Handler {
	if s.auth.Mode() == access.Keys {
		return next
	}
	var protection http.CrossOriginProtection
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := protection.Check(r); err != nil {
			s.fail(w, r, RequestID(r.Context()), api.Wrap(api.CodeAuthzDenied, err, "a page of another site may not call this"))
			return
		}
		next.ServeHTTP(w, r)
	})
}
