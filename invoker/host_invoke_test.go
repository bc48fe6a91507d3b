package invoker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/storagetest"
)

// calling is a config that may call functions.
func calling(functions ...string) api.VersionConfig {
	config := defaults()
	config.TimeoutMS = 20_000
	config.Capabilities.Invoke = &api.InvokeCapability{Functions: functions}
	return config
}

// caught is a script whose result is the error of a call.
const caught = `
const caught = (e) => ({ code: e.code, message: e.message, status: e.status, cause: e.cause, id: typeof e.activationId });`

// granted is an invocation of a caller with a key of the namespace.
func (b *bench) granted(name, event string, roles ...string) api.Invocation {
	inv := b.invocation(name, event)
	inv.Access, inv.Principal = api.AccessGranted, api.Principal{Sub: "key-1", Roles: roles}
	return inv
}

// result runs inv and returns its result; its failure ends the test.
func (b *bench) result(inv api.Invocation) string {
	b.t.Helper()
	out, err := b.engine.Invoke(b.t.Context(), inv)
	if err != nil || out.Activation.Status != api.StatusSuccess {
		b.t.Fatalf("invoke %s: got %+v, error %v and %v; want success", inv.Function, out, resultError(out), err)
	}
	return string(out.Activation.Result)
}

func TestInvokeFromAFunction(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("callee", `export default (event, ctx) => event === "nothing" ? undefined : ({ event, trigger: ctx.trigger, who: ctx.principal, req: ctx.request_id, id: ctx.activation_id, left: ctx.remainingMs() < 21000, v: ctx.version });`, defaults())
		b.publish("callee", `export default () => "second";`, defaults())
		b.publish("caller", `export default async (event, ctx) => {
  const first = await cs.invoke("callee", { n: 1, s: "ü<&>" }, { version: 1 });
  const none = await cs.invoke("callee", "nothing", { version: 1 });
  return { first, none: typeof none, empty: (await cs.invoke("callee", undefined, { version: 1 })).event, prod: await cs.invoke("callee"), alias: await cs.invoke("default/callee", 1, { alias: "prod" }), self: ctx.activation_id };
};`, calling("callee", "default/callee"))
		var got struct {
			First struct {
				Event   json.RawMessage
				Trigger struct {
					Type   string
					Source api.CallSource
				}
				Who  api.Principal
				Req  string
				ID   string
				Left bool
				V    int
			}
			None, Prod, Alias, Self string
			Empty                   any
		}
		if err := json.Unmarshal([]byte(b.result(b.granted("caller", "null", "invoker"))), &got); err != nil {
			b.t.Fatalf("json.Unmarshal: %v", err)
		}
		if string(got.First.Event) != `{"n":1,"s":"ü<&>"}` || got.None != "undefined" || got.Empty != nil || got.Prod != "second" || got.Alias != "second" || got.First.V != 1 {
			b.t.Errorf("results of the calls = %+v, want the event back, undefined, nil, and the versions of prod and of the alias", got)
		}
		want := api.CallSource{ActivationID: got.Self, Function: "default/caller", Depth: 1}
		if got.First.Trigger.Type != api.TriggerAPI || got.First.Trigger.Source != want || got.First.Req != "req_test" || !got.First.Left {
			b.t.Errorf("got trigger %+v and request %q, want type api, source %+v and request req_test", got.First.Trigger, got.First.Req, want)
		}
		if diff := cmp.Diff(api.Principal{Sub: "key-1", Roles: []string{"invoker"}}, got.First.Who); diff != "" {
			b.t.Errorf("principal (-want +got):\n%s", diff)
		}
		if kept := b.stored(got.First.ID); kept.Status != api.StatusSuccess || !strings.Contains(string(kept.Trigger.Source), got.Self) {
			b.t.Errorf("got the callee's record %+v, want success, with its caller %s as the source", kept, got.Self)
		}
	})
}

func TestInvokeFailuresReachTheCaller(t *testing.T) {
	each(t, func(b *bench) {
		quick := defaults()
		quick.TimeoutMS = 100
		b.publish("throws", `export default () => { throw Object.assign(new TypeError("no good"), { code: "E_NO" }); };`, defaults())
		b.publish("sleeps", `export default () => new Promise((r) => setTimeout(r, 60000));`, quick)
		b.publish("large", `export default () => "x".repeat(6 << 20);`, defaults())
		b.publish("caller", caught+`
export default async (name) => { try { return { value: await cs.invoke(name.name ?? name, 1, name.options) } } catch (e) { return caught(e) } };`,
			calling("throws", "sleeps", "large", "missing", "default/throws", "../x", "a:b", "default/throws/prod"))
		for name, want := range map[string]string{
			`"throws"`:  `{"code":"CS_RUNTIME_EXCEPTION","message":"default/throws failed: Exception: TypeError: no good","status":"error","cause":{"type":"Exception","message":"TypeError: no good","code":"E_NO"},"id":"string"}`,
			`"sleeps"`:  `{"code":"CS_RUNTIME_TIMEOUT","message":"default/sleeps failed: Timeout: `,
			`"large"`:   `{"code":"CS_RUNTIME_RESULT_TOO_LARGE","message":"default/large failed: ResultTooLarge: `,
			`"missing"`: `{"code":"CS_FUNCTION_NOT_FOUND"`,
			`"other"`:   `{"code":"CS_RUNTIME_CAPABILITY_DENIED","message":"invoke is not allowed: declare capabilities {\"invoke\": {\"functions\": [\"other\"]}} in the manifest","id":"undefined"}`,
			`{"name":"throws","options":{"alias":"beta"}}`:             `{"code":"CS_ALIAS_NOT_FOUND"`,
			`{"name":"throws","options":{"version":7}}`:                `{"code":"CS_VERSION_NOT_FOUND"`,
			`{"name":"throws","options":{"alias":"prod","version":1}}`: `{"code":"CS_RUNTIME_INVALID_ARGUMENT"`,
			`{"name":"throws","options":{"alias":"../prod"}}`:          `{"code":"CS_RUNTIME_INVALID_ARGUMENT"`,
			`"../x"`:                `{"code":"CS_RUNTIME_INVALID_ARGUMENT"`,
			`"a:b"`:                 `{"code":"CS_RUNTIME_INVALID_ARGUMENT"`,
			`"default/throws/prod"`: `{"code":"CS_RUNTIME_INVALID_ARGUMENT"`,
		} {
			if got := b.result(b.granted("caller", name)); !strings.HasPrefix(got, want) {
				b.t.Errorf("%s: %s\nwant %s", name, got, want)
			}
		}
	})
}

// A large result arrives whole; many of them wait for room instead of failing.
func TestInvokeLargeResults(t *testing.T) {
	each(t, func(b *bench) {
		slow := defaults()
		slow.TimeoutMS = 20_000
		b.publish("large", `export default (n) => "x".repeat(n);`, slow)
		config := calling("large")
		config.MemoryMB = 512
		b.publish("caller", `export default async (n) => (await Promise.all(Array.from({ length: 6 }, () => cs.invoke("large", n)))).map((s) => s.length);`, config)
		n := api.MaxResultBytes - 2
		if got, want := b.result(b.granted("caller", fmt.Sprint(n))), strings.ReplaceAll(fmt.Sprintf("[%[1]d,%[1]d,%[1]d,%[1]d,%[1]d,%[1]d]", n), " ", ""); got != want {
			b.t.Errorf("got %s, want %s", got, want)
		}
	})
}

// The callee has its caller's remaining time, however long its own is, and
// ends with its caller.
func TestInvokeInheritsDeadlineAndCancel(t *testing.T) {
	each(t, func(b *bench) {
		long := defaults()
		long.TimeoutMS = 60_000
		long.Capabilities.KV = &api.KVCapability{Prefixes: []string{"began"}, Ops: []string{"set"}}
		b.publish("sleeper", `export default async (e, ctx) => { await cs.kv.set("began", { id: ctx.activation_id, deadline: ctx.deadline_ms }); await new Promise((r) => setTimeout(r, 50000)); };`, long)
		short := calling("sleeper")
		short.TimeoutMS = 1500
		b.publish("brief", `export default () => cs.invoke("sleeper");`, short)
		b.publish("patient", `export default () => cs.invoke("sleeper");`, calling("sleeper"))

		began := func() (kept struct {
			ID       string
			Deadline int64
		}) {
			b.eventually("the callee begins", func() bool { return b.kv("began") != "" })
			if err := json.Unmarshal([]byte(b.kv("began")), &kept); err != nil {
				b.t.Fatalf("json.Unmarshal: %v", err)
			}
			return kept
		}
		out, err := b.engine.Invoke(b.t.Context(), b.granted("brief", "null"))
		if err != nil || out.Activation.Status != api.StatusTimeout && api.Code(out.Activation.Error.Code) != api.CodeRuntimeTimeout {
			b.t.Fatalf("invoke brief: got %+v and error %v, want status timeout or code %s", out, err, api.CodeRuntimeTimeout)
		}
		kept := began()
		if kept.Deadline != out.Activation.DeadlineMS {
			b.t.Errorf("got the callee's deadline %d, want its caller's, %d", kept.Deadline, out.Activation.DeadlineMS)
		}
		b.eventually("the callee ends", func() bool { return b.stored(kept.ID).Status.Terminal() })

		if _, err := kvstore.New(b.store).Del(b.t.Context(), b.tenant, namespace, "began"); err != nil {
			b.t.Fatalf("Del: %v", err)
		}
		done := make(chan *api.Outcome, 1)
		go func() {
			out, _ := b.engine.Invoke(b.t.Context(), b.granted("patient", "null")) // judged below
			done <- out
		}()
		callee := b.stored(began().ID)
		var source api.CallSource
		if err := json.Unmarshal(callee.Trigger.Source, &source); err != nil {
			b.t.Fatalf("json.Unmarshal: %v", err)
		}
		if _, err := b.engine.Cancel(b.t.Context(), b.tenant, source.ActivationID); err != nil {
			b.t.Fatalf("Cancel: %v", err)
		}
		if out := <-done; out == nil || out.Activation.Status != api.StatusCancelled {
			b.t.Errorf("Invoke of the caller = %+v, want status %s", out, api.StatusCancelled)
		}
		b.eventually("the callee is cancelled", func() bool { return b.stored(callee.ActivationID).Status == api.StatusCancelled })
	})
}

// A cycle ends at the depth, with the functions that make it named.
func TestInvokeDepth(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("ping", caught+`export default async (n) => { try { return await cs.invoke("pong", n + 1) } catch (e) { if (e.code !== "CS_RUNTIME_INVOKE_DEPTH") throw e; return { n, ...caught(e) } } };`, calling("*"))
		b.publish("pong", caught+`export default async (n) => { try { return await cs.invoke("ping", n + 1) } catch (e) { if (e.code !== "CS_RUNTIME_INVOKE_DEPTH") throw e; return { n, ...caught(e) } } };`, calling("ping"))
		var got struct {
			N             int
			Code, Message string
		}
		if err := json.Unmarshal([]byte(b.result(b.granted("ping", "0"))), &got); err != nil {
			b.t.Fatalf("json.Unmarshal: %v", err)
		}
		chain := strings.Repeat("default/ping → default/pong → ", 5)
		if want := "calls of cs.invoke nest at most 8 deep: " + strings.TrimSuffix(chain, " → "); got.N != api.MaxInvokeDepth || got.Message != want {
			b.t.Errorf("%+v\nwant %q at depth %d", got, want, api.MaxInvokeDepth)
		}
	})
}

// A function that would wait for its own slot fails immediately.
func TestInvokeOfItsOwnPlace(t *testing.T) {
	each(t, func(b *bench) {
		single := calling("*")
		single.MaxConcurrency = 1
		source := caught + `export default async (to) => { const began = Date.now(); try { return await cs.invoke(to[0], to.slice(1)) } catch (e) { return { ...caught(e), soon: Date.now() - began < 900 } } };`
		b.publish("alone", source, single)
		b.publish("other", source, calling("*"))
		for event, chain := range map[string]string{
			`["alone"]`:                 "default/alone → default/alone",
			`["other","alone"]`:         "default/alone → default/other → default/alone",
			`["other","other","alone"]`: "default/alone → default/other → default/other → default/alone",
		} {
			var got struct {
				Code, Message string
				Soon          bool
			}
			if err := json.Unmarshal([]byte(b.result(b.granted("alone", event))), &got); err != nil {
				b.t.Fatalf("json.Unmarshal: %v", err)
			}
			want := "the call would wait for itself: its callers hold all slots of the version (max_concurrency 1): " + chain
			if got.Code != string(api.CodeHostInvokeCycle) || got.Message != want || !got.Soon {
				b.t.Errorf("%s: %+v\nwant %s", event, got, want)
			}
		}
	})
}

// Callers that hold all processes and wait for one more end with a clear code, after at
// most the pool's longest wait.
func TestInvokeWithoutSandboxesLeft(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		wait := 500 * time.Millisecond
		b := newBenchOf(t, s, sandbox.Config{MaxProcesses: 3, Spares: -1, ReservePercent: -1, AcquireTimeout: wait})
		source := caught + `export default async (to) => { if (to.length === 0) return "end"; const began = Date.now(); try { return await cs.invoke(to[0], to.slice(1)) } catch (e) { return { ...caught(e), took: Date.now() - began } } };`
		for _, name := range []string{"aaa", "bbb", "ccc", "ddd"} {
			b.publish(name, source, calling("*"))
		}
		// One chain alone cannot ever get a fourth process.
		var got struct {
			Code, Message string
			Took          int64
		}
		if err := json.Unmarshal([]byte(b.result(b.granted("aaa", `["bbb","ccc","ddd"]`))), &got); err != nil {
			t.Fatalf("json.Unmarshal: %v", err)
		}
		if got.Code != string(api.CodeCapacityLimit) || !strings.HasSuffix(got.Message, "(3): default/aaa → default/bbb → default/ccc → default/ddd") || got.Took >= wait.Milliseconds() {
			t.Errorf("error = %+v, want code %s with the chain of callers, within %s", got, api.CodeCapacityLimit, wait)
		}
		// Three callers hold all of them.
		var wg sync.WaitGroup
		ended := make([]error, 3)
		hold := caught + `export default async (to) => { await new Promise((r) => setTimeout(r, 300)); const began = Date.now(); try { return { value: await cs.invoke("ddd", []) } } catch (e) { return { ...caught(e), took: Date.now() - began } } };`
		for i, name := range []string{"aaa", "bbb", "ccc"} {
			b.publish(name, hold, calling("*"))
			wg.Go(func() {
				out, err := b.engine.Invoke(t.Context(), b.granted(name, "null"))
				if err != nil {
					ended[i] = err
					return
				}
				var told struct {
					Code, Value string
					Took        int64
				}
				ended[i] = json.Unmarshal(out.Activation.Result, &told)
				if told.Value != "end" && told.Code != string(api.CodeCapacityLimit) || told.Took > 10*wait.Milliseconds() {
					ended[i] = errors.Join(ended[i], fmt.Errorf("%s: %s", name, out.Activation.Result))
				}
			})
		}
		wg.Wait()
		if err := errors.Join(ended...); err != nil {
			t.Errorf("errors.Join: %v", err)
		}
		// Nothing is left behind: the pool serves again.
		if got := b.result(b.granted("ddd", "[]")); got != `"end"` {
			t.Errorf("got %s afterwards, want \"end\"", got)
		}
	})
}

// Whom a function lets in through cs.invoke. The caller of a public endpoint gets
// what the function may in its namespace, never what a list of roles keeps for
// others, and never another namespace.
func TestInvokeLetsNobodyInWhoWouldNotGetThere(t *testing.T) {
	each(t, func(b *bench) {
		listed := func(roles ...string) api.VersionConfig {
			config := calling("*", "other/open")
			config.Authz = &api.Authz{InvokeHTTPRoles: roles}
			return config
		}
		source := `export default (e, ctx) => e ? cs.invoke(e.to, e.then).catch((e) => e.code) : "ran for " + ctx.principal.sub;`
		b.publish("public", source, listed("*"))
		b.publish("open", source, calling("*", "other/open"))
		b.publish("billing", source, listed("role:billing"))
		tar, err := bundle.Pack(map[string][]byte{bundle.EntryJS: []byte(source)})
		if err != nil {
			b.t.Fatalf("bundle.Pack: %v", err)
		}
		b.publishIn("other", "open", tar, bundle.Digest(tar), calling("*", "default/open"))

		public := b.invocation("public", "")
		public.Access, public.Trigger, public.Principal = api.AccessPublic, api.Trigger{Type: api.TriggerHTTP}, api.Principal{Sub: "anonymous", Roles: []string{}}
		tenantWide := func(roles ...string) api.Invocation {
			inv := b.granted("open", "", roles...)
			inv.AllNamespaces = true
			return inv
		}
		outcome := b.granted("open", "", "role:none") // as a destination of an outcome runs
		outcome.Access = api.AccessUnrestricted
		local := outcome // the caller is local if there are no keys
		local.AllNamespaces = true
		const denied = `"CS_AUTHZ_DENIED"`
		for name, tt := range map[string]struct {
			inv         api.Invocation
			event, want string
		}{
			"anonymous to an open function":         {public, `{"to":"open"}`, `"ran for anonymous"`},
			"anonymous to a public one":             {public, `{"to":"public"}`, `"ran for anonymous"`},
			"anonymous to a listed one":             {public, `{"to":"billing"}`, denied},
			"anonymous to a listed one, by another": {public, `{"to":"open","then":{"to":"billing"}}`, denied},
			"anonymous to another namespace":        {public, `{"to":"other/open"}`, denied},
			"anonymous there by another":            {public, `{"to":"open","then":{"to":"other/open"}}`, denied},
			"a key to a listed one":                 {b.granted("open", "", "invoker"), `{"to":"billing"}`, denied},
			"a key of the list":                     {b.granted("open", "", "role:billing"), `{"to":"billing"}`, `"ran for key-1"`},
			"a key of one namespace to another":     {b.granted("open", "", "admin"), `{"to":"other/open"}`, denied},
			"a key of the tenant to another":        {tenantWide("invoker"), `{"to":"other/open"}`, `"ran for key-1"`},
			"a key of the tenant there and back":    {tenantWide("invoker"), `{"to":"other/open","then":{"to":"default/open"}}`, `"ran for key-1"`},
			"a key of the tenant, not declared":     {tenantWide("admin"), `{"to":"other/billing"}`, `"CS_RUNTIME_CAPABILITY_DENIED"`},
			"a destination to a listed one":         {outcome, `{"to":"billing"}`, denied},
			"a destination to another namespace":    {outcome, `{"to":"other/open"}`, denied},
			"without keys to a listed one":          {local, `{"to":"billing"}`, `"ran for key-1"`},
			"without keys to another namespace":     {local, `{"to":"other/open"}`, `"ran for key-1"`},
		} {
			tt.inv.Event = json.RawMessage(tt.event)
			if got := b.result(tt.inv); got != tt.want {
				b.t.Errorf("%s: %s, want %s", name, got, tt.want)
			}
		}
	})
}

// While the engine shuts down, running functions may call others until they end.
func TestInvokeWhileShuttingDown(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	b.publish("callee", `export default () => "late";`, defaults())
	config := calling("callee")
	config.Capabilities.KV = &api.KVCapability{Prefixes: []string{"began", "go"}, Ops: []string{"get", "set"}}
	b.publish("caller", `export default async () => { await cs.kv.set("began", 1); while (!(await cs.kv.get("go"))) await new Promise((r) => setTimeout(r, 10)); return cs.invoke("callee"); };`, config)
	done := make(chan string, 1)
	go func() {
		out, err := b.engine.Invoke(t.Context(), b.granted("caller", "null"))
		if err != nil {
			done <- err.Error()
			return
		}
		done <- fmt.Sprintf("%s %s %+v", out.Activation.Status, out.Activation.Result, out.Activation.Error)
	}()
	b.eventually("the caller begins", func() bool { return b.kv("began") != "" })
	closed := make(chan error, 1)
	go func() { closed <- b.engine.Close(t.Context()) }()
	b.eventually("the engine refuses others", func() bool {
		_, err := b.engine.Invoke(t.Context(), b.granted("callee", "null"))
		return api.ErrorCode(err) == api.CodeShuttingDown
	})
	if err := kvstore.New(b.store).Set(t.Context(), b.tenant, namespace, "go", []byte("1"), 0); err != nil {
		t.Fatalf("Set: %v", err)
	}
	if got := <-done; got != `success "late" <nil>` {
		t.Errorf("got the caller's end %s, want success \"late\" without an error", got)
	}
	if err := <-closed; err != nil {
		t.Errorf("<-closed: %v", err)
	}
}

// resultError returns the error of an activation that ended, nil for none.
func resultError(out *api.Outcome) error {
	if out == nil || out.Activation.Error == nil {
		return nil
	}
	return fmt.Errorf("%+v", *out.Activation.Error)
}
