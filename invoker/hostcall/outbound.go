package hostcall

import (
	"container/list"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// maxTransports bounds the tenants whose idle connections are kept.
const maxTransports = 64

// outbound is the part that fetch and WebSocket share: a transport for each tenant, places for
// exchanges in progress, and the count of bytes.
type outbound struct {
	transports *transports
	places     *places
	// traffic is called with the number of bytes of each read and write; nil counts none. Its
	// error ends the exchange, and the function sees its code and message.
	traffic func(tenant string, bytes int64) error
}

func newOutbound(transport func() *http.Transport) outbound {
	return outbound{transports: newTransports(transport), places: newPlaces()}
}

// client returns the client of an exchange of s. Its bytes are counted.
func (o *outbound) client(s *Scope, redirect func(*http.Request, []*http.Request) error) *http.Client {
	transport := &metered{o.transports.of(s.Tenant), func(n int64) error { return o.count(s, n) }}
	return &http.Client{Transport: transport, CheckRedirect: redirect}
}

// count counts bytes that the activation has sent or received. Errors: those of traffic.
func (o *outbound) count(s *Scope, n int64) error {
	s.traffic.Add(n)
	if o.traffic == nil {
		return nil
	}
	return o.traffic(s.Tenant, n)
}

// enter waits for a place for an exchange of s, which is free again when ctx has ended. Errors:
// ctx's.
func (o *outbound) enter(ctx context.Context, s *Scope) error {
	if err := o.places.take(ctx, s.Tenant); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { o.places.leave(s.Tenant) })
	return nil
}

// trafficBytes counts the bytes of an activation.
type trafficBytes struct{ atomic.Int64 }

// EgressBytes returns the bytes that the activation has sent and received so far by fetch and
// WebSocket. Egress counts bytes in both directions: heads, bodies and all frames, without the
// overhead of TLS.
func (s *Scope) EgressBytes() int64 { return s.traffic.Load() }

// transports keeps one transport for each tenant, so that no tenant uses, fills or spoils the
// connections of another. Beyond maxTransports the one that was used least recently is given
// up: its idle connections are closed, its others when their exchanges end.
type transports struct {
	transport func() *http.Transport

	mu     sync.Mutex
	known  map[string]*list.Element
	recent list.List // of *tenantTransport, the most recently used first
}

type tenantTransport struct {
	tenant    string
	transport *http.Transport
}

func newTransports(transport func() *http.Transport) *transports {
	return &transports{transport: transport, known: map[string]*list.Element{}}
}

// of returns the transport of a tenant.
func (t *transports) of(tenant string) *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.known[tenant]; at != nil {
		t.recent.MoveToFront(at)
		return at.Value.(*tenantTransport).transport
	}
	if t.recent.Len() >= maxTransports {
		last := t.recent.Remove(t.recent.Back()).(*tenantTransport)
		delete(t.known, last.tenant)
		go last.transport.CloseIdleConnections()
	}
	one := &tenantTransport{tenant, t.transport()}
	t.known[tenant] = t.recent.PushFront(one)
	return one.transport
}

// metered counts the bytes of the requests and the responses of an activation.
type metered struct {
	http.RoundTripper

	count func(n int64) error
}

// RoundTrip implements http.RoundTripper. The body of a request is in memory and is sent as a
// whole, so it is counted before.
func (m *metered) RoundTrip(req *http.Request) (*http.Response, error) {
	size := headBytes(req.Header) + int64(len(req.Method)+len(req.URL.RequestURI())+len(req.URL.Host)) + max(req.ContentLength, 0)
	if err := m.count(size); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // it is in memory
		}
		return nil, err
	}
	resp, err := m.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := m.count(headBytes(resp.Header) + int64(len(resp.Status))); err != nil {
		_ = resp.Body.Close() // it is given up
		return nil, err
	}
	body := meteredBody{resp.Body, m.count}
	conn, switched := resp.Body.(io.ReadWriteCloser) // after StatusSwitchingProtocols
	if switched {
		resp.Body = &meteredConn{body, conn}
	} else {
		resp.Body = &body
	}
	return resp, nil
}

// headBytes returns the size of the lines of a header.
func headBytes(header http.Header) (n int64) {
	for name, values := range header {
		for _, value := range values {
			n += int64(len(name) + len(value) + 4)
		}
	}
	return n
}

// meteredBody counts the bytes that are read of a body.
type meteredBody struct {
	io.ReadCloser

	count func(n int64) error
}

// Read implements io.Reader.
func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if refused := b.count(int64(n)); refused != nil {
			return n, refused
		}
	}
	return n, err
}

// meteredConn also counts the bytes that are written to a connection.
type meteredConn struct {
	meteredBody

	writer io.Writer
}

// Write implements io.Writer.
func (c *meteredConn) Write(p []byte) (int, error) {
	if err := c.count(int64(len(p))); err != nil {
		return 0, err
	}
	return c.writer.Write(p)
}
