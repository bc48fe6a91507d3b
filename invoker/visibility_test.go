package invoker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/storagetest"
)

// A call without effects costs the store its index entry and its record, no script.
func TestHelloCostsTwoCommands(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	b.publish("hello", `export default () => "hello";`, defaults())
	b.invoke("hello", "null") // resolves the function and starts a sandbox
	before := storagetest.Calls(t, b.store.Client())
	const n = 20
	for range n {
		b.invoke("hello", "null")
	}
	after := storagetest.Calls(t, b.store.Client())
	for command, want := range map[string]int64{"set": n, "zadd": n, "evalsha": 0, "eval": 0} {
		// One of the calls may have taken 25 ms on a busy machine, and is written twice then.
		if got := after[command] - before[command]; got < want || got > want+n/4 {
			t.Errorf("%d calls of hello: got %d × %s, want %d", n, got, command, want)
		}
	}
}

// No effect without a record: a host call waits for the record, and fails with it.
func TestRecordComesBeforeTheFirstEffect(t *testing.T) {
	t.Parallel()
	store := storagetest.Redis(t)
	proxy := newDeafProxy(t, fmt.Sprintf("127.0.0.1:%d", store.Port), []byte(`"status":"running"`))
	b := newBench(t, storagetest.Open(t, storage.Config{URL: "redis://" + proxy.addr}))
	config := defaults()
	config.Capabilities.KV = &api.KVCapability{Prefixes: []string{"a:"}, Ops: []string{"set"}}
	b.publish("writer", `export default async () => {
  try { await cs.kv.set("a:1", "x"); return "written"; } catch (e) { return e.code; }
};`, config)
	if got := string(b.invoke("writer", "null").Activation.Result); got != `"written"` {
		t.Fatalf("with the store at hand: got %s, want \"written\"", got)
	}
	if _, err := kvstore.New(b.store).Del(t.Context(), b.tenant, namespace, "a:1"); err != nil {
		t.Fatalf("Del: %v", err)
	}
	proxy.mode.Store(refusing)
	_, err := b.engine.Invoke(t.Context(), b.invocation("writer", "null"))
	proxy.mode.Store(passing)
	if api.ErrorCode(err) != api.CodeStoreUnavailable {
		t.Errorf("without a record: got %v, want %s", err, api.CodeStoreUnavailable)
	}
	if value, found, err := kvstore.New(b.store).Get(t.Context(), b.tenant, namespace, "a:1"); err != nil || found {
		t.Errorf("an effect without a record: got %q, %v, %v; want no value", value, found, err)
	}
	b.eventually("the record follows, and says what the function was told", func() bool {
		items := b.list("writer")
		return len(items) == 2 && strings.Contains(string(b.stored(items[0].ActivationID).Result), string(api.CodeStoreUnavailable))
	})
}

// An activation that runs on is in the store 25 ms after it began.
func TestSlowActivationIsVisibleWhileItRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	config := defaults()
	config.TimeoutMS = 60_000
	b.publish("slow", `export default () => new Promise((r) => setTimeout(r, 50_000));`, config)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		out, err := b.engine.Invoke(ctx, b.invocation("slow", "null"))
		if err == nil && out.Activation.Status != api.StatusCancelled {
			err = fmt.Errorf("got status %s, want %s", out.Activation.Status, api.StatusCancelled)
		}
		ended <- err
	}()
	b.eventually("it is listed as running", func() bool {
		items := b.list("slow")
		return len(items) == 1 && items[0].Status == api.StatusRunning
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("<-ended: %v", err)
	}
}

// A log that fills more than a chunk is stored whole, however short the call.
func TestLongLogOfAShortCall(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("chatty", `export default () => { for (let i = 0; i < 100; i++) cs.log.info("x".repeat(2000)); };`, defaults())
		id := b.invoke("chatty", "null").Activation.ActivationID
		lines, _, err := activations.NewLogs(b.store).Read(b.t.Context(), b.tenant, id, activations.LogCursor{}, 200)
		if err != nil || len(lines) != 100 {
			b.t.Errorf("got %d lines, %v; want 100", len(lines), err)
		}
	})
}

// A record whose write got no answer is tried again until the store has it; the
// repeat recognizes its own record.
func TestRecordWithoutAnAnswerIsStoredOnce(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]int32{"the answer was lost": deaf, "the write was lost": refusing} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := storagetest.Redis(t)
			proxy := newDeafProxy(t, fmt.Sprintf("127.0.0.1:%d", store.Port), []byte(`"status":"success"`))
			core, logged := observer.New(zap.ErrorLevel)
			b := newBench(t, storagetest.Open(t, storage.Config{URL: "redis://" + proxy.addr}), func(c *invoker.Config) { c.Logger = zap.New(core) })
			b.publish("once", `export default () => { cs.log.info("a line"); return "ran"; };`, defaults())
			proxy.mode.Store(mode)
			if out, err := b.engine.Invoke(t.Context(), b.invocation("once", "1")); api.ErrorCode(err) != api.CodeStoreUnavailable {
				t.Fatalf("without an answer: got %+v, %v; want %s", out, err, api.CodeStoreUnavailable)
			}
			proxy.mode.Store(passing)
			b.eventually("it is recorded", func() bool {
				items := b.list("once")
				return len(items) == 1 && items[0].Status == api.StatusSuccess
			})
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := b.engine.Close(ctx); err != nil { // late writes have returned
				t.Fatalf("Close: %v", err)
			}
			if logged.Len() > 0 {
				t.Errorf("got log %v, want none of a lost record", logged.All())
			}
			items := b.list("once")
			if len(items) != 1 {
				t.Fatalf("got %d activations, want 1", len(items))
			}
			lines, _, err := activations.NewLogs(b.store).Read(t.Context(), b.tenant, items[0].ActivationID, activations.LogCursor{}, 10)
			if err != nil || len(lines) != 1 {
				t.Errorf("got %d log lines, %v; want 1", len(lines), err)
			}
		})
	}
}
