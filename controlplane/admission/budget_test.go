package admission

import (
	"net/netip"
	"testing"

	"github.com/codesous/sous/api"
)

const mib = 1 << 20

// An address cannot take more than half of the budget, a tenant not more than three quarters, and the
// rest is for those that hold little.
func TestBudgetShares(t *testing.T) {
	t.Parallel()
	b := NewBudget(64 * mib)
	attacker := Hold{Budget: b, Remote: "198.51.100.1:4000", Tenant: "t_a"}
	for range 32 {
		if err := attacker.Grow(mib); err != nil {
			t.Fatalf("Grow below the share of an address: %v", err)
		}
	}
	if err := attacker.Grow(mib); api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("Grow beyond half of the budget = %v, want %s", err, api.CodeCapacityLimit)
	}
	if err := attacker.Room(); api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("Room with half of the budget = %v, want %s", err, api.CodeCapacityLimit)
	}
	elsewhere := Hold{Budget: b, Remote: "198.51.100.2:4000", Tenant: "t_a"}
	if err := elsewhere.Grow(16 * mib); err != nil {
		t.Fatalf("Grow of the tenant at another address: %v", err)
	}
	if err := elsewhere.Grow(1); api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("Grow beyond three quarters for a tenant = %v, want %s", err, api.CodeCapacityLimit)
	}
	// Others: little fits into the reserve, much does not.
	victim := Hold{Budget: b, Remote: "203.0.113.9:4000", Tenant: "t_b"}
	if err := victim.Grow(4 * mib); err != nil {
		t.Errorf("Grow of a caller that holds little, beside one with three quarters: %v", err)
	}
	if err := victim.Grow(1); api.ErrorCode(err) != api.CodeOverloaded {
		t.Errorf("Grow of much from the reserve = %v, want %s", err, api.CodeOverloaded)
	}
	attacker.Release()
	elsewhere.Release()
	victim.Release()
	victim.Release() // again: nothing happens
	if b.Used() != 0 || len(b.tenants) != 0 || len(b.addresses) != 0 {
		t.Errorf("after all releases: %d bytes, %v, %v, want nothing held", b.Used(), b.tenants, b.addresses)
	}
}

// Force takes bytes beyond the limit, and these bytes keep later callers out.
func TestBudgetForce(t *testing.T) {
	t.Parallel()
	b := NewBudget(64 * mib)
	h := Hold{Budget: b, Remote: "198.51.100.1:4000", Tenant: "t_a"}
	h.Force(65 * mib)
	other := Hold{Budget: b, Remote: "203.0.113.9:4000"}
	if err := other.Grow(1); api.ErrorCode(err) != api.CodeOverloaded {
		t.Errorf("Grow of a full budget = %v, want %s", err, api.CodeOverloaded)
	}
	h.Shrink(64 * mib)
	if err := other.Grow(1); err != nil || b.Used() != mib+1 {
		t.Errorf("Grow after Shrink: %v, %d bytes used, want %d", err, b.Used(), mib+1)
	}
}

func TestAddressOf(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"198.51.100.7:4000":              "198.51.100.7",
		"198.51.100.7":                   "198.51.100.7",
		"[::ffff:198.51.100.7]:4000":     "198.51.100.7",
		"[2001:db8:1:2:aaaa::1%eth0]:80": "2001:db8:1:2::",
		"[2001:db8:1:2:bbbb::2]:80":      "2001:db8:1:2::",
		"@":                              "0.0.0.0",
		"":                               "0.0.0.0",
	} {
		if got := AddressOf(remote).String(); got != want {
			t.Errorf("AddressOf(%q) = %s, want %s", remote, got, want)
		}
	}
}

func TestClientBehindProxies(t *testing.T) {
	t.Parallel()
	a := Addresses{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}}
	for _, tt := range []struct {
		name, remote string
		forwarded    []string
		want         string
	}{
		{"through a proxy", "10.0.0.5:4000", []string{"198.51.100.7"}, "198.51.100.7:0"},
		{"a client that forges", "10.0.0.5:4000", []string{"1.2.3.4, 198.51.100.7"}, "198.51.100.7:0"},
		{"in two headers", "10.0.0.5:4000", []string{"1.2.3.4", "198.51.100.7"}, "198.51.100.7:0"},
		{"two proxies", "10.0.0.5:4000", []string{"198.51.100.7, 10.0.0.9"}, "198.51.100.7:0"},
		{"proxies only", "10.0.0.5:4000", []string{"10.0.0.8, 10.0.0.9"}, "10.0.0.8:0"},
		{"with a port", "10.0.0.5:4000", []string{"198.51.100.7:1234"}, "198.51.100.7:0"},
		{"IPv6", "[2001:db8::1]:4000", []string{"2a00::7"}, "[2a00::7]:0"},
		{"nonsense", "10.0.0.5:4000", []string{"unknown"}, "10.0.0.5:0"},
		{"nonsense behind a client", "10.0.0.5:4000", []string{"x, 198.51.100.7"}, "198.51.100.7:0"},
		{"no header", "10.0.0.5:4000", nil, "10.0.0.5:4000"},
		{"no proxy", "198.51.100.7:4000", []string{"1.2.3.4"}, "198.51.100.7:4000"},
	} {
		if got, _ := a.Client(tt.remote, tt.forwarded); got != tt.want {
			t.Errorf("%s: Client(%q, %q) = %q, want %q", tt.name, tt.remote, tt.forwarded, got, tt.want)
		}
	}
	if got, other := (Addresses{}).Client("10.0.0.5:4000", []string{"1.2.3.4"}); other {
		t.Errorf("Client without proxies = %q, want the address of the connection", got)
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	w := NewWaits(16)
	at := func(host string) netip.Addr { return netip.MustParseAddr(host) }
	enter := func(tenant, key, host string, n int) (released []func(), err error) {
		for range n {
			release, err := w.Enter(Waiter{Tenant: tenant, Key: key, Address: at(host)})
			if err != nil {
				return released, err
			}
			released = append(released, release)
		}
		return released, nil
	}
	first, err := enter("t_a", "k1", "198.51.100.1", 7)
	if len(first) != 6 || api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("one key entered %d times, %v, want 6 of the tenant's 8 places", len(first), err)
	}
	second, err := enter("t_a", "k2", "198.51.100.2", 3)
	if len(second) != 2 || api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("another key of the tenant entered %d times, %v, want the 2 places that are left of 8", len(second), err)
	}
	// Another tenant at the first address: 12 places of the address, 6 are in use.
	third, err := enter("t_b", "", "198.51.100.1", 7)
	if len(third) != 6 || api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("another tenant at a busy address entered %d times, %v, want 6 of the address's 12 places", len(third), err)
	}
	if fourth, err := enter("t_b", "", "198.51.100.3", 2); len(fourth) != 2 || err != nil {
		t.Errorf("another tenant elsewhere entered %d times, %v, want 2", len(fourth), err)
	}
	if fifth, err := enter("t_c", "", "198.51.100.4", 1); len(fifth) != 0 || err == nil {
		t.Errorf("a third tenant entered %d times, %v, want none of 16 places left", len(fifth), err)
	}
	for _, release := range append(append(first, second...), third...) {
		release()
	}
	if len(w.keys) != 0 || len(w.tenants) != 1 || len(w.addresses) != 1 {
		t.Errorf("after releases: keys %v, tenants %v, addresses %v, want t_b at one address", w.keys, w.tenants, w.addresses)
	}
}
