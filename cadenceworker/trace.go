package cadenceworker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/cadence/.gen/go/shared"

	"github.com/codesous/sous/tracing"
)

// What the spans of tasks say beside what all spans do.
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

// The fields of a header in which a workflow, or whoever starts one, names a span.
const (
	fieldParent = "traceparent"
	fieldState  = "tracestate"
)

// trace gives the task its span, from the moment at which a call brought it, under
// the one that the workflow names.
func (t *task) trace(p *passing) {
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

// traceBeat tells the span of a heartbeat that was sent.
func (t *task) traceBeat(outcome string) {
	if t.span != nil {
		t.span.AddEvent("heartbeat", trace.WithAttributes(attrBeat.String(outcome)))
	}
}

// traceEnd tells the span how the task ended; reason is why, where it failed.
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

// traceHeader is what a workflow is started with, so that its own spans, and those of
// its activities, continue the span of ctx; nil where there is none.
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
