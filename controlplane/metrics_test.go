package controlplane_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func exportedTo(reg *prometheus.Registry) func(*controlplane.Config) {
	return func(c *controlplane.Config) { c.Metrics = reg }
}

// Requests are counted under the router's patterns: nothing that a client makes up
// becomes a label value.
func TestRequestsAreCountedByRoute(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	h := start(t, exportedTo(reg))
	h.create(t)
	h.engine.invoke = func(_ context.Context, inv api.Invocation) (*api.Outcome, error) {
		switch {
		case strings.Contains(string(inv.Event), "odd"):
			return success(`{"statusCode":299,"body":""}`), nil
		case strings.Contains(string(inv.Event), "abort"):
			panic(http.ErrAbortHandler)
		}
		return success(`{"statusCode":200,"body":"hi"}`), nil
	}
	const functions = "/v1/tenants/{tenant}/namespaces/{namespace}/functions"
	for _, tc := range []struct {
		method, path       string
		route, label, code string
	}{
		{"GET", "/healthz", "/healthz", "GET", "200"},
		{"GET", h.fn(""), functions + "/{function}", "GET", "200"},
		{"HEAD", h.fn(""), functions + "/{function}", "HEAD", "200"},
		{"GET", h.fn("none"), functions + "/{function}", "GET", "404"},
		{"DELETE", "/healthz", "_other", "DELETE", "405"},
		{"GET", "/no/such/path", "_other", "GET", "404"},
		{"BREW", "/healthz", "_other", "_other", "405"},
		{"GET", h.web("/x"), "/v1/web", "GET", "200"},
		{"BREW", h.web("/x"), "/v1/web", "_other", "200"},
		{"GET", h.web("/odd"), "/v1/web", "GET", "_other"},
		{"GET", "/v1/web/malformed", "/v1/web", "GET", "404"},
	} {
		count := func() float64 {
			return metricstest.Value(t, reg, "sous_http_requests_total", "route="+tc.route, "method="+tc.label, "code="+tc.code)
		}
		timed := func() float64 {
			return metricstest.Value(t, reg, "sous_http_request_duration_seconds", "route="+tc.route)
		}
		all := func() float64 { return metricstest.Value(t, reg, "sous_http_requests_total") }
		before, timedBefore, allBefore := count(), timed(), all()
		h.call(t, tc.method, tc.path, "")
		h.counted(t, reg, allBefore+1)
		if count() != before+1 || timed() != timedBefore+1 {
			t.Errorf("%s %s: got %g requests and %g durations more, want 1 as %s %s %s", tc.method, tc.path, count()-before, timed()-timedBefore, tc.label, tc.route, tc.code)
		}
	}
	before := metricstest.Value(t, reg, "sous_http_requests_total")
	// A POST, since the client repeats requests that are safe to repeat.
	if _, err := h.client.Post(h.URL+h.web("/abort"), "text/plain", nil); err == nil {
		t.Error("the connection was not cut")
	}
	h.counted(t, reg, before+1)
	if got := metricstest.Value(t, reg, "sous_http_requests_total", "route=/v1/web", "code=0"); got != 1 {
		t.Errorf("got %g cut connections, want 1", got)
	}
	if got := metricstest.Value(t, reg, "sous_http_requests_in_flight"); got != 0 {
		t.Errorf("got %g requests in flight at the end, want 0", got)
	}
}

// counted waits until so many requests were counted: a client may have its answer a
// moment before.
func (h *harness) counted(t *testing.T, reg *prometheus.Registry, want float64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		got := metricstest.Value(t, reg, "sous_http_requests_total")
		flying := metricstest.Value(t, reg, "sous_http_requests_in_flight")
		if got == want && flying == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%g requests are counted, want %g; %g in flight", got, want, flying)
		}
	}
}

func TestAuthenticationsAreCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	server := storagetest.Redis(t)
	k := startKeyed(t, storagetest.Open(t, storage.Config{URL: server.URL}), exportedTo(reg))
	key, _ := k.key(t, api.RoleAdmin)
	unknown := k.lost(t)
	for _, text := range []string{"", "nonsense", key, unknown, unknown} {
		k.as(t, text, "GET", k.fn("none"), "")
	}
	for result, want := range map[string]float64{"missing": 1, "invalid": 3, "ok": 1, "off": 0, "unavailable": 0} {
		if got := metricstest.Value(t, reg, "sous_authentications_total", "result="+result); got != want {
			t.Errorf("%g with result %s, want %g", got, result, want)
		}
	}
	if got := metricstest.Value(t, reg, "sous_cache_requests_total", "cache=wrong_keys", "result=hit"); got != 1 {
		t.Errorf("got %g hits of the cache of wrong keys, want 1", got)
	}
	server.Stop(t)
	k.as(t, k.lost(t), "GET", k.fn("none"), "").refused(t, 503, api.CodeStoreUnavailable)
	if got := metricstest.Value(t, reg, "sous_authentications_total", "result=unavailable"); got != 1 {
		t.Errorf("got %g authentications with result unavailable, want 1", got)
	}
}

// What the server answers for is logged with the names that its path holds.
func TestFailuresAreLoggedWithTheirIDs(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	h := start(t, func(c *controlplane.Config) { c.Logger = zap.New(core) })
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
		return nil, api.Errorf(api.CodeStoreUnavailable, "down")
	}
	for _, a := range []answer{h.call(t, "GET", h.web("/"), ""), h.call(t, "POST", h.fn(":invoke"), `{"ref":{"version":1}}`)} {
		p := a.refused(t, 503, api.CodeStoreUnavailable)
		lines := logged.FilterField(zap.String("request_id", p.RequestID)).All()
		if len(lines) != 1 {
			t.Fatalf("got %d log lines, want 1", len(lines))
		}
		fields := lines[0].ContextMap()
		for _, name := range []string{"tenant", "namespace", "function"} {
			if value, _ := fields[name].(string); value == "" || !strings.Contains(h.web(""), "/"+value) {
				t.Errorf("got %s %q in a log line, want the name in the path %s", name, value, h.web(""))
			}
		}
	}
}
