package invoker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
	"github.com/codesous/sous/storage/activations"
)

// The JSON of a call holds no such key, so nothing but this says what becomes of one.
func TestKVKeysAreUTF8(t *testing.T) {
	t.Parallel()
	if err := checkKVKey("ctr:\xff"); api.ErrorCode(err) != api.CodeHostInvalidArgument {
		t.Error(err)
	}
}

// Each operation of the storage is granted by its own name and by no other's.
func TestHostCallsOfStorageNeedTheirOwnOp(t *testing.T) {
	t.Parallel()
	h := newHost(services{storage: &storageHost{}})
	ops := []string{"put", "get", "list", "delete", "bulkPut", "transact"}
	for _, granted := range ops {
		s := &scope{namespace: "default", function: "f", capabilities: api.Capabilities{
			Storage: &api.StorageCapability{Namespaces: []string{"settings"}, Ops: []string{granted}},
		}}
		for _, op := range ops {
			want := api.CodeStorageDenied
			if op == granted {
				want = api.CodeStorageInternal // there is no storage behind it
			}
			if _, _, err := h.call(t.Context(), s, "storage."+op, []byte("{}"), []byte(`{"namespace":"settings"}`)); api.ErrorCode(err) != want {
				t.Errorf("%s with %s: %v, want %s", op, granted, err, want)
			}
		}
	}
}

// What a version may have declared before names were checked is a name, and no pattern.
func TestHostCallsOfSecretsKnowNoPattern(t *testing.T) {
	t.Parallel()
	h := newHost(services{})
	s := &scope{capabilities: api.Capabilities{Secrets: []string{"*", "oth*"}}}
	if _, _, err := h.call(t.Context(), s, "secrets.get", []byte(`{"name":"other"}`), nil); api.ErrorCode(err) != api.CodeRuntimeCapabilityDenied {
		t.Error(err)
	}
}

// The host judges what a sandbox sends by itself, also what the sandbox's own code
// would have refused.
func TestHostCallsAreJudgedByTheHost(t *testing.T) {
	t.Parallel()
	h := newHost(services{invoke: &invokeHost{&Invoker{}}})
	nest := newNest(&api.Invocation{}, &activations.Record{}, time.Now().Add(time.Minute))
	nest.end() // what is let through reaches no function
	heard := 0
	s := &scope{
		namespace: "default", nest: nest, tell: func(int64, told) { heard++ },
		capabilities: api.Capabilities{Invoke: &api.InvokeCapability{Functions: []string{"*"}}},
	}
	const taken, refused = "", api.CodeHostInvalidArgument
	for _, tt := range []struct {
		name, head, blob string
		want             api.Code
	}{
		{"job.progress", `{"current":9007199254740992,"total":9007199254740992}`, "", taken},
		{"job.progress", `{"current":-1}`, "", refused},
		{"job.progress", `{"current":9007199254740994}`, "", refused},
		{"job.progress", `{"total":-1}`, "", refused},
		{"job.progress", `{"total":9007199254740994}`, "", refused},
		{"job.progress", fmt.Sprintf(`{"message":%q}`, strings.Repeat("x", api.MaxProgressMessage)), "", taken},
		{"job.progress", fmt.Sprintf(`{"message":%q}`, strings.Repeat("x", api.MaxProgressMessage+1)), "", refused},
		{"job.checkpoint", `{}`, jsonText(api.MaxCheckpointBytes), taken},
		{"job.checkpoint", `{}`, jsonText(api.MaxCheckpointBytes + 1), refused},
		{"job.checkpoint", `{}`, `{not json`, refused},
		{"job.checkpoint", `{}`, "", refused},
		{"invoke", `{"function":"greet"}`, jsonText(api.MaxEventBytes), api.CodeRuntimeTimeout},
		{"invoke", `{"function":"greet"}`, jsonText(api.MaxEventBytes + 1), refused},
		{"invoke", `{"function":"greet"}`, `{not json`, refused},
	} {
		before := heard
		_, _, err := h.call(t.Context(), s, tt.name, []byte(tt.head), []byte(tt.blob))
		var code api.Code
		if err != nil {
			code = api.ErrorCode(err)
		}
		if code != tt.want || (heard > before) != (code == taken) {
			t.Errorf("%s %.60s %.20s: %v, want %q", tt.name, tt.head, tt.blob, err, tt.want)
		}
	}
}

// jsonText is a text of n bytes, as JSON.
func jsonText(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

// Calls are served side by side: of what a job tells, the last one made is the last
// word, in whatever order they arrive.
func TestToldKeepsTheLastWord(t *testing.T) {
	t.Parallel()
	var s scope
	h := &held{}
	(&worker{}).join(h, &sandbox.Call{}, &s)
	s.tell(2, told{progress: &api.JobProgress{Current: 2}})
	s.tell(3, told{checkpoint: json.RawMessage("3")})
	s.tell(1, told{progress: &api.JobProgress{Current: 1}, checkpoint: json.RawMessage("1")})
	if h.told.progress.Current != 2 || string(h.told.checkpoint) != "3" {
		t.Errorf("%+v %s", h.told.progress, h.told.checkpoint)
	}
}

// An activation has MaxInvokesAtOnce calls at work, and its next one waits for one of
// them, or for its own end.
func TestNestHasRoomForSoMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nest := newNest(&api.Invocation{}, &activations.Record{}, time.Now().Add(time.Minute))
		nest.end() // a call that has room is told so at once
		s := &scope{namespace: "default", nest: nest}
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _, err := (&invokeHost{&Invoker{}}).invoke(ctx, s, invokeArgs{Function: "greet"}, nil)
			return err
		}
		for n := range api.MaxInvokesAtOnce {
			if err := call(); !errors.Is(err, context.Canceled) {
				t.Fatalf("beside %d others: %v", n, err)
			}
			nest.room <- struct{}{}
		}
		if err := call(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("beside %d others: %v", api.MaxInvokesAtOnce, err)
		}
		<-nest.room
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("after one has ended: %v", err)
		}
	})
}

// A call that comes after the end is not counted among what is in hand, for which the
// engine's end has waited.
func TestNestLetsNothingInAfterItsEnd(t *testing.T) {
	t.Parallel()
	nest := newNest(&api.Invocation{}, &activations.Record{}, time.Time{})
	var inHand sync.WaitGroup
	if !nest.enter(&inHand) {
		t.Fatal("nothing gets in before the end")
	}
	inHand.Done()
	nest.end()
	if nest.enter(&inHand) {
		t.Error("a call gets in after the end")
	}
}

// Only callers that run the very version hold its places.
func TestUnheldCountsTheVersionsOwnCallers(t *testing.T) {
	t.Parallel()
	pool, err := sandbox.New(sandbox.Config{Executable: sandboxtest.Executable(t), MaxProcesses: 4, Spares: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	i := &Invoker{pool: pool}
	res := &resolution{}
	res.Version.Version, res.Version.Config.MaxConcurrency = 3, 2
	self := api.Caller{Namespace: "default", Function: "f", Version: 3}
	for name, tt := range map[string]struct {
		other api.Caller
		want  api.Code
	}{
		"itself":            {self, api.CodeHostInvokeCycle},
		"another namespace": {api.Caller{Namespace: "other", Function: "f", Version: 3}, ""},
		"another function":  {api.Caller{Namespace: "default", Function: "g", Version: 3}, ""},
		"another version":   {api.Caller{Namespace: "default", Function: "f", Version: 2}, ""},
	} {
		inv := &api.Invocation{Namespace: "default", Function: "f", Callers: []api.Caller{self, tt.other}}
		var code api.Code
		if err := i.unheld(inv, res); err != nil {
			code = api.ErrorCode(err)
		}
		if code != tt.want {
			t.Errorf("%s: %q, want %q", name, code, tt.want)
		}
	}
}
