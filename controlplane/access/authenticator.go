package access

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/storage"
)

// Mode selects how callers are authenticated.
type Mode int

const (
	// Keys requires an API key from every caller.
	Keys Mode = iota
	// Off treats every caller as an administrator of all tenants. The server must
	// then listen on loopback only; it also refuses requests that a browser sends on
	// behalf of another site.
	Off
)

// The results of an authentication, as values of the label "result".
const (
	resultOK          = "ok"
	resultMissing     = "missing"     // no key, where one is required
	resultInvalid     = "invalid"     // unknown, malformed, expired or revoked
	resultUnavailable = "unavailable" // the store could not be read
	resultOff         = "off"         // authentication is off
	resultPublic      = "public"      // a public endpoint: the key was not looked at
)

// Authenticator finds the caller of a request by its API key. It is safe for
// concurrent use. It retains no key: its caches, like the store, know keys by their
// SHA-256.
type Authenticator struct {
	mode  Mode
	local *Caller   // every caller, under Off
	keys  *keyCache // nil under Off
	// sessions are those of people who signed in, nil for none.
	sessions *sessionCache
	results  *prometheus.CounterVec
}

// NewAuthenticator returns an authenticator that reads keys from source and caches
// them; clock ends keys that expire. Under Keys, its OnChange must receive the
// store's notices, and Close must be called at the end.
func NewAuthenticator(mode Mode, source KeySource, clock func() time.Time) (*Authenticator, error) {
	a := &Authenticator{mode: mode, local: localCaller(), results: newResults()}
	if mode == Off {
		return a, nil
	}
	keys, err := newKeyCache(source, clock)
	if err != nil {
		return nil, err
	}
	a.keys = keys
	return a, nil
}

// Close stops the caches' goroutines.
func (a *Authenticator) Close() {
	if a.keys != nil {
		a.keys.close()
	}
	if a.sessions != nil {
		a.sessions.live.StopAllGoroutines()
	}
}

// Mode returns how callers are authenticated.
func (a *Authenticator) Mode() Mode { return a.mode }

// Collectors returns the metrics of the authenticator and of its caches.
func (a *Authenticator) Collectors() []prometheus.Collector {
	collectors := []prometheus.Collector{a.results}
	if a.keys != nil {
		collectors = append(collectors, metrics.NewCache("keys", a.keys.known), metrics.NewCache("wrong_keys", a.keys.wrong))
	}
	return collectors
}

// Authenticate returns the caller whose key stands in h, or whose session ctx carries (see
// WithCredential), and counts the result.
// Errors: CodeAuthnRequired without a key; CodeAuthnInvalid for one that is unknown,
// malformed, expired or revoked; CodeStoreUnavailable where the key is not cached and
// the store cannot be read.
func (a *Authenticator) Authenticate(ctx context.Context, h http.Header) (*Caller, error) {
	c, err := a.identify(ctx, h)
	a.results.WithLabelValues(a.result(err)).Inc()
	return c, err
}

// identify is Authenticate without the count.
func (a *Authenticator) identify(ctx context.Context, h http.Header) (*Caller, error) {
	if a.mode == Off {
		return a.local, nil
	}
	if c, ok := ctx.Value(credentialKey{}).(*Credential); ok {
		return a.present(ctx, c)
	}
	text, ok := Bearer(h)
	if !ok {
		return nil, api.Errorf(api.CodeAuthnRequired, "this needs an API key: Authorization: Bearer <key>")
	}
	if !api.LooksLikeKey(text) {
		return nil, invalidKey()
	}
	return a.keys.find(ctx, sha256.Sum256([]byte(text)))
}

// Recheck returns an error if the key of c does not hold any more. Requests that take
// long, such as streams, call it repeatedly. It is not counted as an authentication. Errors:
// those of Authenticate, where CodeStoreUnavailable does not mean that the key ended.
func (a *Authenticator) Recheck(ctx context.Context, c *Caller) error {
	if c.local {
		return nil
	}
	if c.session != nil {
		if err := a.sessions.check(ctx, *c.session); err != nil {
			return err
		}
	}
	_, err := a.keys.find(ctx, c.digest)
	return err
}

// CountPublic counts a request to a public endpoint, whose key is not looked at.
func (a *Authenticator) CountPublic() { a.results.WithLabelValues(resultPublic).Inc() }

// ForgetKey drops a key of a tenant from this process's cache, so that the next request with it
// reads the store. The handler that revokes a key calls it after the store's write, since
// the notice of the change arrives later.
func (a *Authenticator) ForgetKey(tenant, id string) {
	if a.keys != nil {
		a.keys.forget(keyID{tenant, id})
	}
}

// OnChange takes a notice of the store. Keys are also revoked on other replicas. Notices
// can be lost; keyTTL limits what that costs.
func (a *Authenticator) OnChange(change storage.Change) {
	if a.keys != nil {
		a.keys.onChange(change)
	}
}

func invalidKey() error {
	return api.Errorf(api.CodeAuthnInvalid, "the API key is unknown, malformed, expired or revoked")
}

// HeaderAuthorization is the header that carries keys and tokens.
const HeaderAuthorization = "Authorization"

// Bearer returns the bearer token of h, which may be "", and false if h has no
// Authorization header of this scheme. Two headers are one malformed token: a proxy
// may have checked either of them.
//
//	(none)                        "", false     CodeAuthnRequired
//	Authorization: Basic …        "", false     CodeAuthnRequired
//	Authorization: bearer sous_…  "sous_…", true
//	two Authorization headers     "", true      CodeAuthnInvalid
func Bearer(h http.Header) (token string, ok bool) {
	values := h[HeaderAuthorization]
	if len(values) != 1 {
		return "", len(values) > 1
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.Trim(token, " \t"), true
}

func newResults() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metrics.Namespace, Name: "authentications_total",
		Help: "Authenticated requests, by result.",
	}, []string{"result"})
}

// result is the label of an authentication that ended with err.
func (a *Authenticator) result(err error) string {
	switch {
	case err == nil && a.mode == Off:
		return resultOff
	case err == nil:
		return resultOK
	}
	switch api.ErrorCode(err) {
	case api.CodeAuthnRequired:
		return resultMissing
	case api.CodeAuthnInvalid:
		return resultInvalid
	}
	return resultUnavailable
}
