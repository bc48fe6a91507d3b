package controlplane_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/tasks"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

const taskPath = "T/tasks/email-send/k1"

// addTask creates a task of the namespace payments.
func (h *harness) addTask(t *testing.T) {
	t.Helper()
	all, err := tasks.New(h.store, h.queue, tasks.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	if _, _, err := all.Create(t.Context(), h.tenant, "email-send", "k1", api.NewTask{Namespace: "payments"}); err != nil {
		t.Fatalf("Create: %v", err)
	}
}

// A task's whole life over HTTP. Every answer is held to the OpenAPI document.
func TestTasksOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t)
	now := func(task api.Task) api.Task {
		if task.CreatedAtMS == 0 || task.UpdatedAtMS == 0 || api.ValidateJobID(task.JobID) != nil {
			t.Errorf("got task %+v, want creation and change times and a valid job id", task)
		}
		return task
	}
	same := cmpopts.IgnoreFields(api.Task{}, "CreatedAtMS", "UpdatedAtMS", "JobID", "TimeoutAtMS")
	want := api.Task{
		TaskType: "email-send", TaskID: "k1", State: api.TaskPending, StepCount: 3, ParamsRef: "s3://in", TimeoutMS: 2000,
		Namespace: "payments", Queue: "mails", Payload: json.RawMessage(`{"a":1}`),
	}
	create := `{"namespace":"payments","queue":"mails","params_ref":"s3://in","step_count":3,"timeout_ms":2000,"payload":{"a":1}}`
	for _, status := range []int{http.StatusCreated, http.StatusOK} {
		made := now(ok[api.Task](t, h.call(t, "PUT", h.at(taskPath), create), status))
		if diff := cmp.Diff(want, made, same); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	h.call(t, "PUT", h.at(taskPath), `{}`).refused(t, 409, api.CodeTaskExists)
	jobs := h.take(t, "mails", 10)
	if len(jobs) != 1 || string(jobs[0].Payload) != `{"task_type":"email-send","task_id":"k1","params_ref":"s3://in","payload":{"a":1},"reason":"created"}` {
		t.Errorf("take: got %+v, want 1 job and payload {\"task_type\":\"email-send\",\"task_id\":\"k1\",\"params_ref\":\"s3://in\",\"payload\":{\"a\":1},\"reason\":\"created\"} of the first job", jobs)
	}
	report := func(verb, body string) api.Task {
		t.Helper()
		return now(ok[api.Task](t, h.call(t, "POST", h.at(taskPath)+":"+verb, body), 200))
	}
	want.State, want.Worker = api.TaskClaimed, "w1"
	if diff := cmp.Diff(want, report("claim", `{"worker":"w1"}`), same); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p := h.call(t, "POST", h.at(taskPath)+":claim", `{"worker":"w2"}`).refused(t, 409, api.CodeTaskState)
	if !strings.Contains(p.Detail, "claimed") || !strings.Contains(p.Detail, "w1") {
		t.Errorf("POST: got %v, want a detail that contains \"claimed\" and a detail that contains \"w1\"", p.Detail)
	}
	want.State, want.CurrentStep = api.TaskRunning, 2
	stepped := report("step", `{"worker":"w1","step":2,"timeout_ms":5000}`)
	// Changes within a millisecond raise the time of the change by one each, and not the timeout.
	ahead := stepped.UpdatedAtMS + 5000 - stepped.TimeoutAtMS
	if diff := cmp.Diff(want, stepped, same); diff != "" || ahead < 0 || ahead > 2 {
		t.Errorf("(-want +got):\n%s\n%+v", diff, stepped)
	}
	h.call(t, "POST", h.at(taskPath)+":step", `{"worker":"w1","step":1}`).refused(t, 409, api.CodeTaskState)
	listed := ok[api.Page[api.Task]](t, h.call(t, "GET", h.at("T/tasks"), ""), 200)
	unpaid := want
	unpaid.Payload = nil
	if diff := cmp.Diff([]api.Task{unpaid}, listed.Items, same); diff != "" || listed.NextCursor != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.State, want.ResultRef = api.TaskCompleted, "s3://out"
	for range 2 {
		if diff := cmp.Diff(want, report("complete", `{"worker":"w1","result_ref":"s3://out"}`), same); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(want, now(ok[api.Task](t, h.call(t, "GET", h.at(taskPath), ""), 200)), same); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.call(t, "POST", h.at(taskPath)+":cancel", "").refused(t, 409, api.CodeTaskState)
	// Another one fails, a third is cancelled; the queue is called as the type.
	for _, id := range []string{"k2", "K.3_x"} {
		path := h.at("T/tasks/email-send/") + id
		if task := ok[api.Task](t, h.call(t, "PUT", path, `{}`), 201); task.Queue != "email-send" || task.Namespace != api.DefaultTaskNamespace {
			t.Errorf("got task %+v, want queue email-send and namespace %s", task, api.DefaultTaskNamespace)
		}
		ok[api.Task](t, h.call(t, "POST", path+":claim", `{"worker":"w1"}`), 200)
	}
	if task := ok[api.Task](t, h.call(t, "POST", h.at("T/tasks/email-send/k2:fail"), `{"worker":"w1","error":"broke"}`), 200); task.State != api.TaskFailed || task.Error != "broke" {
		t.Errorf("POST: got %+v, want state failed and error \"broke\"", task)
	}
	for range 2 {
		if task := ok[api.Task](t, h.call(t, "POST", h.at("T/tasks/email-send/")+"K.3_x:cancel", ""), 200); task.State != api.TaskCancelled {
			t.Errorf("POST: got %+v, want state cancelled", task)
		}
	}
}

func TestListTasksOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t)
	var all []string
	for n := range 5 {
		id := fmt.Sprint("t", n)
		ok[api.Task](t, h.call(t, "PUT", h.at("T/tasks/email-send/")+id, `{}`), 201)
		all = append(all, id)
	}
	ok[api.Task](t, h.call(t, "PUT", h.at("T/tasks/other-type/x"), `{}`), 201)
	var got []string
	query := "?type=email-send&limit=2"
	for next := query; next != ""; {
		page := ok[api.Page[api.Task]](t, h.call(t, "GET", h.at("T/tasks")+next, ""), 200)
		for _, task := range page.Items {
			got = append(got, task.TaskID)
		}
		next = ""
		if page.NextCursor != nil {
			next = query + "&cursor=" + *page.NextCursor
			h.call(t, "GET", h.at("T/tasks")+"?limit=2&cursor="+*page.NextCursor, "").refused(t, 400, api.CodeValidationCursor)
		}
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if page := ok[api.Page[api.Task]](t, h.call(t, "GET", h.at("T/tasks")+"?stuck=true", ""), 200); page.Items == nil || len(page.Items) != 0 {
		t.Errorf("got page %+v, want items []", page)
	}
}

// A key of one namespace sees, makes and works on the tasks of that namespace: to it,
// no others exist.
func TestTasksOfOtherNamespacesDoNotExist(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	ours, _ := k.key(t, api.RoleWorker, inNamespace("payments"))
	theirs, _ := k.key(t, api.RoleDeveloper, inNamespace("others"))
	whole, _ := k.key(t, api.RoleDeveloper)
	ok[api.Task](t, k.as(t, whole, "PUT", k.at(taskPath), `{"namespace":"payments"}`), 201)
	ok[api.Task](t, k.as(t, ours, "PUT", k.at(taskPath), `{"namespace":"payments"}`), 200) // a repeat
	if p := k.as(t, ours, "PUT", k.at("T/tasks/email-send/payments.k2"), `{}`).refused(t, 403, api.CodeAuthzDenied); len(p.Errors) != 1 || p.Errors[0].Path != "namespace" {
		t.Errorf("got problem %+v, want one error, with the path namespace", p)
	}
	k.as(t, theirs, "PUT", k.at("T/tasks/email-send/k2"), `{"namespace":"payments"}`).refused(t, 403, api.CodeAuthzDenied)
	for verb, body := range map[string]string{
		"claim": `{"worker":"w1"}`, "step": `{"worker":"w1","step":1}`, "complete": `{"worker":"w1"}`, "fail": `{"worker":"w1","error":"x"}`, "cancel": "",
	} {
		k.as(t, theirs, "POST", k.at(taskPath)+":"+verb, body).refused(t, 404, api.CodeTaskNotFound)
	}
	k.as(t, theirs, "GET", k.at(taskPath), "").refused(t, 404, api.CodeTaskNotFound)
	if page := ok[api.Page[api.Task]](t, k.as(t, theirs, "GET", k.at("T/tasks"), ""), 200); len(page.Items) != 0 {
		t.Errorf("GET: got %+v, want no items", page)
	}
	if page := ok[api.Page[api.Task]](t, k.as(t, ours, "GET", k.at("T/tasks"), ""), 200); len(page.Items) != 1 || page.Items[0].State != api.TaskPending {
		t.Errorf("GET: got %+v, want 1 item and state pending of the first item", page)
	}
}

// A key of one namespace takes only ids that begin with the namespace, so that it occupies none
// of another, and learns nothing of those that exist.
func TestTaskIDsOfANamespaceBeginWithIt(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	ours, _ := k.key(t, api.RoleDeveloper, inNamespace("payments"))
	theirs, _ := k.key(t, api.RoleDeveloper, inNamespace("others"))
	ok[api.Task](t, k.as(t, theirs, "PUT", k.at("T/tasks/import/others.7"), `{"namespace":"others"}`), 201)
	ok[api.Task](t, k.as(t, ours, "PUT", k.at("T/tasks/import/payments.7"), `{"namespace":"payments"}`), 201)
	for _, id := range []string{"7", "others.7", "others.8", "payments", "payments-7", "payment.7"} {
		p := k.as(t, ours, "PUT", k.at("T/tasks/import/"+id), `{"namespace":"payments"}`).refused(t, 403, api.CodeAuthzDenied)
		if len(p.Errors) != 1 || p.Errors[0].Path != "task_id" {
			t.Errorf("creation of %s: got problem %+v, want one error, with the path task_id", id, p)
		}
	}
	ok[api.Task](t, k.as(t, theirs, "PUT", k.at("T/tasks/import/others.8"), `{"namespace":"others"}`), 201)
}

// What people do to tasks is audited, what producers and workers do all the time is not.
func TestCancellingTasksIsAudited(t *testing.T) {
	t.Parallel()
	h := start(t)
	ok[api.Task](t, h.call(t, "PUT", h.at(taskPath), `{}`), 201)
	ok[api.Task](t, h.call(t, "POST", h.at(taskPath)+":claim", `{"worker":"w1"}`), 200)
	ok[api.Task](t, h.call(t, "POST", h.at(taskPath)+":cancel", ""), 200)
	events := h.audit(t, h.tenant)
	if len(events) != 1 || events[0].Action != "cs:task:cancel" {
		t.Errorf("got events %+v, want one with the action cs:task:cancel", events)
	}
}

// TestBadTasksAreRefusedAndChangeNothing holds every kind of bad input of the tasks'
// routes to its code, and the store to what it was.
func TestBadTasksAreRefusedAndChangeNothing(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	h := startOn(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	ok[api.Task](t, h.call(t, "PUT", h.at(taskPath), `{"step_count":3}`), 201)
	ok[api.Task](t, h.call(t, "POST", h.at(taskPath)+":claim", `{"worker":"w1"}`), 200)
	ok[api.Task](t, h.call(t, "POST", h.at(taskPath)+":step", `{"worker":"w1","step":2}`), 200)
	ok[api.Task](t, h.call(t, "PUT", h.at("T/tasks/email-send/done"), `{}`), 201)
	ok[api.Task](t, h.call(t, "POST", h.at("T/tasks/email-send/done:cancel"), ``), 200)
	h.call(t, "POST", h.at("N/queues/drained/jobs"), `{}`)
	ok[api.Queue](t, h.call(t, "POST", h.at("N/queues/drained:drain"), ""), 200)

	const fresh = "T/tasks/email-send/new"
	long := strings.Repeat("a", 10_000)
	before := h.snapshot(t, client)
	for _, tc := range []struct {
		name, method, path, body string
		status                   int
		code                     api.Code
		field                    string
	}{
		{"type", "PUT", "T/tasks/Email/new", `{}`, 400, api.CodeValidationName, "task_type"},
		{"type with a digit first", "PUT", "T/tasks/1ab/new", `{}`, 400, api.CodeValidationName, "task_type"},
		{"id", "PUT", "T/tasks/email-send/-a", `{}`, 400, api.CodeValidationName, "task_id"},
		{"id with a colon", "PUT", "T/tasks/email-send/a:b", `{}`, 400, api.CodeValidationName, "task_id"},
		{"id with a slash", "PUT", "T/tasks/email-send/a%2Fb", `{}`, 400, api.CodeValidationName, "task_id"},
		{"id with a brace", "PUT", "T/tasks/email-send/%7Ba%7D", `{}`, 400, api.CodeValidationName, "task_id"},
		{"long id", "PUT", "T/tasks/email-send/" + long[:129], `{}`, 400, api.CodeValidationName, "task_id"},
		{"no body", "PUT", fresh, ``, 400, api.CodeValidationJSON, ""},
		{"not JSON", "PUT", fresh, `{`, 400, api.CodeValidationJSON, ""},
		{"a list", "PUT", fresh, `[]`, 422, api.CodeInvalid, ""},
		{"unknown field", "PUT", fresh, `{"state":"running"}`, 422, api.CodeInvalid, "state"},
		{"namespace", "PUT", fresh, `{"namespace":"P"}`, 400, api.CodeValidationName, "namespace"},
		{"queue", "PUT", fresh, `{"queue":"P"}`, 400, api.CodeValidationName, "queue"},
		{"queue of the platform", "PUT", fresh, `{"queue":"fn.hello"}`, 409, api.CodeQueueReserved, "queue"},
		{"queue that drains", "PUT", fresh, `{"namespace":"payments","queue":"drained"}`, 409, api.CodeQueueDraining, ""},
		{"ref", "PUT", fresh, `{"params_ref":"` + long + `"}`, 422, api.CodeInvalid, "params_ref"},
		{"ref of two lines", "PUT", fresh, `{"params_ref":"a\nb"}`, 422, api.CodeInvalid, "params_ref"},
		{"steps", "PUT", fresh, `{"step_count":-1}`, 422, api.CodeInvalid, "step_count"},
		{"steps of another type", "PUT", fresh, `{"step_count":"3"}`, 422, api.CodeInvalid, "step_count"},
		{"timeout", "PUT", fresh, `{"timeout_ms":999}`, 422, api.CodeInvalid, "timeout_ms"},
		{"payload", "PUT", fresh, `{"payload":"` + strings.Repeat("x", api.MaxTaskPayloadBytes) + `"}`, 413, api.CodeBodyLimit, "payload"},
		{"body over 1 MiB", "PUT", fresh, oversized(api.MaxRequestBytes), 413, api.CodeBodyLimit, ""},
		{"made otherwise", "PUT", taskPath, `{"step_count":4}`, 409, api.CodeTaskExists, ""},
		{"no task", "GET", fresh, ``, 404, api.CodeTaskNotFound, ""},
		{"claim of no task", "POST", fresh + ":claim", `{"worker":"w1"}`, 404, api.CodeTaskNotFound, ""},
		{"cancel of no task", "POST", fresh + ":cancel", ``, 404, api.CodeTaskNotFound, ""},
		{"claim without worker", "POST", taskPath + ":claim", `{}`, 422, api.CodeInvalid, "worker"},
		{"claim by a blank", "POST", taskPath + ":claim", `{"worker":"a b"}`, 400, api.CodeValidationName, "worker"},
		{"claim's timeout", "POST", taskPath + ":claim", `{"worker":"w1","timeout_ms":1}`, 422, api.CodeInvalid, "timeout_ms"},
		{"claim of another's", "POST", taskPath + ":claim", `{"worker":"w2"}`, 409, api.CodeTaskState, ""},
		{"step without a step", "POST", taskPath + ":step", `{"worker":"w1"}`, 422, api.CodeInvalid, "step"},
		{"step beyond the last", "POST", taskPath + ":step", `{"worker":"w1","step":4}`, 422, api.CodeInvalid, "step"},
		{"step below none", "POST", taskPath + ":step", `{"worker":"w1","step":-1}`, 422, api.CodeInvalid, "step"},
		{"step back", "POST", taskPath + ":step", `{"worker":"w1","step":1}`, 409, api.CodeTaskState, ""},
		{"step of another's", "POST", taskPath + ":step", `{"worker":"w2","step":3}`, 409, api.CodeTaskState, ""},
		{"end of another's", "POST", taskPath + ":complete", `{"worker":"w2"}`, 409, api.CodeTaskState, ""},
		{"result", "POST", taskPath + ":complete", `{"worker":"w1","result_ref":"` + long + `"}`, 422, api.CodeInvalid, "result_ref"},
		{"failure of no reason", "POST", taskPath + ":fail", `{"worker":"w1","error":""}`, 422, api.CodeInvalid, "error"},
		{"failure of a long one", "POST", taskPath + ":fail", `{"worker":"w1","error":"` + long + `"}`, 422, api.CodeInvalid, "error"},
		{"end of an ended one", "POST", "T/tasks/email-send/done:complete", `{"worker":"w1"}`, 409, api.CodeTaskState, ""},
		{"type of a list", "GET", "T/tasks?type=X", ``, 422, api.CodeInvalid, "type"},
		{"stuck of a list", "GET", "T/tasks?stuck=maybe", ``, 422, api.CodeInvalid, "stuck"},
		{"cursor of a list", "GET", "T/tasks?cursor=AAAAAAAAAAAx", ``, 400, api.CodeValidationCursor, "cursor"},
		{"limit of a list", "GET", "T/tasks?limit=501", ``, 422, api.CodeInvalid, "limit"},
		{"no such verb", "POST", taskPath + ":release", `{}`, 405, api.CodeMethodNotAllowed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rest := strings.TrimPrefix(tc.path, "T")
			p := h.call(t, tc.method, "/v1/tenants/"+h.tenant+rest, tc.body, "Content-Type", "application/json").refused(t, tc.status, tc.code)
			if tc.field != "" && (len(p.Errors) == 0 || p.Errors[0].Path != tc.field) {
				t.Errorf("errors %+v, want the first at %q", p.Errors, tc.field)
			}
		})
	}
	if diff := cmp.Diff(before, h.snapshot(t, client)); diff != "" {
		t.Errorf("the store changed: (-want +got):\n%s", diff)
	}
}
