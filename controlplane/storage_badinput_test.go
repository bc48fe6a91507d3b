package controlplane_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestBadDocumentsAreRefusedAndChangeNothing holds every kind of bad input of the document
// storage's routes to its code, and the store to what it was.
func TestBadDocumentsAreRefusedAndChangeNothing(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	h := startOn(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	ok[api.Document](t, h.call(t, "PUT", h.record("a"), `{"value":1}`), 200)
	ok[api.Document](t, h.call(t, "PUT", h.record("b"), `{"value":1}`), 200)
	for i := range api.MaxDocumentNamespaces {
		ok[api.Document](t, h.call(t, "POST", h.at("T/installs/full/storage/put"), fmt.Sprintf(`{"namespace":"n%d","key":"a","value":1}`, i)), 200)
	}
	const (
		put, list, settings = "T/installs/crm/storage/put", "T/installs/crm/storage/list", "T/installs/crm/storage/namespaces/settings"
		records             = settings + "/records"
		failed              = api.CodeDocumentInvalid
	)
	long := strings.Repeat("x", 65)
	rows := []struct {
		name, method, path, body string
		status                   int
		code                     api.Code
		field                    string
	}{
		{"no install's name", "POST", "T/installs/a%20b/storage/put", `{"namespace":"s","key":"a","value":1}`, 400, failed, "install"},
		{"a long install", "POST", "T/installs/" + long + "/storage/put", `{"namespace":"s","key":"a","value":1}`, 400, failed, "install"},
		{"half a function's install", "POST", "T/installs/fn.payments/storage/put", `{"namespace":"s","key":"a","value":1}`, 400, failed, "install"},
		{"no tenant's name", "POST", "/v1/tenants/acme/installs/crm/storage/put", `{"namespace":"s","key":"a","value":1}`, 400, failed, "tenant"},
		{"no namespace's name", "GET", "T/installs/crm/storage/namespaces/S/records", ``, 400, failed, "namespace"},
		{"a namespace with a colon", "PUT", "T/installs/crm/storage/namespaces/a:b/records/k", `{"value":1}`, 400, failed, "namespace"},
		{"one namespace too many", "POST", "T/installs/full/storage/put", `{"namespace":"more","key":"a","value":1}`, 400, failed, "namespace"},
		{"one too many for a schema", "PUT", "T/installs/full/storage/namespaces/more/schema", `true`, 400, failed, "namespace"},

		{"no body", "POST", put, ``, 400, failed, ""},
		{"not JSON", "POST", put, `{"namespace":`, 400, failed, ""},
		{"not UTF-8", "POST", put, "{\"namespace\":\"s\",\"key\":\"\xff\",\"value\":1}", 400, failed, ""},
		{"a list", "POST", put, `[]`, 400, failed, ""},
		{"null", "POST", put, `null`, 400, failed, ""},
		{"two values", "POST", put, `{"namespace":"s","key":"a","value":1} {}`, 400, failed, ""},
		{"unknown field", "POST", put, `{"namespace":"s","key":"a","value":1,"ttl":60}`, 400, failed, "ttl"},
		{"a key of another type", "POST", put, `{"namespace":"s","key":1,"value":1}`, 400, failed, "key"},
		{"a number for a list", "POST", "T/installs/crm/storage/bulkPut", `{"namespace":"s","items":1}`, 400, failed, "items"},
		{"an unknown field of an item", "POST", "T/installs/crm/storage/bulkPut", `{"namespace":"s","items":[{"key":"a","value":1,"x":1}]}`, 400, failed, "x"},
		{"a revision beyond 64 bits", "POST", put, `{"namespace":"s","key":"a","value":1,"ifRevision":9223372036854775808}`, 400, failed, "ifRevision"},
		{"a time to live beyond 64 bits", "POST", put, `{"namespace":"s","key":"a","value":1,"ttlSeconds":1e30}`, 400, failed, "ttlSeconds"},
		{"a body over 1 MiB", "POST", put, oversized(api.MaxRequestBytes), 413, api.CodeBodyLimit, ""},
		{"a record over 1 MiB", "PUT", records + "/a", oversized(api.MaxRequestBytes), 413, api.CodeBodyLimit, ""},
		{"a schema over 1 MiB", "PUT", settings + "/schema", oversized(api.MaxRequestBytes), 413, api.CodeBodyLimit, ""},
		{"a record with its key", "PUT", records + "/a", `{"key":"a","value":1}`, 400, failed, "key"},
		{"a record without a value", "PUT", records + "/a", `{}`, 400, failed, "value"},
		{"no operation", "POST", "T/installs/crm/storage/erase", `{}`, 404, api.CodeRouteNotFound, ""},
		{"another method", "PATCH", records + "/a", `{}`, 405, api.CodeMethodNotAllowed, ""},

		{"limit of a list", "GET", records + "?limit=101", ``, 400, failed, "limit"},
		{"limit of none", "GET", records + "?limit=0", ``, 400, failed, "limit"},
		{"no limit", "GET", records + "?limit=x", ``, 400, failed, "limit"},
		{"neither true nor false", "GET", records + "?includeValues=perhaps", ``, 400, failed, "includeValues"},
		{"prefix with a slash", "GET", records + "?prefix=a%2F", ``, 400, failed, "keyPrefix"},
		{"a member twice", "GET", records + "?metadata.a=1&metadata.a=2", ``, 400, failed, "metadata.a"},
		{"many members", "GET", records + "?limit=5" + manyMembers(17), ``, 400, failed, "metadata"},
		{"large members", "POST", list, `{"namespace":"settings","metadata":{"a":"` + strings.Repeat("x", 5000) + `"}}`, 400, failed, "metadata"},
		{"a number beyond all", "POST", list, `{"namespace":"settings","metadata":{"a":1e999}}`, 400, failed, "metadata.a"},
		{"cursor in no base64", "GET", records + "?cursor=%25", ``, 400, failed, "cursor"},
		{"cursor of jobs", "GET", records + "?cursor=AAAAAAAAAAAx", ``, 400, failed, "cursor"},
		{"cursor of installs", "GET", "T/installs?cursor=AAAAAAAAAAAx", ``, 400, failed, "cursor"},
		{"limit of installs", "GET", "T/installs?limit=501", ``, 400, failed, "limit"},

		{"since before all", "GET", settings + "/changes?since=-1", ``, 400, failed, "since"},
		{"since of no number", "GET", settings + "/changes?since=x&follow=true", ``, 400, failed, "since"},
		{"limit of changes", "GET", settings + "/changes?limit=501", ``, 400, failed, "limit"},
		{"follow perhaps", "GET", settings + "/changes?follow=perhaps", ``, 400, failed, "follow"},

		{"schema of nothing", "PUT", settings + "/schema", ``, 400, failed, "schema"},
		{"schema over 64 KiB", "PUT", settings + "/schema", `{"x":"` + strings.Repeat("x", 64<<10) + `"}`, 400, failed, "schema"},
		{"schema that fetches", "PUT", settings + "/schema", `{"$ref":"http://example.com/x"}`, 400, failed, "schema.$ref"},
		{"no schema", "GET", settings + "/schema", ``, 404, api.CodeDocumentNotFound, ""},
		{"delete of no schema", "DELETE", settings + "/schema", ``, 404, api.CodeDocumentNotFound, ""},
		{"no namespace", "GET", "T/installs/crm/storage/namespaces/none", ``, 404, api.CodeDocumentNotFound, ""},
		{"delete of no namespace", "DELETE", "T/installs/crm/storage/namespaces/none", ``, 404, api.CodeDocumentNotFound, ""},
		{"no install", "GET", "T/installs/none", ``, 404, api.CodeDocumentNotFound, ""},
		{"delete of no install", "DELETE", "T/installs/none", ``, 404, api.CodeDocumentNotFound, ""},
		{"a function's own install", "PUT", "T/installs/fn.payments.hello", `{}`, 400, failed, "install"},
		{"functions of no form", "PUT", "T/installs/crm", `{"functions":["hello"]}`, 400, failed, "functions[0]"},
		{"an unknown field of an install", "PUT", "T/installs/crm", `{"install":"x"}`, 400, failed, "install"},
	}
	before := h.snapshot(t, client)
	for _, tc := range rows {
		t.Run(tc.name, func(t *testing.T) {
			path, query, has := strings.Cut(tc.path, "?")
			path = h.at(path)
			if strings.HasPrefix(tc.path, "/") {
				path = tc.path
			}
			if has {
				path += "?" + query
			}
			p := h.call(t, tc.method, path, tc.body).refused(t, tc.status, tc.code)
			if tc.field != "" && (len(p.Errors) == 0 || p.Errors[0].Path != tc.field) {
				t.Errorf("errors %+v, want the first at %q", p.Errors, tc.field)
			}
		})
	}
	for name, headers := range map[string][]string{
		"If-Match of no form":      {"If-Match", "3"},
		"If-Match of any":          {"If-Match", "*"},
		"If-Match of a weak tag":   {"If-Match", `W/"3"`},
		"If-None-Match of a tag":   {"If-None-Match", `"1"`},
		"both":                     {"If-None-Match", "*", "If-Match", `"1"`},
		"a revision of no number":  {"If-Match", `"x"`},
		"a revision that is below": {"If-Match", `"0"`},
	} {
		if p := h.call(t, "PUT", h.record("a"), `{"value":9}`, headers...).refused(t, 400, failed); len(p.Errors) == 0 {
			t.Errorf("%s: PUT: got %+v, want at least one error", name, p)
		}
	}
	h.call(t, "PUT", h.record("a"), `{"value":9,"ifRevision":1}`, "If-Match", `"1"`).refused(t, 400, failed)
	h.call(t, "DELETE", h.record("a"), ``, "If-None-Match", "*").refused(t, 400, failed)
	h.call(t, "GET", h.record("a"), ``, "If-Revision-Match", "x").refused(t, 400, failed)
	if diff := cmp.Diff(before, h.snapshot(t, client)); diff != "" {
		t.Errorf("the store changed: (-want +got):\n%s", diff)
	}
}

// manyMembers are parameters of a filter.
func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "&metadata.m%d=1", i)
	}
	return b.String()
}
