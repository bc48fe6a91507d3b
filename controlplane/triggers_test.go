package controlplane_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/trigger"
)

func TestQueueTriggersOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t)
	path := h.at("N/queues/emails/trigger")
	h.call(t, "GET", path, "").refused(t, 404, api.CodeTriggerNotFound)
	a := h.call(t, "PUT", path, `{"function":"hello"}`)
	made := ok[trigger.QueueTrigger](t, a, 201)
	want := trigger.QueueTrigger{
		Queue: "emails", Function: "hello", Alias: "prod", BatchSize: 10, Enabled: true,
		Revision: 1, CreatedAtMS: made.CreatedAtMS, UpdatedAtMS: made.CreatedAtMS,
	}
	if diff := cmp.Diff(want, made); diff != "" || a.header.Get("ETag") != `"1"` {
		t.Errorf("(-want +got):\n%s\n%v", diff, a.header)
	}
	if same := ok[trigger.QueueTrigger](t, h.call(t, "PUT", path, `{"function":"hello","batch_size":10}`), 200); same.Revision != 1 {
		t.Errorf("the same again: got revision %d, want 1", same.Revision)
	}
	changed := ok[trigger.QueueTrigger](t, h.call(t, "PUT", path, `{"function":"hello","version":1,"batch_size":100,"window_ms":300000,"concurrency":1000,"enabled":false}`, "If-Match", `"1"`), 200)
	if changed.Revision != 2 || changed.Alias != "" || changed.Version != 1 || changed.BatchSize != 100 || changed.WindowMS != 300_000 || changed.Concurrency != 1000 || changed.Enabled {
		t.Errorf("got %+v, want all values changed at revision 2", changed)
	}
	h.call(t, "PUT", path, `{"function":"hello"}`, "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "PUT", path, `{"function":"other"}`).refused(t, 409, api.CodeTriggerExists)
	h.call(t, "PUT", h.at("N/queues/more/trigger"), `{"function":"hello"}`, "If-Match", `"1"`).refused(t, 404, api.CodeTriggerNotFound)

	ok[trigger.QueueTrigger](t, h.call(t, "PUT", h.at("N/queues/more/trigger"), `{"function":"other"}`), 201)
	first := ok[api.Page[trigger.QueueTrigger]](t, h.call(t, "GET", h.at("N/triggers")+"?limit=1", ""), 200)
	second := ok[api.Page[trigger.QueueTrigger]](t, h.call(t, "GET", h.at("N/triggers")+"?limit=1&cursor="+*first.NextCursor, ""), 200)
	if len(first.Items) != 1 || len(second.Items) != 1 || first.Items[0].Queue != "emails" || second.Items[0].Queue != "more" || second.NextCursor != nil {
		t.Errorf("got pages %+v and %+v, want emails, then more, and no third", first, second)
	}
	if of := ok[api.Page[trigger.QueueTrigger]](t, h.call(t, "GET", h.at("N/triggers")+"?function=other", ""), 200); len(of.Items) != 1 || of.Items[0].Queue != "more" {
		t.Errorf("got %+v of other, want the trigger of more", of.Items)
	}
	h.call(t, "DELETE", path, "", "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	if a := h.call(t, "DELETE", path, ""); a.status != 204 {
		t.Errorf("DELETE: got %d %s, want status 204", a.status, a.body)
	}
	h.call(t, "DELETE", path, "").refused(t, 404, api.CodeTriggerNotFound)
}

// TestQueueTriggersAskForRoles: the list of roles of a function holds for the caller that lets a
// queue trigger it, as for a caller of the function.
func TestQueueTriggersAskForRoles(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.publish(t, "payments", "hello", `{"authz":{"invoke_http_roles":["role:boss"]}}`)
	k.publish(t, "payments", "open", `{}`)
	operator, _ := k.key(t, api.RoleOperator)
	boss, _ := k.key(t, "", withRoles(api.RoleOperator, "role:boss"))
	path := k.at("N/queues/emails/trigger")
	k.as(t, operator, "PUT", path, `{"function":"hello"}`).refused(t, 403, api.CodeAuthzDenied)
	ok[trigger.QueueTrigger](t, k.as(t, boss, "PUT", path, `{"function":"hello"}`), 201)
	k.as(t, operator, "PUT", path, `{"function":"hello","batch_size":1}`).refused(t, 403, api.CodeAuthzDenied)
	ok[trigger.QueueTrigger](t, k.as(t, operator, "PUT", k.at("N/queues/more/trigger"), `{"function":"open"}`), 201)
}

func TestQueueTriggersThatAreRefused(t *testing.T) {
	t.Parallel()
	h := start(t)
	for body, field := range map[string]string{
		`{"function":"hello","batch_size":101}`:           "batch_size",
		`{"function":"hello","batch_size":-1}`:            "batch_size",
		`{"function":"hello","window_ms":300001}`:         "window_ms",
		`{"function":"hello","concurrency":1001}`:         "concurrency",
		`{"function":"hello","alias":"prod","version":1}`: "ref",
	} {
		p := h.call(t, "PUT", h.at("N/queues/emails/trigger"), body).refused(t, 422, api.CodeInvalid)
		if len(p.Errors) != 1 || p.Errors[0].Path != field {
			t.Errorf("%s: got errors %+v, want the field %s", body, p.Errors, field)
		}
	}
	h.call(t, "PUT", h.at("N/queues/fn.hello/trigger"), `{"function":"hello"}`).refused(t, 422, api.CodeInvalid)
}
