package hostcall_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/codesous/sous/invoker/hostcall"
)

// TestGuardedReachesNoPrivateAddress: no spelling of an address of this machine or its network is
// dialled, nor a name that resolves to one.
func TestGuardedReachesNoPrivateAddress(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	g := hostcall.NewGuarded(nil, nil)
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1", "192.168.0.1", "localhost", "0.0.0.0"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+":"+port, nil)
		if err != nil {
			t.Fatalf("NewRequest: %v", err)
		}
		resp, err := g.Do("t_acme01", req)
		if err == nil {
			_ = resp.Body.Close()
			t.Errorf("Do to %s: got status %d, want a refusal", host, resp.StatusCode)
			continue
		}
		reason := g.Reason(t.Context(), err)
		if !strings.Contains(reason, "refused") || !strings.Contains(reason, "not public") {
			t.Errorf("Do to %s: got the reason %q, want a refusal of the guard", host, reason)
		}
		if host == "localhost" && strings.Contains(reason, "127.0.0.1") {
			t.Errorf("Do to %s: got the reason %q, want no address", host, reason)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("got %d requests at the server, want none", n)
	}
}

// TestGuardedFollowsNoRedirect: the answer is the redirect itself, and its target is not asked.
func TestGuardedFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer inside.Close()
	outside := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	defer outside.Close()
	g := hostcall.NewGuarded([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, outside.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatalf("NewRequest: %v", err)
	}
	resp, err := g.Do("t_acme01", req)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only looked at
	if resp.StatusCode != http.StatusTemporaryRedirect || reached.Load() != 0 {
		t.Errorf("got status %d and %d requests at the target, want 307 and none", resp.StatusCode, reached.Load())
	}
}
