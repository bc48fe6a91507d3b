package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// The admin address answers operators, and no page that a browser shows them.
func TestAdminListen(t *testing.T) {
	t.Parallel()
	server := soustest.Start(t, "--admin-listen", "127.0.0.1:0")
	_, rest, found := strings.Cut(server.Output(), "answering operators")
	if !found {
		t.Fatalf("got no log line with the admin address, want one in\n%s", server.Output())
	}
	_, rest, _ = strings.Cut(rest, `"address": "`)
	addr, _, _ := strings.Cut(rest, `"`)
	for _, path := range []string{"/debug/pprof/cmdline", "/metrics"} {
		for host, want := range map[string]int{addr: http.StatusOK, "rebound.example": http.StatusForbidden} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
			if err != nil {
				t.Fatalf("http.NewRequestWithContext: %v", err)
			}
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatalf("Do: %v", err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close() // it has been read
			if err != nil || resp.StatusCode != want {
				t.Errorf("%s, host %s: %d %.100s %v, want %d", path, host, resp.StatusCode, body, err, want)
			}
		}
	}
}

// The files that silent connections to the admin address take are few.
func TestAdminConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	server := soustest.Start(t, "--admin-listen", "127.0.0.1:0")
	_, rest, _ := strings.Cut(server.Output(), `"address": "`)
	addr, _, _ := strings.Cut(rest, `"`)
	var first net.Conn
	for i := range adminConnections + 1 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatalf("net.Dial: %v", err)
		}
		defer conn.Close()
		if i == 0 {
			first = conn
		}
	}
	// A further one displaces it once it has waited for evictAfter.
	for end := time.Now().Add(adminReadTimeout / 2); ; {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatalf("net.Dial: %v", err)
		}
		defer conn.Close()
		_ = first.SetReadDeadline(time.Now().Add(evictAfter))
		_, err = first.Read(make([]byte, 1))
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the oldest connection after %s: got %v, want it closed", adminReadTimeout/2, err)
		}
	}
}

// Other machines may read the metrics if the admin address admits them, but never the
// profiles, which expose the server's memory.
func TestProfilesAreForThisMachine(t *testing.T) {
	t.Parallel()
	store := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())})
	broker, err := queue.New(t.Context(), store, queue.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(broker.Close)
	api, err := controlplane.New(t.Context(), store, noEngine{}, broker, controlplane.Config{Auth: access.Off})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(api.Close)
	registry, err := newRegistry()
	if err != nil {
		t.Fatalf("newRegistry: %v", err)
	}
	p := &platform{server: api, metrics: registry, logger: zap.NewNop()}
	const profile, scrape = "/debug/pprof/cmdline", "/metrics"
	for _, tc := range []struct {
		path, peer, host string
		local            bool
		want             int
	}{
		{profile, "127.0.0.1:40000", "localhost:9000", false, http.StatusOK},
		{profile, "[::1]:40000", "[::1]:9000", false, http.StatusOK},
		{profile, "[::ffff:127.0.0.1]:40000", "localhost", false, http.StatusOK},
		{profile, "127.0.0.1:40000", "rebound.example", false, http.StatusForbidden},
		{profile, "192.0.2.7:40000", "localhost:9000", false, http.StatusForbidden},
		{profile, "192.0.2.7:40000", "sous.example:9000", false, http.StatusForbidden},
		{profile, "nonsense", "localhost", false, http.StatusForbidden},
		{scrape, "192.0.2.7:40000", "sous.example:9000", false, http.StatusOK},
		{scrape, "127.0.0.1:40000", "localhost:9000", true, http.StatusOK},
		{scrape, "127.0.0.1:40000", "rebound.example", true, http.StatusForbidden},
		{"/", "127.0.0.1:40000", "localhost:9000", false, http.StatusNotFound},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.path, nil)
		r.RemoteAddr, r.Host = tc.peer, tc.host
		w := httptest.NewRecorder()
		p.adminHandler(tc.local).ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%s from %s for %s: %d, want %d", tc.path, tc.peer, tc.host, w.Code, tc.want)
		}
	}
}

// noEngine runs nothing.
type noEngine struct{ controlplane.Engine }
