package server

import (
	linked "container/list"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/controlplane/admission"
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
// at the same time. Half of the connections are kept for other requests, or a quarter where the
// operator sets the number.
func maxWaits(s settings) int {
	most, err := maxConnections(s)
	if err != nil {
		return admission.DefaultWaits // newListenConfig has refused these settings
	}
	if s.Network.MaxWaiting > 0 {
		return min(s.Network.MaxWaiting, most*3/4)
	}
	return min(admission.DefaultWaits, most/2)
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

// heavyParts: an address with a sixteenth of the limit has many connections. No other waits for its
// new ones, and its own make room for connections of an address that has few: waiting ones
// immediately, and bodies after evictAfter.
const heavyParts = 16

// waitingScan bounds the waiting connections that a new one of an address with few examines.
const waitingScan = 64

// The shares of a limit of connections. One address may have three quarters, so that it
// leaves room for the others. One connection of 16 is kept for probes and the API: it is only
// accepted when no other is left.
const (
	addressParts = 4
	reserveParts = 16
)

// connections bounds the number of open connections. Above the limit, or above the share of its
// address, a new connection replaces another one: first one whose body arrives slowly, then
// the one that has waited longest for a request, which is idle between two requests, has sent
// nothing, or is still sending a header. If there is none, the new one takes a place of the
// reserve, where only probes and the API are answered, or is closed, so that its client can go
// elsewhere immediately. If the one that waits longest has not waited for evictAfter, no
// connection is accepted until it has: the kernel keeps the new ones. A server thus accepts at
// most limit / evictAfter connections a second at its limit, such as 327,680 of the largest
// default limit. All clients wait then, so a new connection of an address that has many is closed
// instead while others have some: it would otherwise delay theirs by evictAfter each. It replaces
// waiting connections of its own address only. A new one of an address that has few replaces a
// young one of an address that has many, and waits only if there is none.
//
// Clients that open connections and send nothing (a Slowloris attack) therefore displace each
// other and idle connections, and not those that are answered. An HTTP/2 connection counts
// once, however many requests it has, and its bodies are slow only if it has no other requests.
//
// Invariants under mu: len(open) is at most limit; waiting has one element for each open
// connection without a request, and so has the list of its peer; bodies has one for each
// connection whose body is read.
type connections struct {
	limit   int // of open connections, above 0
	reserve int // of these, for probes and the API
	share   int // of one address
	proxies admission.Addresses
	logger  *zap.Logger
	hungUp  prometheus.Counter

	mu      sync.Mutex
	fresh   map[net.Conn]*openConn // known to context, and not yet to track
	open    map[net.Conn]*openConn
	kept    int // of open, those of the reserve
	peers   map[netip.Addr]*peer
	waiting linked.List // of *openConn, the longest waiting first
	bodies  linked.List // of *openConn, the longest measured first
	full    bool        // the limit was reached and logged; reset below 90% of it
	crowded netip.Addr  // the address whose share was reached and logged last
}

// openConn is an open connection. The mutex of connections guards it, except reserved, which is
// set before its first request. It implements rest.Connection.
type openConn struct {
	net.Conn
	all      *connections
	peer     *peer // nil for a proxy, whose connections are those of many clients
	reserved bool
	since    time.Time       // of its opening, or of the end of its last request
	waits    *linked.Element // of waiting; nil while a request is answered
	waitsFor *linked.Element // of the list of its peer
	body     *linked.Element // of bodies; nil while none arrives
	arriving int32           // bodies; more than 1 on HTTP/2 only
	begun    time.Time       // when they were measured first
	bytes    int64           // that have arrived since

	requests atomic.Int32 // in progress
}

// peer is an address with open connections.
type peer struct {
	address netip.Addr
	open    int
	waiting linked.List // of *openConn, the longest waiting first
}

// newConnections returns a limit of connections. proxies may have as many as they like, since
// each of theirs serves many clients.
func newConnections(limit int, proxies admission.Addresses, logger *zap.Logger) *connections {
	return &connections{
		limit: limit, reserve: limit / reserveParts, share: max(1, limit-limit/addressParts), proxies: proxies, logger: logger, hungUp: newHungUp(),
		fresh: make(map[net.Conn]*openConn), open: make(map[net.Conn]*openConn), peers: make(map[netip.Addr]*peer),
	}
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
		victim = c.add(conn)
	case http.StateActive:
		if o := c.open[conn]; o != nil {
			c.stopWaiting(o)
		}
	case http.StateIdle:
		if o := c.open[conn]; o != nil {
			c.endBodies(o) // of a handler that did not read it
			c.stopWaiting(o)
			c.wait(o)
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

// add adds a new connection and returns the one to close for it, which may be itself, or nil. It
// releases mu while it waits. The caller holds mu.
func (c *connections) add(conn net.Conn) (victim net.Conn) {
	address, proxied := c.addressOf(conn)
	for {
		old, wait := c.makeRoom(address, proxied)
		if wait > 0 && !proxied && c.yields(c.peers[address]) {
			delete(c.fresh, conn)
			return conn
		}
		if wait > 0 {
			c.mu.Unlock()
			time.Sleep(wait)
			c.mu.Lock()
			continue
		}
		if old != nil {
			victim = old.Conn
			c.remove(old.Conn)
		}
		break
	}
	o := c.fresh[conn]
	delete(c.fresh, conn)
	if o == nil {
		o = &openConn{Conn: conn, all: c}
	}
	if len(c.open) >= c.limit || !proxied && c.peers[address] != nil && c.peers[address].open >= c.share {
		return conn
	}
	if c.ordinary() >= c.limit-c.reserve {
		o.reserved = true
		c.kept++
	}
	if !proxied {
		o.peer = c.peers[address]
		if o.peer == nil {
			o.peer = &peer{address: address}
			c.peers[address] = o.peer
		}
		o.peer.open++
	}
	c.open[conn] = o
	c.wait(o)
	return victim
}

// ordinary returns the number of open connections outside of the reserve. The caller holds mu.
func (c *connections) ordinary() int { return len(c.open) - c.kept }

// addressOf returns the address that is answerable for conn, and true for that of a proxy.
func (c *connections) addressOf(conn net.Conn) (address netip.Addr, proxied bool) {
	remote := conn.RemoteAddr()
	if remote == nil {
		return netip.IPv4Unspecified(), false
	}
	if tcp, ok := remote.(*net.TCPAddr); ok {
		address = tcp.AddrPort().Addr().Unmap()
		return admission.Answerable(address), c.proxies.Trusts(address)
	}
	return admission.AddressOf(remote.String()), false
}

// makeRoom returns the connection that a new one of address replaces, nil for none, or the time
// after which to look again. The caller holds mu.
func (c *connections) makeRoom(address netip.Addr, proxied bool) (victim *openConn, wait time.Duration) {
	list, p := &c.waiting, c.peers[address]
	light := !proxied && !c.isHeavy(p)
	switch {
	case !proxied && p != nil && p.open >= c.share:
		c.logCrowded(p)
		list = &p.waiting
		if slow := c.slowBody(p, false); slow != nil {
			return slow, 0
		}
	case c.ordinary() >= c.limit-c.reserve:
		c.logFull()
		if slow := c.slowBody(nil, light); slow != nil {
			return slow, 0
		}
		if !proxied && c.yields(p) {
			list = &p.waiting // it replaces none of others, whose requests may just arrive
			if list.Len() == 0 && c.waiting.Len() > 0 {
				return nil, evictAfter
			}
		}
	default:
		return nil, 0
	}
	oldest := list.Front()
	if oldest == nil {
		if light {
			return nil, c.untilSlow()
		}
		return nil, 0
	}
	longest, _ := oldest.Value.(*openConn)
	wait = evictAfter - time.Since(longest.since)
	if wait <= 0 {
		return longest, 0
	}
	if list == &c.waiting && light {
		if young := c.waitingOfHeavy(); young != nil {
			return young, 0
		}
	}
	return nil, wait
}

// untilSlow returns the time until a body of an address with many makes room for a connection of one
// with few, 0 if there is none among the longest measured. The caller holds mu.
func (c *connections) untilSlow() time.Duration {
	next := c.bodies.Front()
	for n := 0; next != nil && n < slowBodyScan; n++ {
		o, _ := next.Value.(*openConn)
		if left := evictAfter - time.Since(o.begun); left > 0 && c.isHeavy(o.peer) {
			return left
		}
		next = next.Next()
	}
	return 0
}

// waitingOfHeavy returns the connection of an address with many that waits longest, nil for none
// among the first of the waiting ones. One of the reserve is none. The caller holds mu.
func (c *connections) waitingOfHeavy() *openConn {
	next := c.waiting.Front()
	for n := 0; next != nil && n < waitingScan; n++ {
		if o, _ := next.Value.(*openConn); c.isHeavy(o.peer) && !o.reserved {
			return o
		}
		next = next.Next()
	}
	return nil
}

// isHeavy reports whether an address has many connections. The caller holds mu.
func (c *connections) isHeavy(p *peer) bool {
	return p != nil && p.open >= max(2, c.limit/heavyParts)
}

// yields reports whether the new connections of an address that has many make room for those of
// others. The caller holds mu.
func (c *connections) yields(p *peer) bool { return len(c.peers) > 1 && c.isHeavy(p) }

func (c *connections) logFull() {
	if !c.full {
		c.full = true
		c.logger.Warn("connection limit reached; slow and idle connections are closed for new ones", zap.Int("connections", c.limit))
	}
}

func (c *connections) logCrowded(p *peer) {
	if c.crowded != p.address {
		c.crowded = p.address
		c.logger.Warn("connection limit reached by one address; its slow and idle connections are closed for new ones (if it is a proxy, name it in trusted-proxies)",
			zap.Stringer("address", p.address), zap.Int("connections", c.share))
	}
}

// wait marks o as one without a request. The caller holds mu.
func (c *connections) wait(o *openConn) {
	o.since = time.Now()
	o.waits = c.waiting.PushBack(o)
	if o.peer != nil {
		o.waitsFor = o.peer.waiting.PushBack(o)
	}
}

// stopWaiting undoes wait. The caller holds mu.
func (c *connections) stopWaiting(o *openConn) {
	if o.waits == nil {
		return
	}
	c.waiting.Remove(o.waits)
	if o.peer != nil {
		o.peer.waiting.Remove(o.waitsFor)
	}
	o.waits, o.waitsFor = nil, nil
}

// remove removes conn. It does nothing for one that was replaced, although its goroutine still
// reports states. The caller holds mu.
func (c *connections) remove(conn net.Conn) {
	o := c.open[conn]
	if o == nil {
		return
	}
	c.stopWaiting(o)
	c.endBodies(o)
	if o.peer != nil {
		o.peer.open--
		if o.peer.open == 0 {
			delete(c.peers, o.peer.address)
		}
	}
	if o.reserved {
		c.kept--
	}
	delete(c.open, conn)
}

// context is the http.Server's ConnContext, which is called before track: requests report
// their bodies to the connection.
func (c *connections) context(ctx context.Context, conn net.Conn) context.Context {
	o := &openConn{Conn: conn, all: c}
	c.mu.Lock()
	c.fresh[conn] = o
	c.mu.Unlock()
	return rest.WithConnection(ctx, o)
}

// Reserved implements rest.Connection.
func (o *openConn) Reserved() bool { return o.reserved }

// hangUp closes conn without the TLS close message: a client that does not read could block
// the caller. The connection's own goroutine notices the end and reports it to net/http.
func hangUp(conn net.Conn) {
	if wrapped, ok := conn.(*tls.Conn); ok {
		conn = wrapped.NetConn()
	}
	_ = conn.Close() // an error means that it is closed already
}
