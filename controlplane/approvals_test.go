package controlplane_test

import (
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/api/approval/policy"
)

// Policies are changed under conditions, and bad settings are refused with their field.
func TestApprovalPolicies(t *testing.T) {
	t.Parallel()
	h := start(t)
	path := h.at("T/approval-policies/money")
	const some = `{"match":{"queue":"emails"},"approvers":["role:finance"]}`
	h.call(t, "GET", path, "").refused(t, 404, api.CodeApprovalNotFound)
	made := ok[policy.Policy](t, h.call(t, "PUT", path, some, "If-None-Match", "*"), 201)
	if made.Mode != approval.ModeAny || made.OnExpiry != approval.OnExpiryReject || !*made.Separate || !*made.Enabled || made.Revision != 1 {
		t.Errorf("PUT: got %+v, want the settings with defaults, revision 1", made)
	}
	h.call(t, "PUT", path, some, "If-None-Match", "*").refused(t, 412, api.CodePreconditionFailed)
	for _, body := range []string{
		`{}`, `{"match":{}}`, `{"match":{"queue":"A b"}}`, `{"match":{"queue":"q"},"mode":"most"}`, `{"match":{"queue":"q"},"mode":"all"}`,
		`{"match":{"queue":"q"},"mode":"count"}`, `{"match":{"queue":"q"},"count":2}`, `{"match":{"queue":"q"},"approvers":["unknown"]}`,
		`{"match":{"queue":"q"},"approvers":["admin","admin"]}`, `{"match":{"queue":"q"},"expires_after_ms":5}`, `{"match":{"queue":"q"},"on_expiry":"ask"}`,
		`{"match":{"min_cost_usd":0}}`, `{"match":{"min_cost_usd":-1}}`, `{"match":{"tag":"=x"}}`, `{"match":{"queue":"q"},"color":1}`,
	} {
		h.call(t, "PUT", path, body).refused(t, 422, api.CodeInvalid)
	}
	ok[struct{}](t, h.call(t, "DELETE", path, "", "If-Match", `"1"`), 204)
	h.call(t, "DELETE", path, "").refused(t, 404, api.CodeApprovalNotFound)
}

// A vote may change the payload, once, and within its bounds.
func TestApproveWithChanges(t *testing.T) {
	t.Parallel()
	h := start(t)
	ok[policy.Policy](t, h.call(t, "PUT", h.at("T/approval-policies/money"), `{"match":{"queue":"emails"}}`), 201)
	added := ok[struct {
		Jobs []api.EnqueuedJob `json:"jobs"`
	}](t, h.call(t, "POST", h.at("N/queues/emails/jobs"), `{"payload":{"amount":100,"to":"a"}}`), 201)
	path := h.at("T/approvals/" + added.Jobs[0].ID)
	if item := ok[approval.Item](t, h.call(t, "GET", path, ""), 200); item.State != approval.Pending || item.Policy != "money" || len(item.Payload) == 0 {
		t.Errorf("GET: got %+v, want a pending approval with its payload", item)
	}
	h.call(t, "POST", path+":approve", `{"patch":{"a":1},"payload":1}`).refused(t, 422, api.CodeInvalid)
	h.call(t, "POST", path+":reject", `{"payload":1}`).refused(t, 422, api.CodeInvalid)
	h.call(t, "POST", path+":approve", `{"payload":"`+strings.Repeat("x", api.MaxJobPayloadBytes)+`"}`).refused(t, 413, api.CodeBodyLimit)
	h.call(t, "POST", path+":approve", `{"comment":"`+strings.Repeat("x", 1025)+`"}`).refused(t, 422, api.CodeInvalid)
	item := ok[approval.Item](t, h.call(t, "POST", path+":approve", `{"comment":"less","patch":{"amount":90,"to":null}}`), 200)
	if item.State != approval.Approved || !item.Changed || item.Votes[0].Comment != "less" {
		t.Errorf("approve: got %+v, want an approval with a changed payload", item)
	}
	job := ok[api.Job](t, h.call(t, "GET", h.at("T/jobs/"+added.Jobs[0].ID), ""), 200)
	if string(job.Payload) != `{"amount":90}` || job.State != api.JobPending {
		t.Errorf("job: got %s with payload %s, want pending with the changed payload", job.State, job.Payload)
	}
}
