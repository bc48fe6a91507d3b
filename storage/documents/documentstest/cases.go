package documentstest

import (
	"fmt"
	"strings"
	"time"

	"github.com/codesous/sous/api"
)

// The codes of the contract, as it writes them. They are texts of their own, not constants of
// package api, so that a changed constant fails the suite.
const (
	mismatch   api.Code = "REVISION_MISMATCH"
	quota      api.Code = "QUOTA_EXCEEDED"
	validation api.Code = "VALIDATION_FAILED"
	notFound   api.Code = "NOT_FOUND"
	bulk       api.Code = "BULK_PARTIAL_FAILURE"
)

// cases returns all cases, in the order of the sections of the contract. Cases of one section
// may share documents: each begins with the state that the ones before it left.
func cases() []testCase {
	var out []testCase
	for _, section := range [][]testCase{hierarchy(), puts(), gets(), lists(), deletes(), bulks(), concurrency(), expiry(), quotas(), transactions()} {
		out = append(out, section...)
	}
	return out
}

// many joins the results of f for 0 to n-1 by commas, as the elements of a JSON list.
func many(n int, f func(int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, ",")
}

// text returns a JSON text of n bytes, its quotes included: the limit of a value counts them.
func text(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

// refused returns a case of one put that fails with VALIDATION_FAILED for a field.
func refused(name, field, body string) testCase {
	return testCase{name: "Resource Hierarchy: " + name, steps: []step{{op: "put", body: body, code: validation, field: field}}}
}

// hierarchy returns the cases for the names of namespaces and keys: their lengths, their
// characters, and that namespaces do not share keys.
func hierarchy() []testCase {
	key := func(key string) string { return fmt.Sprintf(`{"namespace":"names","key":%s,"value":1}`, key) }
	in := func(namespace string) string { return fmt.Sprintf(`{"namespace":%q,"key":"a","value":1}`, namespace) }
	emoji := strings.Repeat("\U0001f600", 128)
	return []testCase{
		{name: "Resource Hierarchy: namespaces of up to 64 characters", steps: []step{
			{op: "put", body: in(strings.Repeat("n", 64)), want: `{"revision":1}`},
			{op: "put", body: in("0-_a"), want: `{"revision":1}`},
		}},
		refused("a namespace of 65 characters", "namespace", in(strings.Repeat("n", 65))),
		refused("a namespace in upper case", "namespace", in("Settings")),
		refused("a namespace that is not a slug", "namespace", in("a/b")),
		refused("a namespace with a colon", "namespace", in("a:b")),
		refused("no namespace", "namespace", in("")),
		{name: "Resource Hierarchy: keys of up to 128 characters of UTF-8", steps: []step{
			{op: "put", body: key(`"` + emoji + `"`), want: `{"revision":1,"key":"` + emoji + `"}`},
			{op: "put", body: key(`"a:b {c} ü\u2028 ."`), want: `{"revision":1}`},
			{op: "get", body: `{"namespace":"names","key":"a:b {c} ü\u2028 ."}`, want: `{"value":1}`},
			{op: "put", body: key(`".."`), want: `{"revision":1}`},
			{op: "get", body: `{"namespace":"names","key":".."}`, want: `{"key":"..","value":1}`},
		}},
		refused("a key of 129 characters", "key", key(`"`+emoji+`x"`)),
		refused("a key with a slash", "key", key(`"a/b"`)),
		refused("a key with a null byte", "key", key(`"a\u0000b"`)),
		refused("a key with a line break", "key", key(`"a\nb"`)),
		refused("an empty key", "key", key(`""`)),
		{name: "Resource Hierarchy: namespaces do not share keys", steps: []step{
			{op: "put", body: `{"namespace":"names","key":"same","value":1}`, want: `{"revision":1}`},
			{op: "put", body: `{"namespace":"names2","key":"same","value":2}`, want: `{"revision":1}`},
			{op: "get", body: `{"namespace":"names","key":"same"}`, want: `{"value":1}`},
		}},
	}
}

// puts returns the cases for put: its answer, values of every kind, the limits of values and
// metadata, and invalid requests.
func puts() []testCase {
	put := func(more string) string { return `{"namespace":"puts","key":"k"` + more + `}` }
	return []testCase{
		{name: "storage.put: the answer", steps: []step{
			{op: "put", body: `{"namespace":"puts","key":"invoice-defaults","value":{"a":[1,"<b>",null]},"metadata":{"contentType":"application/json"},"ttlSeconds":86400}`,
				want: `{"namespace":"puts","key":"invoice-defaults","revision":1,"ttlExpiresAt":"<time+24h>","createdAt":"<time>","updatedAt":"<time>","value":"<absent>","metadata":"<absent>"}`},
			{op: "put", wait: time.Hour, body: `{"namespace":"puts","key":"invoice-defaults","value":2}`, want: `{"revision":2,"ttlExpiresAt":null,"updatedAt":"<time>"}`},
			{op: "get", body: `{"namespace":"puts","key":"invoice-defaults"}`, want: `{"revision":2,"value":2,"metadata":{},"ttlExpiresAt":null,"createdAt":"<time-1h>"}`},
		}},
		{name: "storage.put: every kind of value", steps: []step{
			{op: "put", body: put(`,"value":null`), want: `{"revision":1}`},
			{op: "get", body: put(""), want: `{"value":null}`},
			{op: "put", body: put(`,"value":false`), want: `{"revision":2}`},
			{op: "get", body: put(""), want: `{"value":false}`},
			{op: "put", body: put(`,"value":[{"deep":[[]]}]`), want: `{"revision":3}`},
			{op: "get", body: put(""), want: `{"value":[{"deep":[[]]}]}`},
			{op: "put", body: put(`,"value":"text \u0000 ü"`), want: `{"revision":4}`},
			{op: "get", body: put(""), want: `{"value":"text \u0000 ü"}`},
		}},
		{name: "storage.put: values of 64 KiB and no more", steps: []step{
			{op: "put", body: put(`,"value":` + text(64<<10)), want: `{"revision":"<any>"}`},
			{op: "put", body: put(`,"value":` + text(64<<10+1)), code: validation, field: "value"},
		}},
		{name: "storage.put: values of 200 levels and no more", steps: []step{
			{op: "put", body: put(`,"value":` + strings.Repeat("[", 200) + `"]}\\\"["` + strings.Repeat("]", 200)), want: `{"revision":"<any>"}`},
			{op: "put", body: put(`,"value":` + strings.Repeat(`[{"a":`, 100) + "[]" + strings.Repeat("}]", 100)), code: validation, field: "value"},
			{op: "list", body: `{"namespace":"puts","keyPrefix":"k","includeValues":true}`, want: `{"items":[{"key":"k","value":` + strings.Repeat("[", 200) + `"]}\\\"["` + strings.Repeat("]", 200) + `}]}`},
		}},
		{name: "storage.put: an invalid request", steps: []step{
			{op: "put", body: put(""), code: validation, field: "value"},
			{op: "put", body: put(`,"value":1,"metadata":[]`), code: validation, field: "metadata"},
			{op: "put", body: put(`,"value":1,"metadata":"x"`), code: validation, field: "metadata"},
			{op: "put", body: put(`,"value":1,"metadata":{"a":` + text(5000) + `}`), code: validation, field: "metadata"},
			{op: "put", body: put(`,"value":1,"ifRevision":-1`), code: validation, field: "ifRevision"},
			{op: "put", body: put(`,"value":1,"ifRevision":"1"`), code: validation, field: "ifRevision"},
			{op: "put", body: put(`,"value":1,"valeu":2`), code: validation, field: "valeu"},
		}},
		{name: "storage.put: null means absent", steps: []step{
			{op: "put", body: `{"namespace":"puts","key":"nulls","value":1,"metadata":null,"ttlSeconds":null,"ifRevision":null}`, want: `{"revision":1,"ttlExpiresAt":null}`},
			{op: "get", body: `{"namespace":"puts","key":"nulls"}`, want: `{"metadata":{}}`},
		}},
	}
}

// gets returns the cases for get, with and without a revision.
func gets() []testCase {
	return []testCase{
		{name: "storage.get: the answer", steps: []step{
			{op: "put", body: `{"namespace":"gets","key":"a","value":{"x":1},"metadata":{"m":[true]},"ttlSeconds":60}`, want: `{}`},
			{op: "get", body: `{"namespace":"gets","key":"a"}`,
				want: `{"namespace":"gets","key":"a","revision":1,"value":{"x":1},"metadata":{"m":[true]},"ttlExpiresAt":"<time+60s>","createdAt":"<time>","updatedAt":"<time>"}`},
		}},
		{name: "storage.get: NOT_FOUND", steps: []step{
			{op: "get", body: `{"namespace":"gets","key":"none"}`, code: notFound},
			{op: "get", body: `{"namespace":"gets-none","key":"none"}`, code: notFound},
		}},
		{name: "storage.get: If-Revision-Match", steps: []step{
			{op: "put", body: `{"namespace":"gets","key":"r","value":1}`},
			{op: "put", body: `{"namespace":"gets","key":"r","value":2}`},
			{op: "get", body: `{"namespace":"gets","key":"r"}`, ifRevision: "2", want: `{"value":2}`},
			{op: "get", body: `{"namespace":"gets","key":"r"}`, ifRevision: "1", code: mismatch},
			{op: "get", body: `{"namespace":"gets","key":"none"}`, ifRevision: "1", code: notFound},
		}},
		{name: "storage.get: an invalid request", steps: []step{
			{op: "get", body: `{"namespace":"gets","key":"a/b"}`, code: validation, field: "key"},
			{op: "get", body: `{"namespace":"gets!","key":"a"}`, code: validation, field: "namespace"},
			{op: "get", body: `{"namespace":"gets","key":""}`, code: validation, field: "key"},
		}},
	}
}

// lists returns the cases for list: order, prefixes, filters, pages and their cursors.
func lists() []testCase {
	list := func(more string) string { return `{"namespace":"lists"` + more + `}` }
	items := func(keys ...string) string {
		return `{"items":[` + many(len(keys), func(i int) string { return `{"key":"` + keys[i] + `"}` }) + `]}`
	}
	filled := []step{
		{op: "put", body: list(`,"key":"invoice-2","value":{"n":2},"metadata":{"kind":"a","n":1}`)},
		{op: "put", body: list(`,"key":"invoice-1","value":{"n":1},"metadata":{"kind":"a","n":2.0,"o":{"x":1,"y":[2]}}`)},
		{op: "put", body: list(`,"key":"order-1","value":{"n":3},"metadata":{"kind":"b"}`)},
		{op: "put", body: list(`,"key":"Z","value":{"n":4}`)},
	}
	return []testCase{
		{name: "storage.list: by key, without values and metadata", steps: append(filled,
			step{op: "list", body: list(""), want: `{"items":[
				{"namespace":"lists","key":"Z","revision":1,"value":"<absent>","metadata":"<absent>"},
				{"key":"invoice-1"},{"key":"invoice-2"},{"key":"order-1"}],"nextCursor":null}`})},
		{name: "storage.list: keyPrefix, includeMetadata and includeValues", steps: []step{
			{op: "list", body: list(`,"keyPrefix":"invoice-","includeMetadata":true`), want: `{"items":[
				{"key":"invoice-1","metadata":{"kind":"a","n":2},"value":"<absent>"},{"key":"invoice-2","metadata":{"kind":"a"}}],"nextCursor":null}`},
			{op: "list", body: list(`,"keyPrefix":"Z","includeValues":true`), want: `{"items":[{"key":"Z","value":{"n":4},"metadata":"<absent>"}]}`},
			{op: "list", body: list(`,"keyPrefix":"Z","includeValues":true,"includeMetadata":true`), want: `{"items":[{"value":{"n":4},"metadata":{}}]}`},
			{op: "list", body: list(`,"keyPrefix":"none"`), want: `{"items":[],"nextCursor":null}`},
			{op: "list", body: `{"namespace":"lists-none"}`, want: `{"items":[],"nextCursor":null}`},
		}},
		{name: "storage.list: metadata", steps: []step{
			{op: "list", body: list(`,"metadata":{"kind":"a"}`), want: items("invoice-1", "invoice-2")},
			{op: "list", body: list(`,"metadata":{"kind":"a","n":2}`), want: items("invoice-1")},
			{op: "list", body: list(`,"metadata":{"o":{"y":[2],"x":1}}`), want: items("invoice-1")},
			{op: "list", body: list(`,"metadata":{"n":"2"}`), want: items()},
			{op: "list", body: list(`,"metadata":{"none":null}`), want: items()},
			{op: "list", body: list(`,"metadata":{"kind":"a"},"keyPrefix":"order"`), want: items()},
		}},
		{name: "storage.list: pages", steps: []step{
			{op: "list", body: list(`,"limit":3`), want: `{"items":[{"key":"Z"},{"key":"invoice-1"},{"key":"invoice-2"}],"nextCursor":"<any>"}`, keep: "nextCursor"},
			{op: "list", body: list(`,"limit":3,"cursor":"$KEPT"`), want: `{"items":[{"key":"order-1"}],"nextCursor":null}`},
			{op: "list", body: list(`,"limit":1,"keyPrefix":"invoice"`), want: `{"items":[{"key":"invoice-1"}],"nextCursor":"<any>"}`, keep: "nextCursor"},
			{op: "delete", body: list(`,"key":"invoice-1"`)},
			{op: "list", body: list(`,"limit":1,"keyPrefix":"invoice","cursor":"$KEPT"`), want: items("invoice-2")},
			{op: "list", body: list(`,"keyPrefix":"order","cursor":"$KEPT"`), code: validation, field: "cursor"},
			{op: "list", body: list(`,"keyPrefix":"invoice","metadata":{"kind":"a"},"cursor":"$KEPT"`), code: validation, field: "cursor"},
			{op: "list", body: `{"namespace":"lists2","keyPrefix":"invoice","cursor":"$KEPT"}`, code: validation, field: "cursor"},
			{op: "list", body: list(`,"keyPrefix":"invoice","cursor":"A$KEPT"`), code: validation, field: "cursor"},
			{op: "list", body: list(`,"keyPrefix":"invoice","cursor":"AAAAAAAAAAAAAAAAAAAAAAAAAA"`), code: validation, field: "cursor"},
			{op: "list", body: list(`,"keyPrefix":"invoice","cursor":"!"`), code: validation, field: "cursor"},
		}},
		{name: "storage.list: 25 items by default, at most 100", steps: []step{
			{op: "bulkPut", body: `{"namespace":"lists3","items":[` + many(20, func(i int) string { return fmt.Sprintf(`{"key":"a%02d","value":1}`, i) }) + `]}`},
			{op: "bulkPut", body: `{"namespace":"lists3","items":[` + many(10, func(i int) string { return fmt.Sprintf(`{"key":"b%02d","value":1}`, i) }) + `]}`},
			{op: "list", body: `{"namespace":"lists3"}`, want: `{"items":[` + many(25, func(int) string { return "{}" }) + `],"nextCursor":"<any>"}`},
			{op: "list", body: `{"namespace":"lists3","limit":100}`, want: `{"items":[` + many(30, func(int) string { return "{}" }) + `],"nextCursor":null}`},
			{op: "list", body: `{"namespace":"lists3","limit":101}`, code: validation, field: "limit"},
			{op: "list", body: `{"namespace":"lists3","limit":-1}`, code: validation, field: "limit"},
			{op: "list", body: `{"namespace":"lists3","keyPrefix":"a/"}`, code: validation, field: "keyPrefix"},
		}},
	}
}

// deletes returns the cases for delete, with and without a revision.
func deletes() []testCase {
	at := func(more string) string { return `{"namespace":"deletes"` + more + `}` }
	return []testCase{
		{name: "storage.delete", steps: []step{
			{op: "put", body: at(`,"key":"a","value":1`)},
			{op: "delete", body: at(`,"key":"a"`)},
			{op: "get", body: at(`,"key":"a"`), code: notFound},
			{op: "delete", body: at(`,"key":"a"`)},
			{op: "delete", body: `{"namespace":"deletes-none","key":"a"}`},
			{op: "put", body: at(`,"key":"a","value":1`), want: `{"revision":1}`},
		}},
		{name: "storage.delete: ifRevision", steps: []step{
			{op: "put", body: at(`,"key":"r","value":1`)},
			{op: "put", body: at(`,"key":"r","value":1`)},
			{op: "delete", body: at(`,"key":"r","ifRevision":1`), code: mismatch},
			{op: "get", body: at(`,"key":"r"`), want: `{"revision":2}`},
			{op: "delete", body: at(`,"key":"r","ifRevision":2`)},
			{op: "delete", body: at(`,"key":"r","ifRevision":2`), code: notFound},
		}},
		{name: "storage.delete: an invalid request", steps: []step{
			{op: "delete", body: at(`,"key":"a/b"`), code: validation, field: "key"},
			{op: "delete", body: at(`,"key":"a","ifRevision":-1`), code: validation, field: "ifRevision"},
		}},
	}
}
