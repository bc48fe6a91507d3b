package hostcall

import (
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// post sends a request of the platform. It returns why the request failed, "" if it did not.
func post(t *testing.T, g *Guarded, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatalf("NewRequest: %v", err)
	}
	resp, err := g.Do("t_acme01", req)
	if err != nil {
		return g.Reason(t.Context(), err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	return ""
}

// A name whose addresses are not public is refused, however it leads to them, and the tenant does not
// learn the addresses.
func TestGuardedReachesNoPrivateAddressOfAName(t *testing.T) {
	t.Parallel()
	port, reached := hidden(t)
	addrs := map[string][]string{
		"alias.example.":    {"127.0.0.1"},
		"loopback.example.": {"127.0.0.1"},
		"six.example.":      {"::1"},
		"mapped.example.":   {"::ffff:127.0.0.1"},
		"private.example.":  {"10.0.0.1"},
		"metadata.example.": {"169.254.169.254"},
		"unique.example.":   {"fd00:ec2::254"},
		"several.example.":  {"127.0.0.1", "::1", "192.168.0.1"},
	}
	g := NewGuarded(nil, resolverOf(t, func(q dnsmessage.Question) []dnsmessage.Resource {
		if q.Name.String() == "alias.example." {
			return alias(q, netip.MustParseAddr("127.0.0.1"), "inner.internal.")
		}
		var of []netip.Addr
		for _, a := range addrs[q.Name.String()] {
			of = append(of, netip.MustParseAddr(a))
		}
		return addresses(q, of...)
	}))
	for name, of := range addrs {
		got := post(t, g, "http://"+strings.TrimSuffix(name, ".")+port+"/hooks")
		if !strings.Contains(got, "refused") || !strings.Contains(got, "not public") {
			t.Errorf("a webhook to %s: got %q, want a refusal", name, got)
		}
		for _, a := range of {
			if strings.Contains(got, a) {
				t.Errorf("a webhook to %s: got %q, want no address", name, got)
			}
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("got %d requests at the hidden server, want 0", n)
	}
}

// A name that was public at one delivery is private at the next: the address of each connection
// counts.
func TestGuardedRefusesARebinding(t *testing.T) {
	t.Parallel()
	port, reached := hidden(t)
	var delivered, asked atomic.Int32
	_, public := standIn(t, port, func(http.ResponseWriter, *http.Request) { delivered.Add(1) })
	g := NewGuarded([]netip.Prefix{netip.PrefixFrom(public, 32)}, resolverOf(t, func(q dnsmessage.Question) []dnsmessage.Resource {
		if q.Type == dnsmessage.TypeA && asked.Add(1) == 1 {
			return addresses(q, public)
		}
		return addresses(q, netip.MustParseAddr("127.0.0.1"))
	}))
	url := "http://rebind.example" + port + "/hooks"
	if got := post(t, g, url); got != "" || delivered.Load() != 1 {
		t.Fatalf("the first delivery: got %q and %d requests, want none and 1", got, delivered.Load())
	}
	if got := post(t, g, url); !strings.Contains(got, "not public") {
		t.Errorf("the second delivery: got %q, want a refusal", got)
	}
	if n := reached.Load(); n != 0 || delivered.Load() != 1 || asked.Load() < 2 {
		t.Errorf("got %d requests at the hidden server, %d at the public one and %d questions, want 0, 1 and at least 2", n, delivered.Load(), asked.Load())
	}
}
