package cadenceworker

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/yarpc/api/transport"
	"go.uber.org/yarpc/transport/grpc"
	"go.uber.org/yarpc/yarpcerrors"
)

// renewAfter is how long calls must fail because the server is unavailable before a link
// replaces its connection. gRPC waits longer after each failed attempt to connect, up to two
// minutes; a new connection starts with short waits.
const renewAfter = 5 * time.Second

// link is an outbound over one gRPC connection. It replaces the connection when the server
// has been unavailable for renewAfter, and can wait until all calls have returned. After an outage:
//
//	0 s  a call is refused as unavailable     downSince = 0 s
//	2 s  another one                          unchanged
//	6 s  another one, renewAfter has passed   a new connection, downSince = 6 s
//	8 s  the server is back, a call succeeds  downSince is zero
//
// Calls on the old connection fail; their callers repeat them.
type link struct {
	addr string

	mu        sync.Mutex
	current   *connection // nil before Start and after Stop
	downSince time.Time   // of the first call that failed, or of the last replacement; zero: the server answers
	calls     int         // not returned yet
	idle      chan struct{}
}

// connection is the part of a link that is replaced.
type connection struct {
	transport *grpc.Transport
	outbound  *grpc.Outbound
}

func connect(addr string) (*connection, error) {
	t := grpc.NewTransport()
	c := &connection{transport: t, outbound: t.NewSingleOutbound(addr)}
	return c, errors.Join(t.Start(), c.outbound.Start())
}

func (c *connection) stop() error { return errors.Join(c.outbound.Stop(), c.transport.Stop()) }

// Call sends a request and records whether it reached the server.
func (l *link) Call(ctx context.Context, request *transport.Request) (*transport.Response, error) {
	c, err := l.begin()
	if err != nil {
		return nil, err
	}
	defer l.end()
	response, err := c.outbound.Call(ctx, request)
	if renewErr := l.note(c, err, time.Now()); renewErr != nil {
		err = errors.Join(err, renewErr)
	}
	return response, err
}

func (l *link) begin() (*connection, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return nil, yarpcerrors.UnavailableErrorf("the connection to Cadence is closed")
	}
	if l.calls == 0 {
		l.idle = make(chan struct{})
	}
	l.calls++
	return l.current, nil
}

func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls--
	if l.calls == 0 {
		close(l.idle)
	}
}

// note records the outcome err of a call on c at the time now. If the server was unavailable,
// and has been since a call at least renewAfter ago, note replaces c and returns the errors of
// the replacement. Any other answer of the server, also an error, ends the outage. Ignored are
// calls that timed out or were cancelled, and those on a connection that was replaced.
func (l *link) note(c *connection, err error, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case c != l.current || yarpcerrors.IsDeadlineExceeded(err) || yarpcerrors.IsCancelled(err):
		return nil
	case !yarpcerrors.IsUnavailable(err):
		l.downSince = time.Time{}
		return nil
	case l.downSince.IsZero():
		l.downSince = now
		return nil
	case now.Sub(l.downSince) < renewAfter:
		return nil
	}
	l.downSince = now
	// Under the lock: neither connect nor stop waits for the network.
	fresh, err := connect(l.addr)
	if err != nil {
		return err
	}
	l.current = fresh
	return c.stop()
}

// drain waits until all calls have returned, or ctx ends.
func (l *link) drain(ctx context.Context) error {
	l.mu.Lock()
	idle, calls := l.idle, l.calls
	l.mu.Unlock()
	if calls == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Start implements transport.Lifecycle.
func (l *link) Start() error {
	c, err := connect(l.addr)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = c
	return nil
}

// Stop implements transport.Lifecycle. Unfinished calls fail.
func (l *link) Stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return nil
	}
	c := l.current
	l.current = nil
	return c.stop()
}

// IsRunning implements transport.Lifecycle.
func (l *link) IsRunning() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current != nil
}

// Transports implements transport.Outbound. A link starts and stops its own transport.
func (l *link) Transports() []transport.Transport { return nil }
