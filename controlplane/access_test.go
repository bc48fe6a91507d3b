package controlplane_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage/storagetest"
)

// How far a key of one namespace comes on a route.
const (
	reachAll     = "all"     // as far as any key
	reachPath    = "path"    // the path's namespace must be its own
	reachQuery   = "query"   // the query's must
	reachRecord  = "record"  // records of other namespaces do not exist
	reachJob     = "job"     // jobs of other namespaces do not exist
	reachTask    = "task"    // tasks of other namespaces do not exist
	reachInstall = "install" // the install must be a function's of its own
	reachNothing = "nothing" // the route is for the whole tenant
)

// row says who may use a route, by role (a for admin, d developer, o operator, i
// invoker, v viewer, w worker; * for any key, - for every caller and ! for runners), with a request
// that does no harm. T, N, F are as in docs/api.md, A is an activation, J an active
// job and C a cancelled one.
type row struct {
	route, roles, reach string
	path, body          string
	action              string
}

// accessRows declares who may use each route a second time, independently of the code.
var accessRows = []row{
	{"GET /healthz", "-", reachAll, "/healthz", "", ""},
	{"GET /readyz", "-", reachAll, "/readyz", "", ""},
	{"GET /docs", "-", reachAll, "/docs", "", ""},
	{"GET /openapi.json", "-", reachAll, "/openapi.json", "", ""},
	{"GET /v1/limits", "*", reachAll, "/v1/limits", "", ""},

	{"GET T", "adoiv", reachAll, "T", "", "cs:tenant:read"},
	{"GET T/namespaces", "adoiv", reachAll, "T/namespaces", "", "cs:tenant:read"},

	{"POST N/functions", "ad", reachPath, "N/functions", "{}", "cs:function:create"},
	{"GET N/functions", "adov", reachPath, "N/functions", "", "cs:function:read"},
	{"GET F", "adov", reachPath, "F", "", "cs:function:read"},
	{"DELETE F", "ad", reachPath, "N/functions/ghost", "", "cs:function:delete"},
	{"POST F:invoke", "adoi", reachPath, "F:invoke", `{"ref":{"alias":"prod"}}`, "cs:function:invoke"},
	{"PUT F/draft", "ad", reachPath, "F/draft", "{}", "cs:function:draft:upload"},
	{"POST F/versions", "ad", reachPath, "F/versions", "{}", "cs:function:publish"},
	{"GET F/versions", "adov", reachPath, "F/versions", "", "cs:function:read"},
	{"GET F/versions/{version}", "adov", reachPath, "F/versions/1", "", "cs:function:read"},
	{"GET F/versions/{version}/bundle", "adov", reachPath, "F/versions/1/bundle", "", "cs:function:read"},
	{"GET F/aliases", "adov", reachPath, "F/aliases", "", "cs:function:read"},
	{"GET F/aliases/{alias}", "adov", reachPath, "F/aliases/prod", "", "cs:function:read"},
	{"PUT F/aliases/{alias}", "ado", reachPath, "F/aliases/prod", "{}", "cs:function:alias:set"},
	{"DELETE F/aliases/{alias}", "ado", reachPath, "F/aliases/ghost", "", "cs:function:alias:set"},

	{"GET T/activations", "adoiv", reachQuery, "T/activations?namespace=payments&function=hello", "", "cs:activation:read"},
	{"GET A", "adoiv", reachRecord, "A", "", "cs:activation:read"},
	{"GET A/logs", "adoiv", reachRecord, "A/logs", "", "cs:activation:read"},
	{"POST A:cancel", "ado", reachRecord, "A:cancel", "", "cs:activation:cancel"},

	{"POST T/keys", "a", reachNothing, "T/keys", "{}", "cs:key:create"},
	{"GET T/keys", "a", reachNothing, "T/keys", "", "cs:key:read"},
	{"GET T/keys/{key_id}", "a", reachNothing, "T/keys/key_00000000000000000000000000", "", "cs:key:read"},
	{"DELETE T/keys/{key_id}", "a", reachNothing, "T/keys/key_00000000000000000000000000", "", "cs:key:revoke"},
	{"GET T/audit", "ao", reachNothing, "T/audit", "", "cs:audit:read"},

	{"POST N/queues/{queue}/jobs", "adoiw", reachPath, "N/queues/emails/jobs", "[]", "cs:job:enqueue"},
	{"GET N/queues/{queue}/jobs", "adoivw", reachPath, "N/queues/emails/jobs", "", "cs:job:read"},
	{"POST T/jobs:fetch", "adow", reachQuery, "T/jobs:fetch", `{"namespace":"payments","queues":["nothing"],"worker_id":"w1"}`, "cs:job:fetch"},
	{"POST T/jobs:ack", "adow", reachAll, "T/jobs:ack", `{"acks":[{"id":"` + activationID + `","lease_epoch":1}]}`, "cs:job:settle"},
	{"POST T/jobs:fail", "adow", reachAll, "T/jobs:fail", `{"fails":[{"id":"` + activationID + `","lease_epoch":1,"error":"x"}]}`, "cs:job:settle"},
	{"POST T/jobs:heartbeat", "adow", reachAll, "T/jobs:heartbeat", `{"worker_id":"w1","jobs":[{"id":"` + activationID + `","lease_epoch":1}]}`, "cs:job:settle"},
	{"GET T/jobs/{job_id}", "adoivw", reachJob, "T/jobs/J", "", "cs:job:read"},
	{"DELETE T/jobs/{job_id}", "ado", reachJob, "T/jobs/J", "", "cs:job:delete"},
	{"POST T/jobs/{job_id}:retry", "ado", reachJob, "T/jobs/J:retry", "", "cs:job:steer"},
	{"POST T/jobs/{job_id}:cancel", "ado", reachJob, "T/jobs/C:cancel", "", "cs:job:steer"},
	{"POST T/jobs/{job_id}:hold", "ado", reachJob, "T/jobs/J:hold", "", "cs:job:steer"},
	{"POST T/jobs/{job_id}:approve", "ado", reachJob, "T/jobs/J:approve", "", "cs:job:steer"},
	{"POST T/jobs/{job_id}:reject", "ado", reachJob, "T/jobs/J:reject", "", "cs:job:steer"},
	{"POST T/jobs/{job_id}:move", "ado", reachJob, "T/jobs/J:move", `{"queue":"others"}`, "cs:job:steer"},
	{"GET N/queues", "adov", reachPath, "N/queues", "", "cs:queue:read"},
	{"GET N/queues/{queue}", "adov", reachPath, "N/queues/emails", "", "cs:queue:read"},
	{"PATCH N/queues/{queue}", "ado", reachPath, "N/queues/emails", "{}", "cs:queue:configure"},
	{"DELETE N/queues/{queue}", "ado", reachPath, "N/queues/ghost", "", "cs:queue:delete"},
	{"POST N/queues/{queue}:clear", "ado", reachPath, "N/queues/ghost:clear", "", "cs:queue:clear"},
	{"POST N/queues/{queue}:drain", "ado", reachPath, "N/queues/ghost:drain", "", "cs:queue:configure"},
	{"POST N/queues/{queue}:resume", "ado", reachPath, "N/queues/ghost:resume", "", "cs:queue:configure"},
	{"POST N/queues/{queue}:redrive", "ado", reachPath, "N/queues/ghost:redrive", "", "cs:job:steer"},
	{"POST N/batches", "ad", reachPath, "N/batches", `{"callback":{}}`, "cs:batch:create"},
	{"GET N/batches/{batch_id}", "adov", reachPath, "N/batches/" + activationID, "", "cs:batch:read"},
	{"POST N/batches/{batch_id}:seal", "ad", reachPath, "N/batches/" + activationID + ":seal", "", "cs:batch:seal"},
	{"GET T/workers", "adov", reachAll, "T/workers", "", "cs:worker:read"},

	{"POST N/schedules", "ado", reachPath, "N/schedules", "{}", "cs:schedule:create"},
	{"GET N/schedules", "adov", reachPath, "N/schedules", "", "cs:schedule:read"},
	{"GET N/schedules/{schedule}", "adov", reachPath, "N/schedules/ghost", "", "cs:schedule:read"},
	{"PATCH N/schedules/{schedule}", "ado", reachPath, "N/schedules/ghost", "{}", "cs:schedule:update"},
	{"DELETE N/schedules/{schedule}", "ado", reachPath, "N/schedules/ghost", "", "cs:schedule:delete"},
	{"POST N/schedules/{schedule}:run", "ado", reachPath, "N/schedules/ghost:run", "", "cs:schedule:run"},

	{"PUT T/tasks/{task_type}/{task_id}", "adw", reachQuery, "T/tasks/email-send/k1", `{"namespace":"payments"}`, "cs:task:create"},
	{"GET T/tasks/{task_type}/{task_id}", "adovw", reachTask, "T/tasks/email-send/k1", "", "cs:task:read"},
	{"GET T/tasks", "adovw", reachAll, "T/tasks", "", "cs:task:read"},
	{"POST T/tasks/{task_type}/{task_id}:claim", "adw", reachTask, "T/tasks/email-send/k1:claim", `{"worker":"w1"}`, "cs:task:work"},
	{"POST T/tasks/{task_type}/{task_id}:step", "adw", reachTask, "T/tasks/email-send/k1:step", `{"worker":"w2","step":1}`, "cs:task:work"},
	{"POST T/tasks/{task_type}/{task_id}:complete", "adw", reachTask, "T/tasks/email-send/k1:complete", `{"worker":"w2"}`, "cs:task:work"},
	{"POST T/tasks/{task_type}/{task_id}:fail", "adw", reachTask, "T/tasks/email-send/k1:fail", `{"worker":"w2","error":"x"}`, "cs:task:work"},
	{"POST T/tasks/{task_type}/{task_id}:cancel", "ado", reachTask, "T/tasks/email-send/k1:cancel", "", "cs:task:cancel"},
	{"POST N/cadence/workers", "ado", reachPath, "N/cadence/workers", "{}", "cs:cadence:worker:create"},
	{"GET N/cadence/workers", "adov", reachPath, "N/cadence/workers", "", "cs:cadence:worker:read"},
	{"GET N/cadence/workers/{worker}", "adov", reachPath, "N/cadence/workers/ghost", "", "cs:cadence:worker:read"},
	{"PATCH N/cadence/workers/{worker}", "ado", reachPath, "N/cadence/workers/ghost", "{}", "cs:cadence:worker:update"},
	{"DELETE N/cadence/workers/{worker}", "ado", reachPath, "N/cadence/workers/ghost", "", "cs:cadence:worker:delete"},

	{"PUT N/secrets/{secret}", "ad", reachPath, "N/secrets/ghost", "{}", "cs:secret:write"},
	{"GET N/secrets", "ado", reachPath, "N/secrets", "", "cs:secret:read"},
	{"GET N/secrets/{secret}", "ado", reachPath, "N/secrets/ghost", "", "cs:secret:read"},
	{"DELETE N/secrets/{secret}", "ad", reachPath, "N/secrets/ghost", "", "cs:secret:delete"},
	{"POST T/secrets:rewrap", "ad", reachNothing, "T/secrets:rewrap", "", "cs:secret:rewrap"},

	{"GET T/installs", "adov", reachNothing, "T/installs", "", "cs:storage:read"},
	{"PUT T/installs/{install}", "ad", reachNothing, "T/installs/crm", "[]", "cs:storage:admin"},
	{"GET I", "adov", reachInstall, "I", "", "cs:storage:read"},
	{"DELETE I", "ad", reachInstall, "I", "", "cs:storage:admin"},
	{"GET S/namespaces", "adov", reachInstall, "S/namespaces", "", "cs:storage:read"},
	{"GET S/namespaces/{document_namespace}", "adov", reachInstall, "S/namespaces/ghost", "", "cs:storage:read"},
	{"DELETE S/namespaces/{document_namespace}", "ad", reachInstall, "S/namespaces/ghost", "", "cs:storage:admin"},
	{"GET S/namespaces/{document_namespace}/schema", "adov", reachInstall, "S/namespaces/ghost/schema", "", "cs:storage:read"},
	{"PUT S/namespaces/{document_namespace}/schema", "ad", reachInstall, "S/namespaces/ghost/schema", "[]", "cs:storage:admin"},
	{"DELETE S/namespaces/{document_namespace}/schema", "ad", reachInstall, "S/namespaces/ghost/schema", "", "cs:storage:admin"},
	{"GET S/namespaces/{document_namespace}/changes", "adov", reachInstall, "S/namespaces/ghost/changes", "", "cs:storage:read"},
	{"GET S/namespaces/{document_namespace}/records", "adov", reachInstall, "S/namespaces/ghost/records", "", "cs:storage:read"},
	{"GET S/namespaces/{document_namespace}/records/{key}", "adov", reachInstall, "S/namespaces/ghost/records/k", "", "cs:storage:read"},
	{"PUT S/namespaces/{document_namespace}/records/{key}", "ad", reachInstall, "S/namespaces/ghost/records/k", "[]", "cs:storage:write"},
	{"DELETE S/namespaces/{document_namespace}/records/{key}", "ad", reachInstall, "S/namespaces/ghost/records/k", "", "cs:storage:delete"},
	{"GET S/get", "adov", reachInstall, "S/get?namespace=ghost&key=k", "", "cs:storage:read"},
	{"POST S/list", "adov", reachInstall, "S/list", `{"namespace":"ghost"}`, "cs:storage:read"},
	{"POST S/put", "ad", reachInstall, "S/put", "[]", "cs:storage:write"},
	{"POST S/bulkPut", "ad", reachInstall, "S/bulkPut", "[]", "cs:storage:write"},
	{"POST S/transact", "ad", reachInstall, "S/transact", `{"operations":[{"op":"delete"}]}`, "cs:storage:write"},
	{"POST S/delete", "ad", reachInstall, "S/delete", "[]", "cs:storage:delete"},
	{"POST /api/internal/ext-storage/install/{install}", "!", reachAll, "/api/internal/ext-storage/install/crm", "[]", ""},
}

// letters of the roles, as access has them.
var letters = map[string]string{
	"admin": "a", "developer": "d", "operator": "o", "invoker": "i", "viewer": "v", "worker": "w", "role:own": "",
}

// patterns are the abbreviations of docs/api.md as the router has them.
var patterns = strings.NewReplacer(
	" T", " /v1/tenants/{tenant}",
	" N", " /v1/tenants/{tenant}/namespaces/{namespace}",
	" F", " /v1/tenants/{tenant}/namespaces/{namespace}/functions/{function}",
	" A", " /v1/tenants/{tenant}/activations/{activation_id}",
	" I", " /v1/tenants/{tenant}/installs/{install}",
	" S", " /v1/tenants/{tenant}/installs/{install}/storage",
)

// installPaths are those of an install of payments.
func installPaths(tenant string) []string {
	install := "/v1/tenants/" + tenant + "/installs/fn.payments.hello"
	return []string{"S", install + "/storage", "I", install}
}

// denied is the code of a route's refusals.
func (r *row) denied() api.Code {
	if strings.HasPrefix(r.action, "cs:storage:") {
		return api.CodeStorageDenied
	}
	return api.CodeAuthzDenied
}

func TestEveryRouteIsInTheTable(t *testing.T) {
	t.Parallel()
	var routes []string
	for _, route := range start(t).control.Routes() {
		routes = append(routes, route.Method+" "+route.Path)
	}
	slices.Sort(routes)
	var written []string
	for _, row := range accessRows {
		written = append(written, patterns.Replace(row.route))
	}
	slices.Sort(written)
	if diff := cmp.Diff(written, routes); diff != "" {
		t.Errorf("this test's table and the routes: (-want +got):\n%s", diff)
	}
}

// verdict is what a request is answered with; admitted is all that a caller gets
// who was let in.
type verdict struct {
	status int
	code   api.Code
	text   string // "" for any
}

var admitted = verdict{}

// TestWhoMayDoWhat sends every route's request with every kind of key.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	now := newClock()
	now.advance(2 * time.Hour) // behind which keys expire that the store still has
	k := startKeyed(t, store, onClock(now), func(c *controlplane.Config) { c.StorageToken = runnerToken })
	k.publish(t, "payments", "hello", "{}")
	k.publish(t, "others", "hello", "{}")
	run := k.run(t, time.Now().UnixMilli())
	k.engine.cancel = func(string, string) (*api.Activation, error) { return &run.Activation, nil }
	active, cancelled := k.jobs(t)
	k.addTask(t)
	foreign := storagetest.Tenant(t)
	paths := strings.NewReplacer(append(installPaths(k.tenant),
		"T", "/v1/tenants/"+k.tenant, "N", "/v1/tenants/"+k.tenant+"/namespaces/payments",
		"F", k.fn(""), "A", "/v1/tenants/"+k.tenant+"/activations/"+run.ActivationID, "J", active, "C", cancelled,
	)...)
	at := func(in time.Duration) int64 { return now.now().Add(in).UnixMilli() }

	required := verdict{401, api.CodeAuthnRequired, "this needs an API key: Authorization: Bearer <key>"}
	invalid := verdict{401, api.CodeAuthnInvalid, "the API key is unknown, malformed, expired or revoked"}
	noTenant := verdict{404, api.CodeTenantNotFound, fmt.Sprintf("tenant %q does not exist", k.tenant)}
	// secured is what those meet who are nobody: only public routes are open.
	secured := func(v verdict) func(row) verdict {
		return func(r row) verdict {
			if r.roles == "-" {
				return admitted
			}
			return v
		}
	}
	byRole := func(role string) func(row) verdict {
		return func(r row) verdict {
			letter := letters[role]
			if r.roles == "-" || r.roles == "*" || letter != "" && strings.Contains(r.roles, letter) {
				return admitted
			}
			return verdict{403, r.denied(), "this needs " + r.action + ", which the API key's roles (" + role + ") do not grant"}
		}
	}
	stranger := func(r row) verdict {
		if r.roles == "-" || r.roles == "*" {
			return admitted
		}
		return noTenant
	}
	limited := func(own string) func(row) verdict {
		return func(r row) verdict {
			only := verdict{403, r.denied(), "the API key is for the namespace " + own + " only"}
			switch {
			case r.reach == reachNothing:
				return only
			case own == "payments" || r.reach == reachAll:
				return admitted
			case r.reach == reachJob:
				id := active
				if strings.Contains(r.path, "C:") {
					id = cancelled
				}
				return verdict{404, api.CodeJobNotFound, "job " + id + " does not exist"}
			case r.reach == reachTask:
				return verdict{404, api.CodeTaskNotFound, "task email-send/k1 does not exist"}
			case r.reach == reachRecord:
				return verdict{404, api.CodeActivationNotFound, "activation " + run.ActivationID + " does not exist"}
			}
			return only
		}
	}
	key := func(role string, change ...func(*api.Key)) string {
		text, _ := k.key(t, role, change...)
		return text
	}
	revoked, record := k.key(t, api.RoleAdmin)
	ok[any](t, k.as(t, revoked, "GET", "/v1/limits", ""), 200)
	ok[any](t, k.as(t, revoked, "DELETE", "/v1/tenants/"+k.tenant+"/keys/"+record.ID, ""), 204)
	everything := func(row) verdict { return admitted }

	for name, tc := range map[string]struct {
		key  string
		want func(row) verdict
	}{
		"no key":              {"", secured(required)},
		"unknown":             {k.lost(t), secured(invalid)},
		"malformed":           {"x" + key("admin"), secured(invalid)},
		"cut short":           {key("admin")[:70], secured(invalid)},
		"expired":             {key("admin", until(at(-time.Hour))), secured(invalid)},
		"expired just now":    {key("admin", until(at(0))), secured(invalid)},
		"revoked":             {revoked, secured(invalid)},
		"admin":               {key("admin"), byRole("admin")},
		"developer":           {key("developer"), byRole("developer")},
		"operator":            {key("operator"), byRole("operator")},
		"invoker":             {key("invoker", until(at(time.Millisecond))), byRole("invoker")},
		"viewer":              {key("viewer"), byRole("viewer")},
		"worker":              {key("worker"), byRole("worker")},
		"a role of their own": {key("role:own"), byRole("role:own")},
		"another tenant's":    {key("admin", ofTenant(foreign)), stranger},
		"another's, too weak": {key("viewer", ofTenant(foreign)), stranger},
		"another's, of ours":  {key("admin", ofTenant(foreign), inNamespace("payments")), stranger},
		"the right namespace": {key("admin", inNamespace("payments")), limited("payments")},
		"another namespace":   {key("admin", inNamespace("others")), limited("others")},
		"the platform's":      {key("admin", ofTenant(api.AllTenants)), everything},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, row := range accessRows {
				method, _, _ := strings.Cut(row.route, " ")
				want := tc.want(row)
				if row.roles == "!" { // none of these is the runners' token
					want = verdict{401, api.CodeAuthnInvalid, "the token is not the runners'"}
					if tc.key == "" {
						want = verdict{401, api.CodeAuthnRequired, "this needs the runners' token: Authorization: Bearer <token>"}
					}
				}
				a := k.as(t, tc.key, method, paths.Replace(row.path), row.body)
				k.holdsNone(t, row.route, string(a.body))
				holds(t, row.route, a, want)
				if method != http.MethodGet {
					continue
				}
				if head := k.as(t, tc.key, http.MethodHead, paths.Replace(row.path), ""); head.status != a.status {
					t.Errorf("HEAD %s: %d, and GET %d, want head.status == %v", row.path, head.status, a.status, a.status)
				}
			}
		})
	}
}

// holds checks an answer against what is expected of it.
func holds(t *testing.T, route string, a answer, want verdict) {
	t.Helper()
	var p problem
	if a.status >= 400 {
		if err := json.Unmarshal(a.body, &p); err != nil {
			t.Fatalf("%s: Unmarshal: got %v: %s, want no error", route, err, a.body)
		}
	}
	if want == admitted {
		switch {
		case a.status == 401, a.status == 403, a.status == 405, a.status >= 500,
			p.Code == api.CodeRouteNotFound, p.Code == api.CodeTenantNotFound, p.Code == api.CodeActivationNotFound, p.Code == api.CodeJobNotFound,
			p.Code == api.CodeTaskNotFound:
			t.Errorf("%s: refused: %d %s", route, a.status, a.body)
		}
		return
	}
	if got := (verdict{a.status, p.Code, p.Detail}); got != want {
		t.Errorf("%s: %+v, want %+v", route, got, want)
	}
	challenge := ""
	if want.status == 401 {
		challenge = `Bearer realm="sous"`
	}
	if got := a.header.Get("WWW-Authenticate"); got != challenge {
		t.Errorf("%s: WWW-Authenticate %q, want got == %v", route, got, challenge)
	}
}

// Without keys everybody is an administrator.
func TestWithoutKeysEverybodyMayDoEverything(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t)
	h.deploy(t, "x", "")
	run := h.run(t, time.Now().UnixMilli())
	h.engine.cancel = func(string, string) (*api.Activation, error) { return &run.Activation, nil }
	active, cancelled := h.jobs(t)
	paths := strings.NewReplacer(append(installPaths(h.tenant),
		"T", "/v1/tenants/"+h.tenant, "N", "/v1/tenants/"+h.tenant+"/namespaces/payments",
		"F", h.fn(""), "A", "/v1/tenants/"+h.tenant+"/activations/"+run.ActivationID, "J", active, "C", cancelled,
	)...)
	for _, row := range accessRows {
		method, _, _ := strings.Cut(row.route, " ")
		if row.roles == "!" { // which needs its token all the same, and there is none
			h.call(t, method, paths.Replace(row.path), row.body, "Authorization", "Bearer "+runnerToken).refused(t, 404, api.CodeRouteNotFound)
			continue
		}
		holds(t, row.route, h.call(t, method, paths.Replace(row.path), row.body), admitted)
		holds(t, row.route, h.call(t, method, paths.Replace(row.path), row.body, "Authorization", "Bearer nonsense"), admitted)
	}
	h.call(t, "POST", h.fn(":invoke"), `{"ref":{"alias":"prod"}}`)
	inv := h.engine.last(t)
	if inv.Access != api.AccessUnrestricted || inv.Principal.Sub != "local" {
		t.Errorf("invoked as %+v with %v, want inv.Access == api.AccessUnrestricted, inv.Principal.Sub == \"local\"", inv.Principal, inv.Access)
	}
}
