package controlplane_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
)

// A key of one namespace settles, and depends on, the jobs of that namespace: to
// it, no others exist.
func TestJobsOfOtherNamespacesDoNotExist(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	admin, _ := k.key(t, api.RoleAdmin)
	ours, _ := k.key(t, api.RoleDeveloper, inNamespace("payments"))
	theirs, _ := k.key(t, api.RoleWorker, inNamespace("others"))
	enqueue := func(key, namespace, body string) answer {
		return k.as(t, key, "POST", k.at("T/namespaces/"+namespace+"/queues/emails/jobs"), body)
	}
	id := ok[enqueued](t, enqueue(ours, "payments", `{}`), 201).Jobs[0].ID
	fetch := func(key, namespace, worker string) answer {
		return k.as(t, key, "POST", k.at("T/jobs:fetch"), fmt.Sprintf(`{"namespace":%q,"queues":["emails"],"worker_id":%q}`, namespace, worker))
	}
	fetch(theirs, "payments", "w1").refused(t, 403, api.CodeAuthzDenied)
	jobs := ok[fetched](t, fetch(ours, "payments", "w1"), 200).Jobs
	if len(jobs) != 1 || jobs[0].ID != id {
		t.Fatalf("got %+v, want 1 job and id %v of the first job", jobs, id)
	}
	own := ok[enqueued](t, enqueue(theirs, "others", `{}`), 201).Jobs[0].ID
	mine := ok[fetched](t, fetch(theirs, "others", "w2"), 200).Jobs[0]
	for verb, body := range map[string]string{
		"ack":       `{"acks":[{"id":%q,"lease_epoch":1},{"id":%q,"lease_epoch":%d,"continue":true}]}`,
		"fail":      `{"fails":[{"id":%q,"lease_epoch":1,"error":"x","fatal":true},{"id":%q,"lease_epoch":%d,"error":"x","snooze_ms":0}]}`,
		"heartbeat": `{"worker_id":"w1","jobs":[{"id":%q,"lease_epoch":1},{"id":%q,"lease_epoch":%d}]}`,
	} {
		a := k.as(t, theirs, "POST", k.at("T/jobs:"+verb), fmt.Sprintf(body, id, own, mine.LeaseEpoch))
		got := ok[settled](t, a, a.status).Jobs
		if len(got) != 2 || got[0].OK || got[0].Code != api.CodeJobNotFound || got[0].State != "" || got[1].ID != own {
			t.Errorf("%s: got %s, want CodeJobNotFound without a state for the first job, and an outcome of %v", verb, a.body, own)
		}
	}
	if job := ok[api.Job](t, k.as(t, ours, "GET", k.at("T/jobs/"+id), ""), 200); job.State != api.JobActive || job.Lease.Epoch != 1 {
		t.Errorf("got job %+v, want it active with lease epoch 1", job)
	}
	// Neither its batch nor the job itself can be referred to.
	batch := ok[api.Batch](t, k.as(t, ours, "POST", k.at("N/batches"), ""), 201).ID
	enqueue(theirs, "others", `{"batch_id":"`+batch+`"}`).refused(t, 404, api.CodeBatchNotFound)
	enqueue(theirs, "others", `{"depends_on":["`+id+`"]}`).refused(t, 404, api.CodeJobNotFound)
	ok[enqueued](t, enqueue(ours, "payments", `{"batch_id":"`+batch+`","depends_on":["`+id+`"]}`), 201)
	ok[enqueued](t, enqueue(theirs, "others", `{"depends_on":["`+own+`"]}`), 201)
	// Workers are those of the namespace.
	seen := func(key string) (ids []string) {
		t.Helper()
		for _, w := range ok[api.Page[api.Worker]](t, k.as(t, key, "GET", k.at("T/workers"), ""), 200).Items {
			ids = append(ids, w.ID)
		}
		return ids
	}
	if diff := cmp.Diff([]string{"w1"}, seen(ours)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"w1", "w2"}, seen(admin)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The right to add jobs does not include the right to run functions.
func TestJobsThatRunFunctionsNeedTheRightToInvoke(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.publish(t, "payments", "hello", `{"authz":{"invoke_http_roles":["role:billing"]}}`)
	worker, _ := k.key(t, api.RoleWorker)
	invoker, _ := k.key(t, api.RoleInvoker)
	billing, _ := k.key(t, api.RoleDeveloper, withRoles(api.RoleDeveloper, "role:billing"))
	const target = `{"queue":"fn.hello","target":{"function":"hello","alias":"prod"}}`
	for name, body := range map[string]string{
		"step":       `{"chain":{"steps":[` + target + `]}}`,
		"on failure": `{"chain":{"on_failure":` + target + `}}`,
		"on exit":    `{"jobs":[{},{"chain":{"on_exit":` + target + `}}]}`,
	} {
		path := k.at("N/queues/emails/jobs")
		if p := k.as(t, worker, "POST", path, body).refused(t, 403, api.CodeAuthzDenied); p.Detail != "the request needs the action cs:function:invoke, which the roles of the API key (worker) do not grant" {
			t.Errorf("%s: POST: got %s, want detail \"the request needs the action cs:function:invoke, which the roles of the API key (worker) do not grant\"", name, p.Detail)
		}
		k.as(t, invoker, "POST", path, body).refused(t, 403, api.CodeAuthzDenied)
		ok[enqueued](t, k.as(t, billing, "POST", path, body), 201)
	}
	callback := `{"callback":` + target + `}`
	developer, _ := k.key(t, api.RoleDeveloper)
	k.as(t, developer, "POST", k.at("N/batches"), callback).refused(t, 403, api.CodeAuthzDenied)
	ok[api.Batch](t, k.as(t, billing, "POST", k.at("N/batches"), callback), 201)
	unknown := `{"chain":{"on_exit":{"queue":"fn.ghost","target":{"function":"ghost","alias":"prod"}}}}`
	k.as(t, billing, "POST", k.at("N/queues/emails/jobs"), unknown).refused(t, 404, api.CodeFunctionNotFound)
}

// TestJobsThatRunFunctionsKeepTheirCaller: the worker compares the stored roles with the list of the
// version that it runs.
func TestJobsThatRunFunctionsKeepTheirCaller(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.publish(t, "payments", "hello", `{}`)
	developer, record := k.key(t, api.RoleDeveloper)
	want := &api.JobAuthor{Principal: api.Principal{Sub: record.ID, Roles: []string{api.RoleDeveloper}}, Access: api.AccessGranted}
	const target = `{"queue":"fn.hello","target":{"function":"hello","alias":"prod"}}`
	author := func(body string) *api.JobAuthor {
		t.Helper()
		ok[enqueued](t, k.as(t, developer, "POST", k.at("N/queues/emails/jobs"), body), 201)
		jobs, err := k.queue.Fetch(t.Context(), queue.Fetch{Tenant: k.tenant, Namespace: "payments", Queues: []string{"emails"}, WorkerID: "w1", Count: 1})
		if err != nil || len(jobs) != 1 {
			t.Fatalf("Fetch: got %d jobs, error %v, want 1 job", len(jobs), err)
		}
		return jobs[0].Spec.By
	}
	if diff := cmp.Diff(want, author(`{"chain":{"on_exit":`+target+`}}`)); diff != "" {
		t.Errorf("the author of a chain (-want +got):\n%s", diff)
	}
	if got := author(`{"payload":1}`); got != nil {
		t.Errorf("got author %+v of a job that runs no function, want none", got)
	}
	batch := ok[api.Batch](t, k.as(t, developer, "POST", k.at("N/batches"), `{"callback":`+target+`}`), 201)
	stored, err := k.queue.GetBatch(t.Context(), k.tenant, "payments", batch.ID)
	if err != nil {
		t.Fatalf("GetBatch: %v", err)
	}
	if diff := cmp.Diff(want, stored.Callback.By); diff != "" {
		t.Errorf("the author of a callback (-want +got):\n%s", diff)
	}
}

// What people do with jobs and queues is audited, what producers and workers do
// all the time is not.
func TestSteeringIsAudited(t *testing.T) {
	t.Parallel()
	h := start(t)
	id := h.add(t, "emails", `{}`)
	job := h.take(t, "emails", 1)[0]
	ok[settled](t, h.call(t, "POST", h.at("T/jobs:heartbeat"), fmt.Sprintf(`{"worker_id":"w1","jobs":[{"id":%q,"lease_epoch":%d}]}`, id, job.LeaseEpoch)), 200)
	ok[settled](t, h.call(t, "POST", h.at("T/jobs:fail"), fmt.Sprintf(`{"fails":[{"id":%q,"lease_epoch":%d,"error":"x","fatal":true}]}`, id, job.LeaseEpoch)), 200)
	batch := ok[api.Batch](t, h.call(t, "POST", h.at("N/batches"), ""), 201).ID
	ok[api.Batch](t, h.call(t, "POST", h.at("N/batches/"+batch+":seal"), ""), 200)
	if events := h.audit(t, h.tenant); len(events) != 0 {
		t.Errorf("audit: got %+v, want no events", events)
	}
	var want []string
	for _, call := range []struct{ method, path, action string }{
		{"POST", "T/jobs/" + id + ":retry", "cs:job:steer"},
		{"POST", "T/jobs/" + id + ":hold", "cs:job:steer"},
		{"PATCH", "N/queues/emails", "cs:queue:configure"},
		{"POST", "N/queues/emails:drain", "cs:queue:configure"},
		{"POST", "N/queues/emails:resume", "cs:queue:configure"},
		{"POST", "N/queues/emails:redrive", "cs:job:steer"},
		// Before the queue is cleared: a refused call is in a stream of its own, and has no order
		// with the changes of the same millisecond.
		{"DELETE", "T/jobs/" + id, "cs:job:delete"},
		{"POST", "N/queues/emails:clear", "cs:queue:clear"},
		{"DELETE", "N/queues/emails", "cs:queue:delete"},
	} {
		body := ""
		if call.method == "PATCH" {
			body = "{}"
		}
		if got := h.call(t, call.method, h.at(call.path), body); got.status >= 300 {
			t.Errorf("%s %s: got status %d (%s), want success", call.method, call.path, got.status, got.body)
		}
		want = append(want, call.action)
	}
	var got []string
	for _, event := range h.audit(t, h.tenant) {
		got = append(got, event.Action)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
