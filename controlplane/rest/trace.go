package rest

import (
	"net/http"
	"slices"
	"strconv"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/codesous/sous/tracing"
)

// otherMethod is OpenTelemetry's name for methods that HTTP does not define.
const otherMethod = "_OTHER"

// trace starts the span of a request, as a child of the span in its traceparent header;
// end records the answer. Of what the client sent, only the method is recorded: paths,
// queries and headers may hold tenants' secrets. Probes are not traced.
func (s *Server) trace(w *trackedWriter, r *http.Request) (traced *http.Request, end func()) {
	if r.URL.Path == PathHealthz || r.URL.Path == PathReadyz {
		return r, func() {}
	}
	name, method := r.Method, r.Method
	if !slices.Contains(knownMethods, method) {
		name, method = "HTTP", otherMethod
	}
	ctx, span := s.tracer.Start(tracing.Receive(r.Context(), r.Header), name, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(semconv.HTTPRequestMethodKey.String(method)))
	return r.WithContext(ctx), func() {
		defer span.End()
		if w.route != "" {
			span.SetName(name + " " + w.route)
			span.SetAttributes(semconv.HTTPRoute(w.route))
		}
		if w.status == 0 {
			tracing.Fail(span, "cut") // the connection was cut instead of an answer
			return
		}
		span.SetAttributes(semconv.HTTPResponseStatusCode(w.status))
		if w.status >= http.StatusInternalServerError {
			tracing.Fail(span, strconv.Itoa(w.status))
		}
	}
}
