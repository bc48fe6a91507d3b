package controlplane_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/storagetest"
)

// endpoint is the path of a function's endpoint.
func (k *keyed) endpoint(namespace, function, ref string) string {
	return "/v1/web/" + k.tenant + "/" + namespace + "/" + function + "/" + ref + "/"
}

// TestWhoMayInvoke holds every kind of caller to every kind of version, under
// /v1/web and through :invoke.
func TestWhoMayInvoke(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.publish(t, "payments", "open", `{}`)
	k.publish(t, "payments", "public", `{"authz":{"invoke_http_roles":["role:x","*"]}}`)
	k.publish(t, "payments", "billing", `{"authz":{"invoke_http_roles":["role:billing"]}}`)
	foreign := storagetest.Tenant(t)
	key := func(role string, change ...func(*api.Key)) string {
		text, _ := k.key(t, role, change...)
		return text
	}
	const (
		in = api.Code("") // admitted
		// The codes for missing functions, missing and wrong keys, missing rights, and other tenants.
		gone, needs, wrong, refused, tenant = api.CodeFunctionNotFound, api.CodeAuthnRequired, api.CodeAuthnInvalid, api.CodeAuthzDenied, api.CodeTenantNotFound
	)
	type codes struct{ open, public, billing, missing api.Code }
	statuses := map[api.Code]int{in: 200, gone: 404, needs: 401, wrong: 401, refused: 403, tenant: 404}
	for name, tc := range map[string]struct {
		key         string
		web, invoke codes
	}{
		"no key":                  {"", codes{needs, in, needs, needs}, codes{needs, needs, needs, needs}},
		"a wrong key":             {k.lost(t), codes{wrong, in, wrong, wrong}, codes{wrong, wrong, wrong, wrong}},
		"a token of another kind": {"eyJhbGciOi", codes{wrong, in, wrong, wrong}, codes{wrong, wrong, wrong, wrong}},
		"invoker":                 {key("invoker"), codes{in, in, refused, gone}, codes{in, in, refused, gone}},
		"admin":                   {key("admin"), codes{in, in, refused, gone}, codes{in, in, refused, gone}},
		"viewer":                  {key("viewer"), codes{refused, in, refused, refused}, codes{refused, refused, refused, refused}},
		"viewer for billing":      {key("", withRoles("viewer", "role:billing")), codes{refused, in, refused, refused}, codes{refused, refused, refused, refused}},
		"invoker for billing":     {key("", withRoles("role:billing", "invoker")), codes{in, in, in, gone}, codes{in, in, in, gone}},
		"right namespace":         {key("invoker", inNamespace("payments")), codes{in, in, refused, gone}, codes{in, in, refused, gone}},
		"another namespace":       {key("admin", inNamespace("others")), codes{refused, in, refused, refused}, codes{refused, refused, refused, refused}},
		"another tenant's":        {key("admin", ofTenant(foreign)), codes{gone, in, gone, gone}, codes{tenant, tenant, tenant, tenant}},
		"another's viewer":        {key("viewer", ofTenant(foreign)), codes{gone, in, gone, gone}, codes{tenant, tenant, tenant, tenant}},
		"the platform's":          {key("admin", ofTenant(api.AllTenants)), codes{in, in, refused, gone}, codes{in, in, refused, gone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			functions := "/v1/tenants/" + k.tenant + "/namespaces/payments/functions/"
			for _, f := range []struct {
				name        string
				web, invoke api.Code
			}{
				{"open", tc.web.open, tc.invoke.open},
				{"public", tc.web.public, tc.invoke.public},
				{"billing", tc.web.billing, tc.invoke.billing},
				{"missing", tc.web.missing, tc.invoke.missing},
			} {
				judge(t, "web "+f.name, k.as(t, tc.key, "POST", k.endpoint("payments", f.name, "prod"), "x"), statuses[f.web], f.web)
				judge(t, "web "+f.name+" from a page", k.as(t, tc.key, "POST", k.endpoint("payments", f.name, "prod"), "x",
					"Origin", "https://shop.example"), statuses[f.web], f.web)
				judge(t, "invoke "+f.name, k.as(t, tc.key, "POST", functions+f.name+":invoke", `{"ref":{"alias":"prod"}}`), statuses[f.invoke], f.invoke)
			}
		})
	}
}

func judge(t *testing.T, what string, a answer, status int, code api.Code) {
	t.Helper()
	var p problem
	if a.status >= 400 {
		if err := json.Unmarshal(a.body, &p); err != nil {
			t.Fatalf("%s: Unmarshal: got %v, want no error", what, err)
		}
	}
	if a.status != status || p.Code != code {
		t.Errorf("%s: %d %s (%s), want %d %s", what, a.status, p.Code, p.Detail, status, code)
	}
}

// A caller without access cannot tell a private function from a missing one: the answers
// are identical.
func TestPrivateAndMissingLookTheSame(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.publish(t, "payments", "hello", `{"authz":{"invoke_http_roles":["role:billing"]}}`)
	foreign, _ := k.key(t, api.RoleAdmin, ofTenant(storagetest.Tenant(t)))
	elsewhere, _ := k.key(t, api.RoleAdmin, inNamespace("others"))
	same := func(key, private, missing string, headers ...string) {
		t.Helper()
		var seen []string
		for _, path := range []string{private, missing} {
			a := k.as(t, key, "POST", path, "", headers...)
			var p problem
			if err := json.Unmarshal(a.body, &p); err != nil || a.status < 400 {
				t.Fatalf("%s: Unmarshal: got %d %s, want no error and status at least 400", path, a.status, a.body)
			}
			a.header.Del("Date")
			a.header.Del("X-Request-Id")
			a.header.Del("Content-Length")
			seen = append(seen, fmt.Sprint(a.status, p.Code, p.Title, strings.ReplaceAll(p.Detail, "ghost", "hello"), p.Errors, a.header))
		}
		if diff := cmp.Diff(seen[0], seen[1]); diff != "" {
			t.Errorf("%s and %s: (-want +got):\n%s", private, missing, diff)
		}
	}
	preflight := []string{"Origin", "https://shop.example", "Access-Control-Request-Method", "POST"}
	for _, key := range []string{"", k.lost(t), foreign, elsewhere} {
		for _, headers := range [][]string{nil, {"Origin", "https://shop.example"}, preflight} {
			same(key, k.endpoint("payments", "hello", "prod"), k.endpoint("payments", "ghost", "prod"), headers...)
			same(key, k.endpoint("payments", "hello", "prod"), k.endpoint("payments", "hello", "beta"), headers...)
			same(key, k.endpoint("payments", "hello", "prod"), k.endpoint("payments", "hello", "99"), headers...)
			same(key, k.endpoint("payments", "hello", "prod"), k.endpoint("ghosts", "hello", "prod"), headers...)
		}
		functions := "/v1/tenants/" + k.tenant + "/namespaces/payments/functions/"
		same(key, functions+"hello:invoke", functions+"ghost:invoke")
	}
	// To another tenant's key it is what a key of their own is told of nothing.
	own, _ := k.key(t, api.RoleAdmin)
	if got, want := k.as(t, foreign, "POST", k.endpoint("payments", "hello", "prod"), "").refused(t, 404, api.CodeFunctionNotFound).Detail,
		k.as(t, own, "POST", k.endpoint("payments", "ghost", "prod"), "").refused(t, 404, api.CodeFunctionNotFound).Detail; got != strings.ReplaceAll(want, "ghost", "hello") {
		t.Errorf("another tenant's key: got detail %q, want %q as for a key of its own, with another name", got, want)
	}
	// And for a tenant that is one, and one that is none.
	for _, path := range []string{"", "/namespaces", "/keys", "/audit", "/namespaces/payments/functions"} {
		other := storagetest.Tenant(t)
		a := k.as(t, foreign, "GET", "/v1/tenants/"+k.tenant+path, "")
		b := k.as(t, foreign, "GET", "/v1/tenants/"+other+path, "")
		detail := a.refused(t, 404, api.CodeTenantNotFound).Detail
		if diff := cmp.Diff(strings.ReplaceAll(detail, k.tenant, other), b.refused(t, 404, api.CodeTenantNotFound).Detail); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", path, diff)
		}
	}
	// It is also what a tenant without records says of itself to its own.
	nobody := storagetest.Tenant(t)
	theirs, _ := k.key(t, api.RoleAdmin, ofTenant(nobody))
	if got, want := k.as(t, theirs, "GET", "/v1/tenants/"+nobody, "").refused(t, 404, api.CodeTenantNotFound).Detail,
		k.as(t, foreign, "GET", "/v1/tenants/"+nobody, "").refused(t, 404, api.CodeTenantNotFound).Detail; got != want {
		t.Errorf("key of the tenant itself: got detail %q, want %q as for others", got, want)
	}
}

func TestPreflightsNeedNoKey(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.publish(t, "payments", "hello", `{"cors":{"allow_origins":["https://shop.example"],"allow_headers":["authorization"]}}`)
	page := []string{"Origin", "https://shop.example"}
	a := k.as(t, "", "OPTIONS", k.endpoint("payments", "hello", "prod"), "", append(page, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")...)
	if a.status != 204 || a.header.Get("Access-Control-Allow-Headers") != "authorization" {
		t.Errorf("OPTIONS: got %d %v, want status 204 and Access-Control-Allow-Headers \"authorization\"", a.status, a.header)
	}
	// The page may read that it needs a key.
	refusal := k.as(t, "", "POST", k.endpoint("payments", "hello", "prod"), "", page...)
	refusal.refused(t, 401, api.CodeAuthnRequired)
	if got := refusal.header.Get("Access-Control-Allow-Origin"); got != "https://shop.example" {
		t.Errorf("Access-Control-Allow-Origin %q, want \"https://shop.example\"", got)
	}
	invoker, _ := k.key(t, api.RoleInvoker)
	if a := k.as(t, invoker, "POST", k.endpoint("payments", "hello", "prod"), "", page...); a.status != 200 {
		t.Errorf("with a key: %d %s, want status 200", a.status, a.body)
	}
	// Pages of other sites have no keys of their own to misuse: any Host and any
	// origin may ask.
	ok[any](t, k.as(t, invoker, "GET", "/v1/limits", "", "Host", "sous.example", "Origin", "https://shop.example", "Sec-Fetch-Site", "cross-site"), 200)
	if a := k.as(t, invoker, "POST", k.fn(":invoke"), `{"ref":{"alias":"prod"}}`, "Host", "sous.example", "Origin", "https://shop.example", "Sec-Fetch-Site", "cross-site"); a.status != 200 {
		t.Errorf("from a page: %d %s, want status 200", a.status, a.body)
	}
}

func TestPrincipals(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.publish(t, "payments", "hello", `{}`)
	k.publish(t, "payments", "public", `{"authz":{"invoke_http_roles":["*"]}}`)
	key, record := k.key(t, "", withRoles("invoker", "role:billing"))
	who := api.Principal{Sub: record.ID, Roles: []string{"invoker", "role:billing"}}
	for name, tc := range map[string]struct {
		method, path, body string
		want               api.Principal
		access             api.Access
	}{
		"web":    {"POST", k.endpoint("payments", "hello", "prod"), "x", who, api.AccessGranted},
		"invoke": {"POST", k.fn(":invoke"), `{"ref":{"alias":"prod"}}`, who, api.AccessGranted},
		"public": {"POST", k.endpoint("payments", "public", "prod"), "x", api.Principal{Sub: "anonymous", Roles: []string{}}, api.AccessPublic},
	} {
		if a := k.as(t, key, tc.method, tc.path, tc.body); a.status != 200 {
			t.Fatalf("%s: got %d %s, want status 200", name, a.status, a.body)
		}
		inv := k.engine.last(t)
		if diff := cmp.Diff(tc.want, inv.Principal); diff != "" || inv.Access != tc.access {
			t.Errorf("%s: %v: (-want +got):\n%s", name, inv.Access, diff)
		}
	}
}

// A function that sees a key of the platform could use it.
func TestFunctionsSeeNoKeys(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.publish(t, "payments", "hello", `{"authz":{"invoke_http_roles":["*"]}}`)
	key, _ := k.key(t, api.RoleInvoker)
	lost := k.lost(t)
	for name, tc := range map[string]struct {
		headers []string
		want    any // of headers.authorization
	}{
		"none":                     {nil, nil},
		"a key":                    {[]string{"Bearer " + key}, nil},
		"a key that is none":       {[]string{"Bearer " + lost}, nil},
		"lower case":               {[]string{"bearer " + key}, nil},
		"upper case":               {[]string{"BEARER " + key}, nil},
		"blanks":                   {[]string{"  Bearer   \t " + key + "  "}, nil},
		"no scheme":                {[]string{key}, nil},
		"another scheme":           {[]string{"Token " + key}, nil},
		"a parameter":              {[]string{`Key id="` + key + `", a=b`}, nil},
		"twice":                    {[]string{"Bearer " + key, "Bearer " + lost}, nil},
		"beside a token":           {[]string{"Bearer theirs", "Bearer " + key}, "Bearer theirs"},
		"their own token":          {[]string{"Bearer eyJhbGciOi.x.y"}, "Bearer eyJhbGciOi.x.y"},
		"their own, of our mark":   {[]string{"Bearer sous_mine"}, "Bearer sous_mine"},
		"a password":               {[]string{"Basic c291cw=="}, "Basic c291cw=="},
		"two tokens of their own":  {[]string{"Bearer a", "Basic b"}, "Bearer a,Basic b"},
		"an empty one":             {[]string{""}, ""},
		"cut, and so no key to us": {[]string{"Bearer " + key[:20]}, "Bearer " + key[:20]},
	} {
		t.Run(name, func(t *testing.T) {
			head := "GET " + k.endpoint("payments", "hello", "prod") + " HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 10.0.0.1\r\n"
			for _, value := range tc.headers {
				head += "Authorization: " + value + "\r\n"
			}
			if response := k.raw(t, head+"\r\n"); response.StatusCode != http.StatusOK {
				t.Fatalf("status %d, want status 200", response.StatusCode)
			}
			raw := k.engine.last(t).Event
			k.holdsNone(t, "the event", string(raw))
			var event struct{ Headers map[string]any }
			if err := json.Unmarshal(raw, &event); err != nil {
				t.Fatalf("Unmarshal: %v", err)
			}
			if got := event.Headers["authorization"]; got != tc.want {
				t.Errorf("authorization %v, want %v", got, tc.want)
			}
			if event.Headers["x-forwarded-for"] != "10.0.0.1" {
				t.Errorf("got event headers %v, want x-forwarded-for 10.0.0.1", event.Headers)
			}
		})
	}
}

// A key that is malformed in any way is none, and two are not one.
func TestWhatIsAKey(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	key, _ := k.key(t, api.RoleViewer)
	for name, tc := range map[string]struct {
		headers []string
		status  int
		code    api.Code
	}{
		"a key":             {[]string{"Bearer " + key}, 200, ""},
		"lower case":        {[]string{"bearer " + key}, 200, ""},
		"blanks":            {[]string{" Bearer  " + key + " "}, 200, ""},
		"none":              {nil, 401, api.CodeAuthnRequired},
		"an empty header":   {[]string{""}, 401, api.CodeAuthnRequired},
		"another scheme":    {[]string{"Basic " + key}, 401, api.CodeAuthnRequired},
		"no scheme":         {[]string{key}, 401, api.CodeAuthnRequired},
		"no token":          {[]string{"Bearer"}, 401, api.CodeAuthnInvalid},
		"no key":            {[]string{"Bearer key_01ARZ3NDEKTSV4RRFFQ69G5FAV"}, 401, api.CodeAuthnInvalid},
		"two tokens":        {[]string{"Bearer " + key + " " + key}, 401, api.CodeAuthnInvalid},
		"two headers":       {[]string{"Bearer " + key, "Bearer " + key}, 401, api.CodeAuthnInvalid},
		"one of two":        {[]string{"Basic x", "Bearer " + key}, 401, api.CodeAuthnInvalid},
		"in another case":   {[]string{"Bearer " + strings.ToUpper(key)}, 401, api.CodeAuthnInvalid},
		"with a tail":       {[]string{"Bearer " + key + "A"}, 401, api.CodeAuthnInvalid},
		"its digest":        {[]string{"Bearer " + api.KeyDigest(key)}, 401, api.CodeAuthnInvalid},
		"an empty password": {[]string{"Bearer "}, 401, api.CodeAuthnInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, err := http.NewRequestWithContext(t.Context(), "GET", k.URL+"/v1/limits", nil)
			if err != nil {
				t.Fatalf("NewRequestWithContext: %v", err)
			}
			request.Header["Authorization"] = tc.headers
			judge(t, name, k.send(t, request), tc.status, tc.code)
		})
	}
}
