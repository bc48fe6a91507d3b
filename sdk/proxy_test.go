package sdk

import (
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage/storagetest"
)

// TestFallback checks that a worker uses requests behind a proxy that speaks HTTP/1.1 only, and opens a
// stream once the proxy lets it.
func TestFallback(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			l.dir(t)
			config := platformtest.Config{Store: storagetest.Redis(t).URL}
			s := &site{t: t, language: l, transport: "stream", config: config, server: config.Serve(t)}
			proxy := newProxy(t, s.server.URL)
			w := l.start(t, proxy.url, "", "stream")
			for _, id := range s.enqueue(orders(20, "echo", 1)...) {
				s.await(id, api.JobCompleted)
			}
			w.await(t, "the worker reports that there is no stream", 1, func(e event) bool {
				return e.Event == "warning" && strings.Contains(e.Text, "a stream could not be opened, so calls use requests for now")
			})
			if got := w.count(named("connected")); got != 0 {
				t.Errorf("streams through the proxy: got %d, want 0", got)
			}
			proxy.pass.Store(true)
			w.await(t, "the worker opens a stream", 1, named("connected"))
			for _, id := range s.enqueue(orders(20, "echo", 1)...) {
				s.await(id, api.JobCompleted)
			}
		})
	}
}

// proxy speaks HTTP/1.1 with its clients, until it passes their connections on as they are.
type proxy struct {
	net.Listener
	url  string
	to   string // the address of the server
	pass atomic.Bool
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	at, err := url.Parse(server)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	p := &proxy{Listener: listener, url: "http://" + listener.Addr().String(), to: at.Host}
	serve := &http.Server{Handler: httputil.NewSingleHostReverseProxy(at)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = serve.Serve(p) // until it is closed
	}()
	t.Cleanup(func() {
		if err := serve.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		<-done
	})
	return p
}

// Accept returns the connections whose requests are served, and passes on the others.
func (p *proxy) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil || !p.pass.Load() {
			return c, err
		}
		go p.forward(c)
	}
}

// forward passes bytes on until one side has ended.
func (p *proxy) forward(c net.Conn) {
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		_ = c.Close() // the client sees it
		return
	}
	var both sync.WaitGroup
	for _, ends := range [][2]net.Conn{{c, server}, {server, c}} {
		both.Go(func() {
			_, _ = io.Copy(ends[0], ends[1]) // the end of a connection ends the other one
			_, _ = c.Close(), server.Close()
		})
	}
	both.Wait()
}
