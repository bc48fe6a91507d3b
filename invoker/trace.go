package invoker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/tracing"
)

// messagingSystem names the queue in spans (semantic conventions: messaging.system.name).
const messagingSystem = "sous"

// named returns the attributes of an invocation that begins: names only, never the event.
func named(inv *api.Invocation) []attribute.KeyValue {
	return []attribute.KeyValue{
		tracing.Tenant.String(inv.Tenant), tracing.Namespace.String(inv.Namespace), semconv.FaaSName(inv.Function),
		tracing.Trigger.String(inv.Trigger.Type), tracing.FunctionTrigger(inv.Trigger.Type),
	}
}

// traceInvoke is Invoke under a span.
func (i *Invoker) traceInvoke(ctx context.Context, inv *api.Invocation) (*api.Outcome, error) {
	ctx, span := i.tracer.Start(ctx, "invoke", trace.WithAttributes(named(inv)...))
	defer span.End()
	out, err := i.invoke(ctx, inv)
	if err != nil {
		tracing.Fail(span, string(refusalCode(err)))
		return nil, err
	}
	span.SetAttributes(tracing.Replayed.Bool(out.Replayed))
	traceEnd(span, &out.Activation)
	return out, nil
}

// traceEnd sets how an activation ended on its span.
func traceEnd(span trace.Span, a *api.Activation) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		semconv.FaaSInvocationID(a.ActivationID), semconv.FaaSVersion(versionText(a.Ref.Version)), semconv.FaaSColdstart(a.ColdStart),
		tracing.Attempt.Int(a.Attempt), tracing.Status.String(string(a.Status)))
	switch {
	case a.Error != nil:
		tracing.Fail(span, string(a.Error.Type))
	case a.Status != api.StatusSuccess:
		tracing.Fail(span, string(a.Status))
	}
}

// traceHost performs a host call under a span with its name, and without its arguments:
// keys, URLs and payloads are the tenant's data.
func (i *Invoker) traceHost(ctx context.Context, s *hostcall.Scope, name string, head, blob []byte) (replyHead, replyBlob []byte, err error) {
	title, kind := name, trace.SpanKindInternal
	switch {
	case !i.host.Knows(name):
		title = "unknown" // a sandbox may send any name, and each would be a span name
	case name == network.Fetch.Name:
		kind = trace.SpanKindClient
	}
	ctx, span := i.tracer.Start(ctx, title, trace.WithSpanKind(kind))
	defer span.End()
	replyHead, replyBlob, err = i.host.Call(ctx, s, name, head, blob)
	if err != nil {
		tracing.Fail(span, string(api.ErrorCode(err)))
	}
	return replyHead, replyBlob, err
}

// traceEnqueue is Enqueue under a span, which the job carries as its traceparent, so that
// the attempts of the job belong to the trace of the request that enqueued it.
func (i *Invoker) traceEnqueue(ctx context.Context, inv *api.Invocation) (*api.Queued, error) {
	queue := api.FunctionQueuePrefix + inv.Function
	ctx, span := i.tracer.Start(ctx, "enqueue", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(named(inv)...),
		trace.WithAttributes(semconv.MessagingSystemKey.String(messagingSystem), semconv.MessagingOperationName("enqueue"),
			semconv.MessagingOperationTypeSend, semconv.MessagingDestinationName(queue)))
	defer span.End()
	out, err := i.enqueue(ctx, inv)
	if err != nil {
		tracing.Fail(span, string(refusalCode(err)))
		return nil, err
	}
	span.SetAttributes(semconv.FaaSInvocationID(out.ActivationID), tracing.Replayed.Bool(out.Replayed))
	return out, nil
}

// traceJob begins the span of a job's attempt, in the trace that enqueued it.
func (w *worker) traceJob(ctx context.Context, j *leasedJob, inv *api.Invocation) (context.Context, trace.Span) {
	if of := j.job.Spec.Activation; of != nil {
		ctx = tracing.Resume(ctx, of.Traceparent, of.Tracestate)
	}
	return w.i.tracer.Start(ctx, "job", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		tracing.Tenant.String(inv.Tenant), tracing.Namespace.String(inv.Namespace), tracing.Attempt.Int(j.job.Attempt),
		semconv.MessagingSystemKey.String(messagingSystem), semconv.MessagingOperationName("job"), semconv.MessagingOperationTypeProcess,
		semconv.MessagingDestinationName(j.queue.Queue), semconv.MessagingMessageID(j.job.ID)))
}

// traceRun begins the span of the run of a job's attempt; end sets how it ended.
func (i *Invoker) traceRun(ctx context.Context, inv *api.Invocation) (run context.Context, end func(*activations.Record)) {
	if i.tracer == nil {
		return ctx, func(*activations.Record) {}
	}
	run, span := i.tracer.Start(ctx, "invoke", trace.WithAttributes(named(inv)...))
	return run, func(final *activations.Record) {
		traceEnd(span, &final.Activation)
		span.End()
		if final.Status != api.StatusSuccess {
			tracing.Fail(trace.SpanFromContext(ctx), string(final.Status))
		}
	}
}

// traceID returns the trace id of ctx for the log, "" where nothing is traced.
func (i *Invoker) traceID(ctx context.Context) string {
	if i.tracer == nil {
		return ""
	}
	return tracing.ID(ctx)
}
