package invoker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// bench is an engine over a store, and one tenant's functions in it.
type bench struct {
	t      testing.TB
	store  *storage.Store
	engine *invoker.Invoker
	broker *queue.Broker
	tenant string
	// handlers are those of the versions to be published, as a verification would find them.
	handlers []string
}

const namespace = "default"

func newBench(t testing.TB, s *storage.Store, change ...func(*invoker.Config)) *bench {
	t.Helper()
	return newBenchOf(t, s, sandbox.Config{Spares: 1}, change...)
}

// newBenchOf is newBench with a pool of its own size.
func newBenchOf(t testing.TB, s *storage.Store, size sandbox.Config, change ...func(*invoker.Config)) *bench {
	t.Helper()
	size.Executable = sandboxtest.Executable(t)
	pool, err := sandbox.New(size)
	if err != nil {
		t.Fatalf("sandbox.New: %v", err)
	}
	var cfg invoker.Config
	for _, c := range change {
		c(&cfg)
	}
	broker, err := queue.New(t.Context(), s, queue.Config{})
	if err != nil {
		t.Fatalf("queue.New: %v", err)
	}
	engine, err := invoker.New(t.Context(), s, pool, broker, cfg)
	if err != nil {
		t.Fatalf("invoker.New: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(engine.Close(ctx), pool.Close(ctx)); err != nil {
			t.Errorf("errors.Join: %v", err)
		}
		broker.Close()
	})
	return &bench{t: t, store: s, engine: engine, broker: broker, tenant: storagetest.Tenant(t)}
}

// defaults are a version's config as publish would have merged it.
func defaults() api.VersionConfig {
	return api.VersionConfig{
		Entry: bundle.EntryJS, Handler: api.DefaultHandler, TimeoutMS: api.DefaultTimeoutMS,
		MemoryMB: api.DefaultMemoryMB, MaxConcurrency: api.DefaultMaxConcurrency,
	}
}

// publish makes a version of name and points prod at it.
func (b *bench) publish(name, source string, config api.VersionConfig) int64 {
	b.t.Helper()
	tar, err := bundle.Pack(map[string][]byte{bundle.EntryJS: []byte(source)})
	if err != nil {
		b.t.Fatalf("bundle.Pack: %v", err)
	}
	return b.publishTar(name, tar, bundle.Digest(tar), config)
}

func (b *bench) publishTar(name string, tar []byte, digest string, config api.VersionConfig) int64 {
	b.t.Helper()
	return b.publishIn(namespace, name, tar, digest, config)
}

func (b *bench) publishIn(namespace, name string, tar []byte, digest string, config api.VersionConfig) int64 {
	b.t.Helper()
	ctx, now := b.t.Context(), b.store.NowMS()
	_, err := storage.NewFunctions(b.store).Create(ctx, api.Function{
		Tenant: b.tenant, Namespace: namespace, Name: name, Runtime: api.RuntimeJS,
		Entry: api.DefaultEntry, Handler: api.DefaultHandler, CreatedAtMS: now,
	})
	if err != nil && api.ErrorCode(err) != api.CodeFunctionExists {
		b.t.Fatalf("create function %s: got error %v, want none or code %s", name, err, api.CodeFunctionExists)
	}
	draft := api.Draft{
		DraftID: api.NewDraftID(now), SHA256: digest, Files: map[string][]byte{bundle.EntryJS: nil},
		CreatedAtMS: now, ExpiresAtMS: now + api.DraftTTLMS,
	}
	if err := storage.NewDrafts(b.store).Put(ctx, b.tenant, namespace, name, draft); err != nil {
		b.t.Fatalf("Put: %v", err)
	}
	v, _, err := storage.NewVersions(b.store).Publish(ctx, storage.Publish{
		Tenant: b.tenant, Namespace: namespace, Function: name, DraftID: draft.DraftID,
		SHA256: draft.SHA256, Bundle: tar, Config: config, Handlers: b.handlers, Alias: "prod", NowMS: now,
	})
	if err != nil {
		b.t.Fatalf("Publish: %v", err)
	}
	b.engine.FunctionChanged(ctx, b.tenant, namespace, name)
	return v.Version
}

func (b *bench) invocation(name, event string) api.Invocation {
	return api.Invocation{
		Tenant: b.tenant, Namespace: namespace, Function: name, Ref: api.Ref{Alias: "prod"},
		Trigger: api.Trigger{Type: api.TriggerAPI}, Event: json.RawMessage(event), RequestID: "req_test",
		Principal: api.Principal{Sub: "tester", Roles: []string{"admin"}},
		Access:    api.AccessUnrestricted,
	}
}

func (b *bench) invoke(name, event string) *api.Outcome {
	b.t.Helper()
	out, err := b.engine.Invoke(b.t.Context(), b.invocation(name, event))
	if err != nil {
		b.t.Fatalf("invoke %s: %v", name, err)
	}
	return out
}

func (b *bench) stored(id string) *activations.Record {
	b.t.Helper()
	a, err := activations.New(b.store).Get(b.t.Context(), b.tenant, id)
	if err != nil {
		b.t.Fatalf("Get: %v", err)
	}
	return a
}

func each(t *testing.T, test func(b *bench)) {
	t.Helper()
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) { test(newBench(t, s)) })
}

// eachAlone is each with stores that no other test uses: the workers of a test take the jobs of all
// tests of its store.
func eachAlone(t *testing.T, test func(b *bench)) {
	t.Helper()
	t.Parallel()
	for name, config := range storagetest.OwnStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newBench(t, storagetest.Open(t, config(t))))
		})
	}
}

// What the answer implies can be read when the answer is there.
func TestInvokeRecordsWhatItAnswers(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("echo", `export default (event, ctx) => {
  cs.log.info("got", event);
  return { event, fn: ctx.function, v: ctx.version, ref: ctx.ref, who: ctx.principal.sub, attempt: ctx.attempt, id: ctx.activation_id, req: ctx.request_id };
};`, defaults())
		got := b.invoke("echo", `{"n": 9007199254740993, "s": "ü<&>"}`).Activation
		if got.Status != api.StatusSuccess || got.Error != nil || !got.ColdStart || got.EndMS < got.StartMS {
			b.t.Errorf("got outcome %+v, want a success with a cold start", got)
		}
		want := fmt.Sprintf(`{"event":{"n":9007199254740992,"s":"ü<&>"},"fn":"echo","v":1,"ref":{"alias":"prod","version":1},"who":"tester","attempt":1,"id":%q,"req":"req_test"}`, got.ActivationID)
		if string(got.Result) != want {
			b.t.Errorf("result %s\nwant   %s", got.Result, want)
		}
		if diff := cmp.Diff(got, b.stored(got.ActivationID).Activation); diff != "" {
			b.t.Errorf("record differs from the answer (-want +got):\n%s", diff)
		}
		lines, _, err := activations.NewLogs(b.store).Read(b.t.Context(), b.tenant, got.ActivationID, activations.LogCursor{}, 10)
		if err != nil || len(lines) != 1 || lines[0].Level != "info" || !strings.Contains(string(lines[0].Message), "got") {
			b.t.Errorf("logs: got %+v and error %v, want one line of level info with got in it", lines, err)
		}
		items, _, err := activations.New(b.store).List(b.t.Context(), activations.Filter{
			Tenant: b.tenant, Namespace: namespace, Function: "echo", Limit: 10,
		})
		if err != nil || len(items) != 1 || items[0].ActivationID != got.ActivationID {
			b.t.Errorf("List = %+v, %v, want only %s", items, err, got.ActivationID)
		}
		if warm := b.invoke("echo", `null`).Activation; warm.ColdStart {
			b.t.Error("the second call found no warm sandbox")
		}
	})
}

func TestInvokeErrors(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("hello", `export default () => "hi";`, defaults())
		for name, tt := range map[string]struct {
			change func(*api.Invocation)
			want   api.Code
		}{
			"no such function": {func(i *api.Invocation) { i.Function = "missing" }, api.CodeFunctionNotFound},
			"no such alias":    {func(i *api.Invocation) { i.Ref = api.Ref{Alias: "beta"} }, api.CodeAliasNotFound},
			"no such version":  {func(i *api.Invocation) { i.Ref = api.Ref{Version: 2} }, api.CodeVersionNotFound},
			"no ref":           {func(i *api.Invocation) { i.Ref = api.Ref{} }, api.CodeInvalid},
			"other tenant":     {func(i *api.Invocation) { i.Tenant = "t_somebodyelse" }, api.CodeFunctionNotFound},
		} {
			inv := b.invocation("hello", "null")
			tt.change(&inv)
			if out, err := b.engine.Invoke(b.t.Context(), inv); api.ErrorCode(err) != tt.want {
				b.t.Errorf("%s: %+v %v, want %s", name, out, err, tt.want)
			}
		}
	})
}

func TestFailuresAreRecorded(t *testing.T) {
	each(t, func(b *bench) {
		quick := defaults()
		quick.TimeoutMS = 200
		for name, tt := range map[string]struct {
			source    string
			status    api.Status
			errorType api.ErrorType
			code      string
		}{
			"throws":  {`export default () => { throw Object.assign(new Error("no"), { code: "E_NO" }); };`, api.StatusError, api.ErrException, "E_NO"},
			"sleeps":  {`export default () => new Promise((r) => setTimeout(r, 60000));`, api.StatusTimeout, api.ErrTimeout, ""},
			"loops":   {`export default () => { for (;;); };`, api.StatusTimeout, api.ErrTimeout, ""},
			"waits":   {`export default () => new Promise(() => {});`, api.StatusError, api.ErrUnsettled, ""},
			"denied":  {`export default () => cs.kv.get("x");`, api.StatusError, api.ErrException, string(api.CodeRuntimeCapabilityDenied)},
			"circles": {`export default () => { const a = {}; a.a = a; return a; };`, api.StatusError, api.ErrResultInvalid, ""},
		} {
			b.publish(name, tt.source, quick)
			a := b.stored(b.invoke(name, "null").Activation.ActivationID)
			if a.Status != tt.status || a.Error == nil || a.Error.Type != tt.errorType || a.Error.Code != tt.code {
				b.t.Errorf("%s: %s %+v, want %s %s %q", name, a.Status, a.Error, tt.status, tt.errorType, tt.code)
			}
		}
	})
}

// A published source that no sandbox can use is the function's failure.
func TestUnusableSourceIsRecorded(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("broken", "export default () => {\n  return (;\n};", defaults())
		for _, key := range []string{"", "", "key"} {
			inv := b.invocation("broken", "1")
			inv.IdempotencyKey = key
			out, err := b.engine.Invoke(b.t.Context(), inv)
			if err != nil {
				b.t.Fatalf("Invoke: %v", err)
			}
			a := b.stored(out.Activation.ActivationID)
			if a.Status != api.StatusError || a.Error == nil || a.Error.Type != api.ErrException ||
				a.Error.Code != string(api.CodeValidationSource) || !strings.HasPrefix(a.Error.Message, "function.js:2:") {
				b.t.Errorf("got the record of an activation %s with error %+v, want %s at function.js:2", a.Status, a.Error, api.CodeValidationSource)
			}
		}
	})
}

// A bundle that is not the one published never runs.
func TestBundleIsCheckedAgainstItsDigest(t *testing.T) {
	each(t, func(b *bench) {
		tar, err := bundle.Pack(map[string][]byte{bundle.EntryJS: []byte("export default () => 1;")})
		if err != nil {
			b.t.Fatalf("bundle.Pack: %v", err)
		}
		b.publishTar("swapped", tar, bundle.Digest([]byte("another")), defaults())
		out, err := b.engine.Invoke(b.t.Context(), b.invocation("swapped", "1"))
		if api.ErrorCode(err) != api.CodeInternal {
			b.t.Errorf("Invoke: %+v %v, want code %s", out, err, api.CodeInternal)
		}
	})
}

// A trigger may allow less time than the version has.
func TestMaxTimeoutClamps(t *testing.T) {
	each(t, func(b *bench) {
		config := defaults()
		config.TimeoutMS = 60_000
		b.publish("sleeper", `export default () => new Promise((r) => setTimeout(r, 50000));`, config)
		inv := b.invocation("sleeper", "1")
		inv.MaxTimeout = 100 * time.Millisecond
		out, err := b.engine.Invoke(b.t.Context(), inv)
		if err != nil || out.Activation.Status != api.StatusTimeout {
			b.t.Errorf("invoke with a timeout of 100 ms: got %+v and error %v, want status timeout", out, err)
		}
	})
}

func TestResultSizes(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("sized", `export default (n) => n < 0 ? undefined : "x".repeat(n);`, defaults())
		for _, n := range []int{-1, 0, api.MaxInlineResultBytes + 1, api.MaxStoredResultBytes + 1, 5 << 20} {
			got := b.invoke("sized", fmt.Sprint(n)).Activation
			wantBytes := n + 2
			if n < 0 {
				wantBytes = 0
			}
			if len(got.Result) != wantBytes || got.ResultTruncated {
				b.t.Errorf("n = %d: got a result of %d bytes, truncated %v, want %d bytes", n, len(got.Result), got.ResultTruncated, wantBytes)
			}
			kept := b.stored(got.ActivationID)
			if cut := wantBytes > api.MaxStoredResultBytes; kept.ResultTruncated != cut || (!cut && len(kept.Result) != wantBytes) {
				b.t.Errorf("n = %d: got a record with %d bytes, truncated %v, want %d bytes, truncated %v", n, len(kept.Result), kept.ResultTruncated, wantBytes, cut)
			}
		}
		if a := b.invoke("sized", fmt.Sprint(api.MaxResultBytes)).Activation; a.Error == nil || a.Error.Type != api.ErrResultTooLarge {
			b.t.Errorf("got %s with error %+v over the limit, want error %s", a.Status, a.Error, api.ErrResultTooLarge)
		}
	})
}

func TestIdempotencyKey(t *testing.T) {
	each(t, func(b *bench) {
		config := defaults()
		config.Capabilities.KV = &api.KVCapability{Prefixes: []string{"runs"}, Ops: []string{"get", "set"}}
		b.publish("counter", `export default async (ms) => {
  const runs = ((await cs.kv.get("runs")) ?? 0) + 1;
  await cs.kv.set("runs", runs);
  await new Promise((r) => setTimeout(r, ms));
  return runs;
};`, config)
		call := func(key, event string) (*api.Outcome, error) {
			inv := b.invocation("counter", event)
			inv.IdempotencyKey = key
			return b.engine.Invoke(b.t.Context(), inv)
		}
		first, err := call("a", "1")
		if err != nil || first.Replayed || string(first.Activation.Result) != "1" {
			b.t.Fatalf("first call = %+v, %v, want result 1, not replayed", first, err)
		}
		again, err := call("a", "1")
		if err != nil || !again.Replayed || again.Activation.ActivationID != first.Activation.ActivationID || string(again.Activation.Result) != "1" {
			b.t.Errorf("repeated call = %+v, %v, want a replay of %s with result 1", again, err, first.Activation.ActivationID)
		}
		if _, err := call("a", "2"); api.ErrorCode(err) != api.CodeIdempotencyMismatch {
			b.t.Errorf("another event under the same key: got error %v, want code %s", err, api.CodeIdempotencyMismatch)
		}
		stranger := b.invocation("counter", "1")
		stranger.IdempotencyKey, stranger.Principal.Sub = "a", "somebody else"
		if _, err := b.engine.Invoke(b.t.Context(), stranger); api.ErrorCode(err) != api.CodeIdempotencyMismatch {
			b.t.Errorf("same key of another caller: got error %v, want code %s", err, api.CodeIdempotencyMismatch)
		}
		if other, err := call("b", "1"); err != nil || other.Replayed || string(other.Activation.Result) != "2" {
			b.t.Errorf("call with another key = %+v, %v, want result 2, not replayed", other, err)
		}
		// Of sixteen concurrent calls one runs; the others fail or get its answer.
		var ran, running atomic.Int32
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				out, err := call("race", "300")
				switch {
				case err == nil && !out.Replayed:
					ran.Add(1)
				case api.ErrorCode(err) == api.CodeIdempotencyRunning:
					running.Add(1)
				case err != nil && api.ErrorCode(err) != api.CodeConcurrencyLimit:
					b.t.Errorf("concurrent call: got error %v, want success, code %s or code %s", err, api.CodeIdempotencyRunning, api.CodeConcurrencyLimit)
				}
			})
		}
		wg.Wait()
		if ran.Load() != 1 || running.Load() == 0 {
			b.t.Errorf("%d ran and %d were told that it runs, want 1 and some", ran.Load(), running.Load())
		}
	})
}

func TestCancelStopsTheRun(t *testing.T) {
	each(t, func(b *bench) {
		config := defaults()
		config.TimeoutMS = 60_000
		b.publish("sleeper", `export default () => new Promise((r) => setTimeout(r, 50000));`, config)
		inv := b.invocation("sleeper", "null")
		inv.IdempotencyKey = "known"
		id := api.DerivedActivationID(b.tenant, namespace, "sleeper", inv.Ref, "known")
		done := make(chan *api.Outcome, 1)
		go func() {
			out, err := b.engine.Invoke(b.t.Context(), inv)
			if err != nil {
				b.t.Errorf("Invoke: %v", err)
			}
			done <- out
		}()
		b.eventually("it runs", func() bool {
			a, err := activations.New(b.store).Get(b.t.Context(), b.tenant, id)
			return err == nil && a.Status == api.StatusRunning
		})
		if a, err := b.engine.Cancel(b.t.Context(), b.tenant, id); err != nil || a.Status != api.StatusCancelled {
			b.t.Fatalf("Cancel = %+v, %v, want status %s", a, err, api.StatusCancelled)
		}
		select {
		case out := <-done:
			if out.Activation.Status != api.StatusCancelled {
				b.t.Errorf("got status %s for the caller, want cancelled", out.Activation.Status)
			}
		case <-time.After(10 * time.Second):
			b.t.Fatal("the run goes on after its cancellation")
		}
		if _, err := b.engine.Cancel(b.t.Context(), b.tenant, id); api.ErrorCode(err) != api.CodeActivationTerminal {
			b.t.Errorf("second Cancel: got error %v, want code %s", err, api.CodeActivationTerminal)
		}
	})
}

// A caller that goes away takes its run with it, and the record says so.
func TestCallerThatGoesAway(t *testing.T) {
	each(t, func(b *bench) {
		config := defaults()
		config.TimeoutMS = 60_000
		b.publish("sleeper", `export default () => { console.log("began"); return new Promise((r) => setTimeout(r, 50000)); };`, config)
		ctx, leave := context.WithCancel(b.t.Context())
		done := make(chan *api.Outcome, 1)
		go func() {
			out, err := b.engine.Invoke(ctx, b.invocation("sleeper", "null"))
			if err != nil {
				b.t.Errorf("Invoke: %v", err)
			}
			done <- out
		}()
		b.eventually("it runs", func() bool { return len(b.list("sleeper")) == 1 })
		leave()
		out := <-done
		if a := b.stored(out.Activation.ActivationID); a.Status != api.StatusCancelled {
			b.t.Errorf("got recorded status %s, want cancelled", a.Status)
		}
	})
}

// The version that an alias currently names runs, immediately where the
// change was made here, and within a second where no notice arrived.
func TestAliasChangesAreSeen(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("hello", `export default () => 1;`, defaults())
		b.invoke("hello", "null")
		b.publish("hello", `export default () => 2;`, defaults())
		if got := b.invoke("hello", "null").Activation; string(got.Result) != "2" || got.Ref.Version != 2 {
			b.t.Errorf("got result %s of version %d after a publish, want 2 of version 2", got.Result, got.Ref.Version)
		}
		aliases := storage.NewAliases(b.store)
		if _, err := aliases.Set(b.t.Context(), b.tenant, namespace, "hello", "prod", 1, nil, b.store.NowMS()); err != nil {
			b.t.Fatalf("aliases.Set: %v", err)
		}
		began := time.Now()
		var old time.Duration // when the last call began that the old version served
		b.eventually("the alias is read again", func() bool {
			asked := time.Since(began)
			if string(b.invoke("hello", "null").Activation.Result) == "1" {
				return true
			}
			old = asked
			return false
		})
		if old > 1500*time.Millisecond {
			b.t.Errorf("the old version served a call that began after %s, want at most 1.5s", old)
		}
		if err := storage.NewFunctions(b.store).Delete(b.t.Context(), b.tenant, namespace, "hello", b.store.NowMS()); err != nil {
			b.t.Fatalf("Delete: %v", err)
		}
		b.eventually("a deleted function is gone", func() bool {
			_, err := b.engine.Invoke(b.t.Context(), b.invocation("hello", "null"))
			return api.ErrorCode(err) == api.CodeFunctionNotFound
		})
	})
}

// A cancel and an alias change that another replica made arrive by notice.
func TestNoticesFromAnotherReplica(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	open := func() *storage.Store { return storagetest.Open(t, storage.Config{URL: server.URL}) }
	here, there := newBench(t, open()), newBench(t, open())
	there.tenant = here.tenant
	config := defaults()
	config.TimeoutMS = 60_000
	here.publish("sleeper", `export default () => new Promise((r) => setTimeout(r, 50000));`, config)
	done := make(chan *api.Outcome, 1)
	go func() {
		out, err := here.engine.Invoke(t.Context(), here.invocation("sleeper", "null"))
		if err != nil {
			t.Errorf("Invoke: %v", err)
		}
		done <- out
	}()
	here.eventually("it runs", func() bool { return len(here.list("sleeper")) == 1 })
	if _, err := there.engine.Cancel(t.Context(), here.tenant, here.list("sleeper")[0].ActivationID); err != nil {
		t.Fatalf("Cancel: %v", err)
	}
	select {
	case out := <-done:
		if out.Activation.Status != api.StatusCancelled {
			t.Errorf("got status %s, want cancelled", out.Activation.Status)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the other replica's cancel did not stop the run")
	}
}

func TestConcurrencyLimit(t *testing.T) {
	each(t, func(b *bench) {
		config := defaults()
		config.MaxConcurrency = 2
		config.TimeoutMS = 10_000
		b.publish("slow", `export default (ms) => new Promise((r) => setTimeout(r, ms));`, config)
		var refused, ran atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				switch _, err := b.engine.Invoke(b.t.Context(), b.invocation("slow", "2500")); {
				case err == nil:
					ran.Add(1)
				case api.ErrorCode(err) == api.CodeConcurrencyLimit:
					refused.Add(1)
				default:
					b.t.Errorf("Invoke: %v, want no error or code %s", err, api.CodeConcurrencyLimit)
				}
			})
		}
		wg.Wait()
		if ran.Load() != 2 || refused.Load() != 2 {
			b.t.Errorf("%d ran and %d were refused, want 2 and 2", ran.Load(), refused.Load())
		}
	})
}

func TestCloseEndsWhatIsInHand(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	config := defaults()
	config.TimeoutMS = 60_000
	b.publish("sleeper", `export default () => new Promise((r) => setTimeout(r, 50000));`, config)
	done := make(chan *api.Outcome, 1)
	go func() {
		out, err := b.engine.Invoke(t.Context(), b.invocation("sleeper", "null"))
		if err != nil {
			t.Errorf("Invoke: %v", err)
		}
		done <- out
	}()
	b.eventually("it runs", func() bool { return len(b.list("sleeper")) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.engine.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: got error %v, want none or %v", err, context.DeadlineExceeded)
	}
	out := <-done
	if a := b.stored(out.Activation.ActivationID); a.Status != api.StatusCancelled {
		t.Errorf("got recorded status %s, want cancelled", a.Status)
	}
	if _, err := b.engine.Invoke(t.Context(), b.invocation("sleeper", "null")); api.ErrorCode(err) != api.CodeShuttingDown {
		t.Errorf("Invoke after Close: got error %v, want code %s", err, api.CodeShuttingDown)
	}
}

// A store that goes away while the function runs costs the caller an error, and
// the record is right once the store is back.
func TestRecordIsWrittenAfterAnOutage(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	b := newBench(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	config := defaults()
	config.TimeoutMS = 30_000
	b.publish("slow", `export default () => { console.log("kept"); return new Promise((r) => setTimeout(() => r("done"), 1000)); };`, config)
	result := make(chan error, 1)
	go func() {
		_, err := b.engine.Invoke(t.Context(), b.invocation("slow", "null"))
		result <- err
	}()
	b.eventually("it runs", func() bool { return len(b.list("slow")) == 1 })
	id := b.list("slow")[0].ActivationID
	server.Kill()
	if err := <-result; api.ErrorCode(err) != api.CodeStoreUnavailable {
		t.Errorf("Invoke: got error %v, want code %s", err, api.CodeStoreUnavailable)
	}
	server.Start(t)
	b.eventually("the record is terminal", func() bool {
		a, err := activations.New(b.store).Get(t.Context(), b.tenant, id)
		return err == nil && a.Status == api.StatusSuccess && string(a.Result) == `"done"`
	})
	lines, _, err := activations.NewLogs(b.store).Read(t.Context(), b.tenant, id, activations.LogCursor{}, 10)
	if err != nil || len(lines) != 1 {
		t.Errorf("logs: got %+v and error %v, want 1 line", lines, err)
	}
}

func (b *bench) list(function string) []api.Activation {
	b.t.Helper()
	items, _, err := activations.New(b.store).List(b.t.Context(), activations.Filter{
		Tenant: b.tenant, Namespace: namespace, Function: function, Limit: 100,
	})
	if err != nil {
		b.t.Fatalf("List: %v", err)
	}
	return items
}

func (b *bench) eventually(what string, is func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited 20 s, want in that time: %s", what)
		}
		time.Sleep(10 * time.Millisecond) // between two questions, not in place of one
	}
}
