package documentstest

import (
	"fmt"
	"strings"
	"time"
)

// bulks returns the cases for bulkPut: all or none, and the limits of 20 items and 512 KiB.
func bulks() []testCase {
	at := func(items string) string { return `{"namespace":"bulks","items":[` + items + `]}` }
	return []testCase{
		{name: "storage.bulkPut: the answer", steps: []step{
			{op: "bulkPut", body: at(`{"key":"b","value":1,"metadata":{},"ttlSeconds":86400,"ifRevision":null},{"key":"a","value":2}`),
				want: `{"items":[{"key":"b","revision":1,"ttlExpiresAt":"<time+24h>"},{"key":"a","revision":1,"ttlExpiresAt":null}]}`},
			{op: "bulkPut", body: at(`{"key":"b","value":1,"ifRevision":1}`), want: `{"items":[{"key":"b","revision":2,"ttlExpiresAt":null}]}`},
		}},
		{name: "storage.bulkPut: all or none", steps: []step{
			{op: "put", body: `{"namespace":"bulks","key":"old","value":1}`},
			{op: "bulkPut", body: at(`{"key":"new1","value":1},{"key":"old","value":2,"ifRevision":7},{"key":"new2","value":1,"ifRevision":1}`),
				code: bulk, want: `{"items":[{"index":1,"code":"REVISION_MISMATCH"},{"index":2,"code":"REVISION_MISMATCH"}]}`},
			{op: "get", body: `{"namespace":"bulks","key":"new1"}`, code: notFound},
			{op: "get", body: `{"namespace":"bulks","key":"old"}`, want: `{"revision":1,"value":1}`},
			{op: "bulkPut", body: at(`{"key":"new1","value":1},{"key":"a/b","value":2},{"key":"new2","value":1,"ttlSeconds":1},{"key":"new3"}`),
				code: bulk, want: `{"items":[{"index":1,"code":"VALIDATION_FAILED"},{"index":2,"code":"VALIDATION_FAILED"},{"index":3,"code":"VALIDATION_FAILED"}]}`},
			{op: "get", body: `{"namespace":"bulks","key":"new1"}`, code: notFound},
			{op: "bulkPut", body: at(`{"key":"new1","value":1},{"key":"new1","value":2}`), code: bulk, want: `{"items":[{"index":1,"code":"VALIDATION_FAILED"}]}`},
			{op: "bulkPut", body: at(`{"key":"new1","value":1},{"key":"new2","value":` + text(64<<10+1) + `}`), code: bulk, want: `{"items":[{"index":1,"code":"VALIDATION_FAILED"}]}`},
			{op: "get", body: `{"namespace":"bulks","key":"new1"}`, code: notFound},
		}},
		{name: "storage.bulkPut: 20 items and no more", steps: []step{
			{op: "bulkPut", body: at(many(20, func(i int) string { return fmt.Sprintf(`{"key":"t%d","value":1}`, i) })), want: `{"items":[` + many(20, func(int) string { return "{}" }) + `]}`},
			{op: "bulkPut", body: at(many(21, func(i int) string { return fmt.Sprintf(`{"key":"u%d","value":1}`, i) })), code: validation, field: "items"},
			{op: "get", body: `{"namespace":"bulks","key":"u0"}`, code: notFound},
			{op: "bulkPut", body: at(""), code: validation, field: "items"},
			{op: "bulkPut", body: `{"namespace":"bulks"}`, code: validation, field: "items"},
		}},
		{name: "storage.bulkPut: 512 KiB and no more", steps: []step{
			// Metadata that is left out is {}, of two bytes.
			{op: "bulkPut", body: at(many(8, func(i int) string { return fmt.Sprintf(`{"key":"v%d","value":%s}`, i, text(64<<10-2)) })), want: `{}`},
			{op: "bulkPut", body: at(many(8, func(i int) string { return fmt.Sprintf(`{"key":"w%d","value":%s}`, i, text(64<<10-2)) }) + `,{"key":"w8","value":1}`), code: validation, field: "items"},
			{op: "get", body: `{"namespace":"bulks","key":"w0"}`, code: notFound},
		}},
	}
}

// concurrency returns the cases for the revision of a document and ifRevision.
func concurrency() []testCase {
	at := func(more string) string { return `{"namespace":"revisions"` + more + `}` }
	return []testCase{
		{name: "Concurrency & Consistency: revisions start at 1 and count the writes", steps: []step{
			{op: "put", body: at(`,"key":"a","value":1`), want: `{"revision":1}`},
			{op: "put", body: at(`,"key":"a","value":1`), want: `{"revision":2}`},
			{op: "bulkPut", body: at(`,"items":[{"key":"a","value":1}]`), want: `{"items":[{"revision":3}]}`},
			{op: "get", body: at(`,"key":"a"`), want: `{"revision":3}`},
		}},
		{name: "Concurrency & Consistency: ifRevision", steps: []step{
			{op: "put", body: at(`,"key":"g","value":1,"ifRevision":1`), code: mismatch},
			{op: "put", body: at(`,"key":"g","value":1,"ifRevision":0`), want: `{"revision":1}`},
			{op: "put", body: at(`,"key":"g","value":2,"ifRevision":0`), code: mismatch},
			{op: "put", body: at(`,"key":"g","value":2,"ifRevision":1`), want: `{"revision":2}`},
			{op: "put", body: at(`,"key":"g","value":3,"ifRevision":1`), code: mismatch},
			{op: "get", body: at(`,"key":"g"`), want: `{"revision":2,"value":2}`},
		}},
	}
}

// expiry returns the cases for ttlSeconds, which advance the clock of the service.
func expiry() []testCase {
	at := func(more string) string { return `{"namespace":"ttl"` + more + `}` }
	const month = 30 * 24 * 60 * 60
	return []testCase{
		{name: "TTL and Expiration: 60 seconds to 30 days", steps: []step{
			{op: "put", body: at(`,"key":"t","value":1,"ttlSeconds":60`), want: `{"ttlExpiresAt":"<time+60s>"}`},
			{op: "put", body: at(fmt.Sprintf(`,"key":"t","value":1,"ttlSeconds":%d`, month)), want: `{"ttlExpiresAt":"<time+720h>"}`},
			{op: "put", body: at(`,"key":"t","value":1,"ttlSeconds":59`), code: validation, field: "ttlSeconds"},
			{op: "put", body: at(`,"key":"t","value":1,"ttlSeconds":0`), code: validation, field: "ttlSeconds"},
			{op: "put", body: at(`,"key":"t","value":1,"ttlSeconds":-60`), code: validation, field: "ttlSeconds"},
			{op: "put", body: at(fmt.Sprintf(`,"key":"t","value":1,"ttlSeconds":%d`, month+1)), code: validation, field: "ttlSeconds"},
			{op: "put", body: at(`,"key":"t","value":1,"ttlSeconds":60.5`), code: validation, field: "ttlSeconds"},
		}},
		{name: "TTL and Expiration: an expired record is none", steps: []step{
			{op: "put", body: at(`,"key":"x-get","value":1,"ttlSeconds":60`)},
			{op: "put", body: at(`,"key":"x-put","value":1,"ttlSeconds":60`)},
			{op: "put", body: at(`,"key":"x-delete","value":1,"ttlSeconds":60`)},
			{op: "put", body: at(`,"key":"x-stays","value":1,"ttlSeconds":120`)},
			{op: "get", wait: 59 * time.Second, body: at(`,"key":"x-get"`), want: `{"revision":1}`},
			{op: "list", wait: 2 * time.Second, body: at(`,"keyPrefix":"x-"`), want: `{"items":[{"key":"x-stays"}],"nextCursor":null}`},
			{op: "get", body: at(`,"key":"x-get"`), code: notFound},
			{op: "delete", body: at(`,"key":"x-delete","ifRevision":1`), code: notFound},
			{op: "put", body: at(`,"key":"x-put","value":2,"ifRevision":1`), code: mismatch},
			{op: "put", body: at(`,"key":"x-put","value":2,"ifRevision":0`), want: `{"revision":1,"createdAt":"<time>","ttlExpiresAt":null}`},
		}},
		{name: "TTL and Expiration: a write without ttlSeconds lets it stay", steps: []step{
			{op: "put", body: at(`,"key":"s","value":1,"ttlSeconds":60`)},
			{op: "put", body: at(`,"key":"s","value":1`), want: `{"revision":2,"ttlExpiresAt":null}`},
			{op: "get", wait: 48 * time.Hour, body: at(`,"key":"s"`), want: `{"revision":2}`},
		}},
	}
}

// quotas are of 3 records and 1,000 bytes a namespace, of 5 and 1,500 a tenant.
func quotas() []testCase {
	put := func(namespace, key string, size int) step {
		return step{op: "put", body: fmt.Sprintf(`{"namespace":%q,"key":%q,"value":%s}`, namespace, key, text(size))}
	}
	over := func(s step, want string) step {
		s.code, s.want = quota, `{"quota":`+want+`}`
		return s
	}
	return []testCase{
		{name: "Errors: QUOTA_EXCEEDED of records", config: "small", steps: []step{
			put("one", "a", 10), put("one", "b", 10), put("one", "c", 10),
			over(put("one", "d", 10), `{"scope":"namespace","unit":"records","limit":3,"used":3}`),
			put("one", "c", 20),
			put("two", "a", 10), put("two", "b", 10),
			over(put("two", "c", 10), `{"scope":"tenant","unit":"records","limit":5,"used":5}`),
			{op: "bulkPut", body: `{"namespace":"two","items":[{"key":"a","value":1},{"key":"c","value":1}]}`, code: bulk,
				want: `{"items":[{"code":"QUOTA_EXCEEDED"},{"code":"QUOTA_EXCEEDED"}],"quota":{"scope":"tenant","unit":"records"}}`},
			{op: "delete", body: `{"namespace":"one","key":"a"}`},
			put("two", "c", 10),
			{op: "transact", body: `{"namespace":"two","operations":[{"op":"delete","key":"c"},{"op":"put","key":"d","value":1}]}`, want: `{"items":[{"revision":0},{"revision":1}]}`},
			{op: "transact", body: `{"namespace":"two","operations":[{"op":"put","key":"e","value":1}]}`, code: quota, want: `{"quota":{"unit":"records"}}`},
		}},
		{name: "Errors: QUOTA_EXCEEDED of bytes", config: "small", steps: []step{
			{op: "delete", body: `{"namespace":"one","key":"b"}`}, {op: "delete", body: `{"namespace":"one","key":"c"}`},
			put("one", "big", 900),
			over(put("one", "big", 998), `{"scope":"namespace","unit":"bytes","limit":1000,"used":905}`),
			put("one", "big", 100),
			{op: "delete", body: `{"namespace":"one","key":"big"}`},
		}},
		{name: "Errors: QUOTA_EXCEEDED makes room of what expired", config: "small", steps: []step{
			{op: "put", body: `{"namespace":"one","key":"e1","value":1,"ttlSeconds":60}`},
			{op: "put", body: `{"namespace":"one","key":"e2","value":1,"ttlSeconds":60}`},
			over(put("one", "new", 10), `{"scope":"tenant","unit":"records"}`),
			{op: "put", wait: time.Minute, body: `{"namespace":"one","key":"new","value":1}`, want: `{"revision":1}`},
		}},
	}
}

// transactions returns the cases for transact: checks, puts and deletes, all or none.
func transactions() []testCase {
	at := func(steps ...string) string {
		return `{"namespace":"transact","operations":[` + strings.Join(steps, ",") + `]}`
	}
	return []testCase{
		{name: "transact: all or none", steps: []step{
			{op: "transact", body: at(`{"op":"put","key":"a","value":1,"ttlSeconds":60}`, `{"op":"check","key":"b","ifRevision":0}`, `{"op":"delete","key":"c","value":null}`),
				want: `{"items":[{"key":"a","revision":1,"ttlExpiresAt":"<time+60s>"},{"key":"b","revision":0},{"key":"c","revision":0}]}`},
			{op: "transact", body: at(`{"op":"check","key":"a","ifRevision":1}`, `{"op":"put","key":"b","value":1}`), want: `{"items":[{"revision":1},{"revision":1}]}`},
			{op: "transact", body: at(`{"op":"put","key":"c","value":1}`, `{"op":"check","key":"a","ifRevision":2}`), code: mismatch, want: `{"items":[{"index":1,"code":"REVISION_MISMATCH"}]}`},
			{op: "transact", body: at(`{"op":"put","key":"c","value":1}`, `{"op":"delete","key":"none","ifRevision":1}`, `{"op":"check","key":"a","ifRevision":9}`),
				code: notFound, want: `{"items":[{"index":1,"code":"NOT_FOUND"},{"index":2,"code":"REVISION_MISMATCH"}]}`},
			{op: "get", body: `{"namespace":"transact","key":"c"}`, code: notFound},
			{op: "transact", body: at(`{"op":"delete","key":"a","ifRevision":1}`, `{"op":"put","key":"b","value":2,"ifRevision":1}`), want: `{"items":[{"key":"a","revision":0},{"key":"b","revision":2}]}`},
			{op: "get", body: `{"namespace":"transact","key":"a"}`, code: notFound},
		}},
		{name: "transact: an invalid request", steps: []step{
			{op: "transact", body: at(), code: validation, field: "operations"},
			{op: "transact", body: at(many(21, func(i int) string { return fmt.Sprintf(`{"op":"delete","key":"k%d"}`, i) })), code: validation, field: "operations"},
			{op: "transact", body: at(`{"op":"move","key":"a"}`), code: validation, field: "operations[0].op"},
			{op: "transact", body: at(`{"op":"check","key":"a"}`), code: validation, field: "operations[0].ifRevision"},
			{op: "transact", body: at(`{"op":"delete","key":"a","value":1}`), code: validation, field: "operations[0].value"},
			{op: "transact", body: at(`{"op":"put","key":"a","value":1}`, `{"op":"put","key":"a/b","value":1}`), code: validation, want: `{"items":[{"index":1,"code":"VALIDATION_FAILED"}]}`},
			{op: "transact", body: at(`{"op":"put","key":"z","value":1}`, `{"op":"delete","key":"z"}`), code: validation, want: `{"items":[{"index":1,"code":"VALIDATION_FAILED"}]}`},
			{op: "get", body: `{"namespace":"transact","key":"z"}`, code: notFound},
		}},
	}
}
