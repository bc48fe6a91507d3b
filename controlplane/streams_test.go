package controlplane_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestConnectionsHaveFewStreams: one HTTP/2 connection sends no more requests at the same time
// than the server allows, whose bodies it must hold.
func TestConnectionsHaveFewStreams(t *testing.T) {
	t.Parallel()
	const allowed, sent = 64, 100
	var mu sync.Mutex
	running := map[string]int{} // by connection
	var all sync.WaitGroup      // until all requests run, on as many connections as they need
	all.Add(sent)
	release := make(chan struct{})
	server := httptest.NewUnstartedServer(nil)
	server.Config = start(t).control.HTTPServer("")
	server.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		running[r.RemoteAddr]++
		mu.Unlock()
		all.Done()
		<-release
	})
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	var requests sync.WaitGroup
	for range sent {
		requests.Go(func() {
			res, err := server.Client().Post(server.URL, "text/plain", strings.NewReader("x"))
			if err != nil {
				t.Errorf("Post: %v", err)
				return
			}
			_ = res.Body.Close() // it is empty
		})
	}
	all.Wait()
	close(release)
	requests.Wait()
	for connection, n := range running {
		if n > allowed {
			t.Errorf("%d requests ran on the connection of %s, want at most %d", n, connection, allowed)
		}
	}
}
