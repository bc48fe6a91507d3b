package controlplane_test

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
)

// Under overload requests are refused with a time to retry after, before their bodies are read;
// probes are answered. Functions that run are no overload.
func TestOverloadIsRefused(t *testing.T) {
	t.Parallel()
	const most = 8
	h := start(t, func(c *controlplane.Config) { c.MaxWorking = most })
	begun, end := make(chan func(), 1), make(chan struct{})
	h.engine.invoke = func(_ context.Context, inv api.Invocation) (*api.Outcome, error) {
		begun <- inv.Started
		<-end
		return success(`{"ok":true}`), nil
	}
	path := "/v1/web/" + h.tenant + "/default/greet/prod"
	var calls sync.WaitGroup
	var started []func()
	for range most {
		calls.Go(func() { answered(t, h.call(t, "POST", path, "{}")) })
		started = append(started, <-begun)
	}
	for _, refused := range []answer{
		h.call(t, "POST", path, "{}"),
		h.call(t, "GET", "/v1/tenants/"+h.tenant+"/keys", ""),
	} {
		refused.refused(t, 503, api.CodeOverloaded)
		if refused.header.Get("Retry-After") == "" {
			t.Errorf("the answer %d has no Retry-After, want one", refused.status)
		}
	}
	answered(t, h.call(t, "GET", "/readyz", ""))
	h.call(t, "GET", "/v1/tenants/t_smaller/functions", "") // not refused: the tenant has no other request
	for _, start := range started {
		start()
	}
	calls.Go(func() { answered(t, h.call(t, "POST", path, "{}")) })
	<-begun
	close(end)
	calls.Wait()
}

// On the host of a function all paths are the function's, that of a probe too: they are admitted as
// its calls below /v1/web are, by its tenant.
func TestPathsOfProbesOnTheHostOfAFunctionAreAdmitted(t *testing.T) {
	t.Parallel()
	const most = 8
	h := start(t, withFunctionDomain, func(c *controlplane.Config) { c.MaxWorking = most })
	var calls atomic.Int64
	begun, end := make(chan struct{}, most), make(chan struct{})
	finish := sync.OnceFunc(func() { close(end) })
	t.Cleanup(finish)
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
		if calls.Add(1) <= most {
			begun <- struct{}{}
			<-end
		}
		return success(`{"ok":true}`), nil
	}
	var running sync.WaitGroup
	for range most {
		running.Go(func() { answered(t, h.call(t, "POST", "/healthz", "{}", "Host", h.host(""))) })
		<-begun
	}
	for _, path := range []string{"/healthz", "/readyz", "/"} {
		h.call(t, "POST", path, "{}", "Host", h.host("")).refused(t, 503, api.CodeOverloaded)
	}
	h.call(t, "POST", "/v1/web/"+h.tenant+"/payments/hello/prod", "{}").refused(t, 503, api.CodeOverloaded)
	answered(t, h.call(t, "GET", "/healthz", ""))
	h.call(t, "GET", "/v1/tenants/t_smaller/functions", "") // not refused: the tenant has no other request
	finish()
	running.Wait()
}

// The address in X-Forwarded-For is the client's only if a trusted proxy sent it.
func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		proxies []netip.Prefix
		want    string
	}{
		{nil, "127.0.0.1"},
		{[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, "127.0.0.1"},
		{[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "198.51.100.7"},
	} {
		h := start(t, func(c *controlplane.Config) { c.Proxies = tt.proxies })
		answered(t, h.call(t, "GET", "/v1/web/"+h.tenant+"/default/greet/prod", "", "X-Forwarded-For", "1.2.3.4, 198.51.100.7"))
		if event := string(h.engine.last(t).Event); !strings.Contains(event, `"sourceIp":"`+tt.want+`"`) {
			t.Errorf("with the proxies %v the event is %s, want the sourceIp %s", tt.proxies, event, tt.want)
		}
	}
}

// answered fails the test for an answer of another status than 200.
func answered(t *testing.T, a answer) {
	t.Helper()
	if a.status != 200 {
		t.Errorf("got status %d %s, want 200", a.status, a.body)
	}
}
