package controlplane_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// snapshot is all that the store holds of the harness's tenant, but for the audit and the refusals,
// which keep what was refused.
func (h *harness) snapshot(t *testing.T, client *redis.Client) map[string]string {
	t.Helper()
	kept := map[string]string{}
	for _, key := range storagetest.Keys(t, client, "*"+h.tenant+"*") {
		if !strings.HasPrefix(key, "cs:audit:") && !strings.HasPrefix(key, "cs:refusals:") {
			kept[key] = storagetest.Contents(t, client, key)
		}
	}
	return kept
}

// oversized is a body of JSON that exceeds n bytes.
func oversized(n int) string { return `{"x":"` + strings.Repeat("a", n) + `"}` }

// TestBadInputIsRefusedAndChangesNothing holds every kind of bad input to its
// code, and the store to what it was.
func TestBadInputIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	h := startOn(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	defer client.Close()

	h.engine.check = func(_, _ string, tar []byte) error {
		if bytes.Contains(tar, []byte("syntax error")) {
			return api.Errorf(api.CodeValidationSource, "function.js:3:7: unexpected token").
				WithFields(api.FieldError{Path: "function.js", Message: "unexpected token", Line: 3, Column: 7})
		}
		return nil
	}
	h.create(t)
	h.deploy(t, "export default () => 1", "")
	consumed := h.upload(t, "export default () => 2")
	ok[any](t, h.call(t, "POST", h.fn("/versions"), `{"draft_id":"`+consumed.DraftID+`"}`), http.StatusCreated)
	broken := h.upload(t, "syntax error")
	good := h.upload(t, "export default () => 3")
	badManifest := ok[api.DraftReceipt](t, h.call(t, "PUT", h.fn("/draft"), `{"files":{"function.js":"","manifest.json":"`+
		base64.StdEncoding.EncodeToString([]byte(`{"limits":{"timeoutMs":"soon"}}`))+`"}}`), http.StatusOK)
	noEntry := ok[api.DraftReceipt](t, h.call(t, "PUT", h.fn("/draft"), `{"files":{"lib.js":""}}`), http.StatusOK)
	expired := api.NewDraftID(time.Now().Add(-25 * time.Hour).UnixMilli())
	unknown := api.NewDraftID(time.Now().UnixMilli())

	functions := strings.TrimSuffix(h.fn(""), "/hello")
	tenant := "/v1/tenants/" + h.tenant
	activation := tenant + "/activations/" + activationID
	lostKey, _, err := api.NewKeySecret(1, rand.Reader) // a key in a place where it does not belong
	if err != nil {
		t.Fatalf("NewKeySecret: %v", err)
	}
	publish := func(draft, rest string) string { return `{"draft_id":"` + draft + `"` + rest + `}` }
	tar := func(files map[string][]byte) string {
		packed, err := bundle.Pack(files)
		if err != nil {
			t.Fatalf("Pack: %v", err)
		}
		return string(packed)
	}
	const json, tarType = "application/json", "application/x-tar"
	type row struct {
		name, method, path, contentType, body string
		status                                int
		code                                  api.Code
		field                                 string // the path of the first entry of errors, "" for any
	}
	rows := []row{
		// Names out of their patterns, wherever a name can stand.
		{"tenant", "GET", "/v1/tenants/abc/namespaces", json, ``, 400, api.CodeValidationName, "tenant"},
		{"tenant in upper case", "GET", "/v1/tenants/T_ABCDEF", json, ``, 400, api.CodeValidationName, "tenant"},
		{"namespace", "GET", tenant + "/namespaces/P/functions", json, ``, 400, api.CodeValidationName, "namespace"},
		{"function in the path", "GET", functions + "/Hello", json, ``, 400, api.CodeValidationName, "function"},
		{"function with a slash", "GET", functions + "/a%2Fb", json, ``, 400, api.CodeValidationName, "function"},
		{"function with a brace", "GET", functions + "/a%7Bb%7D", json, ``, 400, api.CodeValidationName, "function"},
		{"function in the body", "POST", functions, json, `{"name":"X"}`, 400, api.CodeValidationName, "name"},
		{"alias in the path", "PUT", h.fn("/aliases/9"), json, `{"version":1}`, 400, api.CodeValidationName, "alias"},
		{"alias at publish", "POST", h.fn("/versions"), json, publish(good.DraftID, `,"alias":"A"`), 400, api.CodeValidationName, "alias"},
		{"alias at invoke", "POST", h.fn(":invoke"), json, `{"ref":{"alias":"A"}}`, 400, api.CodeValidationName, "alias"},
		{"alias under web", "POST", "/v1/web/" + h.tenant + "/payments/hello/A", json, ``, 400, api.CodeValidationName, "alias"},
		{"tenant under web", "GET", "/v1/web/missing/payments/hello/prod", json, ``, 400, api.CodeValidationName, "tenant"},
		{"version", "GET", h.fn("/versions/0"), json, ``, 400, api.CodeValidationName, "version"},
		{"version with a sign", "GET", h.fn("/versions/+1/bundle"), json, ``, 400, api.CodeValidationName, "version"},
		{"version under web", "GET", "/v1/web/" + h.tenant + "/payments/hello/01/", json, ``, 400, api.CodeValidationName, "version"},
		{"activation id", "GET", tenant + "/activations/1", json, ``, 400, api.CodeValidationName, "activation_id"},
		{"activation id of a log", "GET", tenant + "/activations/1/logs", json, ``, 400, api.CodeValidationName, "activation_id"},
		{"draft id", "POST", h.fn("/versions"), json, publish("drf_1", ""), 400, api.CodeValidationName, "draft_id"},

		// Unknown fields, with their path.
		{"unknown field of a function", "POST", functions, json, `{"name":"other","colour":"red"}`, 422, api.CodeInvalid, "colour"},
		{"unknown field of a draft", "PUT", h.fn("/draft"), json, `{"files":{"function.js":""},"x":1}`, 422, api.CodeInvalid, "x"},
		{"unknown field of a publish", "POST", h.fn("/versions"), json, publish(good.DraftID, `,"x":1`), 422, api.CodeInvalid, "x"},
		{"unknown field of a config", "POST", h.fn("/versions"), json, publish(good.DraftID, `,"config":{"timeoutMs":1}`), 422, api.CodeInvalid, "config.timeoutMs"},
		{"unknown field of an alias", "PUT", h.fn("/aliases/prod"), json, `{"version":1,"x":1}`, 422, api.CodeInvalid, "x"},
		{"unknown field of an invoke", "POST", h.fn(":invoke"), json, `{"ref":{"alias":"prod"},"x":1}`, 422, api.CodeInvalid, "x"},
		{"unknown field of a ref", "POST", h.fn(":invoke"), json, `{"ref":{"alias":"prod","tag":1}}`, 422, api.CodeInvalid, "ref.tag"},

		// Fields that are missing, of another type, or out of their range.
		{"no name", "POST", functions, json, `{}`, 422, api.CodeInvalid, "name"},
		{"name of another type", "POST", functions, json, `{"name":1}`, 422, api.CodeInvalid, "name"},
		{"runtime", "POST", functions, json, `{"name":"other","runtime":"node"}`, 422, api.CodeInvalid, "runtime"},
		{"entry above the bundle", "POST", functions, json, `{"name":"other","entry":"../x.js"}`, 422, api.CodeInvalid, "entry"},
		{"absolute entry", "POST", functions, json, `{"name":"other","entry":"/x.js"}`, 422, api.CodeInvalid, "entry"},
		{"no version", "PUT", h.fn("/aliases/prod"), json, `{}`, 422, api.CodeInvalid, "version"},
		{"handler", "POST", functions, json, `{"name":"other","handler":"a-b"}`, 422, api.CodeInvalid, "handler"},
		{"description", "POST", functions, json, `{"name":"other","description":"` + strings.Repeat("x", 1025) + `"}`, 422, api.CodeInvalid, "description"},
		{"labels", "POST", functions, json, `{"name":"other","labels":{"a":"` + strings.Repeat("x", 129) + `"}}`, 422, api.CodeInvalid, "labels"},
		{"no ref", "POST", h.fn(":invoke"), json, `{"event":1}`, 422, api.CodeInvalid, "ref"},
		{"alias and version", "POST", h.fn(":invoke"), json, `{"ref":{"alias":"prod","version":1}}`, 422, api.CodeInvalid, "ref"},
		{"version of another type", "POST", h.fn(":invoke"), json, `{"ref":{"version":"1"}}`, 422, api.CodeInvalid, "ref.version"},
		{"unknown mode", "POST", h.fn(":invoke"), json, `{"ref":{"alias":"prod"},"mode":"soon"}`, 422, api.CodeInvalid, "mode"},
		{"config out of range", "POST", h.fn("/versions"), json, publish(good.DraftID, `,"config":{"timeout_ms":900001}`), 422, api.CodeInvalid, "config.timeout_ms"},
		{"unknown query parameter", "GET", functions + "?statee=dead", json, ``, 422, api.CodeInvalid, "statee"},
		{"unknown query parameter of a raw route", "GET", activation + "/logs?folow=true", json, ``, 422, api.CodeInvalid, "folow"},
		{"limit of a page", "GET", functions + "?limit=501", json, ``, 422, api.CodeInvalid, "limit"},
		{"limit that is no number", "GET", functions + "?limit=all", json, ``, 422, api.CodeInvalid, "limit"},
		{"limit of a log", "GET", activation + "/logs?limit=0", json, ``, 422, api.CodeInvalid, "limit"},
		{"unknown status", "GET", tenant + "/activations?namespace=payments&function=hello&status=late", json, ``, 422, api.CodeInvalid, "status"},

		// Bodies that are not JSON, or that have trailing data.
		{"function not JSON", "POST", functions, json, `{"name":`, 400, api.CodeValidationJSON, ""},
		{"no body", "POST", functions, json, ``, 400, api.CodeValidationJSON, ""},
		{"trailing garbage", "POST", functions, json, `{"name":"other"} x`, 400, api.CodeValidationJSON, ""},
		{"event not JSON", "POST", h.fn(":invoke"), json, `{"ref":{"alias":"prod"},"event":{a:1}}`, 400, api.CodeValidationJSON, ""},
		{"invoke not UTF-8", "POST", h.fn(":invoke"), json, "{\"ref\":{\"alias\":\"prod\"},\"event\":\"\xff\"}", 400, api.CodeValidationJSON, ""},
		{"invoke with trailing garbage", "POST", h.fn(":invoke"), json, `{"ref":{"alias":"prod"}}{}`, 400, api.CodeValidationJSON, ""},
		{"invoke without a body", "POST", h.fn(":invoke"), json, ``, 400, api.CodeValidationJSON, ""},
		{"draft not JSON", "PUT", h.fn("/draft"), json, `{`, 400, api.CodeValidationJSON, ""},
		{"another type of body", "POST", functions, "text/plain", `{"name":"other"}`, 415, api.CodeMediaType, ""},
		{"another type of draft", "PUT", h.fn("/draft"), "application/zip", `PK`, 415, api.CodeMediaType, ""},

		// Drafts that cannot be.
		{"draft of no file", "PUT", h.fn("/draft"), json, `{"files":{}}`, 422, api.CodeValidationBundle, ""},
		{"draft outside its folder", "PUT", h.fn("/draft"), json, `{"files":{"../a.js":""}}`, 422, api.CodeValidationBundle, "../a.js"},
		{"draft not in base64", "PUT", h.fn("/draft"), json, `{"files":{"function.js":"%%"}}`, 422, api.CodeInvalid, "files.function.js"},
		{"draft that is no text", "PUT", h.fn("/draft"), json, `{"files":{"function.js":"//79"}}`, 422, api.CodeValidationBundle, "function.js"},
		{"tar that is none", "PUT", h.fn("/draft"), tarType, `hello`, 422, api.CodeValidationBundle, ""},
		{"draft of no function", "PUT", functions + "/missing/draft", json, `{"files":{"function.js":""}}`, 404, api.CodeFunctionNotFound, ""},
		{"tar of no function", "PUT", functions + "/missing/draft", tarType, tar(map[string][]byte{"function.js": nil}), 404, api.CodeFunctionNotFound, ""},
		{"bundle over 16 MiB", "PUT", h.fn("/draft"), json, `{"files":{"function.js":"` + strings.Repeat("YWFh", api.MaxBundleBytes/3+1) + `"}}`, 413, api.CodeBodyLimit, ""},
		{"draft over 24 MiB", "PUT", h.fn("/draft"), json, oversized(api.MaxDraftJSONBytes), 413, api.CodeBodyLimit, ""},
		{"tar over 16 MiB", "PUT", h.fn("/draft"), tarType, oversized(api.MaxBundleBytes), 413, api.CodeBodyLimit, ""},

		// Publishes that cannot be.
		{"draft expired", "POST", h.fn("/versions"), json, publish(expired, ""), 404, api.CodeDraftExpired, ""},
		{"draft consumed", "POST", h.fn("/versions"), json, publish(consumed.DraftID, ""), 409, api.CodeDraftConsumed, ""},
		{"draft that never was", "POST", h.fn("/versions"), json, publish(unknown, ""), 404, api.CodeDraftNotFound, ""},
		{"draft of no function", "POST", functions + "/missing/versions", json, publish(good.DraftID, ""), 404, api.CodeFunctionNotFound, ""},
		{"syntax error", "POST", h.fn("/versions"), json, publish(broken.DraftID, `,"alias":"prod"`), 422, api.CodeValidationSource, "function.js"},
		{"manifest out of its schema", "POST", h.fn("/versions"), json, publish(badManifest.DraftID, ""), 422, api.CodeValidationManifest, "limits.timeoutMs"},
		{"no entry", "POST", h.fn("/versions"), json, publish(noEntry.DraftID, ""), 422, api.CodeValidationBundle, "function.js"},

		// Names of nothing.
		{"function that exists", "POST", functions, json, `{"name":"hello"}`, 409, api.CodeFunctionExists, ""},
		{"no function", "GET", functions + "/missing", json, ``, 404, api.CodeFunctionNotFound, ""},
		{"delete of no function", "DELETE", functions + "/missing", json, ``, 404, api.CodeFunctionNotFound, ""},
		{"versions of no function", "GET", functions + "/missing/versions", json, ``, 404, api.CodeFunctionNotFound, ""},
		{"aliases of no function", "GET", functions + "/missing/aliases", json, ``, 404, api.CodeFunctionNotFound, ""},
		{"no version", "GET", h.fn("/versions/99"), json, ``, 404, api.CodeVersionNotFound, ""},
		{"bundle of no version", "GET", h.fn("/versions/99/bundle"), json, ``, 404, api.CodeVersionNotFound, ""},
		{"no alias", "GET", h.fn("/aliases/beta"), json, ``, 404, api.CodeAliasNotFound, ""},
		{"delete of no alias", "DELETE", h.fn("/aliases/beta"), json, ``, 404, api.CodeAliasNotFound, ""},
		{"alias to no version", "PUT", h.fn("/aliases/prod"), json, `{"version":99}`, 404, api.CodeVersionNotFound, ""},
		{"alias to version 0", "PUT", h.fn("/aliases/prod"), json, `{"version":0}`, 422, api.CodeInvalid, "version"},
		{"no activation", "GET", activation, json, ``, 404, api.CodeActivationNotFound, ""},
		{"log of no activation", "GET", activation + "/logs", json, ``, 404, api.CodeActivationNotFound, ""},
		{"stream of no activation", "GET", activation + "/logs?follow=true", json, ``, 404, api.CodeActivationNotFound, ""},
		{"no tenant", "GET", "/v1/tenants/t_nobody00", json, ``, 404, api.CodeTenantNotFound, ""},
		{"namespaces of no tenant", "GET", "/v1/tenants/t_nobody00/namespaces", json, ``, 404, api.CodeTenantNotFound, ""},
		{"no route", "GET", "/v2/anything", json, ``, 404, api.CodeRouteNotFound, ""},
		{"no endpoint", "GET", "/v1/web/" + h.tenant + "/payments", json, ``, 404, api.CodeRouteNotFound, ""},
		{"another method", "PATCH", h.fn(""), json, ``, 405, api.CodeMethodNotAllowed, ""},
		{"another method of invoke", "GET", h.fn(":invoke"), json, ``, 400, api.CodeValidationName, "function"},
		{"another method of a draft", "GET", h.fn("/draft"), json, ``, 405, api.CodeMethodNotAllowed, ""},

		// Invalid keys, and keys that do not exist.
		{"key without a name", "POST", tenant + "/keys", json, `{"roles":["viewer"]}`, 422, api.CodeInvalid, "name"},
		{"key with an empty name", "POST", tenant + "/keys", json, `{"name":"","roles":["viewer"]}`, 422, api.CodeInvalid, "name"},
		{"key with a long name", "POST", tenant + "/keys", json, `{"name":"` + strings.Repeat("ü", 65) + `","roles":["viewer"]}`, 422, api.CodeInvalid, "name"},
		{"key with a line in its name", "POST", tenant + "/keys", json, `{"name":"a\nb","roles":["viewer"]}`, 422, api.CodeInvalid, "name"},
		{"key named by a key", "POST", tenant + "/keys", json, `{"name":"` + lostKey + `","roles":["viewer"]}`, 422, api.CodeInvalid, "name"},
		{"key without roles", "POST", tenant + "/keys", json, `{"name":"ci"}`, 422, api.CodeInvalid, "roles"},
		{"key with no role", "POST", tenant + "/keys", json, `{"name":"ci","roles":[]}`, 422, api.CodeInvalid, "roles"},
		{"key with null roles", "POST", tenant + "/keys", json, `{"name":"ci","roles":null}`, 422, api.CodeInvalid, "roles"},
		{"key with 17 roles", "POST", tenant + "/keys", json, `{"name":"ci","roles":["viewer"` + strings.Repeat(`,"viewer"`, 16) + `]}`, 422, api.CodeInvalid, "roles"},
		{"key with a role twice", "POST", tenant + "/keys", json, `{"name":"ci","roles":["viewer","viewer"]}`, 422, api.CodeInvalid, "roles"},
		{"key with an unknown role", "POST", tenant + "/keys", json, `{"name":"ci","roles":["root"]}`, 422, api.CodeInvalid, "roles"},
		{"key with the namespace of none", "POST", tenant + "/keys", json, `{"name":"ci","roles":["viewer"],"namespace":"P"}`, 400, api.CodeValidationName, "namespace"},
		{"key that has expired", "POST", tenant + "/keys", json, `{"name":"ci","roles":["viewer"],"expires_at_ms":1000}`, 422, api.CodeInvalid, "expires_at_ms"},
		{"key of a time before time", "POST", tenant + "/keys", json, `{"name":"ci","roles":["viewer"],"expires_at_ms":-1}`, 422, api.CodeInvalid, "expires_at_ms"},
		{"key of a tenant's own making", "POST", tenant + "/keys", json, `{"name":"ci","roles":["viewer"],"tenant":"*"}`, 422, api.CodeInvalid, "tenant"},
		{"key of all tenants", "POST", "/v1/tenants/*/keys", json, `{"name":"ci","roles":["viewer"]}`, 400, api.CodeValidationName, "tenant"},
		{"key's id", "GET", tenant + "/keys/1", json, ``, 400, api.CodeValidationName, "key"},
		{"key for its id", "DELETE", tenant + "/keys/" + lostKey, json, ``, 400, api.CodeValidationName, "key"},
		{"no key", "GET", tenant + "/keys/key_01ARZ3NDEKTSV4RRFFQ69G5FAV", json, ``, 404, api.CodeKeyNotFound, ""},
		{"revocation of no key", "DELETE", tenant + "/keys/key_01ARZ3NDEKTSV4RRFFQ69G5FAV", json, ``, 404, api.CodeKeyNotFound, ""},
		{"cursor of audit", "GET", tenant + "/audit?cursor=AAAAAAAAAAAx", json, ``, 400, api.CodeValidationCursor, "cursor"},
		{"cursor of keys", "GET", tenant + "/keys?cursor=AAAAAAAAAAAx", json, ``, 400, api.CodeValidationCursor, "cursor"},

		// Cursors of other lists, and none.
		{"cursor that is none", "GET", functions + "?cursor=abc", json, ``, 400, api.CodeValidationCursor, "cursor"},
		{"cursor not in base64", "GET", functions + "?cursor=%25", json, ``, 400, api.CodeValidationCursor, "cursor"},
		{"cursor of versions", "GET", h.fn("/versions?cursor=AAAAAAAAAAAx"), json, ``, 400, api.CodeValidationCursor, "cursor"},
		{"cursor of a log", "GET", activation + "/logs?cursor=AAAAAAAAAAAx", json, ``, 400, api.CodeValidationCursor, "cursor"},

		// Bodies over their route's limit.
		{"function over 1 MiB", "POST", functions, json, oversized(api.MaxRequestBytes), 413, api.CodeBodyLimit, ""},
		{"publish over 1 MiB", "POST", h.fn("/versions"), json, oversized(api.MaxRequestBytes), 413, api.CodeBodyLimit, ""},
		{"alias over 1 MiB", "PUT", h.fn("/aliases/prod"), json, oversized(api.MaxRequestBytes), 413, api.CodeBodyLimit, ""},
		{"invoke over 6 MiB", "POST", h.fn(":invoke"), json, oversized(api.MaxEventBytes), 413, api.CodeBodyLimit, ""},
		{"web over 6 MiB", "POST", h.web("/"), json, oversized(api.MaxEventBytes), 413, api.CodeBodyLimit, ""},
		{"query over 16 KiB", "GET", h.web("/?" + strings.Repeat("q", api.MaxQueryBytes+1)), json, ``, 414, api.CodeQueryLimit, ""},
	}
	before := h.snapshot(t, client)
	invoked := h.engine.count()
	for _, tc := range rows {
		t.Run(tc.name, func(t *testing.T) {
			a := h.call(t, tc.method, tc.path, tc.body, "Content-Type", tc.contentType)
			p := a.refused(t, tc.status, tc.code)
			if strings.Contains(string(a.body), lostKey) {
				t.Errorf("got a key in the answer %s, want none", a.body)
			}
			if tc.field != "" && (len(p.Errors) == 0 || p.Errors[0].Path != tc.field) {
				t.Errorf("errors %+v, want the first at %q", p.Errors, tc.field)
			}
		})
	}
	if diff := cmp.Diff(before, h.snapshot(t, client)); diff != "" {
		t.Errorf("the store changed: (-want +got):\n%s", diff)
	}
	if h.engine.count() != invoked {
		t.Errorf("got %d further invocations of the engine, want none", h.engine.count()-invoked)
	}
}

func TestSyntaxErrorsSayWhere(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.engine.check = func(string, string, []byte) error {
		return api.Errorf(api.CodeValidationSource, "x").
			WithFields(api.FieldError{Path: "lib/a.ts", Message: "unexpected token", Line: 3, Column: 7})
	}
	h.create(t)
	draft := h.upload(t, "(")
	p := h.call(t, "POST", h.fn("/versions"), `{"draft_id":"`+draft.DraftID+`"}`).refused(t, 422, api.CodeValidationSource)
	want := []api.FieldError{{Path: "lib/a.ts", Message: "unexpected token", Line: 3, Column: 7}}
	if diff := cmp.Diff(want, p.Errors); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeadersOverTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, path := range []string{h.web("/"), "/healthz"} {
		h.call(t, "GET", path, "", "X-Long", strings.Repeat("x", api.MaxHeaderBytes)).refused(t, 431, api.CodeHeaderLimit)
	}
	// Beyond four times the limit net/http answers by itself.
	response := h.raw(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: "+strings.Repeat("x", 5*api.MaxHeaderBytes)+"\r\n\r\n")
	if response.StatusCode != 431 {
		t.Errorf("got %d, want status 431", response.StatusCode)
	}
}

func TestIdempotencyKeyIsBounded(t *testing.T) {
	t.Parallel()
	h := start(t)
	long := strings.Repeat("k", 256)
	h.call(t, "POST", h.fn(":invoke"), `{"ref":{"version":1}}`, "Idempotency-Key", long).refused(t, 422, api.CodeInvalid)
	h.call(t, "POST", h.web("/"), ``, "Idempotency-Key", long).refused(t, 422, api.CodeInvalid)
	if h.engine.count() != 0 {
		t.Error("the engine was asked")
	}
	h.call(t, "POST", h.fn(":invoke"), `{"ref":{"version":1}}`, "Idempotency-Key", long[:255])
	if got := h.engine.last(t).IdempotencyKey; got != long[:255] {
		t.Errorf("got key %q, want the first 255 bytes of %q", got, long)
	}
}

func TestMethodNotAllowedNamesTheMethods(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.call(t, "PATCH", h.fn("/aliases/prod"), "")
	a.refused(t, 405, api.CodeMethodNotAllowed)
	if diff := cmp.Diff([]string{"GET, HEAD, PUT, DELETE"}, a.header.Values("Allow")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
