package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// corsPolicy is a version's CORS configuration, applied to one origin. A nil policy
// adds no headers: the function may then set its own.
type corsPolicy struct {
	config *api.CORS // empty if open
	origin string    // the Access-Control-Allow-Origin; "" refuses the origin
	// open has a preflight allow what it asks for: the client may not learn the configuration.
	open bool
}

// corsPolicy returns the policy of the version that t names. It costs one read of the
// store, and is called only for requests from a page of another origin.
func (a *API) corsPolicy(ctx context.Context, t target, origin string) (*corsPolicy, error) {
	resolved, err := a.versions.Resolve(ctx, t.tenant, t.namespace, t.function, t.ref)
	if err != nil {
		return nil, err
	}
	return newCORSPolicy(resolved.Version.Config.CORS, origin), nil
}

// unknownPolicy is the policy for an origin whose client may not learn whether the function
// exists: missing functions, and private ones with and without a configuration, look the same. It
// lets the page read the refusal. The request that follows a preflight is refused without a key,
// and with one it has the policy of the version.
func unknownPolicy(origin string) *corsPolicy {
	return &corsPolicy{config: &api.CORS{AllowCredentials: true}, origin: origin, open: true}
}

// newCORSPolicy returns the policy of config for an origin, nil without a configuration.
// An origin that is listed by name wins over "*".
//
//	allow_origins                  Origin            Access-Control-Allow-Origin
//	["https://a.example"]          https://a.example https://a.example
//	["https://a.example"]          https://b.example none: the browser refuses the answer
//	["*"]                          https://b.example *
//	["*"]                          null              *
//
// The last row is that of a page of the function itself, which has an opaque origin below Prefix.
func newCORSPolicy(config *api.CORS, origin string) *corsPolicy {
	if config == nil {
		return nil
	}
	p := &corsPolicy{config: config}
	for _, allowed := range config.AllowOrigins {
		switch allowed {
		case "*":
			p.origin = "*"
		case origin:
			p.origin = origin
			return p
		}
	}
	return p
}

// preflight answers an OPTIONS request that asks for permission, without running the
// function, and reports whether it did.
func (p *corsPolicy) preflight(w http.ResponseWriter, r *http.Request) bool {
	if p == nil || !isPreflight(r) {
		return false
	}
	h := w.Header()
	p.apply(h)
	h.Add("Vary", "Access-Control-Request-Method")
	h.Add("Vary", "Access-Control-Request-Headers")
	switch {
	case p.open:
		h.Set("Access-Control-Allow-Methods", r.Header.Get("Access-Control-Request-Method"))
		if asked := r.Header.Values("Access-Control-Request-Headers"); len(asked) > 0 {
			h.Set("Access-Control-Allow-Headers", strings.Join(asked, ", "))
		}
	case p.origin != "":
		methods := p.config.AllowMethods
		if len(methods) == 0 {
			methods = []string{http.MethodGet, http.MethodHead, http.MethodPost}
		}
		h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		if len(p.config.AllowHeaders) > 0 {
			h.Set("Access-Control-Allow-Headers", strings.Join(p.config.AllowHeaders, ", "))
		}
		if p.config.MaxAgeSeconds > 0 {
			h.Set("Access-Control-Max-Age", strconv.Itoa(p.config.MaxAgeSeconds))
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// isPreflight reports whether a browser asks if a page may send a request.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" && r.Header.Get("Origin") != ""
}

// apply adds the headers that tell the browser which origin may read the answer.
func (p *corsPolicy) apply(h http.Header) {
	if p == nil {
		return
	}
	h.Add("Vary", "Origin")
	for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers"} {
		h.Del(name) // the configuration overrides the function
	}
	if p.origin == "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", p.origin)
	if p.config.AllowCredentials {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	if len(p.config.ExposeHeaders) > 0 {
		h.Set("Access-Control-Expose-Headers", strings.Join(p.config.ExposeHeaders, ", "))
	}
}
