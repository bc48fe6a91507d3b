package controlplane_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/whoami"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/controlplane/access"
)

// consoleSession is what the console's page learns.
type consoleSession struct {
	SignedIn bool             `json:"signed_in"`
	Auth     string           `json:"auth"`
	Reason   string           `json:"reason"`
	Identity *whoami.Identity `json:"identity"`
	Actions  []access.Action  `json:"actions"`
	Token    string           `json:"token"`
}

const (
	sessionPath = "/console/api/session"
	tokenHeader = "X-Sous-Token"
)

// A visitor is a browser with the console of a server.
type visitor struct {
	k     *keyed
	jar   http.CookieJar
	token string
}

func newVisitor(t *testing.T, k *keyed) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return &visitor{k: k, jar: jar}
}

// send sends a request as the page does, with its cookies; headers replace those of the page.
func (v *visitor) send(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, v.k.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatalf("NewRequestWithContext: %v", err)
	}
	for _, c := range v.jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(tokenHeader, v.token)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Del(headers[i])
	}
	a := v.k.send(t, r, headers...)
	v.jar.SetCookies(r.URL, (&http.Response{Header: a.header}).Cookies())
	return a
}

// signIn exchanges a key for a session.
func (v *visitor) signIn(t *testing.T, key string) consoleSession {
	t.Helper()
	s := ok[consoleSession](t, v.send(t, "POST", sessionPath, `{"key":"`+key+`"}`), 200)
	v.token = s.Token
	return s
}

func (v *visitor) session(t *testing.T) consoleSession {
	t.Helper()
	return ok[consoleSession](t, v.send(t, "GET", sessionPath, ""), 200)
}

// cookie returns the value that the browser sends below the console's API.
func (v *visitor) cookie(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(v.k.URL + sessionPath)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	cookies := v.jar.Cookies(u)
	if len(cookies) != 1 {
		t.Fatalf("got %d cookies, want 1", len(cookies))
	}
	return cookies[0].Value
}

func TestConsoleSession(t *testing.T) {
	t.Parallel()
	clock := newClock()
	k := startKeyed(t, embedded(t), onClock(clock), func(c *controlplane.Config) { c.Version = "1.2.3" })
	text, record := k.key(t, api.RoleViewer)
	v := newVisitor(t, k)
	if s := v.session(t); s.SignedIn || s.Auth != whoami.AuthKeys || s.Token != "" {
		t.Errorf("the session of a new visitor: got %+v, want none", s)
	}
	v.send(t, "GET", "/console/api/v1/whoami", "").refused(t, 401, api.CodeAuthnRequired)
	v.send(t, "POST", sessionPath, `{"key":"`+k.lost(t)+`"}`).refused(t, 401, api.CodeAuthnInvalid)
	v.send(t, "POST", sessionPath, `{"key":"nonsense"}`).refused(t, 401, api.CodeAuthnInvalid)
	v.send(t, "POST", sessionPath, `{}`).refused(t, 422, api.CodeInvalid)

	s := v.signIn(t, text)
	if !s.SignedIn || s.Identity.KeyID != record.ID || s.Identity.ServerVersion != "1.2.3" || !slices.Contains(s.Actions, access.FunctionRead) || slices.Contains(s.Actions, access.FunctionPublish) {
		t.Errorf("the session of a viewer: got %+v, want its identity and its actions", s)
	}
	if again := v.session(t); again.Token != s.Token {
		t.Errorf("the token after a reload: got %q, want %q", again.Token, s.Token)
	}
	if id := ok[whoami.Identity](t, v.send(t, "GET", "/console/api/v1/whoami", ""), 200); id.KeyID != record.ID {
		t.Errorf("whoami with the session: got %+v, want the key %s", id, record.ID)
	}
	// The session is good for the console's API only.
	v.send(t, "GET", "/v1/whoami", "", "Cookie", "sous-console="+v.cookie(t)).refused(t, 401, api.CodeAuthnRequired)
	clock.advance(12*time.Hour - time.Minute)
	ok[whoami.Identity](t, v.send(t, "GET", "/console/api/v1/whoami", ""), 200)
	clock.advance(time.Minute)
	v.send(t, "GET", "/console/api/v1/whoami", "").refused(t, 401, api.CodeAuthnInvalid)
	if s := v.session(t); s.SignedIn || s.Reason == "" {
		t.Errorf("a session that has ended: got %+v, want a reason", s)
	}
}

// The cookie must not be readable for scripts, and not be sent by pages of other sites or to functions.
func TestConsoleCookie(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	text, _ := k.key(t, api.RoleViewer)
	body := `{"key":"` + text + `"}`
	for name, tt := range map[string]struct {
		header []string
		want   string
	}{
		"plain": {nil, "sous-console="},
		"TLS":   {[]string{"X-Forwarded-Proto", "https"}, "__Secure-sous-console="},
	} {
		a := k.call(t, "POST", sessionPath, body, tt.header...)
		line := a.header.Get("Set-Cookie")
		lower := strings.ToLower(line)
		if a.status != 200 || !strings.HasPrefix(line, tt.want) || !strings.Contains(lower, "httponly") || !strings.Contains(lower, "samesite=strict") ||
			strings.Contains(lower, "path=") || strings.Contains(lower, "domain=") || strings.Contains(lower, "secure;") != (name == "TLS") && !strings.HasSuffix(lower, "secure") == (name == "TLS") {
			t.Errorf("%s: got status %d and Set-Cookie %q, want %s… with HttpOnly and SameSite=Strict, without Path and Domain", name, a.status, line, tt.want)
		}
		if strings.Contains(line, text) || strings.Contains(string(a.body), text) {
			t.Errorf("%s: the answer has the key, want it nowhere", name)
		}
	}
	v := newVisitor(t, k)
	v.signIn(t, text)
	for path, want := range map[string]int{"/console/api/v1/limits": 1, "/console/": 0, "/v1/web/t/n/f/prod/": 0, "/v1/limits": 0} {
		u, err := url.Parse(k.URL + path)
		if err != nil {
			t.Fatalf("Parse: %v", err)
		}
		if got := len(v.jar.Cookies(u)); got != want {
			t.Errorf("cookies for %s: got %d, want %d", path, got, want)
		}
	}
}

// A page of another origin, or one that cannot read the token, must not use a session.
func TestConsoleRefusesForgedRequests(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	text, _ := k.key(t, api.RoleAdmin)
	v := newVisitor(t, k)
	v.signIn(t, text)
	create := "/console/api/v1/tenants/" + k.tenant + "/namespaces/default/functions"
	for name, headers := range map[string][]string{
		"no token":         {tokenHeader, ""},
		"another token":    {tokenHeader, strings.Repeat("A", 43)},
		"another site":     {"Sec-Fetch-Site", "cross-site"},
		"the same site":    {"Sec-Fetch-Site", "same-site"},
		"a function":       {"Origin", "null"},
		"another origin":   {"Origin", "https://evil.example"},
		"an address typed": {"Sec-Fetch-Site", "none"},
	} {
		v.send(t, "POST", create, `{"name":"evil"}`, headers...).refused(t, 403, api.CodeAuthzDenied)
		v.send(t, "GET", "/console/api/v1/whoami", "", headers...).refused(t, 403, api.CodeAuthzDenied)
		v.send(t, "DELETE", sessionPath, "", headers...).refused(t, 403, api.CodeAuthzDenied)
		if name == "no token" || name == "another token" {
			continue
		}
		// Signing a victim in with the attacker's key is an attack, too.
		v.send(t, "POST", sessionPath, `{"key":"`+text+`"}`, headers...).refused(t, 403, api.CodeAuthzDenied)
		v.send(t, "GET", sessionPath, "", headers...).refused(t, 403, api.CodeAuthzDenied)
	}
	if a := k.as(t, text, "GET", strings.TrimPrefix(create, "/console/api")+"/evil", ""); a.status != 404 {
		t.Errorf("the function of the forged requests: got status %d, want 404", a.status)
	}
	ok[api.Function](t, v.send(t, "POST", create, `{"name":"good"}`, "Sec-Fetch-Site", "same-origin", "Origin", k.URL), 201)
}

func TestConsoleHasTheRightsOfItsKey(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	text, _ := k.key(t, api.RoleViewer)
	v := newVisitor(t, k)
	v.signIn(t, text)
	for _, row := range accessRows {
		method, _, _ := strings.Cut(row.route, " ")
		if method == http.MethodGet || row.roles == "-" || row.roles == "*" || row.roles == "!" || strings.Contains(row.roles, "v") {
			continue
		}
		path := strings.NewReplacer("T", "/v1/tenants/"+k.tenant, "N", "/v1/tenants/"+k.tenant+"/namespaces/payments", "F", k.fn(""),
			"A", "/v1/tenants/"+k.tenant+"/activations/"+activationID, "I", "/v1/tenants/"+k.tenant+"/installs/crm", "S", "/v1/tenants/"+k.tenant+"/installs/crm/storage",
			"J", activationID, "C", activationID, "B", activationID).Replace(row.path)
		a := v.send(t, method, "/console/api"+path, row.body)
		if a.status != 403 {
			t.Errorf("%s as a viewer: got status %d, want 403", row.route, a.status)
		}
	}
	// Neither a key beside the session nor the path of a function changes who calls.
	admin, _ := k.key(t, api.RoleAdmin)
	v.send(t, "POST", "/console/api/v1/tenants/"+k.tenant+"/namespaces/default/functions", `{"name":"x"}`, "Authorization", "Bearer "+admin).refused(t, 403, api.CodeAuthzDenied)
	for _, path := range []string{"/console/api/v1/web/t_default/default/hello/prod/", "/console/api/healthz", "/console/api/console/api/session"} {
		v.send(t, "GET", path, "").refused(t, 404, api.CodeRouteNotFound)
	}
}

func TestConsoleSignOut(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	text, _ := k.key(t, api.RoleViewer)
	v := newVisitor(t, k)
	v.signIn(t, text)
	stolen, token := v.cookie(t), v.token
	ok[any](t, v.send(t, "DELETE", sessionPath, ""), 204)
	if s := v.session(t); s.SignedIn {
		t.Errorf("after signing out: got %+v, want no session", s)
	}
	k.call(t, "GET", "/console/api/v1/whoami", "", "Cookie", "sous-console="+stolen, tokenHeader, token).refused(t, 401, api.CodeAuthnInvalid)
}

// An attacker who knows the session of a browser from before its user signed in has nothing after it.
func TestConsoleSessionIsNotFixed(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	theirs, _ := k.key(t, api.RoleViewer)
	mine, record := k.key(t, api.RoleAdmin)
	v := newVisitor(t, k)
	v.signIn(t, theirs)
	planted, token := v.cookie(t), v.token
	v.signIn(t, mine)
	if v.cookie(t) == planted {
		t.Error("the session after a second sign-in is the one before, want another")
	}
	k.call(t, "GET", "/console/api/v1/whoami", "", "Cookie", "sous-console="+planted, tokenHeader, token).refused(t, 401, api.CodeAuthnInvalid)
	if id := ok[whoami.Identity](t, v.send(t, "GET", "/console/api/v1/whoami", ""), 200); id.KeyID != record.ID {
		t.Errorf("whoami: got key %s, want %s", id.KeyID, record.ID)
	}
	// A cookie that another host of the domain set beside it does not decide whose session it is.
	for _, pair := range [][2]string{{planted, v.cookie(t)}, {v.cookie(t), planted}} {
		k.call(t, "GET", "/console/api/v1/whoami", "", "Cookie", "sous-console="+pair[0]+"; sous-console="+pair[1], tokenHeader, v.token).refused(t, 401, api.CodeAuthnInvalid)
	}
	for _, bad := range []string{"x", strings.Repeat("A", 86), strings.Repeat("A", 85) + "="} {
		k.call(t, "GET", sessionPath, "", "Cookie", "sous-console="+bad)
		a := k.call(t, "GET", "/console/api/v1/whoami", "", "Cookie", "sous-console="+bad, tokenHeader, "")
		if a.status != 401 && a.status != 403 {
			t.Errorf("the cookie %q: got status %d, want 401 or 403", bad, a.status)
		}
	}
}

// A session ends with its key: at once where it is revoked, on other replicas within 5 s.
func TestConsoleSessionEndsWithItsKey(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	text, record := r.one.key(t, api.RoleViewer)
	admin, _ := r.one.key(t, api.RoleAdmin)
	one := newVisitor(t, r.one)
	one.signIn(t, text)
	two := &visitor{k: r.two, jar: one.jar, token: one.token}
	raw := one.cookie(t)
	elsewhere := func() answer {
		return r.two.call(t, "GET", "/console/api/v1/whoami", "", "Cookie", "sous-console="+raw, tokenHeader, two.token)
	}
	ok[whoami.Identity](t, elsewhere(), 200) // sessions hold on all replicas
	ok[any](t, r.one.as(t, admin, "DELETE", "/v1/tenants/"+r.one.tenant+"/keys/"+record.ID, ""), 204)
	one.send(t, "GET", "/console/api/v1/whoami", "").refused(t, 401, api.CodeAuthnInvalid)
	r.clock.advance(5 * time.Second)
	elsewhere().refused(t, 401, api.CodeAuthnInvalid)
}

func TestConsoleSignOutReachesOtherReplicas(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	text, _ := r.one.key(t, api.RoleViewer)
	v := newVisitor(t, r.one)
	v.signIn(t, text)
	raw := v.cookie(t)
	elsewhere := func() answer {
		return r.two.call(t, "GET", "/console/api/v1/whoami", "", "Cookie", "sous-console="+raw, tokenHeader, v.token)
	}
	ok[whoami.Identity](t, elsewhere(), 200)
	ok[any](t, v.send(t, "DELETE", sessionPath, ""), 204)
	r.clock.advance(5 * time.Second)
	elsewhere().refused(t, 401, api.CodeAuthnInvalid)
}

// A server without authentication has no sessions, and answers its own page only.
func TestConsoleWithoutAuthentication(t *testing.T) {
	t.Parallel()
	h := start(t)
	s := ok[consoleSession](t, h.call(t, "GET", sessionPath, ""), 200)
	if !s.SignedIn || s.Auth != whoami.AuthOff || !slices.Contains(s.Actions, access.Action("*")) {
		t.Errorf("the session: got %+v, want that of the administrator", s)
	}
	ok[whoami.Identity](t, h.call(t, "GET", "/console/api/v1/whoami", "", "Sec-Fetch-Site", "same-origin"), 200)
	for _, path := range []string{sessionPath, "/console/api/v1/whoami", "/console/"} {
		h.call(t, "GET", path, "", "Host", "rebound.example").refused(t, 403, api.CodeHostHeaderRefused)
		h.call(t, "GET", path, "", "Sec-Fetch-Site", "cross-site").refused(t, 403, api.CodeAuthzDenied)
	}
	if a := h.call(t, "GET", "/console/", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"); a.status != 200 {
		t.Errorf("a link of another page to the console: got status %d, want 200", a.status)
	}
}

// Where pages of functions are not sandboxed, one of them could use the session of the console.
func TestUnconfinedServersHaveNoSessions(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t), func(c *controlplane.Config) { c.Unconfined = true })
	text, _ := k.key(t, api.RoleViewer)
	k.call(t, "POST", sessionPath, `{"key":"`+text+`"}`).refused(t, 403, api.CodeAuthzDenied)
}

// The hosts of functions are theirs: the console does not answer there.
func TestHostsOfFunctionsHaveNoConsole(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t), func(c *controlplane.Config) { c.FunctionDomain = "apps.example.com" })
	text, _ := k.key(t, api.RoleViewer)
	host := "hello--default--" + strings.Replace(k.tenant, "_", "-", 1) + ".apps.example.com"
	for _, path := range []string{"/", "/console/", sessionPath, "/console/api/v1/whoami"} {
		a := k.call(t, "GET", path, "", "Host", host)
		if a.status < 400 || strings.Contains(string(a.body), "<title>code-sous") {
			t.Errorf("%s on the host of a function: got status %d, want an error", path, a.status)
		}
	}
	// What looks like the console's is the function's there.
	k.publish(t, "default", "hello", `{"authz":{"invoke_http_roles":["*"]}}`)
	k.call(t, "GET", "/console/api/v1/whoami", "", "Host", host, "Authorization", "Basic x")
	if got := string(k.engine.last(t).Event); !strings.Contains(got, `"path":"/console/api/v1/whoami"`) || !strings.Contains(got, "Basic x") {
		t.Errorf("the event of a function on its host: got %s, want the path and the headers of the request", got)
	}
	if a := k.call(t, "POST", sessionPath, `{"key":"`+text+`"}`, "Host", host); a.header.Get("Set-Cookie") != "" {
		t.Errorf("a sign-in on the host of a function: got status %d and cookie %q, want no cookie", a.status, a.header.Get("Set-Cookie"))
	}
}

// Signing in and reading costs the store little, and a console that is used repeatedly nothing.
func TestConsoleSessionsAreCached(t *testing.T) {
	t.Parallel()
	clock := newClock()
	k := startKeyed(t, embedded(t), onClock(clock))
	text, _ := k.key(t, api.RoleViewer)
	v := newVisitor(t, k)
	v.signIn(t, text)
	v.send(t, "GET", "/console/api/v1/whoami", "")
	if err := k.store.Client().Del(t.Context(), k.store.Keys().Sessions(api.KeyDigest(text))).Err(); err != nil {
		t.Fatalf("Del: %v", err)
	}
	ok[whoami.Identity](t, v.send(t, "GET", "/console/api/v1/whoami", ""), 200)
	clock.advance(5 * time.Second)
	v.send(t, "GET", "/console/api/v1/whoami", "").refused(t, 401, api.CodeAuthnInvalid)
}

func TestRootLeadsToTheConsole(t *testing.T) {
	t.Parallel()
	h := start(t)
	for path, want := range map[string]int{"/": http.StatusFound, "/console": http.StatusPermanentRedirect} {
		a := h.call(t, "GET", path, "")
		if a.status != want || a.header.Get("Location") != "console/" {
			t.Errorf("GET %s: got status %d and Location %q, want %d and console/", path, a.status, a.header.Get("Location"), want)
		}
	}
	if a := h.call(t, "GET", "/", ""); !strings.Contains(string(a.body), "/docs/reference") {
		t.Errorf("GET /: got %q, want a text that names /docs/reference", a.body)
	}
}
