package controlplane_test

import (
	"testing"

	"github.com/codesous/sous/api"
)

func TestOnlyLoopbackNamesAreAnswered(t *testing.T) {
	t.Parallel()
	h := start(t)
	for host, allowed := range map[string]bool{
		"localhost":              true,
		"localhost:8080":         true,
		"LOCALHOST:8080":         true,
		"localhost.:8080":        true,
		"app.localhost:8080":     true,
		"127.0.0.1":              true,
		"127.1.2.3:9":            true,
		"[::1]":                  true,
		"[::1]:8080":             true,
		"[::ffff:127.0.0.1]:80":  true,
		"evil.example":           false,
		"evil.example:8080":      false,
		"localhost.evil.example": false,
		"notlocalhost":           false,
		"127.0.0.1.evil.example": false,
		"128.0.0.1":              false,
		"0.0.0.0:8080":           false,
		"10.0.0.1":               false,
		"[::]:8080":              false,
		"[fe80::1]":              false,
	} {
		for _, path := range []string{"/healthz", "/openapi.json", h.web("/"), h.fn("")} {
			a := h.call(t, "GET", path, "", "Host", host)
			if allowed && a.status == 403 {
				t.Errorf("GET %s of host %s: got 403 %s, want it admitted", path, host, a.body)
			}
			if !allowed {
				a.refused(t, 403, api.CodeHostHeaderRefused)
			}
		}
	}
}

func TestPagesOfOtherSitesMayNotCallTheAPI(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t)
	path := h.fn("")[:len(h.fn(""))-len("/hello")]
	for name, headers := range map[string][]string{
		"cross-site":           {"Sec-Fetch-Site", "cross-site"},
		"same site only":       {"Sec-Fetch-Site", "same-site"},
		"origin of another":    {"Origin", "https://evil.example"},
		"origin that is null":  {"Origin", "null"},
		"origin, another port": {"Origin", "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.call(t, "POST", path, `{"name":"evil"}`, headers...).refused(t, 403, api.CodeAuthzDenied)
			h.call(t, "POST", h.fn(":invoke"), `{"ref":{"version":1}}`, headers...).refused(t, 403, api.CodeAuthzDenied)
			h.call(t, "PUT", h.fn("/draft"), draftJSON("x"), headers...).refused(t, 403, api.CodeAuthzDenied)
			h.call(t, "DELETE", h.fn(""), "", headers...).refused(t, 403, api.CodeAuthzDenied)
			h.call(t, "GET", h.fn(""), "", headers...).refused(t, 403, api.CodeAuthzDenied)
			h.call(t, "GET", "/v1/tenants/"+h.tenant+"/audit", "", append(headers, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")...).refused(t, 403, api.CodeAuthzDenied)
		})
	}
	if a := h.call(t, "POST", path, `{"name":"mine"}`, "Origin", h.URL, "Sec-Fetch-Site", "same-origin"); a.status != 201 {
		t.Errorf("request of the server's own page: got %d %s, want 201", a.status, a.body)
	}
}

// The documentation can be linked to. A page of another origin can neither read nor embed it.
func TestLinksToTheDocumentation(t *testing.T) {
	t.Parallel()
	h := start(t)
	for name, tc := range map[string]struct {
		headers []string
		status  int
	}{
		"a client without a browser": {nil, 200},
		"the address bar":            {[]string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		"a link of another site":     {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		"a link of another port":     {[]string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		"a frame of another site":    {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		"a fetch of another site":    {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "empty"}, 403},
		"a sandboxed page":           {[]string{"Origin", "null"}, 403},
	} {
		if a := h.call(t, "GET", "/docs/start", "", tc.headers...); a.status != tc.status {
			t.Errorf("%s: got %d, want %d", name, a.status, tc.status)
		}
	}
}

func TestEndpointsAreForPagesOfOtherSites(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t)
	h.deploy(t, "x", "")
	if a := h.call(t, "POST", h.web("/"), "x", "Origin", "https://shop.example", "Sec-Fetch-Site", "cross-site"); a.status != 200 {
		t.Errorf("got %d %s, want status 200", a.status, a.body)
	}
}
