package controlplane_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/codesous/sous/api"
)

// from has the harness send its requests from another address of this machine.
func (h *harness) from(t *testing.T, address string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	h.client = &http.Client{Transport: transport}
}

// An Idempotency-Key that a stranger repeats is another key: the stranger's request is not
// answered from the record of the first caller.
func TestIdempotencyKeysBelongToTheirCallers(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.publish(t, "payments", "public", `{"authz":{"invoke_http_roles":["*"]}}`)
	k.publish(t, "payments", "hello", `{}`)
	ids := map[string]string{} // by activation id
	keyOf := func(what, function string, headers ...string) string {
		t.Helper()
		a := k.call(t, "POST", k.endpoint("payments", function, "prod"), "x", append(headers, "Idempotency-Key", "order-17")...)
		inv := k.engine.last(t)
		if got := a.header.Get("X-Cs-Activation-Id"); a.status != 200 || got == "" {
			t.Fatalf("%s: got %d and activation %q, want 200 and an id", what, a.status, got)
		}
		return api.DerivedActivationID(inv.Tenant, inv.Namespace, inv.Function, inv.Ref, inv.IdempotencyKey)
	}
	first := keyOf("first call", "public")
	if again := keyOf("retry", "public", "Traceparent", "00-1"); again != first {
		t.Errorf("a retry: got activation %s, want that of the first call, %s", again, first)
	}
	ids[first] = "the first caller"
	callers := map[string][]string{
		"a caller with a token":              {"Authorization", "Bearer of-the-function"},
		"a caller with another token":        {"Authorization", "Bearer of-another"},
		"a caller behind the proxy":          {"X-Forwarded-For", "198.51.100.7"},
		"another caller behind the proxy":    {"X-Forwarded-For", "198.51.100.8"},
		"a caller who invents an address":    {"X-Forwarded-For", "198.51.100.7, 198.51.100.9"},
		"a caller with a key, not looked at": {"Authorization", "Bearer " + k.lost(t)},
	}
	for what, headers := range callers {
		id := keyOf(what, "public", headers...)
		if other, taken := ids[id]; taken {
			t.Errorf("%s: got the activation of %s, want another", what, other)
		}
		ids[id] = what
		if again := keyOf(what, "public", headers...); again != id {
			t.Errorf("%s, retry: got %s, want %s again", what, again, id)
		}
	}
	// A proxy that names ports changes them with each connection.
	ported := keyOf("with a port", "public", "X-Forwarded-For", "198.51.100.7:4711")
	if again := keyOf("with another port", "public", "X-Forwarded-For", "198.51.100.7:4712"); again != ported {
		t.Errorf("another port: got %s, want %s", again, ported)
	}
	k.from(t, "127.0.0.2")
	if id := keyOf("from another address", "public"); ids[id] != "" {
		t.Errorf("from another address: got the activation of %s, want another", ids[id])
	}
	for what, header := range map[string]string{"the first caller": "127.0.0.1", "a caller behind the proxy": "198.51.100.7"} {
		if id := keyOf("from another address, as "+what, "public", "X-Forwarded-For", header); ids[id] != "" {
			t.Errorf("from another address, as %s: got the activation of %s, want another", what, ids[id])
		}
	}
	// The id of a caller with an API key is that of earlier releases, which clients compute; the
	// fingerprint has the key's id.
	invoker, _ := k.key(t, api.RoleInvoker)
	want := api.DerivedActivationID(k.tenant, "payments", "hello", api.Ref{Alias: "prod"}, "order-17")
	if got := keyOf("with an API key", "hello", "Authorization", "Bearer "+invoker); got != want {
		t.Errorf("with an API key: got activation %s, want %s", got, want)
	}
}

// A cookie is set for the client of the first call only.
func TestReplaysSetNoCookies(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, replayed := range []bool{false, true} {
		h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
			o := success(`{"statusCode":200,"headers":{"x-a":"b","set-cookie":"a=1"},"cookies":["session=secret"]}`)
			o.Replayed = replayed
			return o, nil
		}
		a := h.call(t, "GET", h.web("/"), "", "Idempotency-Key", "k")
		if got := len(a.header.Values("Set-Cookie")); got > 0 == replayed || a.header.Get("X-A") != "b" {
			t.Errorf("replayed %v: got %d cookies and headers %s, want cookies with the first answer only", replayed, got, fmt.Sprint(a.header))
		}
	}
}
