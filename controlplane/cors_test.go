package controlplane_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
)

func TestCORS(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t)
	h.engine.invoke = func(_ context.Context, inv api.Invocation) (*api.Outcome, error) {
		if inv.Ref.Alias == "prod" {
			return success(`{"statusCode":200,"headers":{"access-control-allow-origin":"https://theirs.example"}}`), nil
		}
		return failed(api.StatusError, api.ErrException), nil
	}
	const shop, other = "https://shop.example", "https://other.example"
	preflight := []string{"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "x-a"}
	type headers map[string]string
	for _, tc := range []struct {
		name, config, method, origin string
		more                         []string
		status                       int
		invoked                      bool
		want                         headers // "" means absent
	}{
		{"no configuration: the function's own header", ``, "GET", shop, nil, 200, true,
			headers{"Access-Control-Allow-Origin": "https://theirs.example", "Vary": ""}},
		{"no configuration: a preflight is the function's", ``, "OPTIONS", shop, preflight, 200, true, nil},
		{"an origin that is allowed", `{"allow_origins":["` + shop + `"],"expose_headers":["x-b"]}`, "GET", shop, nil, 200, true,
			headers{"Access-Control-Allow-Origin": shop, "Access-Control-Expose-Headers": "x-b", "Access-Control-Allow-Credentials": "", "Vary": "Origin"}},
		{"an origin that is not", `{"allow_origins":["` + shop + `"]}`, "GET", other, nil, 200, true,
			headers{"Access-Control-Allow-Origin": "", "Vary": "Origin"}},
		{"every origin", `{"allow_origins":["*"]}`, "GET", other, nil, 200, true,
			headers{"Access-Control-Allow-Origin": "*"}},
		{"credentials", `{"allow_origins":["` + shop + `"],"allow_credentials":true}`, "POST", shop, nil, 200, true,
			headers{"Access-Control-Allow-Origin": shop, "Access-Control-Allow-Credentials": "true"}},
		{"a preflight", `{"allow_origins":["` + shop + `"],"allow_methods":["PUT","GET"],"allow_headers":["x-a","x-c"],"max_age_seconds":60}`, "OPTIONS", shop, preflight, 204, false,
			headers{"Access-Control-Allow-Origin": shop, "Access-Control-Allow-Methods": "PUT, GET", "Access-Control-Allow-Headers": "x-a, x-c", "Access-Control-Max-Age": "60"}},
		{"a preflight with the defaults", `{"allow_origins":["*"]}`, "OPTIONS", shop, preflight, 204, false,
			headers{"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET, HEAD, POST", "Access-Control-Allow-Headers": "", "Access-Control-Max-Age": ""}},
		{"a preflight that is refused", `{"allow_origins":["` + shop + `"]}`, "OPTIONS", other, preflight, 204, false,
			headers{"Access-Control-Allow-Origin": "", "Access-Control-Allow-Methods": ""}},
		{"OPTIONS that is no preflight", `{"allow_origins":["*"]}`, "OPTIONS", shop, nil, 200, true,
			headers{"Access-Control-Allow-Origin": "*"}},
		{"no origin", `{"allow_origins":["*"]}`, "GET", "", nil, 200, true,
			headers{"Vary": ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			config := `{}`
			if tc.config != "" {
				config = `{"cors":` + tc.config + `}`
			}
			h.deploy(t, tc.name, config)
			before := h.engine.count()
			sent := tc.more
			if tc.origin != "" {
				sent = append([]string{"Origin", tc.origin}, sent...)
			}
			a := h.call(t, tc.method, h.web("/"), "", sent...)
			if a.status != tc.status || (h.engine.count() > before) != tc.invoked {
				t.Errorf("got status %d and invoked %v, want status %d and invoked %v", a.status, h.engine.count() > before, tc.status, tc.invoked)
			}
			for name, want := range tc.want {
				got := ""
				if values := a.header.Values(name); len(values) > 0 {
					got = values[0]
				}
				if got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
	// Errors too can be read by the pages that may read answers.
	detail := ok[api.FunctionDetail](t, h.call(t, "GET", h.fn(""), ""), 200)
	if diff := cmp.Diff(true, *detail.LatestVersion > 1); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	a := h.call(t, "GET", "/v1/web/"+h.tenant+"/payments/hello/4/", "", "Origin", other)
	a.refused(t, 502, api.CodeRuntimeException)
	if got := a.header.Get("Access-Control-Allow-Origin"); got != "*" && got != "" {
		t.Errorf("got Access-Control-Allow-Origin %q, want * or none", got)
	}
	h.call(t, "GET", "/v1/web/"+h.tenant+"/payments/missing/prod/", "", "Origin", other).refused(t, 404, api.CodeFunctionNotFound)
}

// A preflight, and the refusal that a page may read, do not tell a private function from a
// missing one, with and without a configuration.
func TestPreflightsRevealNoFunctions(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	const shop, other = "https://shop.example", "https://other.example"
	k.publish(t, "payments", "hello", `{}`)
	k.publish(t, "payments", "listed", `{"cors":{"allow_origins":["`+shop+`"],"allow_methods":["PUT"],"max_age_seconds":60}}`)
	k.publish(t, "payments", "public", `{"authz":{"invoke_http_roles":["*"]},"cors":{"allow_origins":["`+shop+`"],"allow_methods":["PUT"]}}`)
	for _, origin := range []string{shop, other, "null"} {
		for method, more := range map[string][]string{
			"OPTIONS": {"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "authorization,x-a"},
			"PUT":     nil,
		} {
			seen := map[string]string{}
			for _, function := range []string{"ghost", "hello", "listed"} {
				a := k.call(t, method, k.endpoint("payments", function, "prod"), "", append([]string{"Origin", origin}, more...)...)
				for _, name := range []string{"Date", "X-Request-Id", "Content-Length"} {
					a.header.Del(name)
				}
				if got := a.header.Get("Access-Control-Allow-Origin"); got != origin {
					t.Errorf("%s of %s from %s: got Access-Control-Allow-Origin %q, want the origin", method, function, origin, got)
				}
				seen[function] = fmt.Sprint(a.status, a.header)
			}
			if seen["hello"] != seen["ghost"] || seen["listed"] != seen["ghost"] {
				t.Errorf("%s from %s: got %v, want three equal answers", method, origin, seen)
			}
		}
	}
	// A public function is no secret, and its configuration holds.
	a := k.call(t, "OPTIONS", k.endpoint("payments", "public", "prod"), "", "Origin", other, "Access-Control-Request-Method", "PUT")
	if got := a.header.Get("Access-Control-Allow-Origin"); a.status != 204 || got != "" {
		t.Errorf("a public function: got %d and Access-Control-Allow-Origin %q, want 204 and none", a.status, got)
	}
	// With a key that may invoke, the configuration of a private one holds.
	invoker, _ := k.key(t, api.RoleInvoker)
	for origin, want := range map[string]string{shop: shop, other: ""} {
		if a := k.as(t, invoker, "PUT", k.endpoint("payments", "listed", "prod"), "", "Origin", origin); a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("with a key from %s: got %d and Access-Control-Allow-Origin %q, want 200 and %q", origin, a.status, a.header.Get("Access-Control-Allow-Origin"), want)
		}
	}
}
