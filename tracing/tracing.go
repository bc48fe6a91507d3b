// Package tracing is what the spans of several packages are made of. docs/tracing.md
// lists them. Each package is given a TracerProvider, and makes none where it is
// given nothing: there is no global one.
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

// module begins the names of the scopes that spans belong to.
const module = "github.com/codesous/sous/"

// The attributes that are our own; the others are OpenTelemetry's.
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

// New is a tracer for a part of the program, such as "invoker"; nil where there is
// no provider. Who has nil makes no span, and builds no attributes for one.
func New(provider trace.TracerProvider, part string) trace.Tracer {
	if provider == nil {
		return nil
	}
	return provider.Tracer(module + part)
}

// Fail marks a span as failed, for a reason out of a small set. Messages may hold
// what tenants would not have told: they are not kept.
func Fail(span trace.Span, reason string) {
	span.SetStatus(codes.Error, "")
	span.SetAttributes(semconv.ErrorTypeKey.String(reason))
}

// maxState bounds the tracestate that is kept in a record, in bytes. It is what W3C
// asks everybody to pass on.
const maxState = 512

// carrier is W3C's two headers.
type carrier struct{ parent, state string }

// Get implements propagation.TextMapCarrier, as do the others.
func (c *carrier) Get(key string) string { return *c.field(key) }

// Set keeps what is small enough.
func (c *carrier) Set(key, value string) {
	if len(value) <= maxState {
		*c.field(key) = value
	}
}

// Keys are those of the headers.
func (c *carrier) Keys() []string { return propagation.TraceContext{}.Fields() }

func (c *carrier) field(key string) *string {
	if key == "tracestate" {
		return &c.state
	}
	return &c.parent
}

// Carry gives the span of ctx as a record keeps it, "" where there is none.
func Carry(ctx context.Context) (traceparent, tracestate string) {
	var c carrier
	propagation.TraceContext{}.Inject(ctx, &c)
	return c.parent, c.state
}

// Resume is ctx under the span that a record kept; ctx itself where that is none.
func Resume(ctx context.Context, traceparent, tracestate string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, &carrier{traceparent, tracestate})
}

// Receive is ctx under the span that a request's header names; ctx itself where
// that is none.
func Receive(ctx context.Context, h http.Header) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
}

// Send names the span of ctx, if there is one, in a request's header.
func Send(ctx context.Context, h http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
}

// ID is the id of the trace that ctx belongs to, "" for none.
func ID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return ""
}

// Field names a trace in a log line, and is no field for "".
func Field(id string) zap.Field {
	if id == "" {
		return zap.Skip()
	}
	return zap.String("trace_id", id)
}

// FunctionTrigger is a trigger in OpenTelemetry's words.
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
