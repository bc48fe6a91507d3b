package server

import (
	linked "container/list"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/controlplane/rest"
)

// How the file descriptors of the process are divided. Connections must not use up those
// that the store, the sandboxes and the fetch of functions need.
const (
	// mostConnections bounds the derived number: an idle connection takes about 21 KB of
	// memory, so these take about 700 MB.
	mostConnections = 32_768
	// leastConnections is the room for connections without which a server does not start.
	leastConnections = 64
	// reservedDescriptors are for the store's pool, the log and files.
	reservedDescriptors = 256
	// A sandbox has a socket, stderr, a pidfd, and a connection of its fetch.
	descriptorsPerSandbox = 4
	defaultSandboxes      = 100 // sandbox-max where it is 0
)

// maxConnections returns the number of connections that a server with s accepts. It
// follows from the limit of open files, which the Go runtime has raised to its maximum.
func maxConnections(s settings) (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return deriveConnections(limit.Cur, s.SandboxMax, s.Network.MaxConnections)
}

// maxWaits returns the number of fetches of jobs and of followed logs and feeds that may wait
// at the same time. Half of the connections are kept for other requests.
func maxWaits(s settings) int {
	most, err := maxConnections(s)
	if err != nil {
		return rest.DefaultWaits // newListenConfig has refused these settings
	}
	return min(rest.DefaultWaits, most/2)
}

// deriveConnections returns the configured number of connections, or for 0 the number that
// limit leaves after the reserve, which is a quarter of limit at least. It fails if the
// configured number, or the least that a server needs, does not fit.
//
// A limit of 20,000 files leaves 15,000 connections: the reserve is the quarter. With 1,024
// files and 100 sandboxes the reserve is 256 + 4 × 100, which leaves 368. With 700 files 44
// would be left, and the server refuses to start.
func deriveConnections(limit uint64, sandboxes, configured int) (int, error) {
	if sandboxes == 0 {
		sandboxes = defaultSandboxes
	}
	files := int(min(limit, 1<<30))
	room := files - max(files/4, reservedDescriptors+descriptorsPerSandbox*sandboxes)
	if configured > room || room < leastConnections {
		return 0, fmt.Errorf("max-connections: the limit of %d open files (ulimit -n) leaves %d connections beside the store and %d sandboxes; want %d: raise the limit, or lower max-connections or sandbox-max",
			files, max(room, 0), sandboxes, max(configured, leastConnections))
	}
	if configured > 0 {
		return configured, nil
	}
	return min(room, mostConnections), nil
}

// evictAfter is the time in which no new connection replaces a waiting one. Without it a burst
// of new connections replaced one whose request had arrived, but was not read yet.
const evictAfter = 100 * time.Millisecond

// connections bounds the number of open connections. A new connection above the limit
// replaces the one that has waited longest for a request: a connection that is idle between
// two requests, has sent nothing, or is still sending a header. If every connection has a
// request, the new one is closed, so that its client can go elsewhere immediately. If the one
// that waits longest has not waited for evictAfter, no connection is accepted until it has:
// the kernel keeps the new ones. A server thus accepts at most limit / evictAfter connections
// a second at its limit, such as 327,680 of the largest default limit.
//
// Clients that open connections and send nothing (a Slowloris attack) therefore displace each
// other and idle connections, and not those that are answered. An HTTP/2 connection counts
// once, however many requests it has.
//
// Invariants under mu: len(open) is at most limit; waiting has one element for each open
// connection without a request, and open refers to it.
type connections struct {
	limit  int // of open connections, above 0
	logger *zap.Logger
	hungUp prometheus.Counter

	mu      sync.Mutex
	open    map[net.Conn]*linked.Element // of waiting; nil while a request is answered
	waiting linked.List                  // of waitingConn, the longest waiting first
	full    bool                         // the limit was reached and logged; reset below 90% of it
}

// waitingConn is an open connection without a request.
type waitingConn struct {
	net.Conn
	since time.Time // of its opening, or of the end of its last request
}

func newConnections(limit int, logger *zap.Logger) *connections {
	return &connections{limit: limit, logger: logger, hungUp: newHungUp(), open: make(map[net.Conn]*linked.Element)}
}

// track is the http.Server's ConnState. net/http reports StateActive once the header of a
// request has arrived; until then a connection is StateNew or StateIdle. It is called
// concurrently, for each connection in the order of its states. It is called with StateNew by
// the goroutine that accepts, so it may delay the next connection.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	var victim net.Conn
	c.mu.Lock()
	switch state {
	case http.StateNew:
		for wait := c.untilEviction(); wait > 0; wait = c.untilEviction() {
			c.mu.Unlock()
			time.Sleep(wait)
			c.mu.Lock()
		}
		victim = c.makeRoom()
		if victim == nil && len(c.open) >= c.limit {
			victim = conn
			break
		}
		c.open[conn] = c.waiting.PushBack(waitingConn{conn, time.Now()})
	case http.StateActive:
		if c.remove(conn) {
			c.open[conn] = nil
		}
	case http.StateIdle:
		if c.remove(conn) {
			c.open[conn] = c.waiting.PushBack(waitingConn{conn, time.Now()})
		}
	case http.StateHijacked, http.StateClosed:
		c.remove(conn)
		if c.full && len(c.open) < c.limit-c.limit/10 {
			c.full = false
		}
	}
	c.mu.Unlock()
	if victim != nil { // outside of the lock: closing a socket may take a moment
		c.hungUp.Inc()
		hangUp(victim)
	}
}

// untilEviction returns the time until a new connection may replace the one that waits longest.
// It is not positive if the new one need not wait. The caller holds mu.
func (c *connections) untilEviction() time.Duration {
	oldest := c.waiting.Front()
	if len(c.open) < c.limit || oldest == nil {
		return 0
	}
	longest, _ := oldest.Value.(waitingConn)
	return evictAfter - time.Since(longest.since)
}

// makeRoom returns the connection to close for a new one and removes it. It returns nil if
// there is room, or if every connection has a request. The caller holds mu.
func (c *connections) makeRoom() net.Conn {
	if len(c.open) < c.limit {
		return nil
	}
	if !c.full {
		c.full = true
		c.logger.Warn("connection limit reached; idle connections are closed for new ones", zap.Int("connections", c.limit))
	}
	oldest := c.waiting.Front()
	if oldest == nil {
		return nil
	}
	longest, _ := oldest.Value.(waitingConn)
	c.remove(longest.Conn)
	return longest.Conn
}

// remove removes conn and reports whether it was there. A connection that makeRoom returned
// is not, although its goroutine still reports states. The caller holds mu.
func (c *connections) remove(conn net.Conn) bool {
	element, known := c.open[conn]
	if element != nil {
		c.waiting.Remove(element)
	}
	delete(c.open, conn)
	return known
}

// hangUp closes conn without the TLS close message: a client that does not read could block
// the caller. The connection's own goroutine notices the end and reports it to net/http.
func hangUp(conn net.Conn) {
	if wrapped, ok := conn.(*tls.Conn); ok {
		conn = wrapped.NetConn()
	}
	_ = conn.Close() // an error means that it is closed already
}
