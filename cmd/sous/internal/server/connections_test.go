package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/controlplane/admission"
)

func TestDeriveConnections(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                  string
		limit                 uint64
		sandboxes, configured int
		want                  int // 0: refused
	}{
		{"a quarter stays for others", 20_000, 0, 0, 15_000},
		{"few files: the reserve", 1024, 0, 0, 1024 - 256 - 400},
		{"sandboxes need theirs", 4096, 500, 0, 4096 - 256 - 2000},
		{"memory bounds it too", 1_048_576, 0, 0, 32_768},
		{"no limit at all", 1<<64 - 1, 0, 0, 32_768},
		{"as configured", 20_000, 0, 100, 100},
		{"more than by default", 1_048_576, 0, 100_000, 100_000},
		{"more than there are files for", 20_000, 0, 15_001, 0},
		{"nothing left", 700, 0, 0, 0},
		{"less than nothing left", 256, 0, 0, 0},
	}
	for _, test := range tests {
		got, err := deriveConnections(test.limit, test.sandboxes, test.configured)
		if got != test.want || (err == nil) != (test.want > 0) {
			t.Errorf("%s: got %d, %v, want %d", test.name, got, err, test.want)
		}
		if err != nil && !strings.Contains(err.Error(), "ulimit -n") {
			t.Errorf("%s: error %v, want one that names ulimit -n", test.name, err)
		}
	}
}

// closer is a connection that knows whether it was closed.
type closer struct {
	net.Conn
	from   netip.Addr
	closed bool
}

func (c *closer) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.from, 4000))
}

func (c *closer) Close() error {
	c.closed = true
	return nil
}

// openOn returns n new connections that c tracks.
func openOn(c *connections, n int) []*closer {
	out := make([]*closer, n)
	for i := range out {
		hosts++
		out[i] = openFrom(c, 1, netip.AddrFrom4([4]byte{10, byte(hosts >> 16), byte(hosts >> 8), byte(hosts)}))[0]
	}
	return out
}

// hosts counts the addresses that openOn has used; tests that use it do not run in parallel.
var hosts uint32

// openFrom returns n new connections from one address that c tracks.
func openFrom(c *connections, n int, from netip.Addr) []*closer {
	out := make([]*closer, n)
	for i := range out {
		out[i] = &closer{from: from}
		c.context(context.Background(), out[i])
		c.track(out[i], http.StateNew)
	}
	return out
}

func countClosed(conns []*closer) (n int) {
	for _, c := range conns {
		if c.closed {
			n++
		}
	}
	return n
}

// One address takes three quarters of the connections at most; its own idle ones make room for
// its new ones. A proxy may take all.
func TestConnectionsOfOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attacker, proxy := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("10.0.0.5")
		core, logged := observer.New(zap.WarnLevel)
		c := newConnections(100, admission.Addresses{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}, zap.New(core))
		first := openFrom(c, 75, attacker)
		for _, conn := range first[1:] {
			c.track(conn, http.StateActive)
		}
		time.Sleep(time.Second)
		surplus := openFrom(c, 3, attacker)
		if !first[0].closed || countClosed(first) != 1 {
			t.Errorf("%d connections of an address at its share were closed for a new one, want only the idle one", countClosed(first))
		}
		c.track(surplus[2], http.StateActive)
		if n := countClosed(surplus); n != 2 {
			t.Errorf("%d of 3 surplus connections were closed, want 2: the place of the idle one was free once", n)
		}
		if n := countClosed(openFrom(c, 15, netip.MustParseAddr("203.0.113.9"))); n != 0 {
			t.Errorf("%d of 15 connections of another address were closed, want none", n)
		}
		if n := logged.Len(); n != 1 {
			t.Errorf("logged %d times, want once that an address has its share", n)
		}
		for _, conn := range append(first, surplus...) {
			c.track(conn, http.StateClosed)
		}
		if n := countClosed(openFrom(c, 76, proxy)); n != 0 {
			t.Errorf("%d of 76 connections of a proxy were closed, want none", n)
		}
		if n := len(c.peers); n != 1 {
			t.Errorf("%d addresses are known after the attacker's connections ended, want 1", n)
		}
	})
}

// A connection whose body arrives slowly makes room before one that is idle; one whose body
// arrives fast does not.
func TestSlowBodiesMakeRoomFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(3, admission.Addresses{}, zap.NewNop())
		conns := openOn(c, 3) // idle, slow, fast
		for _, conn := range conns[1:] {
			c.track(conn, http.StateActive)
			c.open[conn].BodyBegins()
		}
		time.Sleep(slowBodyAfter)
		c.open[conns[2]].BodyArrives(2 * slowBodyRate * int(slowBodyAfter/time.Second))
		openOn(c, 1)
		if !conns[1].closed || countClosed(conns) != 1 {
			t.Errorf("%d connections were closed for a new one, want only that with the slow body", countClosed(conns))
		}
		time.Sleep(time.Second)
		openOn(c, 1)
		if !conns[0].closed || countClosed(conns) != 2 {
			t.Errorf("%d connections were closed for the second new one, want the idle one", countClosed(conns))
		}
	})
}

// A new connection of an address that has many replaces one of its own, although one of another
// address has waited longer: a request may just arrive on that. An address that has connections
// alone delays no others, so its new ones wait for room.
func TestAddressesWithManyConnectionsReplaceTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(64, admission.Addresses{}, zap.NewNop())
		one, two := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2")
		alone := openFrom(c, 48, one)
		begin := time.Now()
		if next := openFrom(c, 1, one)[0]; next.closed || !alone[0].closed || time.Since(begin) != evictAfter {
			t.Errorf("the next connection of the only address: closed %v after %s, its first %v, want a place after %s", next.closed, time.Since(begin), alone[0].closed, evictAfter)
		}
		for _, conn := range alone {
			c.track(conn, http.StateClosed)
		}

		c = newConnections(64, admission.Addresses{}, zap.NewNop())
		quiet := openFrom(c, 1, netip.MustParseAddr("203.0.113.9"))[0]
		own := append(openFrom(c, 40, one), openFrom(c, 19, two)...)
		time.Sleep(time.Second)
		if next := openFrom(c, 1, one)[0]; next.closed || quiet.closed || !own[0].closed {
			t.Errorf("the next connection: closed %v, the first of its address %v, of a quiet one %v, want only the second closed", next.closed, own[0].closed, quiet.closed)
		}
	})
}

// Addresses that have many connections and open more delay no others: a new one of theirs is closed
// where no connection has waited long enough, and one of another address takes the place of a young
// one of theirs.
func TestAddressesWithManyConnectionsDelayNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(64, admission.Addresses{}, zap.NewNop())
		one, two := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2")
		for _, conn := range append(openFrom(c, 47, one), openFrom(c, 12, two)...) {
			c.track(conn, http.StateActive)
		}
		young := openFrom(c, 1, one)[0]
		begin := time.Now()
		surplus := append(openFrom(c, 10, one), openFrom(c, 10, two)...)
		if took := time.Since(begin); took != 0 {
			t.Errorf("20 connections of two addresses with many kept the server from accepting others for %s, want no time", took)
		}
		if n := countClosed(surplus); n != 20 || young.closed {
			t.Errorf("%d of 20 surplus connections were closed, want all, and the young one open: closed %v", n, young.closed)
		}
		for range 3 {
			victim := openFrom(c, 1, netip.MustParseAddr("203.0.113.9"))[0]
			if took := time.Since(begin); victim.closed || c.open[victim].Reserved() || took != 0 {
				t.Fatalf("a connection of another address: closed %v after %s, want an ordinary place immediately", victim.closed, took)
			}
			c.track(victim, http.StateClosed)
			openFrom(c, 1, two)
			begin = time.Now()
			openFrom(c, 5, two)
		}
	})
}

// A connection in the reserve is not replaced while it is young, although its address has many
// others: its place would be one of the reserve again, and its probe may just arrive.
func TestYoungReservedConnectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(64, admission.Addresses{}, zap.NewNop())
		active := func(conns []*closer) []*closer {
			for _, conn := range conns {
				c.track(conn, http.StateActive)
			}
			return conns
		}
		others, one := active(openOn(c, 60)), netip.MustParseAddr("198.51.100.1")
		probe := openFrom(c, 1, one)[0]
		if !c.open[probe].Reserved() {
			t.Fatal("a connection beyond the ordinary places is not reserved, want it reserved")
		}
		for _, conn := range others[:20] {
			c.track(conn, http.StateClosed)
		}
		active(openFrom(c, 20, one))
		begin := time.Now()
		if next := openOn(c, 1)[0]; next.closed || time.Since(begin) != evictAfter {
			t.Errorf("the next connection: closed %v after %s, want a place after %s", next.closed, time.Since(begin), evictAfter)
		}
	})
}

// Two addresses that begin new bodies all the time keep no address with few connections out.
func TestBodiesOfManyMakeRoomForFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(64, admission.Addresses{}, zap.NewNop())
		begin := func(host string, n int) (conns []*closer) {
			for range n {
				conn := openFrom(c, 1, netip.MustParseAddr(host))[0]
				c.track(conn, http.StateActive)
				c.open[conn].RequestBegins()
				c.open[conn].BodyBegins()
				conns = append(conns, conn)
			}
			return conns
		}
		few := begin("203.0.113.7", 1)
		time.Sleep(time.Second)
		many := append(begin("198.51.100.1", 45), begin("198.51.100.2", 18)...) // 4 of the reserve
		for i := range 3 {                                                      // the first waits until these bodies are slow
			victim := openFrom(c, 1, netip.AddrFrom4([4]byte{203, 0, 113, byte(10 + i)}))[0]
			c.track(victim, http.StateActive)
			if victim.closed || c.open[victim].Reserved() || countClosed(many) != i+1 {
				t.Errorf("connection %d of an address with few: closed %v, and %d of those with many, want it in the place of one of them", i, victim.closed, countClosed(many))
			}
		}
		if few[0].closed {
			t.Error("the body of another address with few was closed after a second, want it open")
		}
	})
}

// A connection with several requests has slow bodies if all of them are bodies, and fast bodies hide
// no slow ones.
func TestSlowBodiesAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(slowBodyScan+3, admission.Addresses{}, zap.NewNop())
		arrive := func(o *openConn) {
			o.RequestBegins()
			o.BodyBegins()
		}
		var conns []*closer
		for range slowBodyScan + 3 {
			conn := openOn(c, 1)[0]
			c.track(conn, http.StateActive)
			arrive(c.open[conn])
			conns = append(conns, conn)
		}
		busy, slow := c.open[conns[slowBodyScan+1]], c.open[conns[slowBodyScan+2]]
		busy.RequestBegins() // beside the body
		arrive(slow)         // a second body
		time.Sleep(slowBodyAfter)
		for _, conn := range conns[:slowBodyScan+1] {
			c.open[conn].BodyArrives(slowBodyRate * int(slowBodyAfter/time.Second))
		}
		for range 2 { // the first one examines the fast ones
			openOn(c, 1)
		}
		if !slow.Conn.(*closer).closed || countClosed(conns) != 1 {
			t.Errorf("%d connections were closed for new ones, want only that of two slow bodies: closed %v", countClosed(conns), slow.Conn.(*closer).closed)
		}
		busy.RequestEnds() // the body is left
		time.Sleep(slowBodyAfter)
		for _, conn := range conns[:slowBodyScan+1] {
			c.open[conn].BodyArrives(slowBodyRate * int(slowBodyAfter/time.Second))
		}
		for range 2 {
			openOn(c, 1)
		}
		if !busy.Conn.(*closer).closed || countClosed(conns) != 2 {
			t.Errorf("%d connections were closed, want that too whose other request has ended: closed %v", countClosed(conns), busy.Conn.(*closer).closed)
		}
		idle := c.open[conns[0]]
		c.track(conns[0], http.StateIdle)
		if idle.body != nil {
			t.Error("a connection that is idle has a body, want none")
		}
	})
}

// When every ordinary connection has a request, the last ones are for probes and the API.
func TestReservedConnections(t *testing.T) {
	c := newConnections(32, admission.Addresses{}, zap.NewNop())
	conns := make([]*closer, 0, 33)
	for i := range 32 {
		conn := openOn(c, 1)[0]
		c.track(conn, http.StateActive)
		conns = append(conns, conn)
		if want := i >= 30; c.open[conn].Reserved() != want {
			t.Errorf("connection %d of 32 is reserved: %v, want %v", i, !want, want)
		}
	}
	if last := openOn(c, 1)[0]; !last.closed || countClosed(conns) != 0 {
		t.Errorf("a connection beyond the reserve was closed: %v, and %d others, want only that", last.closed, countClosed(conns))
	}
	c.track(conns[0], http.StateClosed)
	if next := openOn(c, 1)[0]; next.closed || c.open[next].Reserved() {
		t.Errorf("the connection for which an ordinary one ended: closed %v, want an ordinary one", next.closed)
	}
}

func TestConnectionsMakeRoom(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	c := newConnections(4, admission.Addresses{}, zap.New(core))
	first := openOn(c, 4)
	// The first is answered, the second was and waits again: the third waits longest.
	c.track(first[0], http.StateActive)
	c.track(first[1], http.StateActive)
	c.track(first[1], http.StateIdle)
	order := []int{2, 3, 1}
	for n, victim := range order {
		next := openOn(c, 1)
		c.track(next[0], http.StateActive)
		for i, conn := range first {
			if want := i == victim || conn != first[0] && isIn(order[:n], i); conn.closed != want {
				t.Errorf("after %d new ones: connection %d closed: %v, want %v", n+1, i, conn.closed, want)
			}
		}
	}
	if first[0].closed {
		t.Error("a connection with a request was closed, want it open")
	}
	surplus := openOn(c, 1)
	if !surplus[0].closed {
		t.Error("all connections have requests and a fifth stays open, want it closed")
	}
	// What the goroutines of closed ones say late changes nothing.
	for _, conn := range append(first[1:], surplus[0]) {
		c.track(conn, http.StateActive)
		c.track(conn, http.StateClosed)
	}
	if len(c.open) != 4 || c.waiting.Len() != 0 {
		t.Errorf("%d open, %d waiting, want 4 and 0", len(c.open), c.waiting.Len())
	}
	c.track(first[0], http.StateClosed)
	if conn := openOn(c, 1)[0]; conn.closed {
		t.Error("a connection was closed below the limit, want it open")
	}
	if n := logged.Len(); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
}

// A connection that is new, or whose request has just ended, is not replaced: its next request
// may be under way.
func TestYoungConnectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(2, admission.Addresses{}, zap.NewNop())
		first := openOn(c, 2)
		c.track(first[0], http.StateActive)
		time.Sleep(evictAfter - time.Millisecond)
		c.track(first[0], http.StateIdle)
		begin := time.Now()
		openOn(c, 1)
		if took := time.Since(begin); !first[1].closed || took != time.Millisecond {
			t.Errorf("got a place after %s, closed: %v, want after 1ms that of the connection that waits longest", took, first[1].closed)
		}
		begin = time.Now()
		openOn(c, 1)
		if took := time.Since(begin); !first[0].closed || took != evictAfter-time.Millisecond {
			t.Errorf("got a place after %s, closed: %v, want after 99ms that of the next", took, first[0].closed)
		}
	})
}

func isIn(list []int, n int) bool {
	for _, have := range list {
		if have == n {
			return true
		}
	}
	return false
}
