package controlplane_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/codesous/sous/api"
)

func TestFromNothingToAnInvokedFunction(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t)
	draft := h.upload(t, "export default () => 1")
	type published struct {
		Version int64  `json:"version"`
		SHA256  string `json:"sha256"`
	}
	body := `{"draft_id":"` + draft.DraftID + `","alias":"prod","config":{"timeout_ms":500}}`
	v := ok[published](t, h.call(t, "POST", h.fn("/versions"), body), http.StatusCreated)
	if v.Version != 1 || v.SHA256 != draft.SHA256 {
		t.Errorf("published %+v, want version 1 and sha256 %v", v, draft.SHA256)
	}
	detail := ok[api.FunctionDetail](t, h.call(t, "GET", h.fn(""), ""), http.StatusOK)
	one := int64(1)
	want := api.FunctionDetail{
		Function: api.Function{
			Tenant: h.tenant, Namespace: "payments", Name: "hello",
			Runtime: "cs-js", Entry: "function.js", Handler: "default",
		},
		LatestVersion: &one,
		Aliases:       []api.Alias{{Alias: "prod", Version: 1}},
	}
	if diff := cmp.Diff(want, detail, cmpopts.IgnoreFields(api.Function{}, "CreatedAtMS"), cmpopts.IgnoreFields(api.Alias{}, "UpdatedAtMS")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r := ok[api.InvokeResponse](t, h.call(t, "POST", h.fn(":invoke"), `{"ref":{"alias":"prod"},"event":{"a":1}}`), http.StatusOK)
	if r.Status != api.StatusSuccess || string(r.Result) != `{"ok":true}` {
		t.Errorf("invoke answered %+v, want status success and result {\"ok\":true}", r)
	}
	a := h.call(t, "POST", h.web("/orders?x=1"), "hi")
	if a.status != http.StatusOK || string(a.body) != `{"ok":true}` || a.header.Get("X-Cs-Activation-Id") != activationID {
		t.Errorf("web answered %d %s, want status 200, body {\"ok\":true} and X-Cs-Activation-Id %v", a.status, a.body, activationID)
	}
}

// A version must not send its outcomes to a function that refuses its publisher. A destination
// that does not exist yet is judged when an outcome is sent.
func TestPublishAsksForTheRolesOfDestinations(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t)
	h.engine.authorize = func(inv *api.Invocation) error {
		switch {
		case inv.Trigger.Type != api.TriggerQueue || inv.Principal.Sub == "" || inv.Tenant != h.tenant || inv.Namespace != "payments":
			t.Errorf("Authorize(%+v), want a destination of the tenant and the publisher", inv)
		case inv.Function == "missing":
			return api.Errorf(api.CodeFunctionNotFound, "there is none")
		case inv.Function == "down":
			return api.Errorf(api.CodeStoreUnavailable, "the store is down")
		case inv.Function == "closed" && inv.Ref == (api.Ref{Alias: "prod"}):
			return api.Errorf(api.CodeAuthzDenied, "for other roles")
		}
		return nil
	}
	for _, tc := range []struct {
		config string
		status int
		code   api.Code
	}{
		{`{"on_success":{"function":"closed"}}`, http.StatusForbidden, api.CodeAuthzDenied},
		{`{"on_failure":{"function":"closed","alias":"prod"}}`, http.StatusForbidden, api.CodeAuthzDenied},
		{`{"on_failure":{"function":"down"}}`, http.StatusServiceUnavailable, api.CodeStoreUnavailable},
		{`{"on_success":{"function":"missing"}}`, http.StatusCreated, ""},
		{`{"on_success":{"function":"closed","version":7},"on_failure":{"queue":"closed"}}`, http.StatusCreated, ""},
	} {
		draft := h.upload(t, "export default () => "+tc.config)
		a := h.call(t, "POST", h.fn("/versions"), `{"draft_id":"`+draft.DraftID+`","config":`+tc.config+`}`)
		if tc.code != "" {
			a.refused(t, tc.status, tc.code)
		} else if a.status != tc.status {
			t.Errorf("publish with %s = %d %s, want %d", tc.config, a.status, a.body, tc.status)
		}
	}
}
