package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
)

// A request's span has its route's name, is below the client's, and above what the
// engine makes; it tells nothing that a client wrote.
func TestRequestsAreTraced(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	h := start(t, func(c *controlplane.Config) {
		c.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	})
	var under trace.SpanContext
	var fail error
	h.engine.invoke = func(ctx context.Context, _ api.Invocation) (*api.Outcome, error) {
		under = trace.SpanContextFromContext(ctx)
		return success(`{"statusCode":201}`), fail
	}
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ask := func(method, path string) sdktrace.ReadOnlySpan {
		t.Helper()
		before := len(recorder.Ended())
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, nil)
		r.Header.Set("Traceparent", parent)
		r.Header.Set("Authorization", "Bearer s3cret")
		h.control.Handler().ServeHTTP(httptest.NewRecorder(), r)
		if ended := recorder.Ended()[before:]; len(ended) == 1 {
			return ended[0]
		}
		return nil
	}
	for _, c := range []struct {
		method, path string
		fail         error
		name, status string
		failed       bool
	}{
		{"GET", h.web("/private/s3cret?token=s3cret"), nil, "GET /v1/web", "201", false},
		{"PROPFIND", h.web("/s3cret"), nil, "HTTP /v1/web", "201", false},
		{"GET", h.web("/"), errors.New("s3cret"), "GET /v1/web", "500", true},
		{"GET", "/v1/tenants/" + h.tenant + "/activations/s3cret", nil, "GET /v1/tenants/{tenant}/activations/{activation_id}", "400", false},
		{"GET", "/s3cret", nil, "GET", "404", false},
	} {
		fail, under = c.fail, trace.SpanContext{}
		span := ask(c.method, c.path)
		if span == nil {
			t.Errorf("%s %s has no span, want a span", c.method, c.path)
			continue
		}
		told := fmt.Sprint(span.Attributes(), span.Name(), span.Status(), span.Events())
		if span.Name() != c.name || !strings.Contains(told, c.status) || (span.Status().Code == codes.Error) != c.failed || span.SpanKind() != trace.SpanKindServer {
			t.Errorf("%s %s: %s, want %s %s", c.method, c.path, told, c.name, c.status)
		}
		if strings.Contains(told, "s3cret") || strings.Contains(told, h.tenant) {
			t.Errorf("%s %s: got span %s, want nothing in it that the client wrote", c.method, c.path, told)
		}
		if got := span.Parent().SpanID().String(); got != parent[36:52] || !span.Parent().IsRemote() {
			t.Errorf("got parent span %s, want %s, and the parent to be remote", got, parent[36:52])
		}
		if strings.HasPrefix(c.path, "/v1/web") && !under.Equal(span.SpanContext()) {
			t.Errorf("span of the engine's caller: got %v, want %v", under, span.SpanContext())
		}
	}
	if !strings.Contains(string(h.engine.last(t).Event), parent) {
		t.Errorf("got event %s, want the client's traceparent in it", h.engine.last(t).Event)
	}
	for _, probe := range []string{"/healthz", "/readyz"} {
		if span := ask("GET", probe); span != nil {
			t.Errorf("%s has the span %s, want no span", probe, span.Name())
		}
	}
}
