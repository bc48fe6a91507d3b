package console

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
)

const (
	// apiPrefix is where the console calls the API. The browser sends the cookie of the session
	// below it and to no other address, so no page and no function of a tenant receives it.
	apiPrefix = "/console/api"
	// apiRoutes begins the paths of the API that are served below apiPrefix.
	apiRoutes = "/v1/"
	// functionRoutes begins the paths of functions, which are not.
	functionRoutes = "/v1/web"
)

// HeaderToken carries the token of the session, which only the console's own page can learn and
// which another origin cannot send without asking first.
const HeaderToken = "X-Sous-Token"

// The names of the cookie over plain HTTP and over TLS, where browsers guarantee by the prefix that
// a secure connection set it.
const (
	cookiePlain  = "sous-console"
	cookieSecure = "__Secure-sous-console"
)

// cookieBytes is the length of a cookie: the digest of the key and the secret of the session.
const cookieBytes = 2 * sha256.Size

// Front returns next with the API of the console before it: requests to /console/api/v1/… become
// those to /v1/…, with the session of their cookie as their credential. It decides nothing itself:
// a request that must not use its session carries the reason, and the authorization of its route
// answers with it. claimed reports whether a host belongs to functions, which have no console.
func (c *Console) Front(claimed func(host string) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ours := strings.CutPrefix(r.URL.Path, apiPrefix+"/")
		if !ours || claimed(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		a := c.arrive(r)
		ctx := access.WithCredential(r.Context(), a.credential)
		rewritten := r.WithContext(context.WithValue(ctx, arrivalKey{}, a))
		if path := "/" + rest; strings.HasPrefix(path, apiRoutes) && !strings.HasPrefix(path, functionRoutes) {
			at := *r.URL
			at.Path, at.RawPath = path, strings.TrimPrefix(r.URL.RawPath, apiPrefix)
			rewritten.URL = &at
		}
		next.ServeHTTP(w, rewritten)
	})
}

type arrivalKey struct{}

// An arrival is what Front found of a request, for the routes of sessions.
type arrival struct {
	cookie     *access.Credential // what the browser sent
	credential *access.Credential // the same, if the request may use it
	foreign    error              // why the request may not call the console at all, nil if it may
	secure     bool               // the browser's connection is
}

// arrivalOf returns what Front found of the request of ctx.
func arrivalOf(ctx context.Context) *arrival {
	if a, ok := ctx.Value(arrivalKey{}).(*arrival); ok {
		return a
	}
	none := &access.Credential{Err: errSignIn()}
	return &arrival{cookie: none, credential: none, foreign: errSignIn()}
}

func errSignIn() error { return api.Errorf(api.CodeAuthnRequired, "sign in to the console") }

// arrive examines a request.
func (c *Console) arrive(r *http.Request) *arrival {
	a := &arrival{cookie: cookieOf(r), secure: overTLS(r)}
	a.credential = a.cookie
	a.foreign = sameOrigin(r)
	if c.cfg.Unconfined {
		a.foreign = api.Errorf(api.CodeAuthzDenied, "this server does not separate the pages of functions from its own, so it has no console")
	}
	// The page asks for the token of its session once; other origins cannot read the answer.
	asks := r.URL.Path == pathSession && (r.Method == http.MethodGet || r.Method == http.MethodHead)
	switch {
	case a.foreign != nil:
		a.credential = &access.Credential{Err: a.foreign}
	case a.cookie.Err == nil && !asks && !hmac.Equal([]byte(r.Header.Get(HeaderToken)), []byte(tokenOf(a.cookie))):
		a.credential = &access.Credential{Err: api.Errorf(api.CodeAuthzDenied, "the request has not the token of the session in %s: reload the console", HeaderToken)}
	}
	return a
}

// cookieOf returns the session that the cookie of a request names. A second cookie of the name is
// one that another host of the domain set: it must not decide whose session it is.
func cookieOf(r *http.Request) *access.Credential {
	name := cookiePlain
	if overTLS(r) {
		name = cookieSecure
	}
	cookies := r.CookiesNamed(name)
	switch len(cookies) {
	case 0:
		return &access.Credential{Err: errSignIn()}
	case 1:
	default:
		return &access.Credential{Err: api.Errorf(api.CodeAuthnInvalid, "the browser sent two sessions: another host of this domain may have set one; delete the cookies %s", name)}
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cookies[0].Value)
	if err != nil || len(raw) != cookieBytes {
		return &access.Credential{Err: api.Errorf(api.CodeAuthnInvalid, "the session is malformed: sign in again")}
	}
	credential := &access.Credential{}
	copy(credential.Key[:], raw)
	copy(credential.Secret[:], raw[sha256.Size:])
	return credential
}

// tokenOf returns the token of a session.
func tokenOf(c *access.Credential) string {
	mac := hmac.New(sha256.New, c.Secret[:])
	mac.Write([]byte("token of the console"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// sameOrigin refuses requests of pages of other origins, by the headers that browsers add and pages
// cannot change. A proxy may have changed the Host, so an Origin is compared with it only where the
// browser does not tell the relation itself, as browsers do on all but plain HTTP.
func sameOrigin(r *http.Request) error {
	const refusal = "a page of another origin may not call the API of the console"
	if sites := r.Header["Sec-Fetch-Site"]; len(sites) > 0 {
		for _, site := range sites {
			if site != "same-origin" {
				return api.Errorf(api.CodeAuthzDenied, refusal)
			}
		}
		return nil
	}
	for _, origin := range r.Header["Origin"] {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return api.Errorf(api.CodeAuthzDenied, refusal)
		}
	}
	return nil
}

// overTLS reports whether the browser's connection is secure. A client that lies about it changes
// only the name of its own cookie.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}
