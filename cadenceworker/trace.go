package cadenceworker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/cadence/.gen/go/shared"

	"github.com/codesous/sous/tracing"
)

// The attributes of the spans of tasks, beside those of all spans.
const (
	attrDomain       = attribute.Key("cadence.domain")
	attrTasklist     = attribute.Key("cadence.tasklist")
	attrWorkflowID   = attribute.Key("cadence.workflow.id")
	attrRunID        = attribute.Key("cadence.workflow.run_id")
	attrActivityID   = attribute.Key("cadence.activity.id")
	attrActivityType = attribute.Key("cadence.activity.type")
	attrAttempt      = attribute.Key("cadence.attempt") // as Cadence counts, from 0
	attrWaited       = attribute.Key("cadence.schedule_to_start_seconds")
	attrOutcome      = attribute.Key("cadence.outcome")   // one of the task statuses of the metrics
	attrBeat         = attribute.Key("cadence.heartbeat") // one of the outcomes of heartbeats of the metrics
)

// The fields of a workflow's header that contain its trace context, in the format of W3C Trace
// Context.
const (
	fieldParent = "traceparent"
	fieldState  = "tracestate"
)

// trace starts the task's span at the time of its delivery, as a child of the span in the
// workflow's header.
func (t *task) trace(p *delivery) {
	b := t.w.b
	if b.s.tracer == nil {
		return
	}
	ctx := tracing.Resume(t.ctx, string(p.header[fieldParent]), string(p.header[fieldState]))
	t.ctx, t.span = b.s.tracer.Start(ctx, "cadence.activity", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithTimestamp(p.came),
		trace.WithAttributes(
			tracing.Tenant.String(b.path.Tenant), tracing.Namespace.String(b.path.Namespace), tracing.Worker.String(b.path.Name),
			attrDomain.String(t.w.stored.Domain), attrTasklist.String(t.w.stored.Tasklist),
			attrWorkflowID.String(t.info.WorkflowExecution.ID), attrRunID.String(t.info.WorkflowExecution.RunID),
			attrActivityID.String(t.info.ActivityID), attrActivityType.String(t.info.ActivityType.Name),
			attrAttempt.Int(int(t.info.Attempt)), attrWaited.Float64(p.waited.Seconds())))
}

// traceBeat adds an event for a heartbeat to the span.
func (t *task) traceBeat(outcome string) {
	if t.span != nil {
		t.span.AddEvent("heartbeat", trace.WithAttributes(attrBeat.String(outcome)))
	}
}

// traceEnd sets the outcome of the task in its span; reason is that of a failure.
func (t *task) traceEnd(status, reason string) {
	if t.span == nil {
		return
	}
	t.span.SetAttributes(attrOutcome.String(status))
	switch status {
	case taskFailed:
		tracing.Fail(t.span, reason)
	case taskGone, taskUnanswered, taskUnknown:
		tracing.Fail(t.span, status)
	}
}

// traceHeader returns the header of a new workflow, by which the spans of the workflow and
// of its activities continue the span of ctx. It returns nil if ctx has none.
func traceHeader(ctx context.Context) *shared.Header {
	parent, state := tracing.Carry(ctx)
	if parent == "" {
		return nil
	}
	fields := map[string][]byte{fieldParent: []byte(parent)}
	if state != "" {
		fields[fieldState] = []byte(state)
	}
	return &shared.Header{Fields: fields}
}
