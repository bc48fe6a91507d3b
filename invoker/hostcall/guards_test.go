package hostcall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// The JSON of a call cannot hold such a key, so this check has no other test.
func TestKVKeysAreUTF8(t *testing.T) {
	t.Parallel()
	if err := checkKVKey("ctr:\xff"); api.ErrorCode(err) != api.CodeHostInvalidArgument {
		t.Errorf("checkKVKey: %v, want code %s", err, api.CodeHostInvalidArgument)
	}
}

// Each operation of the storage is granted by its own name and by no other's.
func TestHostCallsOfStorageNeedTheirOwnOp(t *testing.T) {
	t.Parallel()
	h := New(Services{})
	ops := []string{"put", "get", "list", "delete", "bulkPut", "transact"}
	for _, granted := range ops {
		s := &Scope{Namespace: "default", Function: "f", Capabilities: api.Capabilities{
			Storage: &api.StorageCapability{Namespaces: []string{"settings"}, Ops: []string{granted}},
		}}
		for _, op := range ops {
			want := api.CodeStorageDenied
			if op == granted {
				want = api.CodeStorageInternal // there is no storage behind it
			}
			if _, _, err := h.Call(t.Context(), s, "storage."+op, []byte("{}"), []byte(`{"namespace":"settings"}`)); api.ErrorCode(err) != want {
				t.Errorf("%s with %s: %v, want %s", op, granted, err, want)
			}
		}
	}
}

// A declared name is no pattern, also in versions from before names were checked.
func TestHostCallsOfSecretsKnowNoPattern(t *testing.T) {
	t.Parallel()
	h := New(Services{})
	s := &Scope{Capabilities: api.Capabilities{Secrets: []string{"*", "oth*"}}}
	if _, _, err := h.Call(t.Context(), s, "secrets.get", []byte(`{"name":"other"}`), nil); api.ErrorCode(err) != api.CodeRuntimeCapabilityDenied {
		t.Errorf("h.Call: %v, want code %s", err, api.CodeRuntimeCapabilityDenied)
	}
}

// The host checks all arguments itself, also those that the code of the sandbox refuses.
func TestHostCallsAreJudgedByTheHost(t *testing.T) {
	t.Parallel()
	h := New(Services{Engine: noEngine{}})
	nest := NewNestedCalls(&api.Invocation{}, api.Caller{}, time.Now().Add(time.Minute))
	nest.End() // admitted calls reach no function
	heard := 0
	s := &Scope{
		Namespace: "default", Nested: nest, UpdateJob: func(int64, JobUpdate) { heard++ },
		Capabilities: api.Capabilities{Invoke: &api.InvokeCapability{Functions: []string{"*"}}},
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
		_, _, err := h.Call(t.Context(), s, tt.name, []byte(tt.head), []byte(tt.blob))
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

// An activation has MaxInvokesAtOnce calls at work, and its next one waits for one of
// them, or for its own end.
func TestNestHasRoomForSoMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nest := NewNestedCalls(&api.Invocation{}, api.Caller{}, time.Now().Add(time.Minute))
		nest.End() // a call that gets a slot fails immediately
		s := &Scope{Namespace: "default", Nested: nest}
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _, err := (&invokeCalls{noEngine{}}).invoke(ctx, s, wire.InvokeTarget{Function: "greet"}, nil)
			return err
		}
		for n := range api.MaxInvokesAtOnce {
			if err := call(); !errors.Is(err, context.Canceled) {
				t.Fatalf("call beside %d others: got error %v, want %v", n, err, context.Canceled)
			}
			nest.slots <- struct{}{}
		}
		if err := call(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("call beside %d others: got error %v, want %v", api.MaxInvokesAtOnce, err, context.DeadlineExceeded)
		}
		<-nest.slots
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("call after the end of another: got error %v, want %v", err, context.Canceled)
		}
	})
}

// A call that comes after the end is not counted among the running work that Close waits
// for.
func TestNestLetsNothingInAfterItsEnd(t *testing.T) {
	t.Parallel()
	nest := NewNestedCalls(&api.Invocation{}, api.Caller{}, time.Time{})
	if !nest.hold(noEngine{}) {
		t.Fatal("hold before End = false, want true")
	}
	nest.End()
	if nest.hold(noEngine{}) {
		t.Error("hold after End = true, want false")
	}
}

// noEngine runs nothing.
type noEngine struct{ Engine }

func (noEngine) Hold()    {}
func (noEngine) Release() {}
