package hostcall

import (
	"sync"
	"sync/atomic"

	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// connection is a response or a socket that an activation holds open. Its ctx is one of the
// activation's, whose end closes it.
type connection interface{ close() }

// connections are those of one activation. The zero value has none.
type connections struct {
	mu   sync.Mutex
	open map[uint64]connection
}

// lastConnection numbers all connections of this process, so that a script that has kept a
// handle of an earlier activation reaches nothing with it.
var lastConnection atomic.Uint64

// add keeps c and returns its handle. Error: CodeHostInvalidArgument if there are
// network.MaxOpenConnections.
func (c *connections) add(one connection) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= network.MaxOpenConnections {
		return 0, invalid("more than %d responses and sockets are open: read or cancel the bodies, close the sockets", network.MaxOpenConnections)
	}
	if c.open == nil {
		c.open = map[uint64]connection{}
	}
	id := lastConnection.Add(1)
	c.open[id] = one
	return id, nil
}

// get returns the connection of a handle, nil if there is none.
func (c *connections) get(id uint64) connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[id]
}

// remove forgets a connection. The caller closes it.
func (c *connections) remove(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, id)
}
