package hostcall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// scopeOf may fetch from all hosts, for a tenant.
func scopeOf(tenant string) *Scope {
	s := httpScope("*:*")
	s.Tenant = tenant
	return s
}

// TestTenantsShareNoConnections: a tenant's next request uses its idle connection, and no
// tenant that of another.
func TestTenantsShareNoConnections(t *testing.T) {
	t.Parallel()
	srv := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RemoteAddr) // the client reads it
	})
	h := newFetchCalls(loopback, nil)
	from := func(tenant string) string {
		_, body, err := do(t, h, scopeOf(tenant), network.FetchRequest{URL: srv.URL}, "")
		if err != nil {
			t.Fatalf("fetch of %s: %v", tenant, err)
		}
		return body
	}
	one, two := from("one"), from("two")
	if one == two || from("one") != one || from("two") != two {
		t.Errorf("got the connections %s and %s, then %s and %s, want one for each tenant", one, two, from("one"), from("two"))
	}
}

// TestTransportsAreBounded: the connections of a tenant that was not heard of for long are
// given up for those of another.
func TestTransportsAreBounded(t *testing.T) {
	t.Parallel()
	made := 0
	all := newTransports(func() *http.Transport { made++; return &http.Transport{} })
	first := all.of("first")
	for n := range 3 * maxTransports {
		all.of(fmt.Sprint("t", n))
		if all.of("first") != first {
			t.Fatal("the transport that is used most was given up")
		}
	}
	if len(all.known) != maxTransports || all.recent.Len() != maxTransports || made != 1+3*maxTransports {
		t.Errorf("got %d transports in use and %d made, want %d and %d", len(all.known), made, maxTransports, 1+3*maxTransports)
	}
}

// TestPlacesLeaveAReserve: a tenant has its most, several leave a reserve, and one with few
// exchanges gets a place at once while thousands of others wait.
func TestPlacesLeaveAReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces()
		ctx, cancel := context.WithCancel(t.Context())
		var loud sync.WaitGroup
		held := map[string]*atomic.Int64{}
		for n := range 6 {
			tenant := fmt.Sprint("loud", n)
			held[tenant] = new(atomic.Int64)
			for range 2 * maxTenantPlaces {
				loud.Go(func() {
					if p.take(ctx, tenant) == nil {
						held[tenant].Add(1)
					}
				})
			}
			synctest.Wait()
		}
		if got := held["loud0"].Load(); got != maxTenantPlaces {
			t.Errorf("a tenant has %d places, want its most, %d", got, maxTenantPlaces)
		}
		for n := range 10 {
			tenant := fmt.Sprint("quiet", n)
			for range reserveEach {
				if err := p.take(t.Context(), tenant); err != nil {
					t.Fatalf("take(%s) = %v, want a place of the reserve", tenant, err)
				}
			}
			for range reserveEach {
				p.leave(tenant)
			}
		}
		if got := held["loud5"].Load(); got != reserveEach {
			t.Errorf("the last loud tenant has %d places, want %d of the reserve", got, reserveEach)
		}
		p.leave("loud0") // others of its own wait, and may take one of the reserve as little as others
		held["loud0"].Add(-1)
		synctest.Wait()
		if got := p.taken; got < maxPlaces-reservedPlaces || got > maxPlaces-reservedPlaces+6*reserveEach {
			t.Errorf("got %d places taken by loud tenants, want all but the reserve, %d, and %d each of it", got, maxPlaces-reservedPlaces, reserveEach)
		}
		cancel()
		loud.Wait()
		for tenant, n := range held {
			for range n.Load() {
				p.leave(tenant)
			}
		}
		if p.taken != 0 || len(p.tenants) != 0 || len(p.waiting) != 0 {
			t.Errorf("at the end: got %d places, %d tenants and %d that wait, want none", p.taken, len(p.tenants), len(p.waiting))
		}
	})
}

// TestEgressIsCounted: heads, bodies and frames in both directions, also those of a body that is
// read in parts and the pings of a socket.
func TestEgressIsCounted(t *testing.T) {
	t.Parallel()
	const large = 1 << 20
	srv := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/socket" {
			c, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer func() { _ = c.CloseNow() }()
			kind, message, err := c.Read(r.Context())
			ctx := c.CloseRead(r.Context())
			if err != nil || c.Ping(ctx) != nil {
				return
			}
			_ = c.Write(ctx, kind, message) // the test sees that it is missing
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, large)) // the client reads it
	})
	var passed atomic.Int64
	fetch, sockets := newFetchCalls(loopback, nil), newSocketCalls(loopback, nil)
	fetch.traffic = func(tenant string, n int64) error {
		if tenant != "one" {
			t.Errorf("got bytes of tenant %q, want those of one", tenant)
		}
		passed.Add(n)
		return nil
	}
	sockets.traffic = fetch.traffic
	s := scopeOf("one")
	out, got, err := fetch.fetch(t.Context(), s, network.FetchRequest{URL: srv.URL, Method: http.MethodPost}, make([]byte, large))
	for err == nil && out.Body != 0 {
		var part []byte
		var end network.BodyPart
		end, part, err = fetch.read(t.Context(), s, network.Handle{ID: out.Body}, nil)
		got = append(got, part...)
		if end.End {
			break
		}
	}
	if n := s.EgressBytes(); err != nil || len(got) != large || n < 2*large || n > 2*large+2048 || passed.Load() != n {
		t.Errorf("fetch: got %d bytes and error %v, %d bytes counted and %d passed on, want %d in each direction, all counted", len(got), err, n, passed.Load(), large)
	}
	s = scopeOf("one")
	open, _, err := sockets.open(t.Context(), s, network.SocketRequest{URL: strings.Replace(srv.URL, "http", "ws", 1) + "/socket"}, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	head := s.EgressBytes()
	_, _, err = sockets.send(t.Context(), s, network.SocketMessage{ID: open.ID}, make([]byte, 1000))
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	if _, message, err := sockets.receive(t.Context(), s, network.Handle{ID: open.ID}, nil); err != nil || len(message) != 1000 {
		t.Fatalf("receive = %d bytes, %v, want the 1000 of the echo", len(message), err)
	}
	const frames = (4 + 4 + 1000) + (4 + 1000) + (2 + 1) + (2 + 4 + 1) // with heads and masks; a ping has a digit
	if n := s.EgressBytes() - head; head < 100 || n != frames {
		t.Errorf("a socket: got %d bytes for the handshake and %d for two messages and a ping, want at least 100 and %d", head, n, frames)
	}
}

// TestEgressIsRefused: the refusal of a quota ends a request before it is sent, a body on its
// way and a socket, and the function sees its code.
func TestEgressIsRefused(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	srv := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/pings" {
			c, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer func() { _ = c.CloseNow() }()
			for ctx := c.CloseRead(r.Context()); err == nil; {
				err = c.Ping(ctx)
			}
			return
		}
		reached.Add(1)
		_, _ = w.Write(make([]byte, 1<<20)) // the client may leave
	})
	var left atomic.Int64
	h, sockets := newFetchCalls(loopback, nil), newSocketCalls(loopback, nil)
	h.traffic = func(_ string, n int64) error {
		if left.Add(-n) < 0 {
			return api.Errorf(api.CodeConcurrencyLimit, "the tenant may send no more")
		}
		return nil
	}
	sockets.traffic = h.traffic
	for allowed, requests := range map[int64]int64{0: 0, 64 << 10: 1} {
		left.Store(allowed)
		reached.Store(0)
		s := scopeOf("one")
		out, _, err := do(t, h, s, network.FetchRequest{URL: srv.URL}, "")
		for err == nil && out.Body != 0 { // the beginning of the body was allowed
			var part network.BodyPart
			part, _, err = h.read(t.Context(), s, network.Handle{ID: out.Body}, nil)
			if part.End {
				break
			}
		}
		if api.ErrorCode(err) != api.CodeConcurrencyLimit || reached.Load() != requests {
			t.Errorf("with %d bytes left: got %v after %d requests, want the refusal after %d", allowed, err, reached.Load(), requests)
		}
	}
	left.Store(1000)
	s := scopeOf("one")
	pings := network.SocketRequest{URL: strings.Replace(srv.URL, "http", "ws", 1) + "/pings"}
	open, _, err := sockets.open(t.Context(), s, pings, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if got, _, err := sockets.receive(t.Context(), s, network.Handle{ID: open.ID}, nil); api.ErrorCode(err) != api.CodeConcurrencyLimit {
		t.Errorf("receive of a socket with pings only = %+v, %v, want the refusal", got, err)
	}
	open, _, err = sockets.open(t.Context(), s, pings, nil)
	if api.ErrorCode(err) != api.CodeConcurrencyLimit {
		t.Errorf("open = %+v, %v, want the refusal", open, err)
	}
	left.Store(1000)
	open, _, err = sockets.open(t.Context(), s, pings, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	_, _, err = sockets.send(t.Context(), s, network.SocketMessage{ID: open.ID}, make([]byte, 1000))
	if api.ErrorCode(err) != api.CodeConcurrencyLimit {
		t.Errorf("send of 1,000 bytes = %v, want the refusal", err)
	}
}

// TestErrorsOfFetchHideAddresses: no error of an exchange shows an address that the function has
// not named: of a name, of the DNS server, of this host, of a guard's refusal.
func TestErrorsOfFetchHideAddresses(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	unused := closed.Addr().String()
	_ = closed.Close() // so that it refuses connections
	broken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	t.Cleanup(func() { _ = broken.Close() })
	go func() {
		for {
			conn, err := broken.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // before it has answered
		}
	}()
	tls := upstream(t, func(http.ResponseWriter, *http.Request) {})
	port := func(address string) string { return address[strings.LastIndex(address, ":"):] }
	silent := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", unused) // a DNS server that is not there
	}}
	for name, c := range map[string]struct {
		host     string
		resolver *net.Resolver
		guarded  bool
	}{
		"refused":         {host: "localhost" + port(unused)},
		"reset":           {host: "localhost" + port(broken.Addr().String())},
		"TLS":             {host: "localhost" + port(tls.URL)},
		"no DNS server":   {host: "name.example:80", resolver: silent},
		"guard of a name": {host: "localhost" + port(unused), guarded: true},
	} {
		allow := loopback
		if c.guarded {
			allow = nil
		}
		fetch, sockets := newFetchCalls(allow, c.resolver), newSocketCalls(allow, c.resolver)
		for _, scheme := range []string{"http://", "https://"} {
			if name == "TLS" && scheme == "http://" {
				continue // it would succeed
			}
			_, _, err := do(t, fetch, scopeOf("one"), network.FetchRequest{URL: scheme + c.host}, "")
			checkHidden(t, name+" by "+scheme, err)
			_, _, err = sockets.open(t.Context(), scopeOf("one"), network.SocketRequest{URL: strings.Replace(scheme, "http", "ws", 1) + c.host}, nil)
			checkHidden(t, name+" by a socket, "+scheme, err)
		}
	}
	checkHidden(t, "own addresses", fetchError(t.Context(), fmt.Errorf("%w: %w", errOwnAddresses, errors.New("netlink 10.0.0.1"))))
	checkHidden(t, "unknown errors", fetchError(t.Context(), errors.New("read tcp 127.0.0.1:4321->10.0.0.1:80: [fe80::1%eth0]:53, [::1]:80, ::1 and 10.1.2.3.")))
	if got := withoutAddresses("HTTP/1.1 at 12:30:45 of 1.2.3, a.b: dead:beef"); got != "HTTP/1.1 at 12:30:45 of 1.2.3, a.b: dead:beef" {
		t.Errorf("withoutAddresses = %q, want no change without an address", got)
	}
}

// checkHidden checks an error as the function sees it.
func checkHidden(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: got no error, want one", name)
		return
	}
	for _, hidden := range []string{"127.0.0.1", "::1", "10.0.0.1", "10.1.2.3", ":53", "fe80", "lookup"} {
		if strings.Contains(publicError(err).Error(), hidden) {
			t.Errorf("%s: got %q, want it without %q", name, publicError(err), hidden)
		}
	}
}

// TestFetchLeavesItsPlace: after an exchange, whole or given up, and after a socket.
func TestFetchLeavesItsPlace(t *testing.T) {
	t.Parallel()
	srv := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, 1<<20)) // the client may leave
		}
	})
	h := newFetchCalls(loopback, nil)
	s := scopeOf("one")
	ctx, end := context.WithCancel(t.Context())
	for _, path := range []string{"/", "/large", "/large"} {
		if _, _, err := h.fetch(ctx, s, network.FetchRequest{URL: srv.URL + path}, nil); err != nil {
			t.Fatalf("fetch %s: %v", path, err)
		}
	}
	h.places.mu.Lock()
	if h.places.taken < 2 {
		t.Errorf("got %d places while two bodies are to come, want at least 2", h.places.taken)
	}
	h.places.mu.Unlock()
	end() // of the activation
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		h.places.mu.Lock()
		taken := h.places.taken
		h.places.mu.Unlock()
		if taken == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d places after the end of the activation, want 0", taken)
		}
	}
}
