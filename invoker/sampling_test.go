package invoker_test

import (
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// unrecorded returns the configuration of a version that records no success.
func unrecorded() api.VersionConfig {
	config, none := defaults(), 0.0
	config.Record = &api.Recording{Successes: &none}
	return config
}

// A success outside of the sample costs the store no write at all, and its caller gets the same
// answer.
func TestUnsampledSuccessWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	b.publish("hello", `export default async () => {
  console.log("a line");
  await new Promise((resolve) => setTimeout(resolve, 40)); // longer than records wait
  return "hello";
};`, unrecorded())
	b.invoke("hello", "null") // resolves the function and starts a sandbox
	before := storagetest.Calls(t, b.store.Client())
	for range 5 {
		a := b.invoke("hello", "null").Activation
		if a.Status != api.StatusSuccess || string(a.Result) != `"hello"` || a.ActivationID == "" {
			t.Errorf("the answer is %s %s of activation %q, want success \"hello\" of one with an id", a.Status, a.Result, a.ActivationID)
		}
	}
	after := storagetest.Calls(t, b.store.Client())
	for _, command := range []string{"set", "zadd", "evalsha", "eval", "pexpire"} {
		if got := after[command] - before[command]; got != 0 {
			t.Errorf("5 unsampled calls: got %d × %s, want none", got, command)
		}
	}
	if got := b.list("hello"); len(got) != 0 {
		t.Errorf("%d activations are listed, want none", len(got))
	}
}

// The caller of a success that is not recorded learns that its log was truncated.
func TestUnsampledSuccessTellsOfATruncatedLog(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	b.publish("chatty", `export default (length) => { console.log("\u0001".repeat(length)); };`, unrecorded())
	for length, want := range map[string]bool{"100": false, "60000": true} { // a chunk holds 60,000 bytes, but not when escaped
		if a := b.invoke("chatty", length).Activation; a.Status != api.StatusSuccess || a.LogsTruncated != want {
			t.Errorf("line of %s bytes: got status %s and logs truncated %v, want success and %v", length, a.Status, a.LogsTruncated, want)
		}
	}
}

// Failures are recorded with all their logs, and so are calls that must find their record again.
func TestUnsampledVersionRecordsFailuresAndKeyedCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	b.publish("picky", `export default (event) => {
  for (let n = 0; n < event.lines; n++) console.log("x".repeat(1000));
  if (event.fail) throw new Error("no");
  return 1;
};`, unrecorded())
	for _, lines := range []string{"0", "1", "200"} { // 200 lines are several chunks
		a := b.invoke("picky", `{"fail":true,"lines":`+lines+`}`).Activation
		if stored := b.stored(a.ActivationID); stored.Status != api.StatusError {
			t.Errorf("a failure with %s lines is stored as %q, want error", lines, stored.Status)
		}
		read, _, err := activations.NewLogs(b.store).Read(t.Context(), b.tenant, a.ActivationID, activations.LogCursor{}, 1000)
		if err != nil {
			t.Fatalf("Logs.Read: %v", err)
		}
		got := 0
		for _, line := range read {
			if strings.Contains(string(line.Message), "xxx") {
				got++
			}
		}
		if want := map[string]int{"0": 0, "1": 1, "200": 200}[lines]; got != want {
			t.Errorf("the log of a failure has %d lines, want %d", got, want)
		}
	}
	inv := b.invocation("picky", `{"lines":0}`)
	inv.IdempotencyKey = "once"
	first, err := b.engine.Invoke(t.Context(), inv)
	if err != nil {
		t.Fatalf("Invoke: %v", err)
	}
	again, err := b.engine.Invoke(t.Context(), inv)
	if err != nil || again.Activation.ActivationID != first.Activation.ActivationID {
		t.Errorf("a repeat under the same key = %+v, %v, want the activation %s", again, err, first.Activation.ActivationID)
	}
	if stored := b.stored(first.Activation.ActivationID); stored.Status != api.StatusSuccess {
		t.Errorf("a success with an idempotency key is stored as %q, want success", stored.Status)
	}
	if got := b.list("picky"); len(got) != 4 {
		t.Errorf("%d activations are listed, want 4", len(got))
	}
}

// The retention of the version reaches the records of its activations.
func TestRetentionOfAVersionReachesItsRecords(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	config := defaults()
	config.Record = &api.Recording{RetentionMS: api.MinRetentionMS}
	b.publish("brief", `export default () => { console.log("a line"); return 1; };`, config)
	a := b.invoke("brief", "null").Activation
	for _, key := range []string{b.store.Keys().ActivationMeta(b.tenant, a.ActivationID), b.store.Keys().LogChunk(b.tenant, a.ActivationID, 0)} {
		got, err := b.store.Client().PTTL(t.Context(), key).Result()
		if err != nil || got <= 0 || got.Milliseconds() > api.MinRetentionMS {
			t.Errorf("%s lives %s, %v, want an hour at most", key, got, err)
		}
	}
}
