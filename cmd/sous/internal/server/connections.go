package server

import (
	linked "container/list"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/controlplane/rest"
)

// How the descriptors of the process are shared out. A flood of connections must
// not take those that the store, the sandboxes and functions' fetch need.
const (
	// mostConnections bounds what is derived: a connection takes memory, too
	// (docs/configuration.md has the figure).
	mostConnections  = 32_768
	leastConnections = 64
	// Beside connections: the store's pool, the log, files that are read.
	reservedDescriptors = 256
	// For each sandbox: socket, stderr, pidfd, and one for what it fetches.
	descriptorsPerSandbox = 4
	defaultSandboxes      = 100 // sandbox-max where it is 0
)

// maxConnections is how many connections a server takes with s, under the limit
// of open files that Go has raised as far as it may.
func maxConnections(s settings) (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return deriveConnections(limit.Cur, s.SandboxMax, s.Network.MaxConnections)
}

// maxWaits is how many fetches of jobs may wait at once: half the connections stay
// for what does not wait.
func maxWaits(s settings) int {
	most, err := maxConnections(s)
	if err != nil {
		return rest.DefaultWaits // who serves has refused it
	}
	return min(rest.DefaultWaits, most/2)
}

// deriveConnections takes the reserve, and a quarter at least, off the limit. A
// configured number must fit too.
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

// connections bounds how many connections are open. Where there is no room for
// another one, the connection that has waited longest for a request (silent,
// between two requests, or still sending its header) makes room; where every one
// is being answered, the new one is closed, so that its client knows at once.
type connections struct {
	most   int
	logger *zap.Logger
	hungUp prometheus.Counter

	mu      sync.Mutex
	open    map[net.Conn]*linked.Element // of waiting; nil while a request is answered
	waiting linked.List                  // of net.Conn, the longest first
	full    bool                         // and the log has been told
}

func newConnections(most int, logger *zap.Logger) *connections {
	return &connections{most: most, logger: logger, hungUp: newHungUp(), open: make(map[net.Conn]*linked.Element)}
}

// track is an http.Server's ConnState. net/http says active once a request's
// header has arrived, and new or idle before that.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	var victim net.Conn
	c.mu.Lock()
	switch state {
	case http.StateNew:
		if victim = c.makeRoom(); victim == nil && len(c.open) >= c.most {
			victim = conn
			break
		}
		c.open[conn] = c.waiting.PushBack(conn)
	case http.StateActive:
		if c.remove(conn) {
			c.open[conn] = nil
		}
	case http.StateIdle:
		if c.remove(conn) {
			c.open[conn] = c.waiting.PushBack(conn)
		}
	case http.StateHijacked, http.StateClosed:
		c.remove(conn)
		if c.full && len(c.open) < c.most-c.most/10 {
			c.full = false
		}
	}
	c.mu.Unlock()
	if victim != nil {
		c.hungUp.Inc()
		hangUp(victim)
	}
}

// makeRoom gives the connection to close for a new one, and forgets it: nil if
// there is room, or none can be spared.
func (c *connections) makeRoom() net.Conn {
	if len(c.open) < c.most {
		return nil
	}
	if !c.full {
		c.full = true
		c.logger.Warn("as many connections are open as may be; those that wait longest are closed for new ones", zap.Int("connections", c.most))
	}
	oldest := c.waiting.Front()
	if oldest == nil {
		return nil
	}
	conn, _ := oldest.Value.(net.Conn)
	c.remove(conn)
	return conn
}

// remove forgets conn and says whether it was known: one that had to make room
// is not, whatever its goroutine still reports.
func (c *connections) remove(conn net.Conn) bool {
	place, known := c.open[conn]
	if place != nil {
		c.waiting.Remove(place)
	}
	delete(c.open, conn)
	return known
}

// hangUp closes conn without a TLS farewell, for which a deaf client could make
// the caller wait. Its own goroutine sees the end and reports it to net/http.
func hangUp(conn net.Conn) {
	if wrapped, ok := conn.(*tls.Conn); ok {
		conn = wrapped.NetConn()
	}
	_ = conn.Close() // gone already, at worst
}
