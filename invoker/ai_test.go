package invoker_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/invoker/models/modelstest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/budgets"
	"github.com/codesous/sous/storage/providers"
	"github.com/codesous/sous/storage/spending"
	"github.com/codesous/sous/storage/storagetest"
)

// asking is a version's config that may call the providers of the names.
func asking(names ...string) api.VersionConfig {
	config := defaults()
	config.TimeoutMS = 60_000
	config.Capabilities.AI = &api.AICapability{Providers: names}
	return config
}

// newAIBench is a bench whose functions reach fakes, with a secret KEY that holds the key of fakes.
func newAIBench(t *testing.T, s *storage.Store) *bench {
	t.Helper()
	kept := safe(t, s)
	b := newBench(t, s, withSafe(kept, func(c *invoker.Config) { c.EgressAllow = local }))
	b.secret(kept, "KEY", modelstest.Key)
	return b
}

// openAIAt returns the settings of a provider at a fake.
func openAIAt(f *modelstest.Fake) ai.ProviderSettings {
	none := 0
	return ai.ProviderSettings{Kind: ai.KindOpenAI, BaseURL: f.URL + "/v1", Secret: namespace + "/KEY", Models: []string{"m1"}, MaxRetries: &none}
}

func (b *bench) provider(name string, s ai.ProviderSettings) {
	b.t.Helper()
	s.Normalize()
	if err := s.Validate(); err != nil {
		b.t.Fatalf("Validate: %v", err)
	}
	if _, _, err := providers.New(b.store).Put(b.t.Context(), b.tenant, name, s, providers.Condition{}, b.store.NowMS()); err != nil {
		b.t.Fatalf("Put: %v", err)
	}
}

// run invokes a function and returns its result, or the code and text of its error.
func (b *bench) invokeAI(name, event string) string {
	b.t.Helper()
	out := b.invoke(name, event).Activation
	if out.Error != nil {
		return out.Error.Code + ": " + out.Error.Message
	}
	return string(out.Result)
}

// spent returns the sums of the tenant today and yesterday by function, provider and model.
func (b *bench) spent() []agent.GroupSums {
	b.t.Helper()
	today := spending.Day(b.store.NowMS())
	report, err := spending.Report(b.t.Context(), b.store, b.tenant, spending.Query{
		From: today - 1, To: today, By: []string{"namespace", "queue", "function", "provider", "model"}, Namespaces: func(string) bool { return true },
	})
	if err != nil {
		b.t.Fatalf("Report: %v", err)
	}
	return report.Groups
}

const chatting = `export default async (e) => {
  try {
    const a = await cs.ai.chat({ messages: [{ role: "system", content: "be short" }, { role: "user", content: e.text }], ...e.more });
    return [a.text, a.tool_calls, a.finish_reason, a.provider, a.model, a.usage];
  } catch (e) { return [e.name, e.code, e.message, e.status, e.provider, e.retryAfterMs]; }
}`

// TestChat: a function asks a model by the name of a provider, and never sees its key. What it used is in
// the sums of the tenant.
func TestChat(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		b := newAIBench(t, s)
		f := modelstest.New(t, modelstest.NeedsKey(modelstest.Text(12, 3, "It is ", "high.")))
		b.provider("main", openAIAt(f))
		b.publish("ask", chatting, asking("main"))
		if err := b.broker.Prices().Put(t.Context(), b.tenant, agent.Price{Provider: "main", Model: "m1", InputUSD: agent.Dollar, OutputUSD: 2 * agent.Dollar}); err != nil {
			t.Fatalf("Put: %v", err)
		}
		want := `["It is high.",[],"stop","main","m1",{"input_tokens":12,"output_tokens":3,"cache_creation_tokens":0,"cache_read_tokens":0,"cost_usd":"0.000018"}]`
		if got := b.invokeAI("ask", `{"text":"tide?","more":{"temperature":0.5,"stop":["x"],"extra":{"seed":7}}}`); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		r := f.Last(t)
		if got := r.Header.Get("Authorization"); r.Path != "/v1/chat/completions" || got != "Bearer "+modelstest.Key {
			t.Errorf("got a request to %s with authorization %q, want one to /v1/chat/completions with the key", r.Path, got)
		}
		body, _ := json.Marshal(r.Body)
		wantBody := `{"messages":[{"content":"be short","role":"system"},{"content":"tide?","role":"user"}],"model":"m1","seed":7,"stop":["x"],"temperature":0.5}`
		if string(body) != wantBody {
			t.Errorf("got the request %s, want %s", body, wantBody)
		}
		b.invokeAI("ask", `{"text":"again"}`)
		sums := agent.Sums{InputTokens: 24, OutputTokens: 6, CostUSD: 36, Entries: 2}
		wantSums := []agent.GroupSums{{Group: agent.Group{Namespace: namespace, Function: "ask", Provider: "main", Model: "m1"}, Sums: sums}}
		if diff := cmp.Diff(wantSums, b.spent()); diff != "" {
			t.Errorf("sums: difference (-want +got):\n%s", diff)
		}
	})
}

// TestChatRefusals: what a function may not do, and what a provider refuses.
func TestChatRefusals(t *testing.T) {
	t.Parallel()
	b := newAIBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	f := modelstest.New(t, modelstest.NeedsKey(modelstest.Text(1, 1, "yes")))
	b.provider("main", openAIAt(f))
	wrong := openAIAt(f)
	wrong.Secret = namespace + "/GHOST"
	b.provider("nokey", wrong)
	wrong.BaseURL, wrong.Secret = "http://10.0.0.1:9/v1", ""
	b.provider("inside", wrong)
	limited := asking("main", "nokey", "inside", "ghost", "redirects")
	limited.Capabilities.AI.MaxTokens = 50
	b.publish("ask", chatting, limited)
	redirecting := modelstest.New(t, func(w http.ResponseWriter, _ *modelstest.Request) {
		w.Header().Set("Location", f.URL+"/v1/chat/completions")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	b.provider("redirects", openAIAt(redirecting))
	kept := len(f.Requests())
	for more, want := range map[string]string{
		`{"provider":"other"}`:                          `"CS_RUNTIME_CAPABILITY_DENIED","ai.chat is not allowed: declare capabilities {\"ai\": {\"providers\": [\"other\"]}}`,
		`{"provider":"ghost"}`:                          `"CS_RUNTIME_AI_PROVIDER_NOT_FOUND"`,
		`{}`:                                            `"CS_RUNTIME_INVALID_ARGUMENT","the provider is missing`,
		`{"provider":"main","model":"m2"}`:              `"CS_RUNTIME_INVALID_ARGUMENT","the provider main does not allow the model m2"`,
		`{"provider":"main","max_tokens":51}`:           `max_tokens must be at most 50`,
		`{"provider":"main","extra":{"max_tokens":60}}`: `extra.max_tokens is set by the platform`,
		`{"provider":"main","extra":{"N":9}}`:           `extra.N is set by the platform`,
		`{"provider":"main","messages":[]}`:             `messages must be from 1 to 2000`,
		`{"provider":"main","messages":[{"role":"god","content":"x"}]}`:  `messages[0].role must be`,
		`{"provider":"main","messages":[{"role":"tool","content":"x"}]}`: `messages[0].tool_call_id is missing`,
		`{"provider":"main","messages":"hello"}`:                         `messages must not be a string`,
		`{"provider":"main","max_tokens":1e300}`:                         `max_tokens must not be a number`,
		`{"provider":"main","tool_choice":"maybe"}`:                      `tool_choice must be`,
		`{"provider":"nokey"}`:                                           `"CS_RUNTIME_SECRET_NOT_FOUND"`,
		`{"provider":"inside"}`:                                          `"CS_RUNTIME_FETCH_BLOCKED"`,
		`{"provider":"redirects"}`:                                       `"CS_RUNTIME_AI_FAILED","the provider redirects answered 307: it redirects, which is not followed",307,"redirects"`,
	} {
		if got := b.invokeAI("ask", `{"text":"x","more":`+more+`}`); !strings.Contains(got, want) {
			t.Errorf("chat with %s: got %s, want one with %s", more, got, want)
		}
	}
	if got := len(f.Requests()); got != kept {
		t.Errorf("got %d requests of refused calls, want none", got-kept)
	}
	// The capability's limit is the limit of a call without one.
	b.invokeAI("ask", `{"text":"x","more":{"provider":"main"}}`)
	if got := f.Last(t).Body["max_tokens"]; got != 50.0 {
		t.Errorf("got max_tokens %v, want 50", got)
	}
}

// TestKeyStaysOutside: an upstream that repeats the key in its answer or its error does not reveal it.
func TestKeyStaysOutside(t *testing.T) {
	t.Parallel()
	b := newAIBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	f := modelstest.New(t,
		modelstest.Refused(http.StatusUnauthorized, "authentication_error", "Incorrect API key provided: "+modelstest.Key),
		modelstest.Text(1, 1, "your key is "+modelstest.Key))
	b.provider("main", openAIAt(f))
	b.publish("ask", chatting, asking("main"))
	for _, want := range []string{`"the provider main answered 401: Incorrect API key provided: ***",401,"main"`, `"your key is ***"`} {
		if got := b.invokeAI("ask", `{"text":"x"}`); !strings.Contains(got, want) {
			t.Errorf("got %s, want one with %s", got, want)
		}
	}
	b.publish("stream", `export default async () => (await (await cs.ai.stream({ messages: [{ role: "user", content: "x" }] })).final()).text`, asking("main"))
	if got, want := b.invokeAI("stream", `null`), `"your key is ***"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestJobsReportUsage: the usage of a function that runs as a job is in the ledger of the job, once, and
// stops a job that has spent too much.
func TestJobsReportUsage(t *testing.T) {
	t.Parallel()
	b := newAIBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	b.work()
	f := modelstest.New(t, modelstest.Text(10, 5, "yes"))
	b.provider("main", openAIAt(f))
	config := asynchronous(2)
	config.Capabilities.AI = &api.AICapability{Providers: []string{"main"}}
	b.publish("ask", `export default async (e, ctx) => {
  const all = [];
  for (let i = 0; i < 5; i++) all.push(cs.ai.chat({ messages: [{ role: "user", content: "x" }], phase: "plan" }));
  await Promise.all(all);
  if (ctx.attempt === 1) throw new Error("again");
  return 1;
}`, config)
	id := b.enqueue("ask", "null")
	if a := b.ends(id); a.Status != api.StatusSuccess {
		t.Fatalf("got status %s, error %+v, want success", a.Status, a.Error)
	}
	want := agent.Sums{InputTokens: 100, OutputTokens: 50, Entries: 10, Unpriced: 10}
	if got := b.job(id).Usage; got == nil || *got != want {
		t.Errorf("usage of the job: got %+v, want %+v", got, want)
	}
	wantSums := []agent.GroupSums{{Group: agent.Group{Namespace: namespace, Queue: "fn.ask", Function: "ask", Provider: "main", Model: "m1"}, Sums: want}}
	if diff := cmp.Diff(wantSums, b.spent()); diff != "" {
		t.Errorf("sums: difference (-want +got):\n%s", diff)
	}
}

// TestTriggeredJobsReportUsage: what the function of a queue trigger uses is that of its job.
func TestTriggeredJobsReportUsage(t *testing.T) {
	t.Parallel()
	b := newAIBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	b.work()
	f := modelstest.New(t, modelstest.Text(10, 5, "yes"))
	b.provider("main", openAIAt(f))
	config := asynchronous(1)
	config.Capabilities.AI = &api.AICapability{Providers: []string{"main"}}
	b.publish("mailer", `export default async () => { await cs.ai.chat({ messages: [{ role: "user", content: "x" }] }); }`, config)
	b.trigger("mailer", trigger.NewQueueTrigger{})
	ids := b.mail("1")
	b.inState(api.JobCompleted, ids)
	want := agent.Sums{InputTokens: 10, OutputTokens: 5, Entries: 1, Unpriced: 1}
	if got := b.job(ids[0]).Usage; got == nil || *got != want {
		t.Errorf("usage of the job: got %+v, want %+v", got, want)
	}
}

// TestFunctionsRunAgainAfterABudget: the job of a function that a budget held runs again when it is
// released, also if it has one attempt.
func TestFunctionsRunAgainAfterABudget(t *testing.T) {
	t.Parallel()
	b := newAIBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	b.work()
	f := modelstest.New(t, modelstest.Text(10, 5, "yes"))
	b.provider("main", openAIAt(f))
	if err := b.broker.Prices().Put(t.Context(), b.tenant, agent.Price{Model: "m1", InputUSD: 1_000_000}); err != nil {
		t.Fatalf("Put: %v", err)
	}
	limit := agent.USD(5)
	settings := budget.Settings{Scope: budget.ScopeTenant, DailyUSD: &limit}
	if _, _, err := b.broker.Budgets().Put(t.Context(), b.tenant, "all", settings, budgets.Condition{}); err != nil {
		t.Fatalf("Put: %v", err)
	}
	config := asynchronous(1)
	config.Capabilities.AI = &api.AICapability{Providers: []string{"main"}}
	b.publish("ask", `export default async (e, ctx) => { await cs.ai.chat({ messages: [{ role: "user", content: "x" }] }); return 7; }`, config)
	id := b.enqueue("ask", "null")
	b.inState(api.JobHeld, []string{id})
	if err := b.broker.Budgets().Delete(t.Context(), b.tenant, "all", nil); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if a := b.ends(id); a.Status != api.StatusSuccess || string(a.Result) != "7" {
		t.Errorf("got status %s, result %s, error %+v, want success with 7", a.Status, a.Result, a.Error)
	}
}

// TestOpenModels: an activation has a bound of calls and streams of models, those that have ended do not
// count, and its end ends the requests.
func TestOpenModels(t *testing.T) {
	t.Parallel()
	b := newAIBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	gone := make(chan struct{})
	silent := modelstest.New(t, modelstest.Silent(t, gone, "a part"))
	quick := modelstest.New(t, modelstest.Text(1, 1, "yes"))
	b.provider("silent", openAIAt(silent))
	b.provider("quick", openAIAt(quick))
	b.publish("ask", `const messages = [{ role: "user", content: "x" }];
export default async (e) => {
  for (let i = 0; i < 20; i++) await cs.ai.chat({ provider: "quick", messages });
  for (let i = 0; i < 20; i++) await (await cs.ai.stream({ provider: "quick", messages })).final();
  if (e === "one") { const s = await cs.ai.stream({ provider: "silent", messages }); return (await s.next()).value.text; }
  const all = [];
  for (let i = 0; i < 12; i++) all.push(cs.ai.stream({ provider: "quick", messages }).then(() => 1, (e) => e.message));
  return (await Promise.all(all)).filter((s) => s !== 1)[0];
}`, asking("silent", "quick"))
	if got, want := b.invokeAI("ask", `"one"`), `"a part"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("got no end of the request 20 s after the end of the activation, want one")
	}
	if got, want := b.invokeAI("ask", `"many"`), `more than 8 calls and streams of cs.ai are open`; !strings.Contains(got, want) {
		t.Errorf("got %s, want one with %s", got, want)
	}
}
