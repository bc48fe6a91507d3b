package controlplane_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
)

func TestQueuesOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t)
	emails := h.at("N/queues/emails")
	for range 3 {
		h.add(t, "emails", `{}`)
	}
	h.add(t, "reports", `{}`)
	queues := ok[api.Page[api.Queue]](t, h.call(t, "GET", h.at("N/queues"), ""), 200)
	if len(queues.Items) != 2 || queues.Items[0].Queue != "emails" || queues.Items[0].Depths[api.JobPending] != 3 {
		t.Errorf("got queues %+v, want 2, the first emails with 3 pending jobs", queues)
	}
	first := ok[api.Page[api.Queue]](t, h.call(t, "GET", h.at("N/queues")+"?limit=1", ""), 200)
	second := ok[api.Page[api.Queue]](t, h.call(t, "GET", h.at("N/queues")+"?limit=1&cursor="+*first.NextCursor, ""), 200)
	if len(second.Items) != 1 || second.Items[0].Queue != "reports" {
		t.Errorf("GET: got %+v, want 1 item and queue \"reports\" of the first item", second)
	}
	set := ok[api.Queue](t, h.call(t, "PATCH", emails, `{"max_concurrency":2,"rate_limit":50}`), 200)
	want := api.QueueConfig{MaxConcurrency: 2, RateLimit: 50, RateWindowMS: 1000, Events: "ends"}
	if diff := cmp.Diff(want, set.QueueConfig); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(h.take(t, "emails", 10)); n != 2 {
		t.Errorf("got %d jobs under a limit of 2, want 2", n)
	}
	if !ok[api.Queue](t, h.call(t, "PATCH", emails, `{"paused":true,"max_concurrency":0}`), 200).Paused || len(h.take(t, "emails", 10)) != 0 {
		t.Error("a paused queue serves")
	}
	if !ok[api.Queue](t, h.call(t, "POST", emails+":drain", ""), 200).Draining {
		t.Error("it does not drain")
	}
	h.call(t, "POST", emails+"/jobs", `{}`).refused(t, 409, api.CodeQueueDraining)
	if q := ok[api.Queue](t, h.call(t, "POST", emails+":resume", ""), 200); q.Paused || q.Draining {
		t.Errorf("got queue %+v, want it neither paused nor draining", q)
	}
	cleared := ok[map[string]int](t, h.call(t, "POST", emails+":clear", ""), 200)
	if cleared["cleared"] != 1 {
		t.Errorf("got %v, want 1 job cleared", cleared)
	}
	h.call(t, "DELETE", emails, "").refused(t, 409, api.CodeQueueBusy)
	h.call(t, "DELETE", h.at("N/queues/reports"), "")
	h.call(t, "GET", h.at("N/queues/reports"), "").refused(t, 404, api.CodeQueueNotFound)
}

func TestDeadJobsAreRedriven(t *testing.T) {
	t.Parallel()
	h := start(t)
	redrive := func(body string) int {
		t.Helper()
		return ok[map[string]int](t, h.call(t, "POST", h.at("N/queues/emails:redrive"), body), 200)["redriven"]
	}
	var ids []string
	for i := range 4 {
		id := h.add(t, "emails", fmt.Sprintf(`{"hold":true,"tags":{"n":"%d"}}`, i))
		ok[api.Job](t, h.call(t, "POST", h.at("T/jobs/"+id+":reject"), ""), 200)
		ids = append(ids, id)
	}
	for _, step := range []struct {
		body string
		want int
	}{
		{`{"reason":"fatal"}`, 0},
		{`{"from_ms":99999999999999}`, 0},
		{`{"to_ms":1}`, 0},
		{`{"tag":"n","tag_value":"2"}`, 1},
		{`{"ids":["` + ids[0] + `"],"reason":"rejected"}`, 1},
		{`{"limit":1}`, 1},
		{``, 1},
		{``, 0},
	} {
		if got := redrive(step.body); got != step.want {
			t.Errorf("%s: %d, want %d", step.body, got, step.want)
		}
	}
}

func TestQueuesAreGuardedByTheirETag(t *testing.T) {
	t.Parallel()
	h := start(t)
	emails := h.at("N/queues/emails")
	made := h.call(t, "PATCH", emails, `{"max_concurrency":1}`, "If-None-Match", "*")
	ok[api.Queue](t, made, 200)
	tag := made.header.Get("ETag")
	if read := h.call(t, "GET", emails, ""); tag == "" || read.header.Get("ETag") != tag {
		t.Errorf("got ETag %q of the change and %q of a read, want equal ones", tag, read.header.Get("ETag"))
	}
	h.call(t, "PATCH", emails, `{"max_concurrency":9}`, "If-None-Match", "*").refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "PATCH", emails, `{"max_concurrency":9}`, "If-Match", `"x"`).refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "PATCH", emails, `{"max_concurrency":9}`, "If-Match", tag, "If-None-Match", "*").refused(t, 422, api.CodeInvalid)
	h.call(t, "PATCH", emails, `{"max_concurrency":9}`, "If-None-Match", tag).refused(t, 422, api.CodeInvalid)
	h.call(t, "PATCH", h.at("N/queues/ghost"), `{"max_concurrency":9}`, "If-Match", "*").refused(t, 412, api.CodePreconditionFailed)
	// Jobs do not change it.
	h.add(t, "emails", `{}`)
	next := h.call(t, "PATCH", emails, `{"paused":true}`, "If-Match", tag)
	if q := ok[api.Queue](t, next, 200); q.MaxConcurrency != 1 || !q.Paused || next.header.Get("ETag") == tag {
		t.Errorf("got queue %+v with headers %v, want it paused with max concurrency 1 and an ETag other than %s", q, next.header, tag)
	}
	h.call(t, "DELETE", emails, "", "If-Match", tag).refused(t, 412, api.CodePreconditionFailed)
	if a := h.call(t, "DELETE", emails, "", "If-Match", next.header.Get("ETag")); a.status != 204 {
		t.Errorf("DELETE: got %d %s, want status 204", a.status, a.body)
	}
}

// Of many who change what they all have read, one succeeds.
func TestOneGuardedChangeSucceeds(t *testing.T) {
	t.Parallel()
	h := start(t)
	emails := h.at("N/queues/emails")
	tag := h.call(t, "PATCH", emails, `{"max_concurrency":1}`).header.Get("ETag")
	var won atomic.Int32
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			switch a := h.call(t, "PATCH", emails, fmt.Sprintf(`{"max_concurrency":%d}`, i+2), "If-Match", tag); a.status {
			case 200:
				won.Add(1)
			case 412:
			default:
				t.Errorf("got %d %s, want 200 or 412", a.status, a.body)
			}
		})
	}
	work.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of the concurrent changes succeeded, want 1", won.Load())
	}
}

// Changes of different settings do not undo each other.
func TestUnguardedChangesAreAllMade(t *testing.T) {
	t.Parallel()
	h := start(t)
	emails := h.at("N/queues/emails")
	var work sync.WaitGroup
	for _, body := range []string{`{"paused":true}`, `{"max_concurrency":3}`, `{"rate_limit":4}`, `{"rate_window_ms":5000}`} {
		work.Go(func() { ok[api.Queue](t, h.call(t, "PATCH", emails, body), 200) })
	}
	work.Wait()
	got := ok[api.Queue](t, h.call(t, "GET", emails, ""), 200).QueueConfig
	if diff := cmp.Diff(api.QueueConfig{Paused: true, MaxConcurrency: 3, RateLimit: 4, RateWindowMS: 5000, Events: "ends"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBatchesOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t)
	batch := ok[api.Batch](t, h.call(t, "POST", h.at("N/batches"), `{"callback":{"queue":"reports","payload":{"a":1},"priority":"low"}}`), 201)
	path := h.at("N/batches/" + batch.ID)
	h.add(t, "emails", `{"batch_id":"`+batch.ID+`"}`)
	got := ok[api.Batch](t, h.call(t, "GET", path, ""), 200)
	if got.Total != 1 || got.Pending != 1 || got.Sealed || got.Callback.Queue != "reports" {
		t.Errorf("GET: got %+v, want total 1, pending 1, not sealed and queue \"reports\"", got)
	}
	for range 2 {
		if !ok[api.Batch](t, h.call(t, "POST", path+":seal", ""), 200).Sealed {
			t.Error("not sealed")
		}
	}
	job := h.take(t, "emails", 1)[0]
	ok[settled](t, h.call(t, "POST", h.at("T/jobs:ack"), fmt.Sprintf(`{"acks":[{"id":%q,"lease_epoch":%d}]}`, job.ID, job.LeaseEpoch)), 200)
	if after := h.take(t, "reports", 1); len(after) != 1 || after[0].ID != got.CallbackID || string(after[0].Payload) != `{"a":1}` {
		t.Errorf("got jobs %+v, want the callback %s with the payload {\"a\":1}", after, got.CallbackID)
	}
	other := h.at("T/namespaces/others/batches/" + batch.ID)
	h.call(t, "GET", other, "").refused(t, 404, api.CodeBatchNotFound)
	h.call(t, "POST", other+":seal", "").refused(t, 404, api.CodeBatchNotFound)
}
