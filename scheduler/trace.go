package scheduler

import (
	"context"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/tracing"
)

// trace starts a span for each of moves that creates a job, and puts its context into the job,
// if that runs a function: jobs of other queues carry none. end ends the spans with the outcomes
// of the ticks.
func (t *Ticker) trace(ctx context.Context, moves []*tickMove) (end func([]queue.TickOutcome)) {
	if t.tracer == nil {
		return func([]queue.TickOutcome) {}
	}
	spans := make([]trace.Span, len(moves)) // nil for a move without a job
	for i, m := range moves {
		if m.tick.Job == nil {
			continue
		}
		spec := m.tick.Job.Spec
		under, span := t.tracer.Start(ctx, "schedule.tick", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
			tracing.Tenant.String(m.path.Tenant), tracing.Namespace.String(m.path.Namespace), tracing.Schedule.String(m.path.Name),
			semconv.MessagingSystemKey.String("sous"), semconv.MessagingOperationName("schedule.tick"), semconv.MessagingOperationTypeSend,
			semconv.MessagingDestinationName(spec.Queue), semconv.MessagingMessageID(m.tick.Job.ID)))
		if spec.Activation != nil {
			spec.Activation.Traceparent, spec.Activation.Tracestate = tracing.Carry(under)
		}
		spans[i] = span
	}
	return func(outcomes []queue.TickOutcome) {
		for i, span := range spans {
			if span == nil {
				continue
			}
			span.SetAttributes(tracing.Status.String(string(outcomes[i])))
			if outcomes[i] == queue.TickFailed {
				tracing.Fail(span, string(outcomes[i]))
			}
			span.End()
		}
	}
}
