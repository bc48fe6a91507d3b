// Package tracing contains shared parts of the spans of several packages; docs/tracing.md
// lists the spans. Each package receives a TracerProvider in its Config and creates no spans
// without one. The global provider is not used.
//
// A span continues over HTTP by Receive and Send, and over the store by Carry and Resume: the
// job of an asynchronous invocation stores the two headers of W3C trace context, and its
// worker resumes the trace minutes or days later.
package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
)

// module is the prefix of the instrumentation scopes of spans.
const module = "github.com/codesous/sous/"

// The attributes that OpenTelemetry's conventions do not define.
const (
	Tenant    = attribute.Key("sous.tenant")
	Namespace = attribute.Key("sous.namespace")
	Trigger   = attribute.Key("sous.trigger")
	Attempt   = attribute.Key("sous.attempt")
	Status    = attribute.Key("sous.status")
	Replayed  = attribute.Key("sous.replayed")
	Schedule  = attribute.Key("sous.schedule")
	Worker    = attribute.Key("sous.worker") // a worker binding
)

// New returns a tracer for a part of the program, such as "invoker", or nil if provider is
// nil. Code with a nil tracer creates no spans and no attributes.
func New(provider trace.TracerProvider, part string) trace.Tracer {
	if provider == nil {
		return nil
	}
	return provider.Tracer(module + part)
}

// Fail marks a span as failed, with a reason from a small set. Error messages are not
// recorded: they can contain tenants' data.
func Fail(span trace.Span, reason string) {
	span.SetStatus(codes.Error, "")
	span.SetAttributes(semconv.ErrorTypeKey.String(reason))
}

// maxState bounds the tracestate in a record, in bytes. W3C Trace Context requires a system to
// propagate at least 512 characters; callers control this text, and each job stores it.
const maxState = 512

// carrier has the two headers of W3C trace context.
type carrier struct{ parent, state string }

// Get implements propagation.TextMapCarrier.
func (c *carrier) Get(key string) string { return *c.field(key) }

// Set implements propagation.TextMapCarrier. It ignores values that are too large.
func (c *carrier) Set(key, value string) {
	if len(value) <= maxState {
		*c.field(key) = value
	}
}

// Keys implements propagation.TextMapCarrier.
func (c *carrier) Keys() []string { return propagation.TraceContext{}.Fields() }

func (c *carrier) field(key string) *string {
	if key == "tracestate" {
		return &c.state
	}
	return &c.parent
}

// Carry returns the span of ctx as the two texts for a record, "" if ctx has none. A traceparent
// is, for example,
//
//	00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//
// the version, the trace id, the id of the span, and the flag that the trace is sampled. A
// tracestate of more than maxState bytes is dropped.
func Carry(ctx context.Context) (traceparent, tracestate string) {
	var c carrier
	propagation.TraceContext{}.Inject(ctx, &c)
	return c.parent, c.state
}

// Resume returns ctx with the remote span of a record, or ctx if the record has none or one
// that cannot be parsed. Spans that are started under the result are its children.
func Resume(ctx context.Context, traceparent, tracestate string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, &carrier{traceparent, tracestate})
}

// Receive returns ctx with the remote span of a request's header, or ctx if the header has
// none.
func Receive(ctx context.Context, h http.Header) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
}

// Send sets the span of ctx, if there is one, in a request's header.
func Send(ctx context.Context, h http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
}

// ID returns the trace id of ctx, "" for none.
func ID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return ""
}

// Field returns the log field for a trace id, a field that is skipped for "".
func Field(id string) zap.Field {
	if id == "" {
		return zap.Skip()
	}
	return zap.String("trace_id", id)
}

// FunctionTrigger returns the faas.trigger attribute for a trigger.
func FunctionTrigger(trigger string) attribute.KeyValue {
	switch trigger {
	case api.TriggerHTTP, api.TriggerAPI:
		return semconv.FaaSTriggerHTTP
	case api.TriggerSchedule:
		return semconv.FaaSTriggerTimer
	case api.TriggerQueue:
		return semconv.FaaSTriggerPubSub
	}
	return semconv.FaaSTriggerOther
}
