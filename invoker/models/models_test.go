package models_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/invoker/models"
	"github.com/codesous/sous/invoker/models/modelstest"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/providers"
	"github.com/codesous/sous/storage/spending"
	"github.com/codesous/sous/storage/storagetest"
)

// desk is a client of models with a tenant, and what the tenant's caller was told.
type desk struct {
	t      *testing.T
	store  *storage.Store
	client *models.Client
	tenant string
	key    string // "" for that of fakes

	mu    sync.Mutex
	spent []agent.Usage
	lines []string
}

// keys has one key for every provider.
type keys struct{ key string }

func (k keys) Key(context.Context, *models.Caller, *ai.Provider) ([]byte, error) {
	return []byte(k.key), nil
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	return (&desk{t: t, store: s, tenant: storagetest.Tenant(t)}).open()
}

// open makes the client, as a replica does.
func (d *desk) open() *desk {
	d.t.Helper()
	prices, err := spending.NewPrices(d.store)
	if err != nil {
		d.t.Fatalf("NewPrices: %v", err)
	}
	d.client, err = models.New(models.Config{Store: d.store, Prices: prices, Keys: keys{cmp.Or(d.key, modelstest.Key)}})
	if err != nil {
		d.t.Fatalf("New: %v", err)
	}
	if err := d.store.Subscribe(d.t.Context(), d.client.OnChange); err != nil {
		d.t.Fatalf("Subscribe: %v", err)
	}
	return d
}

// other returns another replica with the same tenant.
func (d *desk) other() *desk { return (&desk{t: d.t, store: d.store, tenant: d.tenant}).open() }

// at returns the settings of a provider at a fake. Its retries do not wait for long.
func at(f *modelstest.Fake, kind string, retries int) ai.ProviderSettings {
	s := ai.ProviderSettings{Kind: kind, BaseURL: f.URL, Secret: "KEY", Models: []string{"m1", "m2"}, MaxRetries: &retries}
	if kind == ai.KindOpenAI {
		s.BaseURL += "/v1"
	}
	return s
}

func (d *desk) put(name string, s ai.ProviderSettings) {
	d.t.Helper()
	s.Normalize()
	if err := s.Validate(); err != nil {
		d.t.Fatalf("Validate: %v", err)
	}
	if _, _, err := providers.New(d.store).Put(d.t.Context(), d.tenant, name, s, providers.Condition{}, 1); err != nil {
		d.t.Fatalf("Put: %v", err)
	}
	d.client.OnChange(storage.Change{Kind: storage.ChangeProvider, Tenant: d.tenant}) // the notice may be later
}

// caller returns an activation that calls models.
func (d *desk) caller() *models.Caller {
	failed := func(ctx context.Context, err error) error {
		if ctx.Err() != nil {
			return api.Errorf(api.CodeHostFetchTimeout, "fetch took too long")
		}
		return api.Errorf(api.CodeHostFetchFailed, "fetch failed: %v", err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &models.Caller{
		Tenant: d.tenant,
		Send: func(r *http.Request) (*http.Response, error) {
			resp, err := client.Do(r)
			if err != nil {
				return nil, failed(r.Context(), err)
			}
			return resp, nil
		},
		Explain: failed,
		Spend: func(_ context.Context, u agent.Usage) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.spent = append(d.spent, u)
			return nil
		},
		Log: func(line []byte) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.lines = append(d.lines, string(line))
		},
	}
}

const hello = `{"messages":[{"role":"user","content":"hello"}]}`

// ask returns the text of an answer and its provider, or the code of the error.
func (d *desk) ask(provider string) string {
	d.t.Helper()
	a, err := d.client.Chat(d.t.Context(), d.caller(), []byte(hello), provider)
	if err != nil {
		return string(api.ErrorCode(err))
	}
	return a.Provider + "/" + a.Model + " " + a.Text
}

// deltas reads a stream to its end.
func (d *desk) deltas(provider, request string) (out []ai.Delta, err error) {
	d.t.Helper()
	s, err := d.client.Stream(d.t.Context(), d.caller(), []byte(request), provider)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(s)
	if err != nil {
		d.t.Errorf("ReadAll: %v", err)
	}
	if err := s.Close(); err != nil {
		d.t.Errorf("Close: %v", err)
	}
	for _, e := range strings.Split(strings.TrimSuffix(string(raw), "\n\n"), "\n\n") {
		var delta ai.Delta
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &delta); err != nil {
			d.t.Fatalf("event %q: %v", e, err)
		}
		out = append(out, delta)
	}
	return out, nil
}

// waitOf returns the member retryAfterMs of an error.
func waitOf(err error) (ms int64) {
	var hosted *sandbox.HostError
	if errors.As(err, &hosted) {
		var members struct{ RetryAfterMS int64 }
		_ = json.Unmarshal(hosted.Members, &members) // 0 fails the test
		return members.RetryAfterMS
	}
	return 0
}

// TestBothProtocols: one form of requests and answers is mapped to the protocols of both kinds, whole and
// streamed.
func TestBothProtocols(t *testing.T) {
	t.Parallel()
	const request = `{"model":"m2","max_tokens":9,"tool_choice":"required","tools":[{"name":"look","description":"d","parameters":{"type":"object"}}],"messages":[
	  {"role":"system","content":"be short"},
	  {"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},
	  {"role":"assistant","content":"I look","tool_calls":[{"id":"c1","name":"look","arguments":"{\"at\":1}"}]},
	  {"role":"tool","tool_call_id":"c1","content":"a tide"},
	  {"role":"user","content":"and?"}]}`
	for kind, want := range map[string]string{
		ai.KindOpenAI: `{"max_tokens":9,"messages":[{"content":"be short","role":"system"},` +
			`{"content":[{"text":"see","type":"text"},{"image_url":{"url":"data:image/png;base64,AAAA"},"type":"image_url"}],"role":"user"},` +
			`{"content":"I look","role":"assistant","tool_calls":[{"function":{"arguments":"{\"at\":1}","name":"look"},"id":"c1","type":"function"}]},` +
			`{"content":"a tide","role":"tool","tool_call_id":"c1"},{"content":"and?","role":"user"}],"model":"m2",` +
			`"tool_choice":"required","tools":[{"function":{"description":"d","name":"look","parameters":{"type":"object"}},"type":"function"}]}`,
		ai.KindAnthropic: `{"max_tokens":9,"messages":[` +
			`{"content":[{"text":"see","type":"text"},{"source":{"data":"AAAA","media_type":"image/png","type":"base64"},"type":"image"}],"role":"user"},` +
			`{"content":[{"text":"I look","type":"text"},{"id":"c1","input":{"at":1},"name":"look","type":"tool_use"}],"role":"assistant"},` +
			`{"content":[{"content":[{"text":"a tide","type":"text"}],"tool_use_id":"c1","type":"tool_result"},{"text":"and?","type":"text"}],"role":"user"}],` +
			`"model":"m2","system":[{"text":"be short","type":"text"}],"tool_choice":{"type":"any"},"tools":[{"description":"d","input_schema":{"type":"object"},"name":"look"}]}`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			f := modelstest.New(t, modelstest.NeedsKey(modelstest.Tool("c2", "look", `{"at":2}`)))
			d.put("main", at(f, kind, 0))
			a, err := d.client.Chat(t.Context(), d.caller(), []byte(request), "main")
			if err != nil {
				t.Fatalf("Chat: %v", err)
			}
			if body, _ := json.Marshal(f.Last(t).Body); string(body) != want {
				t.Errorf("got the request\n%s, want\n%s", body, want)
			}
			call := ai.ToolCall{ID: "c2", Name: "look", Arguments: `{"at":2}`}
			if a.FinishReason != ai.FinishToolCalls || !slices.Equal(a.ToolCalls, []ai.ToolCall{call}) || a.Usage.InputTokens != 7 || a.Usage.OutputTokens != 5 {
				t.Errorf("got %+v, want a call of the tool for 7 and 5 tokens", a)
			}
			got, err := d.deltas("main", request)
			if err != nil {
				t.Fatalf("Stream: %v", err)
			}
			whole, end := ai.ToolCall{}, got[len(got)-1]
			for _, delta := range got[:len(got)-1] {
				whole.ID, whole.Name, whole.Arguments = whole.ID+delta.ID, whole.Name+delta.Name, whole.Arguments+delta.Arguments
			}
			if whole != call || end.Type != ai.DeltaEnd || end.FinishReason != ai.FinishToolCalls || end.Usage == nil || end.Usage.OutputTokens != 5 || end.Usage.Estimated {
				t.Errorf("got %+v at the end of %+v, want the same call and usage", end, whole)
			}
			f.Then(modelstest.NeedsKey(modelstest.Text(11, 4, "It is ", "high.")))
			got, err = d.deltas("main", hello)
			if err != nil || len(got) != 3 || got[0].Text != "It is " || got[1].Text != "high." || got[2].FinishReason != ai.FinishStop || got[2].Usage.InputTokens != 11 {
				t.Errorf("got %+v, %v, want two texts and the end", got, err)
			}
			if len(d.spent) != 3 || d.spent[2].InputTokens != 11 || d.spent[2].OutputTokens != 4 || d.spent[2].Model != "m1" {
				t.Errorf("got usage %+v, want three entries", d.spent)
			}
		})
	}
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := modelstest.New(t, modelstest.NeedsKey(modelstest.Vectors(6)))
	d.put("main", at(f, ai.KindOpenAI, 0))
	d.put("other", at(f, ai.KindAnthropic, 0))
	got, err := d.client.Embed(t.Context(), d.caller(), []byte(`{"input":["a","b"],"dimensions":2}`), "main")
	if err != nil || fmt.Sprint(got.Embeddings) != "[[0 0.5] [1 0.5]]" || got.Usage.InputTokens != 6 || len(d.spent) != 1 {
		t.Errorf("got %+v, %v, want two vectors in order for 6 tokens", got, err)
	}
	_, err = d.client.Embed(t.Context(), d.caller(), []byte(`{"input":["a"]}`), "other")
	if api.ErrorCode(err) != api.CodeHostInvalidArgument {
		t.Errorf("anthropic: got error %v, want code %s", err, api.CodeHostInvalidArgument)
	}
	f.Then(func(w http.ResponseWriter, _ *modelstest.Request) { _, _ = fmt.Fprint(w, `{"data":[]}`) })
	_, err = d.client.Embed(t.Context(), d.caller(), []byte(`{"input":["a"]}`), "main")
	if api.ErrorCode(err) != api.CodeHostAIFailed {
		t.Errorf("a missing vector: got error %v, want code %s", err, api.CodeHostAIFailed)
	}
}

// TestRetries: what a provider could not serve is sent again, as late as it asks for, and not what it
// refused.
func TestRetries(t *testing.T) {
	t.Parallel()
	yes := modelstest.Text(1, 1, "yes")
	for name, c := range map[string]struct {
		answers []modelstest.Answer
		want    string
		sent    int
	}{
		"429, then served":         {[]modelstest.Answer{modelstest.RateLimited(0.1), yes}, "main/m1 yes", 2},
		"529, then served":         {[]modelstest.Answer{modelstest.Overloaded(), yes}, "main/m1 yes", 2},
		"500 twice, then served":   {[]modelstest.Answer{modelstest.Refused(500, "api_error", "oops"), modelstest.Refused(502, "", ""), yes}, "main/m1 yes", 3},
		"529 thrice":               {[]modelstest.Answer{modelstest.Overloaded()}, string(api.CodeHostAIUnavailable), 3},
		"429 for an hour":          {[]modelstest.Answer{modelstest.RateLimited(3600), yes}, string(api.CodeHostAIRateLimited), 1},
		"400":                      {[]modelstest.Answer{modelstest.Refused(400, "invalid_request_error", "bad"), yes}, string(api.CodeHostAIFailed), 1},
		"401":                      {[]modelstest.Answer{modelstest.Refused(401, "authentication_error", "bad"), yes}, string(api.CodeHostAIFailed), 1},
		"an empty account":         {[]modelstest.Answer{modelstest.Refused(429, "insufficient_quota", "pay"), yes}, string(api.CodeHostAIFailed), 1},
		"a connection that breaks": {[]modelstest.Answer{func(http.ResponseWriter, *modelstest.Request) { panic(http.ErrAbortHandler) }, yes}, "main/m1 yes", 2},
		"no JSON":                  {[]modelstest.Answer{func(w http.ResponseWriter, _ *modelstest.Request) { _, _ = fmt.Fprint(w, "<html>") }, yes}, string(api.CodeHostAIFailed), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			f := modelstest.New(t, c.answers...)
			d.put("main", at(f, ai.KindAnthropic, 2))
			if c.want == "main/m1 yes" || strings.HasPrefix(c.want, "CS_") {
				if got := d.ask("main"); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			}
			if got := len(f.Requests()); got != c.sent {
				t.Errorf("got %d requests, want %d", got, c.sent)
			}
		})
	}
}

// TestCircuitOpensForAll: after an overload no replica sends a request until the provider's time is over.
func TestCircuitOpensForAll(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := modelstest.New(t, modelstest.RateLimited(600))
	d.put("main", at(f, ai.KindOpenAI, 0))
	other := d.other()
	if got := d.ask("main"); got != string(api.CodeHostAIRateLimited) {
		t.Errorf("got %s, want %s", got, api.CodeHostAIRateLimited)
	}
	storagetest.Eventually(t, func() bool {
		_, err := other.client.Chat(t.Context(), other.caller(), []byte(hello), "main")
		return waitOf(err) > 500_000 && len(f.Requests()) <= 2
	})
	sent := len(f.Requests())
	for range 5 {
		_, err := other.client.Chat(t.Context(), other.caller(), []byte(hello), "main")
		if api.ErrorCode(err) != api.CodeHostAIUnavailable || waitOf(err) < 500_000 {
			t.Errorf("got error %v with a wait of %d ms, want code %s and 10 minutes", err, waitOf(err), api.CodeHostAIUnavailable)
		}
	}
	if got := len(f.Requests()); got != sent {
		t.Errorf("got %d requests while the circuit is open, want none", got-sent)
	}
}

// TestRoutes: a route sends calls to its targets by its strategy, and to the next one after a failure.
func TestRoutes(t *testing.T) {
	t.Parallel()
	served := func(d *desk, route string, calls int) map[string]int {
		got := map[string]int{}
		for range calls {
			got[d.ask(route)]++
		}
		return got
	}
	d := newDesk(t)
	one, two := modelstest.New(t, modelstest.Text(1, 1, "one")), modelstest.New(t, modelstest.Text(1, 1, "two"))
	d.put("a", at(one, ai.KindOpenAI, 0))
	d.put("b", at(two, ai.KindAnthropic, 0))
	route := func(strategy string, targets ...ai.RouteTarget) ai.ProviderSettings {
		return ai.ProviderSettings{Kind: ai.KindRoute, Strategy: strategy, Targets: targets}
	}
	toA, toB := ai.RouteTarget{Provider: "a"}, ai.RouteTarget{Provider: "b", Model: "m2"}
	d.put("turns", route(ai.StrategyRoundRobin, toA, toB))
	if got, want := fmt.Sprint(served(d, "turns", 6)), "map[a/m1 one:3 b/m2 two:3]"; got != want {
		t.Errorf("round robin: got %s, want %s", got, want)
	}
	heavy := toA
	heavy.Weight = 9
	d.put("weights", route(ai.StrategyWeighted, toB, heavy))
	if got := served(d, "weights", 200); got["a/m1 one"] < 150 || got["b/m2 two"] < 3 {
		t.Errorf("weights of 9 and 1: got %v, want about 180 and 20", got)
	}
	prices, err := spending.NewPrices(d.store)
	if err != nil {
		t.Fatalf("NewPrices: %v", err)
	}
	for model, usd := range map[string]agent.USD{"m1": 5 * agent.Dollar, "m2": agent.Dollar} {
		if err := prices.Put(t.Context(), d.tenant, agent.Price{Model: model, InputUSD: usd, OutputUSD: usd}); err != nil {
			t.Fatalf("Put: %v", err)
		}
	}
	cheap := d.other()
	d.put("cheap", route(ai.StrategyLeastCost, toA, toB))
	if got := cheap.ask("cheap"); got != "b/m2 two" {
		t.Errorf("least cost: got %s, want b/m2 two", got)
	}
	d.put("first", route(ai.StrategyFallback, ai.RouteTarget{Provider: "turns"}, toB))
	d.put("fallback", route(ai.StrategyFallback, toA, toB))
	one.Then(modelstest.Overloaded())
	storagetest.Eventually(t, func() bool { return d.ask("fallback") == "b/m2 two" })
	sent := len(one.Requests())
	if got := d.ask("fallback"); got != "b/m2 two" || len(one.Requests()) > sent+1 {
		t.Errorf("after an overload: got %s, want b/m2 two", got)
	}
	if got := d.ask("first"); got != "b/m2 two" {
		t.Errorf("a route to a route: got %s, want b/m2 two", got)
	}
	two.Then(modelstest.Overloaded())
	if got := d.ask("fallback"); got != string(api.CodeHostAIUnavailable) && got != string(api.CodeHostAIRateLimited) {
		t.Errorf("all overloaded: got %s, want a failure of the providers", got)
	}
	one.Then(modelstest.Refused(400, "invalid_request_error", "bad"))
	two.Then(modelstest.Text(1, 1, "two"))
	storagetest.Eventually(t, func() bool { return d.ask("a") == string(api.CodeHostAIFailed) })
	if got := d.ask("fallback"); got != string(api.CodeHostAIFailed) {
		t.Errorf("a refused request: got %s, want %s: another provider would refuse it, too", got, api.CodeHostAIFailed)
	}
}

// TestLimitsMoveOn: a route passes a target whose limits are used up, and a single provider's call waits.
func TestLimitsMoveOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := modelstest.New(t, modelstest.Text(1, 1, "yes"))
	slow := at(f, ai.KindOpenAI, 0)
	slow.RequestsPerMinute = 2
	d.put("slow", slow)
	d.put("other", at(f, ai.KindOpenAI, 0))
	d.put("main", ai.ProviderSettings{Kind: ai.KindRoute, Strategy: ai.StrategyFallback, Targets: []ai.RouteTarget{{Provider: "slow"}, {Provider: "other"}}})
	got := []string{d.ask("main"), d.ask("main"), d.ask("main")}
	if want := []string{"slow/m1 yes", "other/m1 yes", "other/m1 yes"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := d.client.Chat(ctx, d.caller(), []byte(hello), "slow")
	if api.ErrorCode(err) != api.CodeHostAIRateLimited || waitOf(err) < 10_000 {
		t.Errorf("got error %v with a wait of %d ms, want code %s and the rest of 30 s", err, waitOf(err), api.CodeHostAIRateLimited)
	}
}

// TestStreamsThatFail: a stream that fails at its beginning is repeated; later its last event is the error,
// and what was used is estimated.
func TestStreamsThatFail(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{ai.KindOpenAI, ai.KindAnthropic} {
		for name, c := range map[string]struct {
			answers []modelstest.Answer
			want    string
			usage   int // entries
		}{
			"overloaded at the beginning": {[]modelstest.Answer{modelstest.Fails("overloaded_error", "Overloaded"), modelstest.Text(1, 1, "yes")}, "text,end", 2},
			"429 at the beginning":        {[]modelstest.Answer{modelstest.RateLimited(0.1), modelstest.Text(1, 1, "yes")}, "text,end", 1},
			"cut":                         {[]modelstest.Answer{modelstest.Cut("a ", "part")}, "text,text,error " + string(api.CodeHostAIUnavailable), 1},
			"overloaded later":            {[]modelstest.Answer{modelstest.Fails("overloaded_error", "Overloaded", "a part")}, "text,error " + string(api.CodeHostAIUnavailable), 1},
			"refused later":               {[]modelstest.Answer{modelstest.Fails("invalid_request_error", "bad", "a part")}, "text,error " + string(api.CodeHostAIFailed), 1},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				f := modelstest.New(t, c.answers...)
				d.put("main", at(f, kind, 2))
				got, err := d.deltas("main", hello)
				if err != nil {
					t.Fatalf("Stream: %v", err)
				}
				kinds := make([]string, len(got))
				for i, delta := range got {
					kinds[i] = strings.TrimSpace(delta.Type + " " + delta.Code)
				}
				if text := strings.Join(kinds, ","); text != c.want {
					t.Errorf("got %s, want %s", text, c.want)
				}
				if len(d.spent) != c.usage || d.spent[0].InputTokens == 0 {
					t.Errorf("got usage %+v, want %d entries with tokens", d.spent, c.usage)
				}
			})
		}
	}
}

// TestClosedStream: to close a stream ends the request, and what it used until then is recorded once.
func TestClosedStream(t *testing.T) {
	t.Parallel()
	d, gone := newDesk(t), make(chan struct{})
	f := modelstest.New(t, modelstest.Silent(t, gone, "a part"))
	d.put("main", at(f, ai.KindOpenAI, 0))
	s, err := d.client.Stream(t.Context(), d.caller(), []byte(hello), "main")
	if err != nil {
		t.Fatalf("Stream: %v", err)
	}
	if _, err := s.Read(make([]byte, 1000)); err != nil {
		t.Errorf("Read: %v", err)
	}
	for range 2 {
		_ = s.Close() // the body was given up
	}
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("got no end of the request after 20 s, want one")
	}
	if len(d.spent) != 1 || d.spent[0].OutputTokens != 2 || d.spent[0].InputTokens == 0 {
		t.Errorf("got usage %+v, want one entry, estimated", d.spent)
	}
}

// TestTimeouts: a provider that does not answer in its timeout has failed.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	d, gone := newDesk(t), make(chan struct{})
	f := modelstest.New(t, modelstest.Silent(t, gone))
	slow := at(f, ai.KindOpenAI, 0)
	slow.TimeoutMS = 200
	d.put("main", slow)
	if got := d.ask("main"); got != string(api.CodeHostAIUnavailable) {
		t.Errorf("chat: got %s, want %s", got, api.CodeHostAIUnavailable)
	}
	f.Then(modelstest.Silent(t, make(chan struct{})))
	_, err := d.deltas("main", hello)
	if api.ErrorCode(err) != api.CodeHostAIUnavailable {
		t.Errorf("stream: got error %v, want code %s", err, api.CodeHostAIUnavailable)
	}
}

// TestLog: the line of a call has what the provider's settings ask for.
func TestLog(t *testing.T) {
	t.Parallel()
	for log, want := range map[string][]string{
		ai.LogOff:      nil,
		ai.LogMetadata: {`"op":"chat"`, `"provider":"main"`, `"model":"m1"`, `"outcome":"success"`, `"input_tokens":3`, `!hello`, `!yes`},
		ai.LogFull:     {`"outcome":"success"`, `hello`, `yes`, `!` + modelstest.Key},
	} {
		d := newDesk(t)
		f := modelstest.New(t, modelstest.Text(3, 2, "yes "+modelstest.Key))
		s := at(f, ai.KindOpenAI, 0)
		s.Log = log
		d.put("main", s)
		d.ask("main")
		if (len(d.lines) == 1) != (want != nil) {
			t.Errorf("log %s: got lines %q, want one unless it is off", log, d.lines)
			continue
		}
		for _, part := range want {
			text, absent := strings.CutPrefix(part, "!")
			if strings.Contains(d.lines[0], text) == absent {
				t.Errorf("log %s: got %s, want %s in it: %v", log, d.lines[0], text, !absent)
			}
		}
	}
}

// TestLargeAnswers: an answer beyond the bound is refused, and not kept in memory.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	part := strings.Repeat("x", 512<<10)
	f := modelstest.New(t, modelstest.Text(1, 1, slices.Repeat([]string{part}, 10)...))
	d.put("main", at(f, ai.KindOpenAI, 0))
	if got := d.ask("main"); got != string(api.CodeHostAIFailed) {
		t.Errorf("chat: got %.60s, want %s", got, api.CodeHostAIFailed)
	}
	got, err := d.deltas("main", hello)
	if err != nil || got[len(got)-1].Code != string(api.CodeHostAIFailed) {
		t.Errorf("stream: got %d events, error %v, want code %s at the end", len(got), err, api.CodeHostAIFailed)
	}
	_, err = d.client.Chat(t.Context(), d.caller(), []byte(`{"messages":[{"role":"user","content":"`+strings.Repeat("x", ai.MaxRequestBytes)+`"}]}`), "main")
	if api.ErrorCode(err) != api.CodeHostInvalidArgument {
		t.Errorf("a large request: got error %v, want code %s", err, api.CodeHostInvalidArgument)
	}
}
