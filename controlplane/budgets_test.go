package controlplane_test

import (
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/controlplane"
)

const someBudget = `{"scope":"queue","target":"payments/emails","daily_usd":0.5,"on_exceed":"reject"}`

// Budgets are changed under conditions, have defaults, and bad settings are refused with their field.
func TestBudgets(t *testing.T) {
	t.Parallel()
	h := start(t)
	path := h.at("T/budgets/mail")
	h.call(t, "GET", path, "").refused(t, 404, api.CodeBudgetNotFound)
	h.call(t, "PUT", path, someBudget, "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	made := ok[budget.Budget](t, h.call(t, "PUT", path, someBudget, "If-None-Match", "*"), 201)
	if made.Zone != "UTC" || made.Revision != 1 || *made.DailyUSD != agent.Dollar/2 || made.ResetsAtMS == 0 || made.Day == "" {
		t.Errorf("PUT: got %+v, want the settings with defaults, revision 1", made)
	}
	h.call(t, "PUT", path, someBudget, "If-None-Match", "*").refused(t, 412, api.CodePreconditionFailed)
	if again := ok[budget.Budget](t, h.call(t, "PUT", path, someBudget), 200); again.Revision != 1 {
		t.Errorf("PUT of the same: got revision %d, want 1", again.Revision)
	}
	other := ok[budget.Budget](t, h.call(t, "PUT", path, `{"scope":"tenant","per_job_usd":"1"}`, "If-Match", `"1"`), 200)
	if other.Revision != 2 || other.OnExceed != budget.OnExceedHold || other.DailyUSD != nil || other.Target != "" {
		t.Errorf("PUT: got %+v, want all settings replaced, revision 2", other)
	}
	h.call(t, "DELETE", path, "", "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	for _, body := range []string{
		`{}`, `{"scope":"tenant"}`, `{"scope":"tenant","daily_usd":0}`, `{"scope":"tenant","daily_usd":-1}`, `{"scope":"tenant","daily_usd":"NaN"}`,
		`{"scope":"tenant","daily_usd":0.0000001}`, `{"scope":"tenant","daily_usd":1000001}`, `{"scope":"all","daily_usd":1}`, `{"scope":"tenant","target":"x","daily_usd":1}`,
		`{"scope":"queue","target":"emails","daily_usd":1}`, `{"scope":"tenant","daily_usd":1,"zone":"Nowhere"}`, `{"scope":"tenant","daily_usd":1,"on_exceed":"stop"}`,
		`{"scope":"tenant","daily_usd":1,"weekly_usd":1}`,
	} {
		h.call(t, "PUT", path, body).refused(t, 422, api.CodeInvalid)
	}
	h.call(t, "PUT", h.at("T/budgets/Mail"), someBudget).refused(t, 400, api.CodeValidationName)
	ok[struct{}](t, h.call(t, "DELETE", path, "", "If-Match", `"2"`), 204)
	h.call(t, "DELETE", path, "").refused(t, 404, api.CodeBudgetNotFound)
}

// Usage that a worker reports on the stream is counted, and ends the job beyond its budget.
func TestStreamReportsUsage(t *testing.T) {
	t.Parallel()
	h := start(t)
	ok[budget.Budget](t, h.call(t, "PUT", h.at("T/budgets/mail"), someBudget), 201)
	ok[any](t, h.call(t, "POST", h.at("N/queues/emails/jobs"), `{"jobs":[{"payload":1},{"payload":2}]}`), 201)
	s := dialStream(t, h, "")
	s.send(&workerv1.LifecycleRequest{Fetch: &workerv1.Fetch{Queues: []string{"emails"}, Credits: 2, LeaseMs: 60_000}})
	got := s.receive().GetFetched().GetJobs()
	for len(got) < 2 {
		got = append(got, s.receive().GetFetched().GetJobs()...)
	}
	cost, rest := "0.2", "0.3"
	s.send(&workerv1.LifecycleRequest{Heartbeats: []*workerv1.Heartbeat{{
		Id: got[0].GetId(), LeaseEpoch: got[0].GetLeaseEpoch(), Usage: []*workerv1.Usage{{Seq: 1, Model: "m1", Provider: "p1", InputTokens: 7, CostUsd: &cost}},
	}}})
	beat := s.answerWith(func(r *workerv1.LifecycleResponse) bool { return r.GetExtended() != nil }).GetExtended().GetOutcomes()[0]
	if !beat.GetOk() {
		t.Errorf("heartbeat: got %v, want success", beat)
	}
	s.send(&workerv1.LifecycleRequest{Heartbeats: []*workerv1.Heartbeat{{
		Id: got[1].GetId(), LeaseEpoch: got[1].GetLeaseEpoch(), Usage: []*workerv1.Usage{{Seq: 1, Model: "m1", Provider: "p1", InputTokens: 70, CostUsd: &rest}},
	}}})
	beat = s.answerWith(func(r *workerv1.LifecycleResponse) bool { return r.GetExtended() != nil }).GetExtended().GetOutcomes()[0]
	if beat.GetOk() || beat.GetCode() != string(api.CodeJobLeaseLost) || beat.GetState() != string(api.JobDead) {
		t.Errorf("heartbeat at the limit: got %v, want CodeJobLeaseLost and state dead", beat)
	}
	report := ok[agent.Report](t, h.call(t, "GET", h.at("T/usage/ai?by=queue,model&provider=p1"), ""), 200)
	if len(report.Groups) != 1 || report.Total.InputTokens != 77 || report.Total.CostUSD != agent.Dollar/2 {
		t.Errorf("report: got %+v, want 77 tokens and 0.5 USD of one model", report)
	}
	refused := h.call(t, "POST", h.at("N/queues/emails/jobs"), `{"jobs":[{"payload":3}]}`)
	refused.refused(t, 429, api.CodeBudgetExceeded)
	if refused.header.Get("Retry-After") == "" {
		t.Error("enqueue: got no Retry-After, want the time until the reset")
	}
}

// answerWith receives responses until one is selected.
func (s *workerStream) answerWith(selects func(*workerv1.LifecycleResponse) bool) *workerv1.LifecycleResponse {
	s.t.Helper()
	for {
		res := s.receive()
		if selects(res) {
			return res
		}
	}
}

// The filters of reports are those of the parameters, and a wrong one is refused.
func TestFiltersOfUsage(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, q := range []string{"agents", "others"} {
		ok[any](t, h.call(t, "POST", h.at("N/queues/"+q+"/jobs"), `{"jobs":[{"payload":1,"tags":{"customer":"of `+q+`"}}]}`), 201)
		fetched := ok[struct {
			Jobs []struct {
				ID string `json:"id"`
			} `json:"jobs"`
		}](t, h.call(t, "POST", h.at("T/jobs:fetch"), `{"namespace":"payments","queues":["`+q+`"],"worker_id":"w1"}`), 200)
		ok[any](t, h.call(t, "POST", h.at("T/jobs:ack"), `{"acks":[{"id":"`+fetched.Jobs[0].ID+`","lease_epoch":1,"usage":[{"provider":"p-`+q+`","model":"m-`+q+`","cost_usd":"1"}]}]}`), 200)
	}
	for query, want := range map[string]agent.USD{
		"": 2, "namespace=payments": 2, "namespace=web": 0, "queue=agents": 1, "provider=p-agents": 1, "model=m-others": 1, "model=m": 0,
		"function=f": 0, "tag=customer": 2, "tag=customer&tag_value=of+agents": 1, "tag=team": 0, "from=2020-01-01&to=2020-01-02": 0,
	} {
		report := ok[agent.Report](t, h.call(t, "GET", h.at("T/usage/ai?"+query), ""), 200)
		if report.Total.CostUSD != want*agent.Dollar {
			t.Errorf("%s: got %s USD, want %d", query, report.Total.CostUSD, want)
		}
	}
	for _, query := range []string{"by=job", "tag_value=x", "tag=a&queue=b", "tag=a&by=model", "from=yesterday", "from=2026-01-02&to=2026-01-01", "from=2020-01-01", "format=xml"} {
		h.call(t, "GET", h.at("T/usage/ai?"+query), "").refused(t, 422, api.CodeInvalid)
	}
}

// Clients can read the limits of agents and budgets.
func TestLimitsOfAgents(t *testing.T) {
	t.Parallel()
	h := start(t)
	limits := ok[controlplane.Limits](t, h.call(t, "GET", "/v1/limits", ""), 200)
	if want := (controlplane.BudgetLimits{Budgets: 100, MaxUSD: 1_000_000 * agent.Dollar}); limits.Budget != want {
		t.Errorf("budget: got %+v, want %+v", limits.Budget, want)
	}
	want := controlplane.AgentLimits{
		MaxIterations: controlplane.Bound{Min: 1, Max: 100_000, Default: 1000}, KeptIterations: 100,
		IterationTimeoutMS: controlplane.Bound{Min: 1000, Max: 43_200_000}, MaxUSD: 1_000_000 * agent.Dollar, TraceBytes: 65_536, ResultBytes: 65_536,
		UsageEntries: 32, UsageTokens: 1_000_000_000, NameLength: 128, IterationLines: 16, DayRows: 10_000, Prices: 1000, ReportDays: 100, SumsRetentionMS: 34_560_000_000,
	}
	if limits.Agent != want {
		t.Errorf("agent: got %+v, want %+v", limits.Agent, want)
	}
}
