package admission

import (
	"net/netip"
	"testing"
)

// FuzzClient: whatever a client sends in X-Forwarded-For, it is answerable for an address. Without a
// proxy that is its own, and behind one it is never a later hop than the proxies name.
func FuzzClient(f *testing.F) {
	for _, seed := range [][2]string{
		{"10.0.0.5:4000", "1.2.3.4, 198.51.100.7"}, {"198.51.100.7:1", "10.0.0.1"}, {"[2001:db8::1]:80", "2a00::7, [2a00::8]:1"}, {"", ",,"}, {"@", "\xff, unknown"},
	} {
		f.Add(seed[0], seed[1])
	}
	proxies := Addresses{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}}
	f.Fuzz(func(t *testing.T, remote, forwarded string) {
		client, other := proxies.Client(remote, []string{forwarded})
		if !AddressOf(client).IsValid() {
			t.Errorf("AddressOf(%q): got an invalid address, want a valid one", client)
		}
		peer, ok := parse(remote)
		if (!ok || !proxies.Trusts(peer)) && (other || client != remote) {
			t.Errorf("Client(%q, %q) = %q, want the address of the connection: it is no proxy", remote, forwarded, client)
		}
		if behind, same := proxies.Client(remote, []string{forwarded + ", 203.0.113.9"}); ok && proxies.Trusts(peer) && (!same || behind != "203.0.113.9:0") {
			t.Errorf("Client(%q, %q, 203.0.113.9) = %q, want the client that the proxy saw", remote, forwarded, behind)
		}
	})
}
