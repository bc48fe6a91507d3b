package rest

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
)

// Under access.Off every client that reaches the server is its administrator, and the
// server therefore listens on loopback only. That alone does not keep a browser out,
// which sends requests to loopback for any page that it shows:
//
//   - DNS rebinding: evil.example resolves to its own server first and to 127.0.0.1
//     afterwards, so that the page may read our answers as its own origin. The Host
//     header still names evil.example: checkHost refuses it.
//   - Cross-site requests: a page posts a form or a "simple" fetch to
//     http://localhost:8080. The Host is ours, but Sec-Fetch-Site and Origin name the
//     page's site: refuseCrossOrigin refuses the request, whether it reads or writes.
//   - Pages of functions: they have our host, but the sandboxing policy of package web has
//     their requests carry Origin: null and the site cross-site.
//
// Functions under /v1/web are meant to be called from pages, and their CORS
// configuration decides from which; only checkHost applies to them.
//
// Under access.Keys neither is needed: a browser does not add a key by itself.

// checkHost returns CodeHostHeaderRefused under access.Off if the Host is not a loopback
// name.
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
	return api.Errorf(api.CodeHostHeaderRefused, "this server answers only on loopback names such as localhost")
}

// GuardHost refuses requests to next whose Host is not a loopback name, and those of pages of
// other origins. It protects
// handlers beside the API that have no keys and that browsers could reach.
func (s *Server) GuardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := loopbackHost(r)
		if err == nil {
			err = ofThisOrigin(r, true)
		}
		if err != nil {
			s.fail(w, r, api.NewRequestID(s.now()), err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopback reports whether host is localhost, *.localhost, in 127.0.0.0/8 or [::1],
// with or without a port.
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

// refuseCrossOrigin refuses, under access.Off, requests that a browser sent for a page of another
// origin. A link to a public page, such as the documentation, may be followed from anywhere.
func (s *Server) refuseCrossOrigin(next http.Handler) http.Handler {
	if s.auth.Mode() == access.Keys {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := s.routeOf(r)
		if err := ofThisOrigin(r, route != nil && route.Action == access.Public); err != nil {
			s.fail(w, r, RequestID(r.Context()), err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ofThisOrigin returns CodeAuthzDenied for a request of a page of another origin, by the headers
// that browsers add and pages cannot change. Other clients send neither of them. With links, a
// browser may be led here by a link of another page: it shows the answer, and the page cannot
// read it.
func ofThisOrigin(r *http.Request, links bool) error {
	const refusal = "a page of another origin may not call this"
	for _, origin := range r.Header["Origin"] {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return api.Errorf(api.CodeAuthzDenied, refusal)
		}
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		link := links && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
		if site != "same-origin" && site != "none" && !link {
			return api.Errorf(api.CodeAuthzDenied, refusal)
		}
	}
	return nil
}
