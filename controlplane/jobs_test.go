package controlplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

type (
	enqueued struct{ Jobs []api.EnqueuedJob }
	fetched  struct{ Jobs []api.FetchedJob }
	settled  struct{ Jobs []api.JobOutcome }
)

// at is a path of the harness's tenant: N and T as in docs/api.md.
func (h *harness) at(path string) string {
	return strings.NewReplacer("T", "/v1/tenants/"+h.tenant, "N", "/v1/tenants/"+h.tenant+"/namespaces/payments").Replace(path)
}

// add enqueues one job and returns its id.
func (h *harness) add(t *testing.T, queueName, body string) string {
	t.Helper()
	return ok[enqueued](t, h.call(t, "POST", h.at("N/queues/"+queueName+"/jobs"), body), http.StatusCreated).Jobs[0].ID
}

// take fetches jobs of a queue.
func (h *harness) take(t *testing.T, queueName string, count int) []api.FetchedJob {
	t.Helper()
	body := fmt.Sprintf(`{"namespace":"payments","queues":[%q],"worker_id":"w1","count":%d,"hostname":"here","version":"1.2"}`, queueName, count)
	return ok[fetched](t, h.call(t, "POST", h.at("T/jobs:fetch"), body), http.StatusOK).Jobs
}

func (h *harness) job(t *testing.T, id string) api.Job {
	t.Helper()
	return ok[api.Job](t, h.call(t, "GET", h.at("T/jobs/"+id), ""), http.StatusOK)
}

// jobs makes an active job and a cancelled one in the queue emails of payments.
func (h *harness) jobs(t *testing.T) (active, cancelled string) {
	t.Helper()
	in := queue.Enqueue{Tenant: h.tenant, Namespace: "payments", Queue: "emails", Jobs: make([]api.NewJob, 1)}
	var ids [2]string
	for i := range ids {
		made, err := h.queue.Enqueue(t.Context(), in)
		if err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
		ids[i] = made[0].ID
	}
	if _, err := h.queue.Cancel(t.Context(), h.tenant, ids[1]); err != nil {
		t.Fatalf("Cancel: %v", err)
	}
	got, err := h.queue.Fetch(t.Context(), queue.Fetch{Tenant: h.tenant, Namespace: "payments", Queues: []string{"emails"}, WorkerID: "w0", Lease: time.Hour})
	if err != nil || len(got) != 1 {
		t.Fatalf("Fetch: got jobs %v and error %v, want 1 job and no error", got, err)
	}
	return ids[0], ids[1]
}

// A job's whole life over HTTP. Every answer is held to the OpenAPI document.
func TestJobsOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t)
	id := h.add(t, "emails", `{"payload":{"to":"a"},"priority":"high","tags":{"kind":"mail"},"max_attempts":3,"base_delay_ms":0}`)
	many := ok[enqueued](t, h.call(t, "POST", h.at("N/queues/emails/jobs"), `{"jobs":[{"payload":1},{},{"payload":null,"hold":true}]}`), 201)
	if len(many.Jobs) != 3 || many.Jobs[2].State != api.JobHeld {
		t.Fatalf("got %+v, want 3 jobs, the third held", many)
	}
	jobs := h.take(t, "emails", 1)
	if len(jobs) != 1 || jobs[0].ID != id || string(jobs[0].Payload) != `{"to":"a"}` || jobs[0].Attempt != 1 || jobs[0].MaxAttempts != 3 || jobs[0].Tags["kind"] != "mail" {
		t.Fatalf("got jobs %+v, want %v alone: attempt 1 of 3, with its payload and the tag kind=mail", jobs, id)
	}
	epoch := jobs[0].LeaseEpoch
	beat := ok[settled](t, h.call(t, "POST", h.at("T/jobs:heartbeat"),
		fmt.Sprintf(`{"worker_id":"w1","jobs":[{"id":%q,"lease_epoch":%d,"lease_ms":60000,"progress":{"current":1,"total":2,"message":"half"},"checkpoint":{"at":1}}]}`, id, epoch)), 200)
	if !beat.Jobs[0].OK || beat.Jobs[0].LeaseExpiresMS <= jobs[0].LeaseExpiresMS {
		t.Errorf("heartbeat: got %+v, want success and a lease beyond %d", beat, jobs[0].LeaseExpiresMS)
	}
	job := h.job(t, id)
	if job.State != api.JobActive || job.Lease.WorkerID != "w1" || string(job.Checkpoint) != `{"at":1}` || !strings.Contains(string(job.Progress), "half") {
		t.Errorf("got job %+v, want it leased to w1 with checkpoint {\"at\":1} and progress half", job)
	}
	failed := ok[settled](t, h.call(t, "POST", h.at("T/jobs:fail"), fmt.Sprintf(`{"fails":[{"id":%q,"lease_epoch":%d,"error":"no such host","stack":"at x","fatal":true}]}`, id, epoch)), 200)
	if !failed.Jobs[0].OK || failed.Jobs[0].State != api.JobDead {
		t.Errorf("fail: got %+v, want success and state dead", failed)
	}
	job = h.job(t, id)
	if job.DeadReason != api.DeadFatal || len(job.Errors) != 1 || job.Errors[0].Error != "no such host" {
		t.Errorf("got job %+v, want dead reason fatal and the error \"no such host\"", job)
	}
	// An operator brings it back.
	ok[api.Job](t, h.call(t, "POST", h.at("T/jobs/"+id+":retry"), ""), 200)
	again := h.take(t, "emails", 1)
	if len(again) != 1 || again[0].LeaseEpoch != epoch+1 || string(again[0].Checkpoint) != `{"at":1}` {
		t.Fatalf("got jobs %+v, want 1 with lease epoch %d and checkpoint {\"at\":1}", again, epoch+1)
	}
	// The old epoch settles nothing, and a call of which nothing succeeded says so.
	late := ok[settled](t, h.call(t, "POST", h.at("T/jobs:ack"), fmt.Sprintf(`{"acks":[{"id":%q,"lease_epoch":%d}]}`, id, epoch)), 409)
	if late.Jobs[0].OK || late.Jobs[0].Code != api.CodeJobLeaseLost || late.Jobs[0].State != api.JobActive {
		t.Errorf("ack of the earlier lease: got %+v, want CodeJobLeaseLost and state active", late)
	}
	ack := fmt.Sprintf(`{"acks":[{"id":"nonsense","lease_epoch":1},{"id":%q,"lease_epoch":%d,"result":{"sent":true}},{"id":%q,"lease_epoch":1}]}`, id, epoch+1, activationID)
	for range 2 { // a repeat succeeds
		done := ok[settled](t, h.call(t, "POST", h.at("T/jobs:ack"), ack), 200)
		want := []string{"nonsense CS_JOB_NOT_FOUND ", id + "  completed", activationID + " CS_JOB_NOT_FOUND "}
		for i, o := range done.Jobs {
			if got := fmt.Sprintf("%s %s %s", o.ID, o.Code, o.State); got != want[i] {
				t.Errorf("%s, want %s", got, want[i])
			}
		}
	}
	job = h.job(t, id)
	if job.State != api.JobCompleted || string(job.Result) != `{"sent":true}` || job.EndedAtMS == 0 ||
		job.WorkerID != "w1" || job.StartedAtMS == 0 || job.StartedAtMS > job.EndedAtMS || job.Lease != nil {
		t.Errorf("got job %+v, want it completed by w1 with result {\"sent\":true}, a start and an end", job)
	}
	if raw := h.call(t, "GET", h.at("T/jobs/"+id), "").body; strings.Contains(string(raw), `"score"`) {
		t.Errorf("got job %s, want no score: it is the platform's", raw)
	}
	workers := ok[api.Page[api.Worker]](t, h.call(t, "GET", h.at("T/workers"), ""), 200)
	if len(workers.Items) != 1 || workers.Items[0].ID != "w1" || workers.Items[0].Hostname != "here" || workers.Items[0].Version != "1.2" {
		t.Errorf("got workers %+v, want w1 alone, of the host here and version 1.2", workers)
	}
	h.call(t, "DELETE", h.at("T/jobs/"+id), "")
	h.call(t, "GET", h.at("T/jobs/"+id), "").refused(t, 404, api.CodeJobNotFound)
}

func TestJobsAreSteered(t *testing.T) {
	t.Parallel()
	h := start(t)
	id := h.add(t, "emails", `{"payload":1}`)
	steer := func(verb, body string, want api.JobState) api.Job {
		t.Helper()
		job := ok[api.Job](t, h.call(t, "POST", h.at("T/jobs/"+id+":"+verb), body), 200)
		if job.State != want {
			t.Errorf("%s made it %s, want state %v", verb, job.State, want)
		}
		return job
	}
	if job := steer("hold", `{"reason":"look at it"}`, api.JobHeld); job.HoldReason != "look at it" {
		t.Errorf("steer: got %+v, want hold reason \"look at it\"", job)
	}
	steer("approve", "", api.JobPending)
	if job := steer("move", `{"queue":"slow"}`, api.JobPending); job.Queue != "slow" {
		t.Errorf("steer: got %+v, want queue \"slow\"", job)
	}
	steer("cancel", "", api.JobCancelled)
	steer("cancel", "", api.JobCancelled)
	steer("retry", "", api.JobPending)
	steer("hold", "", api.JobHeld)
	if job := steer("reject", "", api.JobDead); job.DeadReason != api.DeadRejected {
		t.Errorf("steer: got %+v, want dead reason rejected", job)
	}
	for _, verb := range []string{"hold", "approve", "reject", "cancel"} {
		p := h.call(t, "POST", h.at("T/jobs/"+id+":"+verb), "").refused(t, 409, api.CodeJobState)
		if !strings.Contains(p.Detail, "is dead") {
			t.Errorf("%s: POST: got %s, want a detail that contains \"is dead\"", verb, p.Detail)
		}
	}
}

func TestJobsAreListed(t *testing.T) {
	t.Parallel()
	h := start(t)
	for i := range 5 {
		h.add(t, "emails", fmt.Sprintf(`{"payload":%d,"tags":{"parity":"%d"}}`, i, i%2))
	}
	held := h.add(t, "emails", `{"hold":true}`)
	list := func(query string) (payloads string) {
		t.Helper()
		for cursor := ""; ; {
			p := ok[api.Page[api.Job]](t, h.call(t, "GET", h.at("N/queues/emails/jobs")+"?limit=2"+query+cursor, ""), 200)
			for _, job := range p.Items {
				payloads += string(job.Payload)
			}
			if p.NextCursor == nil {
				return payloads
			}
			cursor = "&cursor=" + *p.NextCursor
		}
	}
	for query, want := range map[string]string{
		"": "01234", "&state=pending": "01234", "&tag=parity": "01234", "&tag=parity&tag_value=1": "13", "&tag=other": "",
		"&state=held": "null", "&state=completed": "", "&state=held&id=" + held[30:]: "null", "&state=held&id=" + held[:13]: "null", "&id=" + held[30:]: "",
	} {
		if got := list(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for _, state := range api.JobStates() {
		ok[api.Page[api.Job]](t, h.call(t, "GET", h.at("N/queues/emails/jobs?state="+string(state)), ""), 200)
	}
	// A cursor is good for its own list only.
	p := ok[api.Page[api.Job]](t, h.call(t, "GET", h.at("N/queues/emails/jobs?limit=2"), ""), 200)
	for _, other := range []string{"state=held", "id=" + held[30:]} {
		h.call(t, "GET", h.at("N/queues/emails/jobs")+"?limit=2&"+other+"&cursor="+*p.NextCursor, "").refused(t, 400, api.CodeValidationCursor)
	}
}

func TestEnqueueSaysWhatIsADuplicate(t *testing.T) {
	t.Parallel()
	h := start(t)
	path := h.at("N/queues/emails/jobs")
	first := ok[enqueued](t, h.call(t, "POST", path, `{"unique_key":"a"}`), 201)
	same := ok[enqueued](t, h.call(t, "POST", path, `{"jobs":[{"unique_key":"a"}]}`), 200)
	if !same.Jobs[0].Duplicate || same.Jobs[0].ID != first.Jobs[0].ID || same.Jobs[0].State != api.JobPending {
		t.Errorf("got %+v, want a duplicate of the pending job %s", same, first.Jobs[0].ID)
	}
	mixed := ok[enqueued](t, h.call(t, "POST", path, `{"jobs":[{"unique_key":"a"},{"unique_key":"b"}]}`), 201)
	if !mixed.Jobs[0].Duplicate || mixed.Jobs[1].Duplicate {
		t.Errorf("got %+v, want a duplicate first and a new job second", mixed)
	}
	made := h.call(t, "POST", path, `{"payload":7}`, "Idempotency-Key", "k1")
	again := h.call(t, "POST", path, `{"payload":7}`, "Idempotency-Key", "k1")
	if diff := cmp.Diff(ok[enqueued](t, made, 201), ok[enqueued](t, again, 200)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if made.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got headers %v and %v, want Idempotent-Replayed in the second answer only", made.header, again.header)
	}
	h.call(t, "POST", path, `{"payload":8}`, "Idempotency-Key", "k1").refused(t, 422, api.CodeIdempotencyMismatch)
}

// Jobs that are large come in several answers, none of which is too large.
func TestFetchStopsAtItsBytes(t *testing.T) {
	t.Parallel()
	h := startOn(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	payload := json.RawMessage(`"` + strings.Repeat("x", 300_000) + `"`)
	const total = 70
	for range total / 7 {
		jobs := make([]api.NewJob, 7)
		for i := range jobs {
			jobs[i].Payload = payload
		}
		if _, err := h.queue.Enqueue(t.Context(), queue.Enqueue{Tenant: h.tenant, Namespace: "payments", Queue: "large", Jobs: jobs}); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
	if n := len(h.take(t, "large", 1000)); n != 64 {
		t.Errorf("got %d jobs, want 64", n)
	}
	if n := len(h.take(t, "large", 1000)); n != total-64 {
		t.Errorf("got %d jobs, want %d", n, total-64)
	}
}

// A fetch of many small jobs takes them in one call.
func TestFetchTakesAllThatFits(t *testing.T) {
	t.Parallel()
	h := start(t)
	jobs := make([]api.NewJob, 300)
	if _, err := h.queue.Enqueue(t.Context(), queue.Enqueue{Tenant: h.tenant, Namespace: "payments", Queue: "small", Jobs: jobs}); err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	if n := len(h.take(t, "small", 250)); n != 250 {
		t.Errorf("got %d jobs, want 250", n)
	}
	if n := len(h.take(t, "small", 250)); n != 50 {
		t.Errorf("got %d jobs, want 50", n)
	}
}

// fetchPatience is well below what waitingFetch would wait.
const fetchPatience = 40 * time.Second

const waitingFetch = `{"namespace":"payments","queues":["emails"],"worker_id":"w1","wait_ms":60000}`

// waiting begins a fetch that waits, and returns a channel of its response. It returns
// once the worker's record shows that the fetch has begun.
func (h *harness) waiting(ctx context.Context, t *testing.T) <-chan *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+h.at("T/jobs:fetch"), strings.NewReader(waitingFetch))
	if err != nil {
		t.Fatalf("NewRequestWithContext: %v", err)
	}
	answered := make(chan *http.Response, 1)
	go func() {
		response, err := h.client.Do(request)
		if err != nil {
			response = nil
		}
		answered <- response
	}()
	for {
		workers, _, err := h.queue.Workers(t.Context(), h.tenant, "", 10)
		if err != nil {
			t.Fatalf("Workers: %v", err)
		}
		if len(workers) == 1 {
			return answered
		}
		time.Sleep(time.Millisecond) // the handler does not signal that it has begun
	}
}

func TestAFetchWaitsForWork(t *testing.T) {
	t.Parallel()
	h := start(t)
	answered := h.waiting(t.Context(), t)
	id := h.add(t, "emails", `{"payload":1}`)
	response := <-answered
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("ReadAll: %v", err)
	}
	if jobs := ok[fetched](t, answer{response.StatusCode, response.Header, raw}, 200).Jobs; len(jobs) != 1 || jobs[0].ID != id {
		t.Errorf("got %s, want 1 job and id %v of the first job", raw, id)
	}
}

func TestAWaitingFetchEndsWithTheServer(t *testing.T) {
	t.Parallel()
	h := start(t)
	answered := h.waiting(t.Context(), t)
	begin := time.Now()
	h.control.Drain()
	response := <-answered
	if took := time.Since(begin); took > fetchPatience {
		t.Errorf("the fetch waited %s longer, want at most %s", took, fetchPatience)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || string(raw) != "{\"jobs\":[]}\n" {
		t.Errorf("got %d %q and error %v, want 200 and jobs []", response.StatusCode, raw, err)
	}
}

// What a fetch would take for a client that has gone stays in the queue.
func TestAWaitingFetchEndsWithItsClient(t *testing.T) {
	t.Parallel()
	h := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	answered := h.waiting(ctx, t)
	begin := time.Now()
	cancel()
	<-answered
	h.Close() // waits for the requests in progress: no fetch waits any more
	if took := time.Since(begin); took > fetchPatience {
		t.Errorf("the fetch waited %s longer, want at most %s", took, fetchPatience)
	}
	in := queue.Enqueue{Tenant: h.tenant, Namespace: "payments", Queue: "emails", Jobs: make([]api.NewJob, 1)}
	if _, err := h.queue.Enqueue(t.Context(), in); err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	got, err := h.queue.Fetch(t.Context(), queue.Fetch{Tenant: h.tenant, Namespace: "payments", Queues: []string{"emails"}, WorkerID: "w2"})
	if err != nil || len(got) != 1 || got[0].Attempt != 1 {
		t.Errorf("Fetch: got jobs %+v and error %v, want 1 job of attempt 1 and no error", got, err)
	}
}
