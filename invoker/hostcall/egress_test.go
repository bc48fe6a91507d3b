package hostcall

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
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
	const refused = " is not public, or this server's own; --egress-allow of the server does not list it"
	const loopback = refused + "; --egress-allow loopback permits servers on this machine"
	for addr, want := range map[string]string{"127.0.0.1": loopback, "::1": loopback, "10.1.2.3": refused} {
		if got := (&blockedError{addr: addr}).Error(); got != "address "+addr+want {
			t.Errorf("got %q, want %q", got, "address "+addr+want)
		}
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
			t.Errorf("check of %s: got no error, want one", s)
		}
	}
	for _, s := range []string{"1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8"} {
		if err := guard.check(netip.MustParseAddr(s)); err != nil {
			t.Errorf("check of %s: got error %v, want none", s, err)
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
			t.Errorf("hostAllowed(%q, %s) = %v, want %v", tt.patterns, tt.url, got, tt.want)
		}
	}
}

// tlsTransport returns the transport of fetch for a server on this machine that knows HTTP/2.
func tlsTransport(t *testing.T, h http.HandlerFunc) (*http.Transport, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	guard := &egress{allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, own: ownAddresses}
	transport := guard.transport(nil)
	transport.TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return transport, server.URL
}

// TestUnreadResponsesHoldTheirWindow: a server knows HTTP/2 and sends much, and its answers are
// not read. The bytes that the server could send are in buffers of the kernel, not of this
// process.
func TestUnreadResponsesHoldTheirWindow(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	var written atomic.Int64
	transport, url := tlsTransport(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Protocol", r.Proto)
		part := make([]byte, 64<<10)
		for range 256 {
			if _, err := w.Write(part); err != nil {
				return
			}
			written.Add(1)
		}
	})
	const unread, window = 16, 256 << 10
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range unread {
		resp, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
		if err != nil {
			t.Fatalf("RoundTrip: %v", err)
		}
		defer func() { _ = resp.Body.Close() }()
		if got := resp.Header.Get("X-Protocol"); got != "HTTP/1.1" {
			t.Errorf("protocol: got %s, want HTTP/1.1", got)
		}
	}
	for last := int64(-1); last != written.Load(); time.Sleep(200 * time.Millisecond) { // until nothing more can be sent
		last = written.Load()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got, most := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(unread*2*window); got > most {
		t.Errorf("memory of %d unread responses and of their server: got %d bytes, want at most %d", unread, got, most)
	}
}

// TestFloodsEndIdleConnections: bytes that arrive between two exchanges end their connection.
func TestFloodsEndIdleConnections(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	transport, url := tlsTransport(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			ended <- err
			return
		}
		go func() {
			_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
			for until := time.Now().Add(10 * time.Second); err == nil && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
				_, err = conn.Write(make([]byte, 1024))
			}
			ended <- err
			_ = conn.Close()
		}()
	})
	resp, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
	if err != nil {
		t.Fatalf("RoundTrip: %v", err)
	}
	_ = resp.Body.Close()
	if err := <-ended; err == nil {
		t.Error("writing to an idle connection for 10 s: got no error, want the end of the connection")
	}
}
