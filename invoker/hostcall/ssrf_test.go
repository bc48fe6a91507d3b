package hostcall

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// hidden is a server that no function may reach: it listens on 127.0.0.1 and counts
// who came all the same.
func hidden(t *testing.T) (port string, reached *atomic.Int32) {
	t.Helper()
	reached = new(atomic.Int32)
	s := upstream(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	return s.URL[strings.LastIndex(s.URL, ":"):], reached
}

// The ways to name an address that is not public. Each is refused when its socket
// is about to be connected: without that check every row fails.
func TestSSRFIsRefusedAtDialTime(t *testing.T) {
	t.Parallel()
	port, reached := hidden(t)
	private := netip.MustParseAddr("127.0.0.1")
	resolver := resolverOf(t, func(q dnsmessage.Question) []dnsmessage.Resource {
		switch q.Name.String() {
		case "chain.example.":
			return alias(q, private, "second.example.", "third.example.", "inner.internal.")
		case "six.example.":
			return addresses(q, netip.MustParseAddr("::1"))
		case "mapped.example.":
			return addresses(q, netip.MustParseAddr("::ffff:127.0.0.1"))
		case "both.example.":
			return addresses(q, private, netip.MustParseAddr("::1"), netip.MustParseAddr("10.0.0.1"))
		}
		return addresses(q, private)
	})
	h, sockets := newFetchCalls(nil, resolver), newSocketCalls(nil, resolver)
	for name, host := range map[string]string{
		"cloud metadata":                  "169.254.169.254",
		"loopback":                        "127.0.0.1",
		"loopback, not the first":         "127.8.9.10",
		"loopback by name":                "localhost",
		"loopback by name, trailing dot":  "localhost.",
		"this network":                    "0.0.0.0",
		"IPv6 unspecified":                "[::]",
		"IPv6 loopback":                   "[::1]",
		"IPv6 loopback, long":             "[0:0:0:0:0:0:0:1]",
		"IPv4-mapped":                     "[::ffff:127.0.0.1]",
		"IPv4-mapped, hexadecimal":        "[::ffff:7f00:1]",
		"IPv4-mapped metadata":            "[::ffff:169.254.169.254]",
		"IPv4-compatible":                 "[::127.0.0.1]",
		"IPv4-translated":                 "[::ffff:0:7f00:1]",
		"NAT64":                           "[64:ff9b::7f00:1]",
		"NAT64 metadata":                  "[64:ff9b::a9fe:a9fe]",
		"NAT64, local use":                "[64:ff9b:1::7f00:1]",
		"6to4":                            "[2002:7f00:1::]",
		"Teredo":                          "[2001:0:7f00:1::1]",
		"private 10":                      "10.0.0.1",
		"private 172.16":                  "172.16.0.1",
		"private 192.168":                 "192.168.0.1",
		"carrier-grade NAT":               "100.100.100.200",
		"unique local":                    "[fd00:ec2::254]",
		"link local":                      "[fe80::1]",
		"link local with a zone":          "[fe80::1%25lo]",
		"broadcast":                       "255.255.255.255",
		"multicast":                       "224.0.0.1",
		"hexadecimal, as a name":          "0x7f000001",
		"hexadecimal, short":              "0x7f.1",
		"circled digits":                  "①②⑦.⓪.⓪.①",
		"full-width digits and full stop": "１２７。０。０。１",
		"a public name, private address":  "rebind.example",
		"that name, trailing dot":         "rebind.example.",
		"a public name, IPv6 loopback":    "six.example",
		"a public name, mapped address":   "mapped.example",
		"a public name, all private":      "both.example",
		"a CNAME chain":                   "chain.example",
	} {
		_, _, err := do(t, h, httpScope("*:*"), network.FetchRequest{URL: "http://" + host + port + "/latest/meta-data/"}, "")
		if api.ErrorCode(err) != api.CodeHostFetchBlocked {
			t.Errorf("%s (%s): %v, want %s", name, host, err, api.CodeHostFetchBlocked)
		}
		_, _, err = sockets.open(t.Context(), httpScope("*:*"), network.SocketRequest{URL: "ws://" + host + port + "/latest/meta-data/"}, nil)
		if api.ErrorCode(err) != api.CodeHostFetchBlocked {
			t.Errorf("a socket to %s (%s): %v, want %s", name, host, err, api.CodeHostFetchBlocked)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("got %d calls of the hidden server, want 0", n)
	}
}

// Spellings that Go's resolver takes for no address and no name. A resolver of the
// C library would make an address of them: what it would make is refused by the
// check of the socket, which knows no spellings.
func TestSSRFSpellingsOfOtherResolvers(t *testing.T) {
	t.Parallel()
	port, reached := hidden(t)
	h := newFetchCalls(nil, resolverAnswering(t, func(string) netip.Addr { return netip.MustParseAddr("127.0.0.1") }))
	guard := &egress{own: ownAddresses}
	for host, means := range map[string]string{
		"2130706433":   "127.0.0.1",       // decimal
		"017700000001": "127.0.0.1",       // octal
		"0177.0.0.1":   "127.0.0.1",       // octal in part
		"0177.0.0.01":  "127.0.0.1",       //
		"127.1":        "127.0.0.1",       // short
		"127.0.1":      "127.0.0.1",       //
		"0":            "0.0.0.0",         //
		"2852039166":   "169.254.169.254", // decimal metadata
		"025177524776": "169.254.169.254", // octal metadata
		"169.16689662": "169.254.169.254", // short metadata

		"169.254.169.254.": "169.254.169.254", // with a trailing dot
	} {
		if _, _, err := do(t, h, httpScope("*:*"), network.FetchRequest{URL: "http://" + host + port + "/"}, ""); err == nil {
			t.Errorf("fetch of %s: got no error, want one", host)
		}
		if err := guard.control(t.Context(), "tcp4", net.JoinHostPort(means, "80"), nil); err == nil {
			t.Errorf("dial of %s as %s: got no error, want one", host, means)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("got %d calls of the hidden server, want 0", n)
	}
}

// What stands before an @, after a # or behind a backslash hides no host.
func TestSSRFURLTricks(t *testing.T) {
	t.Parallel()
	port, reached := hidden(t)
	h := newFetchCalls(nil, resolverAnswering(t, func(string) netip.Addr { return netip.MustParseAddr("127.0.0.1") }))
	for name, tt := range map[string]struct {
		url  string
		want api.Code
	}{
		"a host as the user":       {"http://public.example@127.0.0.1" + port + "/", api.CodeHostInvalidArgument},
		"user and password":        {"http://public.example:80@127.0.0.1" + port + "/", api.CodeHostInvalidArgument},
		"an empty user":            {"http://@127.0.0.1" + port + "/", api.CodeHostInvalidArgument},
		"two @":                    {"http://a@public.example@127.0.0.1" + port + "/", api.CodeHostInvalidArgument},
		"a fragment before @":      {"http://127.0.0.1" + port + "#@public.example/", api.CodeHostFetchBlocked},
		"a query before @":         {"http://127.0.0.1" + port + "?@public.example/", api.CodeHostFetchBlocked},
		"a backslash before @":     {`http://127.0.0.1` + port + `\@public.example/`, api.CodeHostInvalidArgument},
		"a percent-encoded host":   {"http://127%2e0.0.1" + port + "/", api.CodeHostInvalidArgument},
		"a line break in the host": {"http://public.example\r\n127.0.0.1" + port + "/", api.CodeHostInvalidArgument},
		"another scheme":           {"gopher://127.0.0.1" + port + "/", api.CodeHostInvalidArgument},
		"a scheme in capitals":     {"HTTP://127.0.0.1" + port + "/", api.CodeHostFetchBlocked},
	} {
		if _, _, err := do(t, h, httpScope("*:*"), network.FetchRequest{URL: tt.url}, ""); api.ErrorCode(err) != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("got %d calls of the hidden server, want 0", n)
	}
}

// standIn is a server that functions may reach: 127.0.0.2 stands for a public
// address, which the operator allows. It closes each connection, so that the next
// request asks for the name again.
func standIn(t *testing.T, port string, h http.HandlerFunc) (*httptest.Server, netip.Addr) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2"+port)
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}}
	s.Config.SetKeepAlivesEnabled(false)
	s.Start()
	t.Cleanup(s.Close)
	return s, netip.MustParseAddr("127.0.0.2")
}

// A name that was public when it was asked for first is private when it is asked
// for again: by a second fetch, and by a redirect to the same name.
func TestSSRFRebindingBetweenAnswers(t *testing.T) {
	t.Parallel()
	port, reached := hidden(t)
	_, public := standIn(t, port, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/again" {
			http.Redirect(w, r, "/end", http.StatusFound)
		}
	})
	for _, path := range []string{"/", "/again"} {
		var asked atomic.Int32
		resolver := resolverOf(t, func(q dnsmessage.Question) []dnsmessage.Resource {
			if q.Type == dnsmessage.TypeA && asked.Add(1) == 1 {
				return addresses(q, public)
			}
			return addresses(q, netip.MustParseAddr("127.0.0.1"))
		})
		h := newFetchCalls([]netip.Prefix{netip.PrefixFrom(public, 32)}, resolver)
		fetch := func() error {
			_, _, err := do(t, h, httpScope("*:*"), network.FetchRequest{URL: "http://rebind.example" + port + path}, "")
			return err
		}
		if err := fetch(); path == "/" && err != nil {
			t.Fatalf("the public answer: %v", err)
		} else if path == "/again" && api.ErrorCode(err) != api.CodeHostFetchBlocked {
			t.Errorf("a redirect to the name: %v, want %s", err, api.CodeHostFetchBlocked)
		}
		if err := fetch(); api.ErrorCode(err) != api.CodeHostFetchBlocked {
			t.Errorf("%s, the second fetch: %v, want %s", path, err, api.CodeHostFetchBlocked)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("got %d calls of the hidden server, want 0", n)
	}
}

// Of a name with public and private addresses, in any order and family, the private
// ones are never connected to.
func TestSSRFMixedAnswers(t *testing.T) {
	t.Parallel()
	port, reached := hidden(t)
	var served atomic.Int32
	_, public := standIn(t, port, func(http.ResponseWriter, *http.Request) { served.Add(1) })
	private := netip.MustParseAddr("127.0.0.1")
	for _, addrs := range [][]netip.Addr{
		{private, public}, {public, private}, {netip.MustParseAddr("::1"), public}, {netip.MustParseAddr("10.0.0.1"), private, public},
	} {
		h := newFetchCalls([]netip.Prefix{netip.PrefixFrom(public, 32)},
			resolverOf(t, func(q dnsmessage.Question) []dnsmessage.Resource { return addresses(q, addrs...) }))
		before := served.Load()
		if _, _, err := do(t, h, httpScope("*:*"), network.FetchRequest{URL: "http://mixed.example" + port + "/"}, ""); err != nil || served.Load() != before+1 {
			t.Errorf("fetch with addresses %v: got error %v and %d calls of the public server, want 1", addrs, err, served.Load()-before)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("got %d calls of the hidden server, want 0", n)
	}
}

// A redirect is dialled under the same check, and leads to http and https alone.
func TestSSRFRedirects(t *testing.T) {
	t.Parallel()
	port, reached := hidden(t)
	_, public := standIn(t, port, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	})
	h := newFetchCalls([]netip.Prefix{netip.PrefixFrom(public, 32)},
		resolverAnswering(t, func(string) netip.Addr { return netip.MustParseAddr("127.0.0.1") }))
	for to, want := range map[string]api.Code{
		"http://169.254.169.254/":              api.CodeHostFetchBlocked,
		"http://127.0.0.1" + port + "/":        api.CodeHostFetchBlocked,
		"//127.0.0.1" + port + "/":             api.CodeHostFetchBlocked,
		"http://[::ffff:127.0.0.1]" + port:     api.CodeHostFetchBlocked,
		"http://[64:ff9b::7f00:1]" + port:      api.CodeHostFetchBlocked,
		"http://inner.example" + port + "/":    api.CodeHostFetchBlocked,
		"http://user:pass@127.0.0.1" + port:    api.CodeHostFetchBlocked,
		"https://127.0.0.1" + port + "/":       api.CodeHostFetchBlocked,
		"file:///etc/passwd":                   api.CodeHostFetchFailed,
		"gopher://127.0.0.1" + port + "/":      api.CodeHostFetchFailed,
		"ftp://127.0.0.1/":                     api.CodeHostFetchFailed,
		"javascript:fetch('http://127.0.0.1')": api.CodeHostFetchFailed,
		"unix:///var/run/docker.sock":          api.CodeHostFetchFailed,
	} {
		args := network.FetchRequest{URL: "http://127.0.0.2" + port + "/?to=" + strings.NewReplacer("#", "%23", "&", "%26").Replace(to)}
		if _, _, err := do(t, h, httpScope("*:*"), args, ""); api.ErrorCode(err) != want {
			t.Errorf("to %s: %v, want %s", to, err, want)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("got %d calls of the hidden server, want 0", n)
	}
}
