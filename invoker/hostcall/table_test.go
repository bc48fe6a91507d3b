package hostcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/httpstatus"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents/documentstest"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/storagetest"
)

func newTestHost(t *testing.T, s *storage.Store) *Table {
	t.Helper()
	return New(Services{KV: kvstore.New(s)})
}

// Every call refuses a version that declares nothing, before any effect, and names the
// capability to declare.
func TestHostDeniesByDefault(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		h := newTestHost(t, s)
		heads := map[string]string{
			"kv.get":     `{"key":"a"}`,
			"kv.set":     `{"key":"a"}`,
			"kv.del":     `{"key":"a"}`,
			"http.fetch": `{"url":"http://example.com/"}`,
			"ws.open":    `{"url":"ws://example.com/"}`,
			"invoke":     `{"function":"greet"}`,

			"secrets.get": `{"name":"stripe"}`,

			"ai.chat":   `{"provider":"main"}`,
			"ai.embed":  `{"provider":"main"}`,
			"ai.stream": `{}`,

			"queue.enqueue": `{"queue":"orders","options":{}}`,

			"storage.put":      `{"namespace":"settings","key":"k","value":1}`,
			"storage.get":      `{"namespace":"settings","key":"k"}`,
			"storage.list":     `{"namespace":"settings"}`,
			"storage.delete":   `{"namespace":"settings","key":"k"}`,
			"storage.bulkPut":  `{"namespace":"settings","items":[]}`,
			"storage.transact": `{"namespace":"settings","operations":[]}`,

			"cadence.start":  `{"workflow":"W","domain":"d","tasklist":"l"}`,
			"cadence.signal": `{"workflow":"W","domain":"d","workflow_id":"i","signal":"s"}`,
		}
		// These need no capability: they need an activity, or a job.
		free := []string{"cadence.heartbeat", "job.progress", "job.checkpoint"}
		for _, name := range free {
			_, _, err := h.Call(t.Context(), &Scope{}, name, []byte(`{}`), []byte("1"))
			if api.ErrorCode(err) != api.CodeHostInvalidArgument || !strings.Contains(err.Error(), " is for ") {
				t.Errorf("call %s: got error %v, want code %s and a text with \" is for \"", name, err, api.CodeHostInvalidArgument)
			}
		}
		steps := []string{"step.load", "step.record", "step.park"}
		for _, name := range steps {
			_, _, err := h.Call(t.Context(), &Scope{}, name, []byte(`{}`), nil)
			if api.ErrorCode(err) != api.CodeHostStepUnavailable {
				t.Errorf("call %s: got error %v, want code %s", name, err, api.CodeHostStepUnavailable)
			}
		}
		// These work on what an earlier call opened, and find nothing.
		handles := map[string]bool{"http.read": true, "ws.send": true, "ws.receive": true, "http.cancel": false, "ws.close": false}
		for name, fails := range handles {
			_, _, err := h.Call(t.Context(), &Scope{}, name, []byte(`{"id":1}`), nil)
			if got := api.ErrorCode(err) == api.CodeHostInvalidArgument; got != fails {
				t.Errorf("call %s of an unknown handle: got error %v, want one: %t", name, err, fails)
			}
		}
		if known := len(heads) + len(free) + len(steps) + len(handles); known != len(h.calls) {
			t.Errorf("got %d calls in the table, want the %d that this test knows", len(h.calls), known)
		}
		for name, head := range heads {
			blob, code := "1", api.CodeRuntimeCapabilityDenied
			if strings.HasPrefix(name, "storage.") {
				head, blob, code = "{}", head, api.CodeStorageDenied
			}
			_, _, err := h.Call(t.Context(), &Scope{Tenant: storagetest.Tenant(t), Namespace: "default"}, name, []byte(head), []byte(blob))
			if api.ErrorCode(err) != code || !strings.Contains(err.Error(), "declare capabilities {") {
				t.Errorf("call %s: got error %v, want code %s and the capability to declare", name, err, code)
			}
		}
	})
}

func TestHostRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	h := New(Services{})
	for _, call := range []struct{ name, head string }{
		{"kv.list", `{}`},
		{"kv.get", `{"key":"a","tenant":"t_other0"}`},
		{"kv.get", `{"key":"a"} {"key":"b"}`},
		{"kv.get", `{"key":"a"}}`},
		{"kv.del", `not json`},
		{"", `{}`},
	} {
		if _, _, err := h.Call(t.Context(), &Scope{}, call.name, []byte(call.head), nil); api.ErrorCode(err) != api.CodeHostInvalidArgument {
			t.Errorf("Call(%q, %s) = %v, want code %s", call.name, call.head, err, api.CodeHostInvalidArgument)
		}
	}
}

func kvScope(tenant string, ops []string, prefixes ...string) *Scope {
	return &Scope{Tenant: tenant, Namespace: "default", Capabilities: api.Capabilities{
		KV: &api.KVCapability{Prefixes: prefixes, Ops: ops},
	}}
}

func TestKVHost(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		h := newTestHost(t, s)
		all := kvScope(storagetest.Tenant(t), []string{"get", "set", "del"}, "ctr:", "exact")
		steps := []struct {
			scope            *Scope
			name, head, blob string
			want             string // head and blob of the reply
			code             api.Code
		}{
			{all, "kv.get", `{"key":"ctr:a"}`, "", `{"found":false}`, ""},
			{all, "kv.set", `{"key":"ctr:a"}`, `{"n":1}`, `{}`, ""},
			{all, "kv.get", `{"key":"ctr:a"}`, "", `{"found":true}{"n":1}`, ""},
			{all, "kv.set", `{"key":"ctr:a","ttl_seconds":60}`, `2`, `{}`, ""},
			{all, "kv.del", `{"key":"ctr:a"}`, "", `{"deleted":true}`, ""},
			{all, "kv.del", `{"key":"ctr:a"}`, "", `{"deleted":false}`, ""},
			{all, "kv.set", `{"key":"exactly"}`, `1`, `{}`, ""},
			{all, "kv.get", `{"key":"ct"}`, "", "", api.CodeRuntimeCapabilityDenied},
			{all, "kv.get", `{"key":"CTR:a"}`, "", "", api.CodeRuntimeCapabilityDenied},
			{all, "kv.get", `{"key":""}`, "", "", api.CodeRuntimeCapabilityDenied},
			{kvScope(all.Tenant, []string{"*"}, ""), "kv.get", `{"key":""}`, "", "", api.CodeHostInvalidArgument},
			{kvScope(all.Tenant, []string{"*"}, ""), "kv.set", `{"key":""}`, "1", "", api.CodeHostInvalidArgument},
			{kvScope(all.Tenant, []string{"*"}, ""), "kv.del", `{"key":""}`, "", "", api.CodeHostInvalidArgument},
			{kvScope(all.Tenant, []string{"get"}, "ctr:"), "kv.set", `{"key":"ctr:a"}`, `1`, "", api.CodeRuntimeCapabilityDenied},
			{kvScope(all.Tenant, []string{"get", "set"}, "ctr:"), "kv.del", `{"key":"ctr:a"}`, "", "", api.CodeRuntimeCapabilityDenied},
			{all, "kv.set", `{"key":"ctr:a"}`, `{not json`, "", api.CodeHostInvalidArgument},
			{all, "kv.set", `{"key":"ctr:a","ttl_seconds":-1}`, `1`, "", api.CodeHostInvalidArgument},
			{all, "kv.set", fmt.Sprintf(`{"key":"ctr:a","ttl_seconds":%d}`, wire.MaxKVTTLSeconds+1), `1`, "", api.CodeHostInvalidArgument},
			{all, "kv.set", `{"key":"ctr:a"}`, `"` + strings.Repeat("x", wire.MaxKVValueBytes) + `"`, "", api.CodeHostInvalidArgument},
			{all, "kv.get", `{"key":"ctr:` + strings.Repeat("k", wire.MaxKVKeyBytes-4) + `"}`, "", `{"found":false}`, ""},
			{all, "kv.get", `{"key":"ctr:` + strings.Repeat("k", wire.MaxKVKeyBytes-3) + `"}`, "", "", api.CodeHostInvalidArgument},
		}
		for _, st := range steps {
			head, blob, err := h.Call(t.Context(), st.scope, st.name, []byte(st.head), []byte(st.blob))
			var code api.Code
			if err != nil {
				code = api.ErrorCode(err)
			}
			if got := string(head) + string(blob); code != st.code || err == nil && got != st.want {
				t.Errorf("%s %.60s: %s %v, want %s %s", st.name, st.head, got, err, st.want, st.code)
			}
		}
	})
}

// An internal failure reaches a function as a code and no more.
func TestHostHidesCauses(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		errors.New("dial tcp 10.0.0.7:6666: refused"),
		api.Wrap(api.CodeStoreUnavailable, errors.New("dial tcp 10.0.0.7:6666: refused"), "the store does not answer"),
	} {
		if got := publicError(err).Error(); strings.Contains(got, "10.0.0.7") {
			t.Errorf("publicError: got %q, want no address in it", got)
		}
	}
}

// For any key that a function names, only keys under its prefix are granted, and granted
// keys stay within its tenant and namespace.
func FuzzKVPrefix(f *testing.F) {
	for _, key := range []string{"ctr:", "ctr:x", "ctr", "CTR:", "\x00ctr:", "ctr:../x", "ctr:{t_other}", "ｃtr:", "ctr\u200b:"} {
		f.Add(key)
	}
	s := kvScope("t_fuzzed", []string{"get"}, "ctr:")
	f.Fuzz(func(t *testing.T, key string) {
		granted := permitKV(s, "get", key) == ""
		if granted != strings.HasPrefix(key, "ctr:") {
			t.Errorf("permitKV of key %q: got granted %v, want %v", key, granted, !granted)
		}
		if head, err := json.Marshal(wire.KVKey{Key: key}); err == nil && !granted {
			h := New(Services{})
			// A nil store: reaching it would panic.
			if _, _, err := h.Call(t.Context(), s, "kv.get", head, nil); err == nil {
				t.Errorf("kv.get of key %q: got no error, want a refusal", key)
			}
		}
	})
}

// The statuses are those of the contract, and an outage has the error of REST.
func TestStorageStatuses(t *testing.T) {
	t.Parallel()
	for code, status := range httpstatus.All() {
		if want := documentstest.StatusOf(code); want != 0 && want != status {
			t.Errorf("status of %s: got %d, want %d of the contract", code, status, want)
		}
	}
	for err, want := range map[error]string{
		api.Wrap(api.CodeStoreUnavailable, errors.New("dial 10.0.0.7"), "the store does not answer"): `CS_STORE_UNAVAILABLE: the store does not answer {"status":503}`,
		errors.New("dial 10.0.0.7"):               `INTERNAL_ERROR: an internal error {"status":500}`,
		api.Errorf(api.CodeRateLimited, "slower"): `RATE_LIMITED: slower {"status":429}`,
	} {
		var told *sandbox.HostError
		if !errors.As(documentFailure(err), &told) {
			t.Fatalf("documentFailure(%v): got %v, want a sandbox.HostError", err, documentFailure(err))
		}
		if got := told.Error() + " " + string(told.Members); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	if err := documentFailure(context.Canceled); api.ErrorCode(err) != api.CodeRuntimeTimeout {
		t.Errorf("documentFailure at the activation's end: got error %v, want code %s", err, api.CodeRuntimeTimeout)
	}
}

// TestArgumentsAreBounded: arguments whose decoded form is large are refused before they are decoded.
func TestArgumentsAreBounded(t *testing.T) {
	t.Parallel()
	steps := strings.TrimSuffix(strings.Repeat("{},", 340_000), ",")
	var args enqueueArgs
	err := decodeStrict([]byte(`{"queue":"q","options":{"chain":{"steps":[`+steps+`]}}}`), &args)
	if err == nil || !strings.Contains(err.Error(), "more elements") {
		t.Errorf("a chain of 340,000 steps: got error %v, want one", err)
	}
	if got := len(args.queues()); got > 1 {
		t.Errorf("got %d queues, want no steps", got)
	}
}
