package controlplane_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
	"github.com/codesous/sous/storage/storagetest"
)

const chargesBinding = `{"name":"charges","domain":"payments","tasklist":"charges","activity_map":{"Charge":{"function":"hello"}}}`

func (h *harness) addBinding(t *testing.T) api.BindingStatus {
	t.Helper()
	return ok[api.BindingStatus](t, h.call(t, "POST", h.at("N/cadence/workers"), chargesBinding), 201)
}

func TestWorkerBindingsOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.call(t, "POST", h.at("N/cadence/workers"), `{"name":"refunds","domain":"payments","tasklist":"refunds","worker_id":"w1",
		"activity_map":{"Refund":{"function":"hello","version":3},"notify the payer":{"function":"hello","alias":"canary"}},
		"pollers":{"activity":2},"limits":{"max_inflight_tasks":5},"enabled":false}`, "If-None-Match", "*")
	made := ok[api.BindingStatus](t, a, 201)
	want := api.BindingStatus{
		WorkerBinding: api.WorkerBinding{
			Name: "refunds", Domain: "payments", Tasklist: "refunds", WorkerID: "w1",
			ActivityMap: map[string]api.JobTarget{"Refund": {Function: "hello", Version: 3}, "notify the payer": {Function: "hello", Alias: "canary"}},
			Pollers:     api.BindingPollers{Activity: 2}, Limits: api.BindingLimits{MaxInflightTasks: 5},
			Revision: 1, CreatedAtMS: made.CreatedAtMS, UpdatedAtMS: made.CreatedAtMS,
		},
		Status: api.BindingCounts{State: api.BindingDisabled}, Shares: []api.BindingReplica{},
	}
	if diff := cmp.Diff(want, made); diff != "" || a.header.Get("ETag") != `"1"` {
		t.Errorf("(-want +got):\n%s\n%v", diff, a.header)
	}
	charges := h.addBinding(t)
	if diff := cmp.Diff(api.WorkerBinding{
		Name: "charges", Domain: "payments", Tasklist: "charges", WorkerID: "charges",
		ActivityMap: map[string]api.JobTarget{"Charge": {Function: "hello", Alias: "prod"}},
		Pollers:     api.BindingPollers{Activity: api.DefaultActivityPollers}, Limits: api.BindingLimits{MaxInflightTasks: api.DefaultInflightTasks},
		Enabled: true, Revision: 1, CreatedAtMS: charges.CreatedAtMS, UpdatedAtMS: charges.CreatedAtMS,
	}, charges.WorkerBinding); diff != "" || charges.Status.State != api.BindingStarting {
		t.Errorf("(-want +got):\n%s\n%+v", diff, charges.Status)
	}
	// The same binding within the same millisecond is a repetition of the same write.
	h.call(t, "POST", h.at("N/cadence/workers"), strings.Replace(chargesBinding, `"tasklist":"charges"`, `"tasklist":"more"`, 1)).refused(t, 409, api.CodeBindingExists)

	first := ok[api.Page[api.BindingStatus]](t, h.call(t, "GET", h.at("N/cadence/workers")+"?limit=1", ""), 200)
	second := ok[api.Page[api.BindingStatus]](t, h.call(t, "GET", h.at("N/cadence/workers")+"?limit=1&cursor="+*first.NextCursor, ""), 200)
	if len(first.Items) != 1 || len(second.Items) != 1 || first.Items[0].Name != "charges" || second.Items[0].Name != "refunds" || second.NextCursor != nil {
		t.Errorf("got pages %+v and %+v, want charges alone on the first, refunds alone on the second, and no third", first, second)
	}

	share := api.BindingReplica{Replica: "r1", ReportedAtMS: h.store.NowMS(), BindingCounts: api.BindingCounts{
		State: api.BindingRunning, LastPollMS: 7, Taken: 5, Completed: 2, Failed: 1, Cancelled: 1, InFlight: 1,
	}}
	path := storage.BindingPath{Tenant: h.tenant, Namespace: "payments", Name: "charges"}
	if err := bindings.New(h.store).Report(t.Context(), []bindings.Report{{Path: path, Share: share}}); err != nil {
		t.Fatalf("Report: %v", err)
	}
	got := ok[api.BindingStatus](t, h.call(t, "GET", h.at("N/cadence/workers/charges"), ""), 200)
	if diff := cmp.Diff([]api.BindingReplica{share}, got.Shares); diff != "" || got.Status != share.BindingCounts {
		t.Errorf("(-want +got):\n%s\n%+v", diff, got.Status)
	}

	if a := h.call(t, "DELETE", h.at("N/cadence/workers/charges"), ""); a.status != 204 {
		t.Errorf("DELETE: got %d %s, want status 204", a.status, a.body)
	}
	h.call(t, "GET", h.at("N/cadence/workers/charges"), "").refused(t, 404, api.CodeBindingNotFound)
	h.call(t, "DELETE", h.at("N/cadence/workers/charges"), "").refused(t, 404, api.CodeBindingNotFound)
}

func TestWorkerBindingChanges(t *testing.T) {
	t.Parallel()
	h := start(t)
	want := h.addBinding(t).WorkerBinding
	charges := h.at("N/cadence/workers/charges")
	change := func(body string, as func(*api.WorkerBinding)) {
		t.Helper()
		got := ok[api.BindingStatus](t, h.call(t, "PATCH", charges, body), 200)
		as(&want)
		want.UpdatedAtMS = got.UpdatedAtMS
		if diff := cmp.Diff(want, got.WorkerBinding); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", body, diff)
		}
	}
	change(`{}`, func(*api.WorkerBinding) {})
	change(`{"enabled":true,"tasklist":"charges"}`, func(*api.WorkerBinding) {})
	change(`{"domain":"others","tasklist":"later","worker_id":"w1"}`, func(b *api.WorkerBinding) {
		b.Domain, b.Tasklist, b.WorkerID, b.Revision = "others", "later", "w1", 2
	})
	change(`{"worker_id":null,"pollers":{"activity":3},"limits":{"max_inflight_tasks":9}}`, func(b *api.WorkerBinding) {
		b.WorkerID, b.Pollers.Activity, b.Limits.MaxInflightTasks, b.Revision = "charges", 3, 9, 3
	})
	change(`{"pollers":null,"limits":null,"activity_map":{"Other":{"function":"hello","version":2}}}`, func(b *api.WorkerBinding) {
		b.Pollers.Activity, b.Limits.MaxInflightTasks, b.Revision = api.DefaultActivityPollers, api.DefaultInflightTasks, 4
		b.ActivityMap = map[string]api.JobTarget{"Other": {Function: "hello", Version: 2}}
	})
	change(`{"enabled":false}`, func(b *api.WorkerBinding) { b.Enabled, b.Revision = false, 5 })

	h.call(t, "PATCH", charges, `{"enabled":true}`, "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "DELETE", charges, "", "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	if a := h.call(t, "PATCH", charges, `{"enabled":true}`, "If-Match", `"5"`); a.status != 200 || a.header.Get("ETag") != `"6"` {
		t.Errorf("PATCH: got %d %v, want status 200 and ETag \"6\"", a.status, a.header)
	}
	if a := h.call(t, "DELETE", charges, "", "If-Match", "*"); a.status != 204 {
		t.Errorf("DELETE: got %d %s, want status 204", a.status, a.body)
	}
	h.call(t, "PATCH", charges, `{}`, "If-Match", "*").refused(t, 404, api.CodeBindingNotFound)
}

func TestBadWorkerBindingsAreRefusedAndChangeNothing(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	h := startOn(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	h.addBinding(t)
	h.engine.authorize = func(inv *api.Invocation) error {
		if inv.Trigger.Type != api.TriggerCadence {
			t.Errorf("got authorization with trigger %+v, want type cadence", inv.Trigger)
		}
		switch {
		case inv.Function == "ghost":
			return api.Errorf(api.CodeFunctionNotFound, "function %q does not exist", inv.Function)
		case inv.Ref.Alias == "lost":
			return api.Errorf(api.CodeAliasNotFound, "alias %q does not exist", inv.Ref.Alias)
		case inv.Ref.Version == 404:
			return api.Errorf(api.CodeVersionNotFound, "version %d does not exist", inv.Ref.Version)
		}
		return nil
	}
	of := func(rest string) string {
		return `{"name":"refunds","domain":"d","tasklist":"t","activity_map":{"A":{"function":"hello"}},` + rest + `}`
	}
	mapped := func(targets string) string {
		return `{"name":"refunds","domain":"d","tasklist":"t","activity_map":{` + targets + `}}`
	}
	var many []string
	for i := range api.MaxActivityTypes + 1 {
		many = append(many, fmt.Sprintf(`"a%d":{"function":"hello"}`, i))
	}
	const create, charges = "N/cadence/workers", "N/cadence/workers/charges"
	long := strings.Repeat("x", api.MaxCadenceNameBytes+1)
	rows := []struct {
		name, method, path, body string
		status                   int
		code                     api.Code
		field                    string
	}{
		{"no name", "POST", create, `{"domain":"d","tasklist":"t","activity_map":{"A":{"function":"hello"}}}`, 422, api.CodeInvalid, "name"},
		{"a name of no form", "POST", create, `{"name":"No","domain":"d","tasklist":"t","activity_map":{"A":{"function":"hello"}}}`, 400, api.CodeValidationName, "name"},
		{"a namespace of no form", "POST", "T/namespaces/P/cadence/workers", of(`"enabled":true`), 400, api.CodeValidationName, "namespace"},
		{"no body", "POST", create, ``, 400, api.CodeValidationJSON, ""},
		{"unknown field", "POST", create, of(`"queue":1`), 422, api.CodeInvalid, "queue"},
		{"unknown field of a target", "POST", create, mapped(`"A":{"function":"hello","event":1}`), 422, api.CodeInvalid, "activity_map.A.event"},
		{"body over 1 MiB", "POST", create, oversized(api.MaxRequestBytes), 413, api.CodeBodyLimit, ""},
		{"If-None-Match with a tag", "POST", create, of(`"enabled":true`), 422, api.CodeInvalid, "If-None-Match"},

		{"no domain", "POST", create, `{"name":"refunds","tasklist":"t","activity_map":{"A":{"function":"hello"}}}`, 422, api.CodeInvalid, "domain"},
		{"a long domain", "POST", create, `{"name":"refunds","domain":"` + long + `","tasklist":"t","activity_map":{"A":{"function":"hello"}}}`, 422, api.CodeInvalid, "domain"},
		{"an empty tasklist", "POST", create, `{"name":"refunds","domain":"d","tasklist":"","activity_map":{"A":{"function":"hello"}}}`, 422, api.CodeInvalid, "tasklist"},
		{"blanks around the tasklist", "POST", create, `{"name":"refunds","domain":"d","tasklist":" t","activity_map":{"A":{"function":"hello"}}}`, 422, api.CodeInvalid, "tasklist"},
		{"a worker id of no form", "POST", create, of(`"worker_id":"a b"`), 400, api.CodeValidationName, "worker_id"},
		{"too many pollers", "POST", create, of(`"pollers":{"activity":65}`), 422, api.CodeInvalid, "pollers.activity"},
		{"negative pollers", "POST", create, of(`"pollers":{"activity":-1}`), 422, api.CodeInvalid, "pollers.activity"},
		{"too many tasks", "POST", create, of(`"limits":{"max_inflight_tasks":10001}`), 422, api.CodeInvalid, "limits.max_inflight_tasks"},
		{"parts of tasks", "POST", create, of(`"limits":{"max_inflight_tasks":1.5}`), 422, api.CodeInvalid, "limits.max_inflight_tasks"},

		{"no activities", "POST", create, mapped(``), 422, api.CodeInvalid, "activity_map"},
		{"too many activities", "POST", create, mapped(strings.Join(many, ",")), 422, api.CodeInvalid, "activity_map"},
		{"an activity without a type", "POST", create, mapped(`"":{"function":"hello"}`), 422, api.CodeInvalid, "activity_map"},
		{"an activity without a function", "POST", create, mapped(`"A":{"alias":"prod"}`), 422, api.CodeInvalid, "activity_map.A.function"},
		{"a function's name", "POST", create, mapped(`"A":{"function":"Hello"}`), 422, api.CodeInvalid, "activity_map.A.function"},
		{"an alias and a version", "POST", create, mapped(`"A":{"function":"hello","alias":"prod","version":1}`), 422, api.CodeInvalid, "activity_map.A"},
		{"a negative version", "POST", create, mapped(`"A":{"function":"hello","version":-1}`), 422, api.CodeInvalid, "activity_map.A"},
		{"no function", "POST", create, mapped(`"A":{"function":"hello"},"B":{"function":"ghost"}`), 404, api.CodeFunctionNotFound, "activity_map.B"},
		{"no alias", "POST", create, mapped(`"A":{"function":"hello","alias":"lost"}`), 404, api.CodeAliasNotFound, "activity_map.A"},
		{"no version", "POST", create, mapped(`"A":{"function":"hello","version":404}`), 404, api.CodeVersionNotFound, "activity_map.A"},

		{"change of nothing", "PATCH", "N/cadence/workers/ghost", `{"enabled":false}`, 404, api.CodeBindingNotFound, ""},
		{"a binding's name", "PATCH", "N/cadence/workers/G", `{}`, 400, api.CodeValidationName, "worker"},
		{"change of the name", "PATCH", charges, `{"name":"others"}`, 422, api.CodeInvalid, "name"},
		{"no domain left", "PATCH", charges, `{"domain":null}`, 422, api.CodeInvalid, "domain"},
		{"no activities left", "PATCH", charges, `{"activity_map":null}`, 422, api.CodeInvalid, "activity_map"},
		{"change of another type", "PATCH", charges, `{"tasklist":5}`, 422, api.CodeInvalid, "tasklist"},
		{"change to no function", "PATCH", charges, `{"activity_map":{"A":{"function":"ghost"}}}`, 404, api.CodeFunctionNotFound, "activity_map.A"},
		{"delete of nothing", "DELETE", "N/cadence/workers/ghost", ``, 404, api.CodeBindingNotFound, ""},
		{"cursor", "GET", create + "?cursor=AAAAAAAAAAAx", ``, 400, api.CodeValidationCursor, "cursor"},
	}
	before := h.snapshot(t, client)
	for _, tc := range rows {
		t.Run(tc.name, func(t *testing.T) {
			route, query, has := strings.Cut(tc.path, "?")
			path := h.at(route)
			if has {
				path += "?" + query
			}
			headers := []string{"Content-Type", "application/json"}
			if strings.HasPrefix(tc.name, "If-None-Match") {
				headers = append(headers, "If-None-Match", `"1"`)
			}
			p := h.call(t, tc.method, path, tc.body, headers...).refused(t, tc.status, tc.code)
			if tc.field != "" && (len(p.Errors) == 0 || p.Errors[0].Path != tc.field) {
				t.Errorf("errors %+v, want the first at %q", p.Errors, tc.field)
			}
		})
	}
	if diff := cmp.Diff(before, h.snapshot(t, client)); diff != "" {
		t.Errorf("the store changed: (-want +got):\n%s", diff)
	}
}

// TestWorkerBindingsAreWhoeversChangedThem checks the rights that the functions need,
// and for whom activities are invoked.
func TestWorkerBindingsAreWhoeversChangedThem(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	k := startKeyed(t, store)
	k.publish(t, "payments", "hello", `{"authz":{"invoke_cadence_roles":["role:flow"]}}`)
	k.publish(t, "others", "hello", "{}")
	workers := strings.TrimSuffix(k.fn(""), "/functions/hello") + "/cadence/workers"
	roles := func(roles ...string) func(*api.Key) { return func(key *api.Key) { key.Roles = roles } }
	flow, record := k.key(t, "", roles("developer", "role:flow"))
	developer, _ := k.key(t, "developer")
	operator, other := k.key(t, "operator", roles("operator", "role:flow"))

	k.as(t, developer, "POST", workers, chargesBinding).refused(t, 403, api.CodeAuthzDenied)
	k.as(t, flow, "POST", workers, strings.Replace(chargesBinding, `"hello"`, `"ghost"`, 1)).refused(t, 404, api.CodeFunctionNotFound)
	ok[api.BindingStatus](t, k.as(t, flow, "POST", workers, chargesBinding), 201)
	owner := func() string {
		t.Helper()
		stored, err := bindings.New(store).Get(t.Context(), storage.BindingPath{Tenant: k.tenant, Namespace: "payments", Name: "charges"})
		if err != nil || stored.Access != api.AccessGranted {
			t.Fatalf("Get: got %v %v, want no error and access granted", stored, err)
		}
		return stored.Principal.Sub
	}
	if owner() != record.ID {
		t.Errorf("got owner %s, want %s", owner(), record.ID)
	}
	// Who may not run it may stop it, and do nothing else.
	charges := workers + "/charges"
	k.as(t, developer, "PATCH", charges, `{"tasklist":"others"}`).refused(t, 403, api.CodeAuthzDenied)
	k.as(t, developer, "PATCH", charges, `{"enabled":false,"tasklist":"others"}`).refused(t, 403, api.CodeAuthzDenied)
	if b := ok[api.BindingStatus](t, k.as(t, developer, "PATCH", charges, `{}`), 200); b.Revision != 1 {
		t.Errorf("after an empty change: got binding %+v, want revision 1", b)
	}
	ok[api.BindingStatus](t, k.as(t, developer, "PATCH", charges, `{"enabled":false}`), 200)
	k.as(t, developer, "PATCH", charges, `{"enabled":true}`).refused(t, 403, api.CodeAuthzDenied)
	if owner() != record.ID {
		t.Error("a caller that only disabled it became its owner")
	}
	ok[api.BindingStatus](t, k.as(t, operator, "PATCH", charges, `{"enabled":true}`), 200)
	if owner() != other.ID {
		t.Error("the caller that changed it did not become its owner")
	}
	// A key that is limited to another namespace is refused before the binding is read.
	limited, _ := k.key(t, "admin", inNamespace("others"))
	k.as(t, limited, "POST", workers, chargesBinding).refused(t, 403, api.CodeAuthzDenied)
	if a := k.as(t, operator, "DELETE", charges, ""); a.status != 204 {
		t.Errorf("DELETE: got %d %s, want status 204", a.status, a.body)
	}
	events := ok[api.Page[api.AuditEvent]](t, k.as(t, operator, "GET", "/v1/tenants/"+k.tenant+"/audit", ""), 200)
	audited := map[string]bool{}
	for _, e := range events.Items {
		audited[e.Action] = true
	}
	for _, action := range []string{"cs:cadence:worker:create", "cs:cadence:worker:update", "cs:cadence:worker:delete"} {
		if !audited[action] {
			t.Errorf("audit: got no event %s, want one", action)
		}
	}
}
