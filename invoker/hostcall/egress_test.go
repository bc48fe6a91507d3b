package hostcall

import (
	"net"
	"net/netip"
	"net/url"
	"testing"
)

// ownAddresses are those of a machine that is on the public network.
func ownAddresses() ([]net.Addr, error) {
	var own []net.Addr
	for _, s := range []string{"9.9.9.9", "9.9.9.8", "2620:fe::fe"} {
		own = append(own, &net.IPNet{IP: net.ParseIP(s), Mask: net.CIDRMask(24, 128)})
	}
	return own, nil
}

// TestEgressRefusalNamesTheFlag, so that an operator finds the setting.
func TestEgressRefusalNamesTheFlag(t *testing.T) {
	t.Parallel()
	const want = "address 127.0.0.1 is not public, or this server's own; --egress-allow of the server does not list it"
	if got := (&blockedError{addr: "127.0.0.1"}).Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEgressCheck(t *testing.T) {
	t.Parallel()
	guard := &egress{own: ownAddresses}
	refused := []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
		"100.100.100.200", "192.0.0.192", "198.18.0.1", "203.0.113.9", "224.0.0.1", "255.255.255.255", "240.0.0.1",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1",
		"168.63.129.16", "::ffff:0:7f00:1", "5f00::1", "3fff::1", "4000::1",
		"9.9.9.9", "::ffff:9.9.9.9", "2620:fe::fe", // the machine's own
		"64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:7f00::1", "2001:db8::1", "2606:4700::1%lo",
	}
	for _, s := range refused {
		if err := guard.check(netip.MustParseAddr(s)); err == nil {
			t.Errorf("%s may be dialled", s)
		}
	}
	for _, s := range []string{"1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8"} {
		if err := guard.check(netip.MustParseAddr(s)); err != nil {
			t.Errorf("%s is refused: %v", s, err)
		}
	}
}

func TestEgressOperatorAllows(t *testing.T) {
	t.Parallel()
	guard := &egress{
		allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("9.9.9.8/32")},
		own:   ownAddresses,
	}
	if err := guard.check(netip.MustParseAddr("::ffff:10.1.2.3")); err != nil {
		t.Errorf("an allowed address is refused in its mapped form: %v", err)
	}
	if err := guard.check(netip.MustParseAddr("9.9.9.8")); err != nil {
		t.Errorf("the machine's own address, which is allowed, is refused: %v", err)
	}
	if err := guard.check(netip.MustParseAddr("10.2.0.1")); err == nil {
		t.Error("an address beside the allowed range may be dialled")
	}
}

func TestHostAllowed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		patterns []string
		url      string
		want     bool
	}{
		{[]string{"api.example.com"}, "https://api.example.com/x", true},
		{[]string{"api.example.com"}, "https://API.EXAMPLE.COM./x", true},
		{[]string{"api.example.com"}, "http://api.example.com:80/", true},
		{[]string{"api.example.com"}, "http://api.example.com:8080/", false},
		{[]string{"api.example.com:8080"}, "http://api.example.com:8080/", true},
		{[]string{"api.example.com:*"}, "http://api.example.com:8080/", true},
		{[]string{"api.example.com"}, "https://api.example.com.evil.org/", false},
		{[]string{"*.example.com"}, "https://a.b.example.com/", true},
		{[]string{"*.example.com"}, "https://example.com/", false},
		{[]string{"*.example.com"}, "https://evilexample.com/", false},
		{[]string{"*.example.com"}, "https://.example.com/", false},
		{[]string{"*"}, "https://anything.org/", true},
		{[]string{"*"}, "https://anything.org:22/", false},
		{[]string{"*:*"}, "https://anything.org:8443/", true},
		{[]string{"[::1]:8080"}, "http://[::1]:8080/", true},
		{[]string{"::1"}, "http://[::1]/", true},
		{nil, "https://example.com/", false},
		{[]string{""}, "https://example.com/", false},
	}
	for _, tt := range tests {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatalf("url.Parse: %v", err)
		}
		if got := hostAllowed(tt.patterns, u); got != tt.want {
			t.Errorf("hostAllowed(%q, %s) = %v", tt.patterns, tt.url, got)
		}
	}
}
