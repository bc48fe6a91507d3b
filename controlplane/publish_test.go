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
