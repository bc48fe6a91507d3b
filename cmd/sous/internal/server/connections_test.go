package server

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
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
	closed bool
}

func (c *closer) Close() error {
	c.closed = true
	return nil
}

// openOn returns n new connections that c tracks.
func openOn(c *connections, n int) []*closer {
	out := make([]*closer, n)
	for i := range out {
		out[i] = &closer{}
		c.track(out[i], http.StateNew)
	}
	return out
}

func TestConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	c := newConnections(4, zap.New(core))
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(2, zap.NewNop())
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
