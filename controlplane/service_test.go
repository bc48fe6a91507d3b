package controlplane_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func TestReadiness(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	core, logged := observer.New(zap.WarnLevel)
	h := startOn(t, storagetest.Open(t, storage.Config{URL: server.URL}), func(c *controlplane.Config) { c.Logger = zap.New(core) })
	ok[any](t, h.call(t, "GET", "/healthz", ""), 200)
	ok[any](t, h.call(t, "GET", "/readyz", ""), 200)
	server.Stop(t)
	a := h.call(t, "GET", "/readyz", "")
	a.refused(t, 503, api.CodeStoreUnavailable)
	if logged.FilterField(zap.String("path", "/readyz")).Len() != 1 {
		t.Error("the log does not say why the replica is not ready")
	}
	if a.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After, want one")
	}
	h.call(t, "GET", h.fn(""), "").refused(t, 503, api.CodeStoreUnavailable)
	ok[any](t, h.call(t, "GET", "/healthz", ""), 200)
	server.Start(t)
	ok[any](t, h.call(t, "GET", "/readyz", ""), 200)
	h.control.Drain()
	h.control.Drain()
	before := logged.Len()
	h.call(t, "GET", "/readyz", "").refused(t, 503, api.CodeShuttingDown)
	if logged.Len() != before {
		t.Errorf("got log lines %v of a shutdown that was asked for, want none", logged.All()[before:])
	}
	ok[any](t, h.call(t, "GET", "/healthz", ""), 200)
}

func TestPanicsAreAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.ErrorLevel)
	h := start(t, func(c *controlplane.Config) { c.Logger = zap.New(core) })
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) { panic("secret text") }
	for _, a := range []answer{
		h.call(t, "GET", h.web("/"), ""),
		h.call(t, "POST", h.fn(":invoke"), `{"ref":{"version":1}}`),
	} {
		p := a.refused(t, 500, api.CodeInternal)
		if strings.Contains(string(a.body), "secret") {
			t.Errorf("got answer %s, want nothing of the internal error in it", a.body)
		}
		found := logged.FilterMessage("panic").FilterField(zap.String("request_id", p.RequestID)).Len()
		if found != 1 {
			t.Errorf("got %d log entries for request %s, want 1", found, p.RequestID)
		}
	}
}

func TestRequestsAreLoggedAtDebugLevel(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.DebugLevel)
	h := start(t, func(c *controlplane.Config) { c.Logger = zap.New(core) })
	a := h.call(t, "GET", h.web("/x"), "", "X-Request-Id", "theirs")
	entries := logged.FilterMessage("request").FilterField(zap.String("client_request_id", "theirs")).All()
	if len(entries) != 1 {
		t.Fatalf("got %d log entries, want 1", len(entries))
	}
	fields := entries[0].ContextMap()
	if fields["request_id"] != a.header.Get("X-Request-Id") || fields["request_id"] == "theirs" || fields["status"] != int64(200) || fields["bytes"] != int64(11) {
		t.Errorf("got log fields %v, want request_id %s, status 200 and bytes 11", fields, a.header.Get("X-Request-Id"))
	}
}

// TestBodiesOverTheLimitAreReadOn sends far more than the limit and only then
// reads: without reading on, the client would see a reset connection.
func TestBodiesOverTheLimitAreReadOn(t *testing.T) {
	t.Parallel()
	h := start(t)
	const size = 16 << 20
	for name, head := range map[string]string{
		"announced": fmt.Sprintf("Content-Length: %d\r\n\r\n", size),
		"chunked":   fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", size),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.Listener.Addr().String())
			if err != nil {
				t.Fatalf("DialContext: %v", err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "POST "+h.web("/")+" HTTP/1.1\r\nHost: localhost\r\n"+head); err != nil {
				t.Fatalf("WriteString: %v", err)
			}
			if _, err := io.CopyN(conn, zeroes{}, size); err != nil {
				t.Fatalf("the server hung up: %v", err)
			}
			if _, err := io.WriteString(conn, "\r\n0\r\n\r\n"); err != nil {
				t.Fatalf("WriteString: %v", err)
			}
			buf := make([]byte, 64)
			n, err := conn.Read(buf)
			if err != nil || !strings.HasPrefix(string(buf[:n]), "HTTP/1.1 413 ") {
				t.Errorf("Read: got %q and error %v, want an answer that begins with HTTP/1.1 413", buf[:n], err)
			}
		})
	}
}

// TestClientsThatAskFirstAreToldAtOnce covers Expect: 100-continue: nothing was
// sent yet, and nothing need be.
func TestClientsThatAskFirstAreToldAtOnce(t *testing.T) {
	t.Parallel()
	h := start(t)
	begin := time.Now()
	response := h.raw(t, "POST "+h.web("/")+" HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d, want status 413", response.StatusCode)
	}
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("the answer took %s, want at most 4s", took)
	}
}

func TestHeadIsAnsweredWhereGetIs(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t)
	for path, status := range map[string]int{"/healthz": 200, h.fn(""): 200, h.fn("") + "x": 404} {
		if a := h.call(t, "HEAD", path, ""); a.status != status || len(a.body) != 0 {
			t.Errorf("%s: HEAD: got %d, want status %v and an empty body", path, a.status, status)
		}
	}
}

func TestNewNeedsWhatItIsBuiltOf(t *testing.T) {
	t.Parallel()
	h := start(t)
	if _, err := controlplane.New(t.Context(), nil, h.engine, h.queue, controlplane.Config{}); err == nil {
		t.Error("built without a store")
	}
	if _, err := controlplane.New(t.Context(), h.store, nil, h.queue, controlplane.Config{}); err == nil {
		t.Error("built without an engine")
	}
	if _, err := controlplane.New(t.Context(), h.store, h.engine, nil, controlplane.Config{}); err == nil {
		t.Error("built without a queue")
	}
}

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
