package platformtest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/cmd/sous/platformtest"
)

// pollInterval is how often the balancer asks each replica whether it is ready.
const pollInterval = 100 * time.Millisecond

// balancer stands before replicas as the proxy of deploy/Caddyfile does: it sends
// to those whose /readyz answers 200, keeps connections, and tries another
// replica only where not a byte of the request has left.
type balancer struct {
	*httptest.Server
	replicas []*replica
	next     atomic.Uint64

	mu   sync.Mutex
	cuts []interrupted
}

// replica is a server as the balancer sees it.
type replica struct {
	address   string
	ready     atomic.Bool
	transport *http.Transport
}

// interrupted is a request that was sent and not answered.
type interrupted struct {
	replica *replica
	sent    time.Time
	key     string // its Idempotency-Key
	cause   error
}

// balance starts a balancer before the servers at addresses.
func balance(t *testing.T, addresses ...string) *balancer {
	t.Helper()
	b := &balancer{}
	ctx, cancel := context.WithCancel(t.Context())
	var polls sync.WaitGroup
	for _, address := range addresses {
		r := &replica{address: address, transport: &http.Transport{
			MaxIdleConnsPerHost: 64,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return &meteredConn{Conn: conn}, nil
			},
		}}
		b.replicas = append(b.replicas, r)
		polls.Go(func() { r.poll(ctx) })
	}
	b.Server = httptest.NewServer(b)
	t.Cleanup(func() {
		b.Server.Close()
		cancel()
		polls.Wait()
		for _, r := range b.replicas {
			r.transport.CloseIdleConnections()
		}
	})
	platformtest.Eventually(t, 10*time.Second, "the balancer sees the replicas", b.allReady)
	return b
}

// poll asks on connections of its own, as health checks do.
func (r *replica) poll(ctx context.Context) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		response, err := client.Get("http://" + r.address + "/readyz")
		if err == nil {
			response.Body.Close()
		}
		r.ready.Store(err == nil && response.StatusCode == http.StatusOK)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *balancer) allReady() error {
	for _, r := range b.replicas {
		if !r.ready.Load() {
			return errors.New(r.address + " is not ready")
		}
	}
	return nil
}

// meteredConn counts what was written.
type meteredConn struct {
	net.Conn
	written atomic.Int64
}

func (c *meteredConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// attempts watches which connections a request was given, and what left on them.
type attempts struct {
	mu    sync.Mutex
	conns []*meteredConn
	start []int64
}

func (a *attempts) got(info httptrace.GotConnInfo) {
	conn := info.Conn.(*meteredConn)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns, a.start = append(a.conns, conn), append(a.start, conn.written.Load())
}

// sent is on how many connections bytes of the request have left.
func (a *attempts) sent() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, conn := range a.conns {
		if conn.written.Load() > a.start[i] {
			n++
		}
	}
	return n
}

var errNoReplica = errors.New("no replica is ready")

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	tried := make(map[*replica]bool)
	err = errNoReplica
	for range b.replicas {
		to := b.pick(tried)
		if to == nil {
			break
		}
		tried[to] = true
		var watch attempts
		var response *http.Response
		begin := time.Now()
		response, err = to.send(r, body, &watch)
		sent := watch.sent()
		if err == nil && sent == 1 {
			err = pass(w, response)
			if err == nil {
				return
			}
		}
		if sent > 0 { // another try could do the work twice
			if err == nil {
				err = errors.New("net/http sent it twice")
			}
			b.mu.Lock()
			b.cuts = append(b.cuts, interrupted{replica: to, sent: begin, key: r.Header.Get("Idempotency-Key"), cause: err})
			b.mu.Unlock()
			break
		}
	}
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// pick returns the next ready replica that was not tried.
func (b *balancer) pick(tried map[*replica]bool) *replica {
	at := b.next.Add(1)
	for i := range uint64(len(b.replicas)) {
		if r := b.replicas[(at+i)%uint64(len(b.replicas))]; r.ready.Load() && !tried[r] {
			return r
		}
	}
	return nil
}

func (r *replica) send(in *http.Request, body []byte, watch *attempts) (*http.Response, error) {
	// Not bound to the client's patience: what was sent is awaited.
	ctx := httptrace.WithClientTrace(context.WithoutCancel(in.Context()), &httptrace.ClientTrace{GotConn: watch.got})
	out, err := http.NewRequestWithContext(ctx, in.Method, "http://"+r.address+in.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.Header = in.Header.Clone()
	out.Host = in.Host
	return r.transport.RoundTrip(out)
}

// pass sends the answer to the client, whole or not at all.
func pass(w http.ResponseWriter, response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	for name, values := range response.Header {
		if name != "Connection" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(body) // the client's own affair
	return nil
}

// cutOff returns the requests that were sent and not answered.
func (b *balancer) cutOff() []interrupted {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]interrupted(nil), b.cuts...)
}
