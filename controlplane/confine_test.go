package controlplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
)

const functionDomain = "apps.localhost"

func withFunctionDomain(c *controlplane.Config) { c.FunctionDomain = functionDomain }

// host is the host of hello, an alias or "" for prod.
func (h *harness) host(alias string) string {
	if alias != "" {
		alias += "--"
	}
	return alias + "hello--payments--t-" + strings.TrimPrefix(h.tenant, "t_") + "." + functionDomain
}

// answers has the function answer with headers, as JSON.
func (h *harness) answers(headers string) {
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
		return success(`{"statusCode":200,"body":"hi","headers":` + headers + `}`), nil
	}
}

const dangerous = `{"clear-site-data":"\"*\"","strict-transport-security":"max-age=1","nel":"{}","report-to":"{}","service-worker-allowed":"/",
	"origin-agent-cluster":"?1","alt-svc":"h2=\"evil.example:443\"","x-accel-redirect":"/secret","www-authenticate":"Basic realm=\"x\"","set-cookie2":"a=1","x-own":"kept"}`

// A function answers on an origin that others share: below /v1/web it sets nothing that reaches them.
func TestAnswersOnTheSharedOriginAreConfined(t *testing.T) {
	t.Parallel()
	h := start(t, withFunctionDomain)
	for _, headers := range []string{`{}`, `{"content-security-policy":"sandbox allow-same-origin allow-scripts"}`, `{"content-security-policy":["default-src 'self'","img-src *"]}`} {
		h.answers(headers)
		policies := h.call(t, "GET", h.web("/"), "").header.Values("Content-Security-Policy")
		last := policies[len(policies)-1]
		if !strings.HasPrefix(last, "sandbox allow-scripts allow-forms") || strings.Contains(last, "allow-same-origin") {
			t.Errorf("headers %s: got policies %q, want a last one that sandboxes without allow-same-origin", headers, policies)
		}
		if want := strings.Count(headers, "'self'") + strings.Count(headers, "img-src") + strings.Count(headers, "sandbox"); len(policies) != want+1 {
			t.Errorf("headers %s: got %d policies, want those of the function, %d, and one more", headers, len(policies), want)
		}
	}
	// Problems of the platform and failures of functions are on the same origin.
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
		return failed(api.StatusError, api.ErrException), nil
	}
	if a := h.call(t, "GET", h.web("/"), ""); !strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("a failure: got headers %v, want a sandboxing policy", a.header)
	}
	h.answers(dangerous)
	a := h.call(t, "GET", h.web("/"), "")
	for _, name := range []string{"Clear-Site-Data", "Strict-Transport-Security", "Nel", "Report-To", "Service-Worker-Allowed", "Origin-Agent-Cluster", "Alt-Svc", "X-Accel-Redirect", "Www-Authenticate", "Set-Cookie2"} {
		if got, listed := a.header.Values(name), strings.Contains(a.header.Get("X-Cs-Refused-Headers"), name); len(got) > 0 || !listed {
			t.Errorf("%s: got %q, named as refused %v, want none and named in %q", name, got, listed, a.header.Get("X-Cs-Refused-Headers"))
		}
	}
	if a.header.Get("X-Own") != "kept" {
		t.Errorf("got X-Own %q, want kept", a.header.Get("X-Own"))
	}
	h.answers(`{"www-authenticate":"Bearer resource_metadata=\"https://a.example\""}`)
	if got := h.call(t, "GET", h.web("/"), "").header.Get("Www-Authenticate"); got == "" {
		t.Error("a challenge that browsers leave to the page: got none, want that of the function")
	}
	before := h.engine.count()
	h.call(t, "GET", h.web("/sw.js"), "", "Service-Worker", "script").refused(t, 403, api.CodeAuthzDenied)
	if h.engine.count() != before {
		t.Error("the script of a service worker: the function ran, want a refusal before it")
	}
}

// webEvent is a part of the event that a function got.
type webEvent struct {
	RawPath string            `json:"rawPath"`
	Path    string            `json:"path"`
	Cookies []string          `json:"cookies"`
	Headers map[string]string `json:"headers"`
}

func (h *harness) event(t *testing.T) webEvent {
	t.Helper()
	var e webEvent
	if err := json.Unmarshal(h.engine.last(t).Event, &e); err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
	return e
}

// A cookie comes back to the function that set it, on all of its paths, and to no other.
func TestCookiesBelongToOneFunction(t *testing.T) {
	t.Parallel()
	h := start(t)
	root := "/v1/web/" + h.tenant + "/payments/hello"
	for set, want := range map[string]struct{ path, attributes, name string }{
		"session=1":                                       {root, "", "session=1"},
		"session=1; Path=/; HttpOnly; Secure":             {root, "HttpOnly; Secure", "session=1"},
		"session=1; domain=example.com; SameSite=Lax":     {root, "SameSite=Lax", "session=1"},
		"session=1; path=/v1/web/t_other1/payments/hello": {root, "", "session=1"},
		"session=1; Path=" + root + "2":                   {root, "", "session=1"},
		"session=1; Path=" + root + "/prod/a":             {root + "/prod/a", "", "session=1"},
		"session=1; Path=" + root + "/prod; Path=/":       {root + "/prod", "", "session=1"},
		"session=1; \tDoMaIn =x; Unknown=1":               {root, "", "session=1"},
		"__Secure-s=a=b; Secure":                          {root, "Secure", "__Secure-s=a=b"},
		" spaced = 1 ":                                    {root, "", "spaced= 1"},
		"fn-00000000000000000000-session=1; Max-Age=60":   {root, "Max-Age=60", "fn-00000000000000000000-session=1"},
	} {
		h.answers(fmt.Sprintf(`{"set-cookie":%q}`, set))
		got := h.call(t, "GET", h.web("/"), "").header.Values("Set-Cookie")
		if len(got) != 1 {
			t.Errorf("%q: got %q, want one cookie", set, got)
			continue
		}
		parts := strings.Split(got[0], ";")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		attributes := append(strings.Split(want.attributes, "; "), "Path="+want.path)
		attributes = slices.DeleteFunc(attributes, func(s string) bool { return s == "" })
		if diff := cmp.Diff(attributes, parts[1:]); diff != "" {
			t.Errorf("%q: attributes (-want +got):\n%s", set, diff)
		}
		// The browser sends the cookie, with others that it has, to each URL of the function.
		for _, path := range []string{h.web("/"), root, root + "/beta/x"} {
			h.call(t, "GET", path, "", "Cookie", "platform=secret; "+parts[0]+"; fn-11111111111111111111-session=theirs; session=tossed")
			if diff := cmp.Diff([]string{want.name}, h.event(t).Cookies); diff != "" {
				t.Errorf("%q at %s: cookies (-want +got):\n%s", set, path, diff)
			}
		}
		if mark, _, _ := strings.Cut(parts[0], "session"); want.name == "session=1" {
			h.call(t, "GET", h.web("/"), "", "Cookie", mark+"__Host-session=tossed; "+mark+"__secure-session=tossed")
			if got := h.event(t).Cookies; len(got) > 0 {
				t.Errorf("%q: got cookies %q with prefixes that no browser enforced, want none", set, got)
			}
		}
		h.call(t, "GET", strings.Replace(h.web("/"), "/hello/", "/hello2/", 1), "", "Cookie", parts[0])
		if got := h.event(t).Cookies; len(got) > 0 {
			t.Errorf("%q at another function: got cookies %q, want none", set, got)
		}
	}
	for _, set := range []string{"__Host-s=1; Secure; Path=/", "__host-s=1", "nameless", "=nameless", "a b=1"} {
		h.answers(fmt.Sprintf(`{"set-cookie":%q}`, set))
		a := h.call(t, "GET", h.web("/"), "")
		if got := a.header.Values("Set-Cookie"); len(got) > 0 || a.header.Get("X-Cs-Refused-Headers") != "Set-Cookie" {
			t.Errorf("%q: got %q and refused %q, want no cookie, and Set-Cookie named as refused", set, got, a.header.Get("X-Cs-Refused-Headers"))
		}
	}
}

// All paths of a function's host are the function's, and the origin is its own.
func TestFunctionsHaveHosts(t *testing.T) {
	t.Parallel()
	h := start(t, withFunctionDomain)
	for host, want := range map[string]api.Ref{
		h.host(""):                             {Alias: "prod"},
		strings.ToUpper(h.host("")) + ".:8080": {Alias: "prod"},
		h.host("beta") + ":80":                 {Alias: "beta"},
		h.host("3"):                            {Version: 3},
		"a-b--" + h.host("")[:len(h.host(""))]: {Alias: "a-b"},
		"hello--payments--" + h.tenant + "." + functionDomain: {Alias: "prod"},
	} {
		for _, path := range []string{"/", "/v1/tenants", "/healthz", "/docs", "/openapi.json", "/v1/web/" + h.tenant + "/payments/other/prod/x"} {
			before := h.engine.count()
			a := h.call(t, "GET", path, "", "Host", host, "Cookie", "a=1; b=2", "Service-Worker", "script")
			inv := h.engine.last(t)
			if a.status != 200 || h.engine.count() != before+1 || inv.Function != "hello" || inv.Namespace != "payments" || inv.Tenant != h.tenant || inv.Ref != want {
				t.Errorf("%s%s: got %d and %s/%s at %v, want 200 of hello at %v", host, path, a.status, inv.Namespace, inv.Function, inv.Ref, want)
			}
			e := h.event(t)
			if diff := cmp.Diff([]string{path, path, "a=1", "b=2"}, append([]string{e.RawPath, e.Path}, e.Cookies...)); diff != "" {
				t.Errorf("%s%s: paths and cookies of the event (-want +got):\n%s", host, path, diff)
			}
		}
	}
	h.answers(dangerous)
	a := h.call(t, "GET", "/", "", "Host", h.host(""))
	for name, want := range map[string]bool{"Clear-Site-Data": true, "Strict-Transport-Security": true, "Service-Worker-Allowed": true, "Www-Authenticate": true, "Alt-Svc": false, "X-Accel-Redirect": false, "Content-Security-Policy": false} {
		if got := a.header.Get(name); (got != "") != want {
			t.Errorf("%s on the host of the function: got %q, want one: %v", name, got, want)
		}
	}
	h.answers(`{"set-cookie":["__Host-s=1; Secure; Path=/","a=1; Domain=apps.localhost; Path=/x"]}`)
	if diff := cmp.Diff([]string{"__Host-s=1; Secure; Path=/", "a=1; Path=/x"}, h.call(t, "GET", "/", "", "Host", h.host("")).header.Values("Set-Cookie")); diff != "" {
		t.Errorf("cookies on the host of the function (-want +got):\n%s", diff)
	}
}

// A host below the domain that names no function is no host of the API.
func TestHostsThatNameNoFunction(t *testing.T) {
	t.Parallel()
	h := start(t, withFunctionDomain)
	tenant := "t-" + strings.TrimPrefix(h.tenant, "t_")
	before := h.engine.count()
	for _, label := range []string{
		"api", "hello--" + tenant, "a--b--c--d--" + tenant, "hello--payments--acme01", "hello-" + "--payments--" + tenant,
		"hello---payments--" + tenant, "hello--pay--ments--x--" + tenant, "xn--payments--" + tenant, "-a--hello--payments--" + tenant,
		strings.Repeat("a", 40) + "--payments--" + tenant, "x.hello--payments--" + tenant, "hello--payments--" + tenant + ".x", "",
	} {
		for _, path := range []string{"/healthz", "/v1/tenants", h.web("/")} {
			a := h.call(t, "GET", path, "", "Host", label+"."+functionDomain)
			a.refused(t, http.StatusNotFound, api.CodeRouteNotFound)
		}
	}
	if h.engine.count() != before {
		t.Error("a function ran, want none")
	}
	// The domain itself, and hosts that only end like it, are hosts of the API.
	for _, host := range []string{functionDomain, "x" + functionDomain, "localhost"} {
		if a := h.call(t, "GET", "/healthz", "", "Host", host); a.status != 200 {
			t.Errorf("%s/healthz: got %d, want 200", host, a.status)
		}
	}
}
