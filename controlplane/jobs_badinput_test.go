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

// TestBadJobsAreRefusedAndChangeNothing holds every kind of bad input of the
// queue's routes to its code, and the store to what it was.
func TestBadJobsAreRefusedAndChangeNothing(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	h := startOn(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	defer client.Close()

	active, cancelled := h.jobs(t)
	pending := h.add(t, "emails", `{"payload":1,"unique_key":"u"}`)
	h.add(t, "drained", `{}`)
	ok[api.Queue](t, h.call(t, "POST", h.at("N/queues/drained:drain"), ""), 200)
	sealed := ok[api.Batch](t, h.call(t, "POST", h.at("N/batches"), ""), 201).ID
	ok[api.Batch](t, h.call(t, "POST", h.at("N/batches/"+sealed+":seal"), ""), 200)
	keyed := h.call(t, "POST", h.at("N/queues/emails/jobs"), `{}`, "Idempotency-Key", "k")
	ok[enqueued](t, keyed, 201)

	const add = "N/queues/emails/jobs"
	fetch := func(more string) string {
		return `{"namespace":"payments","queues":["emails"],"worker_id":"w1"` + more + `}`
	}
	rows := []struct {
		name, method, path, body string
		status                   int
		code                     api.Code
		field                    string
	}{
		// Enqueue.
		{"no queue's name", "POST", "N/queues/Emails/jobs", `{}`, 400, api.CodeValidationName, "queue"},
		{"no namespace's name", "POST", "T/namespaces/P/queues/emails/jobs", `{}`, 400, api.CodeValidationName, "namespace"},
		{"a queue of the platform", "POST", "N/queues/fn.hello/jobs", `{"target":{"function":"hello","alias":"prod"}}`, 409, api.CodeQueueReserved, ""},
		{"a target elsewhere", "POST", add, `{"target":{"function":"hello","alias":"prod"}}`, 409, api.CodeQueueReserved, ""},
		{"no body", "POST", add, ``, 400, api.CodeValidationJSON, ""},
		{"not JSON", "POST", add, `{"payload":`, 400, api.CodeValidationJSON, ""},
		{"not UTF-8", "POST", add, "{\"payload\":\"\xff\"}", 400, api.CodeValidationJSON, ""},
		{"a list", "POST", add, `[]`, 422, api.CodeInvalid, ""},
		{"unknown field", "POST", add, `{"payloads":1}`, 422, api.CodeInvalid, "payloads"},
		{"unknown field of a job", "POST", add, `{"jobs":[{},{"prio":1}]}`, 422, api.CodeInvalid, "jobs[1].prio"},
		{"one and many", "POST", add, `{"payload":1,"jobs":[{}]}`, 422, api.CodeInvalid, "jobs"},
		{"jobs forgotten", "POST", add, `{"jobs":null}`, 422, api.CodeInvalid, "jobs"},
		{"jobs forgotten behind the payload", "POST", add, `{"payload":"` + strings.Repeat("x", 100) + `","JOBS":null}`, 422, api.CodeInvalid, "jobs"},
		{"no jobs", "POST", add, `{"jobs":[]}`, 422, api.CodeInvalid, "jobs"},
		{"too many jobs", "POST", add, `{"jobs":[{}` + strings.Repeat(",{}", api.MaxEnqueueJobs) + `]}`, 422, api.CodeInvalid, "jobs"},
		{"one of them invalid", "POST", add, `{"jobs":[{},{"priority":"urgent"},{}]}`, 422, api.CodeInvalid, "jobs[1].priority"},
		{"priority of another type", "POST", add, `{"priority":1}`, 422, api.CodeInvalid, "priority"},
		{"attempts", "POST", add, `{"max_attempts":1001}`, 422, api.CodeInvalid, "jobs[0].max_attempts"},
		{"a time of the past", "POST", add, `{"expire_at_ms":1}`, 422, api.CodeInvalid, "jobs[0].expire_at_ms"},
		{"backoff", "POST", add, `{"backoff":"slow"}`, 422, api.CodeInvalid, "jobs[0].backoff"},
		{"delay", "POST", add, `{"base_delay_ms":-1}`, 422, api.CodeInvalid, "jobs[0].base_delay_ms"},
		{"unique key", "POST", add, `{"unique_key":"` + strings.Repeat("k", 256) + `"}`, 422, api.CodeInvalid, "jobs[0].unique_key"},
		{"schema that is none", "POST", add, `{"result_schema":{"type":"thing"}}`, 422, api.CodeInvalid, "jobs[0].result_schema.type"},
		{"schema that fetches", "POST", add, `{"result_schema":{"$ref":"http://example.com/x"}}`, 422, api.CodeInvalid, "jobs[0].result_schema.$ref"},
		{"dependency of no form", "POST", add, `{"depends_on":["x"]}`, 422, api.CodeInvalid, "jobs[0].depends_on"},
		{"dependency on nothing", "POST", add, `{"jobs":[{},{"depends_on":["` + activationID + `"]}]}`, 404, api.CodeJobNotFound, "jobs[1].depends_on"},
		{"batch of nothing", "POST", add, `{"batch_id":"` + activationID + `"}`, 404, api.CodeBatchNotFound, ""},
		{"sealed batch", "POST", add, `{"batch_id":"` + sealed + `"}`, 409, api.CodeBatchSealed, ""},
		{"two batches", "POST", add, `{"jobs":[{"batch_id":"` + sealed + `"},{}]}`, 422, api.CodeInvalid, "jobs[1].batch_id"},
		{"drained queue", "POST", "N/queues/drained/jobs", `{}`, 409, api.CodeQueueDraining, ""},
		{"chain within a chain", "POST", add, `{"chain":{"steps":[{"chain":{}}]}}`, 422, api.CodeInvalid, "jobs[0].chain"},
		{"chain's end in a queue of the platform", "POST", add, `{"chain":{"on_exit":{"queue":"fn.hello"}}}`, 409, api.CodeQueueReserved, "jobs[0]"},
		{"chain to another function", "POST", add, `{"chain":{"steps":[{"queue":"fn.hello","target":{"function":"other","alias":"prod"}}]}}`, 422, api.CodeInvalid, "jobs[0].target.function"},
		{"payload over 1 MiB", "POST", add, `{"payload":"` + strings.Repeat("x", api.MaxJobPayloadBytes) + `"}`, 413, api.CodeBodyLimit, "jobs[0].payload"},
		{"body over 8 MiB", "POST", add, oversized(api.MaxEnqueueBytes), 413, api.CodeBodyLimit, ""},

		// Fetch.
		{"fetch of no namespace", "POST", "T/jobs:fetch", `{"queues":["emails"],"worker_id":"w1"}`, 400, api.CodeValidationName, "namespace"},
		{"fetch of no queue", "POST", "T/jobs:fetch", `{"namespace":"payments","queues":[],"worker_id":"w1"}`, 422, api.CodeInvalid, "queues"},
		{"fetch without worker", "POST", "T/jobs:fetch", `{"namespace":"payments","queues":["emails"]}`, 400, api.CodeValidationName, "worker_id"},
		{"fetch of the platform's", "POST", "T/jobs:fetch", `{"namespace":"payments","queues":["fn.hello"],"worker_id":"w1"}`, 409, api.CodeQueueReserved, ""},
		{"fetch of too many", "POST", "T/jobs:fetch", fetch(`,"count":1001`), 422, api.CodeInvalid, "count"},
		{"fetch of fewer than none", "POST", "T/jobs:fetch", fetch(`,"count":-1`), 422, api.CodeInvalid, "count"},
		{"short lease", "POST", "T/jobs:fetch", fetch(`,"lease_ms":999`), 422, api.CodeInvalid, "lease_ms"},
		{"a wait that overflows", "POST", "T/jobs:fetch", fetch(`,"wait_ms":9223372036854775807`), 422, api.CodeInvalid, "wait_ms"},
		{"fetch with an unknown field", "POST", "T/jobs:fetch", fetch(`,"max":1`), 422, api.CodeInvalid, "max"},
		{"fetch over 1 MiB", "POST", "T/jobs:fetch", oversized(api.MaxRequestBytes), 413, api.CodeBodyLimit, ""},

		// Settling.
		{"ack of nothing", "POST", "T/jobs:ack", `{"acks":[]}`, 422, api.CodeInvalid, "acks"},
		{"acks forgotten", "POST", "T/jobs:ack", `{}`, 422, api.CodeInvalid, "acks"},
		{"too many acks", "POST", "T/jobs:ack", `{"acks":[{}` + strings.Repeat(",{}", api.MaxSettleJobs) + `]}`, 422, api.CodeInvalid, "acks"},
		{"epoch of another type", "POST", "T/jobs:ack", `{"acks":[{"id":"x","lease_epoch":"1"}]}`, 422, api.CodeInvalid, "acks[0].lease_epoch"},
		{"ack over 8 MiB", "POST", "T/jobs:ack", oversized(8 << 20), 413, api.CodeBodyLimit, ""},
		{"fail of nothing", "POST", "T/jobs:fail", `{"fails":[]}`, 422, api.CodeInvalid, "fails"},
		{"fail over 1 MiB", "POST", "T/jobs:fail", oversized(api.MaxRequestBytes), 413, api.CodeBodyLimit, ""},
		{"heartbeat without worker", "POST", "T/jobs:heartbeat", `{"jobs":[{"id":"x","lease_epoch":1}]}`, 400, api.CodeValidationName, "worker_id"},
		{"heartbeat of nothing", "POST", "T/jobs:heartbeat", `{"worker_id":"w1","jobs":[]}`, 422, api.CodeInvalid, "jobs"},

		// One job.
		{"job's id", "GET", "T/jobs/1", ``, 400, api.CodeValidationName, "job_id"},
		{"no job", "GET", "T/jobs/" + activationID, ``, 404, api.CodeJobNotFound, ""},
		{"delete of no job", "DELETE", "T/jobs/" + activationID, ``, 404, api.CodeJobNotFound, ""},
		{"delete of an active job", "DELETE", "T/jobs/" + active, ``, 409, api.CodeJobState, ""},
		{"retry of an active job", "POST", "T/jobs/" + active + ":retry", ``, 409, api.CodeJobState, ""},
		{"hold of an active job", "POST", "T/jobs/" + active + ":hold", ``, 409, api.CodeJobState, ""},
		{"approval of a pending job", "POST", "T/jobs/" + pending + ":approve", ``, 409, api.CodeJobState, ""},
		{"rejection of a cancelled job", "POST", "T/jobs/" + cancelled + ":reject", ``, 409, api.CodeJobState, ""},
		{"move of a job with a unique key", "POST", "T/jobs/" + pending + ":move", `{"queue":"slow"}`, 409, api.CodeJobState, ""},
		{"move to the platform's", "POST", "T/jobs/" + active + ":move", `{"queue":"fn.hello"}`, 409, api.CodeQueueReserved, ""},
		{"move to nowhere", "POST", "T/jobs/" + active + ":move", `{}`, 422, api.CodeInvalid, "queue"},
		{"reason that is long", "POST", "T/jobs/" + pending + ":hold", `{"reason":"` + strings.Repeat("x", 1025) + `"}`, 422, api.CodeInvalid, "reason"},
		{"no such verb", "POST", "T/jobs/" + active + ":frobnicate", ``, 405, api.CodeMethodNotAllowed, ""},

		// Lists.
		{"state of a list", "GET", add + "?state=odd", ``, 422, api.CodeInvalid, "state"},
		{"value of no tag", "GET", add + "?tag_value=x", ``, 422, api.CodeInvalid, "tag_value"},
		{"cursor of jobs", "GET", add + "?cursor=AAAAAAAAAAAx", ``, 400, api.CodeValidationCursor, "cursor"},
		{"cursor of queues", "GET", "N/queues?cursor=AAAAAAAAAAAx", ``, 400, api.CodeValidationCursor, "cursor"},
		{"cursor of workers", "GET", "T/workers?cursor=AAAAAAAAAAAx", ``, 400, api.CodeValidationCursor, "cursor"},

		// Queues and batches.
		{"no queue", "GET", "N/queues/ghost", ``, 404, api.CodeQueueNotFound, ""},
		{"clear of no queue", "POST", "N/queues/ghost:clear", ``, 404, api.CodeQueueNotFound, ""},
		{"drain of no queue", "POST", "N/queues/ghost:drain", ``, 404, api.CodeQueueNotFound, ""},
		{"redrive of no queue", "POST", "N/queues/ghost:redrive", ``, 404, api.CodeQueueNotFound, ""},
		{"delete of no queue", "DELETE", "N/queues/ghost", ``, 404, api.CodeQueueNotFound, ""},
		{"delete of a busy queue", "DELETE", "N/queues/emails", ``, 409, api.CodeQueueBusy, ""},
		{"concurrency", "PATCH", "N/queues/emails", `{"max_concurrency":-1}`, 422, api.CodeInvalid, "max_concurrency"},
		{"window", "PATCH", "N/queues/emails", `{"rate_window_ms":1}`, 422, api.CodeInvalid, "rate_window_ms"},
		{"unknown setting", "PATCH", "N/queues/emails", `{"draining":true}`, 422, api.CodeInvalid, "draining"},
		{"reason of a redrive", "POST", "N/queues/emails:redrive", `{"reason":"bored"}`, 422, api.CodeInvalid, "reason"},
		{"ids of a redrive", "POST", "N/queues/emails:redrive", `{"ids":["x"]}`, 422, api.CodeInvalid, "ids[0]"},
		{"batch's id", "GET", "N/batches/1", ``, 400, api.CodeValidationName, "batch_id"},
		{"no batch", "GET", "N/batches/" + activationID, ``, 404, api.CodeBatchNotFound, ""},
		{"seal of no batch", "POST", "N/batches/" + activationID + ":seal", ``, 404, api.CodeBatchNotFound, ""},
		{"callback without a queue", "POST", "N/batches", `{"callback":{"payload":1}}`, 422, api.CodeInvalid, "callback.queue"},
		{"callback in a batch", "POST", "N/batches", `{"callback":{"queue":"emails","batch_id":"` + sealed + `"}}`, 422, api.CodeInvalid, "callback"},
	}
	before := h.snapshot(t, client)
	for _, tc := range rows {
		t.Run(tc.name, func(t *testing.T) {
			path := h.at(tc.path)
			if route, query, has := strings.Cut(tc.path, "?"); has {
				path = h.at(route) + "?" + query
			}
			p := h.call(t, tc.method, path, tc.body, "Content-Type", "application/json").refused(t, tc.status, tc.code)
			if tc.field != "" && (len(p.Errors) == 0 || p.Errors[0].Path != tc.field) {
				t.Errorf("errors %+v, want the first at %q", p.Errors, tc.field)
			}
			if tc.code == api.CodeJobState && !strings.Contains(p.Detail, "unique key") &&
				!strings.Contains(p.Detail, " is active") && !strings.Contains(p.Detail, " is pending") && !strings.Contains(p.Detail, " is cancelled") {
				t.Errorf("got detail %q, want one that names the state", p.Detail)
			}
		})
	}
	h.call(t, "POST", h.at(add), `{"payload":1}`, "Idempotency-Key", "k").refused(t, 422, api.CodeIdempotencyMismatch)
	if diff := cmp.Diff(before, h.snapshot(t, client)); diff != "" {
		t.Errorf("the store changed: (-want +got):\n%s", diff)
	}
	// A queue that does not exist is empty.
	none := h.call(t, "POST", h.at("T/jobs:fetch"), `{"namespace":"payments","queues":["ghost"],"worker_id":"w1"}`)
	if jobs := ok[fetched](t, none, 200).Jobs; jobs == nil || len(jobs) != 0 {
		t.Errorf("got %s, want jobs []", none.body)
	}
	// What one job of many cannot be told is its own outcome.
	two := ok[settled](t, h.call(t, "POST", h.at("T/jobs:fail"),
		fmt.Sprintf(`{"fails":[{"id":%q,"lease_epoch":1,"error":"x","retry_after_ms":-1},{"id":%q,"lease_epoch":1,"error":"x"}]}`, active, active)), 200)
	if two.Jobs[0].Code != api.CodeInvalid || !two.Jobs[1].OK {
		t.Errorf("got outcomes %+v, want CodeInvalid for the first job and success for the second", two)
	}
}
