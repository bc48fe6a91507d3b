package controlplane_test

import (
	"context"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/storagetest"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// audit is a tenant's, oldest first.
func (h *harness) audit(t *testing.T, tenant string) []api.AuditEvent {
	t.Helper()
	items, _, err := access.NewAudit(h.store).List(t.Context(), access.AuditFilter{Tenant: tenant, Limit: api.MaxPageLimit})
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return items
}

func TestChangesAndRefusedOnesAreAudited(t *testing.T) {
	t.Parallel()
	now := newClock()
	k := startKeyed(t, embedded(t), onClock(now))
	admin, a := k.key(t, api.RoleAdmin)
	viewer, v := k.key(t, api.RoleViewer)
	foreigner, f := k.key(t, api.RoleAdmin, ofTenant(storagetest.Tenant(t)))
	platform, p := k.key(t, api.RoleAdmin, ofTenant(api.AllTenants))
	lost := k.lost(t)
	tenant := "/v1/tenants/" + k.tenant
	functions := tenant + "/namespaces/payments/functions"
	var requests []string
	var times []int64
	call := func(key, method, path, body string) answer {
		// Refused requests are in a stream of their own: only the times order them among the others.
		now.advance(time.Millisecond)
		a := k.as(t, key, method, path, body)
		requests, times = append(requests, a.header.Get("X-Request-Id")), append(times, now.now().UnixMilli())
		return a
	}
	type event = api.AuditEvent
	made := ok[api.NewKey](t, call(admin, "POST", tenant+"/keys", `{"name":"Ada of Acme","roles":["viewer"]}`), 201)
	k.secret(made.Secret)
	call(admin, "POST", functions, `{"name":"hello"}`)
	call(platform, "POST", functions, `{"name":"hello","description":"again"}`)
	call(viewer, "DELETE", functions+"/hello", "")
	call(admin, "POST", functions, `{"name":`)
	call(admin, "DELETE", tenant+"/keys/"+lost, "")
	call(admin, "PUT", functions+"/hello/draft", draftJSON("source in the body"))
	call(admin, "DELETE", tenant+"/keys/"+made.ID, "")
	want := []event{
		{Sub: a.ID, Action: "cs:key:create", Method: "POST", Path: tenant + "/keys", Made: made.ID + " Ada of Acme", Status: 201},
		{Sub: a.ID, Action: "cs:function:create", Method: "POST", Path: functions, Made: "hello", Status: 201},
		{Sub: p.ID, Action: "cs:function:create", Method: "POST", Path: functions, Status: 409, Code: api.CodeFunctionExists},
		{Sub: v.ID, Action: "cs:function:delete", Method: "DELETE", Path: functions + "/hello", Status: 403, Code: api.CodeAuthzDenied},
		{Sub: a.ID, Action: "cs:function:create", Method: "POST", Path: functions, Status: 400, Code: api.CodeValidationJSON},
		{Sub: a.ID, Action: "cs:key:revoke", Method: "DELETE", Path: tenant + "/keys/sous_…", Status: 400, Code: api.CodeValidationName},
		{Sub: a.ID, Action: "cs:function:draft:upload", Method: "PUT", Path: functions + "/hello/draft", Status: 200},
		{Sub: a.ID, Action: "cs:key:revoke", Method: "DELETE", Path: tenant + "/keys/" + made.ID, Status: 204},
	}
	for i := range want {
		want[i].AtMS, want[i].RequestID = times[i], requests[i]
		want[i].Refused = want[i].Status >= 400
	}
	// Requests that change nothing, and requests without a valid caller, leave no event.
	k.as(t, admin, "GET", functions, "")
	k.as(t, viewer, "GET", tenant+"/keys", "").refused(t, 403, api.CodeAuthzDenied)
	k.as(t, admin, "POST", functions+"/hello:invoke", `{"ref":{"version":1}}`)
	k.as(t, admin, "POST", "/v1/web/"+k.tenant+"/payments/hello/prod/", "")
	k.as(t, "", "POST", functions, `{"name":"other"}`).refused(t, 401, api.CodeAuthnRequired)
	k.as(t, lost, "POST", functions, `{"name":"other"}`).refused(t, 401, api.CodeAuthnInvalid)
	k.as(t, platform, "POST", "/v1/tenants/*/keys", `{"name":"other","roles":["admin"]}`).refused(t, 400, api.CodeValidationName)
	// No caller writes into another tenant's audit.
	k.as(t, foreigner, "POST", functions, `{"name":"theirs"}`).refused(t, 404, api.CodeTenantNotFound)

	got := k.audit(t, k.tenant)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(event{}, "ID")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	theirs := k.audit(t, f.Tenant)
	if len(theirs) != 1 || theirs[0].Sub != f.ID || theirs[0].Status != 404 || theirs[0].Path != functions {
		t.Errorf("got events %+v in the caller's own tenant, want one by %s with status 404 and path %s", theirs, f.ID, functions)
	}
	for _, e := range got {
		line, err := api.EncodeJSON(e)
		if err != nil {
			t.Fatalf("EncodeJSON: %v", err)
		}
		k.holdsNone(t, "an event", string(line))
		if strings.Contains(string(line), "in the body") {
			t.Errorf("got event %s, want none of the body in it", line)
		}
	}
}

func TestAuditIsPagedAndFiltered(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	admin, a := k.key(t, api.RoleAdmin)
	operator, o := k.key(t, api.RoleOperator)
	alias := k.fn("/aliases/prod")
	for range 3 {
		k.as(t, admin, "DELETE", k.fn(""), "")
		k.as(t, operator, "DELETE", alias, "")
	}
	path := "/v1/tenants/" + k.tenant + "/audit"
	read := func(query string) (subs []string) {
		t.Helper()
		for cursor := ""; ; {
			p := ok[api.Page[api.AuditEvent]](t, k.as(t, operator, "GET", path+"?limit=2"+query+cursor, ""), 200)
			for _, e := range p.Items {
				subs = append(subs, e.Sub)
			}
			if p.NextCursor == nil {
				return subs
			}
			cursor = "&cursor=" + *p.NextCursor
		}
	}
	for query, want := range map[string][]string{
		"":                              {o.ID, a.ID, o.ID, a.ID, o.ID, a.ID},
		"&sub=" + a.ID:                  {a.ID, a.ID, a.ID},
		"&action=cs:function:alias:set": {o.ID, o.ID, o.ID},
		"&action=cs:function:alias:set&sub=" + a.ID: nil,
		"&action=cs:key:create":                     nil,
		"&refused=false":                            nil,
		"&refused=true&sub=" + a.ID:                 {a.ID, a.ID, a.ID},
	} {
		if diff := cmp.Diff(want, read(query)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", query, diff)
		}
	}
	first := ok[api.Page[api.AuditEvent]](t, k.as(t, operator, "GET", path+"?limit=2", ""), 200)
	k.as(t, operator, "GET", path+"?sub="+a.ID+"&cursor="+*first.NextCursor, "").refused(t, 400, api.CodeValidationCursor)
}

// TestRefusalsAreCounted: of many refused requests of a key the first are events, and the rest
// are one event with their number, which is written when the server closes at the latest. The
// changes of others stay.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	admin, a := k.key(t, api.RoleAdmin)
	viewer, v := k.key(t, api.RoleViewer)
	k.as(t, admin, "POST", "/v1/tenants/"+k.tenant+"/namespaces/payments/functions", `{"name":"hello"}`)
	const refused, single = 300, 8
	for i := range refused {
		k.as(t, viewer, "DELETE", k.fn("/aliases/a")+itoa(int64(i)), "").refused(t, 403, api.CodeAuthzDenied)
	}
	k.control.Close()
	var singles, counted int64
	changes := 0
	for _, e := range k.audit(t, k.tenant) {
		switch {
		case e.Sub == a.ID && !e.Refused:
			changes++
		case e.Sub != v.ID || !e.Refused || e.Status != 403:
			t.Errorf("got event %+v, want one of the viewer's refusals", e)
		case e.Count == 0:
			singles++
		default:
			counted += e.Count
		}
	}
	if changes != 1 || singles != single || counted != refused-single {
		t.Errorf("got %d changes, %d single refusals and %d counted, want 1, %d and %d", changes, singles, counted, single, refused-single)
	}
}

// Without keys the one who does everything is called local.
func TestAuditWithoutKeys(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t)
	events := h.audit(t, h.tenant)
	if len(events) != 1 || events[0].Sub != "local" || events[0].Status != 201 {
		t.Errorf("got events %+v, want one by local with status 201", events)
	}
}

// A handler that panics may have got far.
func TestPanicsAreAudited(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.engine.cancel = func(string, string) (*api.Activation, error) { panic("secret text") }
	h.call(t, "POST", "/v1/tenants/"+h.tenant+"/activations/"+activationID+":cancel", "").refused(t, 500, api.CodeInternal)
	events := h.audit(t, h.tenant)
	if len(events) != 1 || events[0].Status != 500 || events[0].Code != api.CodeInternal {
		t.Errorf("got events %+v, want one with status 500 and CodeInternal", events)
	}
}

// An event outlives its request.
func TestAuditOfWhoWentAway(t *testing.T) {
	t.Parallel()
	h := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.engine.cancel = func(string, string) (*api.Activation, error) {
		cancel()
		return nil, api.Errorf(api.CodeActivationNotFound, "gone")
	}
	path := "http://localhost/v1/tenants/" + h.tenant + "/activations/" + activationID + ":cancel"
	h.control.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", path, nil).WithContext(ctx))
	if events := h.audit(t, h.tenant); len(events) != 1 {
		t.Errorf("got events %+v, want 1", events)
	}
}

// A path that names nothing is not kept whole.
func TestAuditKeepsPathsShort(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.call(t, "DELETE", h.fn("/aliases/"+strings.Repeat("é", 2000)), "").refused(t, 400, api.CodeValidationName)
	events := h.audit(t, h.tenant)
	if len(events) != 1 || len(events[0].Path) > 520 || !strings.HasPrefix(events[0].Path, h.fn("/aliases/éé")) {
		t.Errorf("got events %+v, want one whose path has at most 520 bytes and begins with %s", events, h.fn("/aliases/éé"))
	}
}

// TestAnEncodedPathIsAudited changes things under names that are percent-encoded
// without need: what the handlers read, the audit must have read too.
func TestAnEncodedPathIsAudited(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	platform, _ := k.key(t, api.RoleAdmin, ofTenant(api.AllTenants))
	limited, _ := k.key(t, api.RoleDeveloper, inNamespace("payments"))
	encoded := "/v1/tenants/t%5f" + strings.TrimPrefix(k.tenant, "t_")
	if encoded == "/v1/tenants/t%5f"+k.tenant {
		t.Fatalf("got tenant %q, want one whose encoded path differs from its plain one", k.tenant)
	}
	made := ok[api.NewKey](t, k.as(t, platform, "POST", encoded+"/keys", `{"name":"quiet","roles":["viewer"]}`), 201)
	k.secret(made.Secret)
	ok[api.Function](t, k.as(t, limited, "POST", encoded+"/namespaces/p%61yments/functions", `{"name":"hello"}`), 201)
	ok[api.DraftReceipt](t, k.as(t, limited, "PUT", encoded+"/namespaces/p%61yments/functions/h%65llo/draft", draftJSON("x")), 200)
	k.as(t, limited, "POST", encoded+"/namespaces/r%65funds/functions", `{"name":"hello"}`).refused(t, 403, api.CodeAuthzDenied)
	// Changes and refusals are two lists: those of one millisecond have no order between them.
	var actions, refusals []string
	for _, e := range k.audit(t, k.tenant) {
		list := &actions
		if e.Refused {
			list = &refusals
		}
		*list = append(*list, e.Action+" "+itoa(int64(e.Status)))
	}
	actions = append(actions, refusals...)
	want := []string{"cs:key:create 201", "cs:function:create 201", "cs:function:draft:upload 200", "cs:function:create 403"}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
