package cadenceworker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/cadence/workflow"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/tracing"
)

// carriers propagates a span from the caller that starts a workflow to the workflow's
// activities, as traced programs do.
type carriers struct{}

type carried struct{}

func (carriers) Inject(ctx context.Context, w workflow.HeaderWriter) error {
	if parent, _ := tracing.Carry(ctx); parent != "" {
		w.Set("traceparent", []byte(parent))
	}
	return nil
}

func (carriers) Extract(ctx context.Context, _ workflow.HeaderReader) (context.Context, error) {
	return ctx, nil
}

func (carriers) InjectFromWorkflow(ctx workflow.Context, w workflow.HeaderWriter) error {
	if parent, ok := ctx.Value(carried{}).([]byte); ok {
		w.Set("traceparent", parent)
	}
	return nil
}

func (carriers) ExtractToWorkflow(ctx workflow.Context, r workflow.HeaderReader) (workflow.Context, error) {
	err := r.ForEachKey(func(key string, value []byte) error {
		if key == "traceparent" {
			ctx = workflow.WithValue(ctx, carried{}, value)
		}
		return nil
	})
	return ctx, err
}

// traced is a bench whose spans are recorded.
func traced(t *testing.T) (*bench, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	return newBench(t, options{tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))}), recorder
}

// spans waits for n ended spans of a name whose attribute is as given, in the order of
// their begin.
func spans(t *testing.T, r *tracetest.SpanRecorder, n int, name string, key attribute.Key, value string) []sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	eventually(t, "the spans have ended", func() error {
		found = nil
		for _, span := range r.Ended() {
			if span.Name() == name && attr(span, key).AsString() == value {
				found = append(found, span)
			}
		}
		if len(found) != n {
			return fmt.Errorf("%d spans %s with %s %q, want %d", len(found), name, key, value, n)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return found
}

func attr(span sdktrace.ReadOnlySpan, key attribute.Key) attribute.Value {
	for _, kv := range span.Attributes() {
		if kv.Key == key {
			return kv.Value
		}
	}
	return attribute.Value{}
}

// wantChild fails where there is no span of that name right below one.
func wantChild(t *testing.T, r *tracetest.SpanRecorder, under sdktrace.ReadOnlySpan, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	for _, span := range r.Ended() {
		if span.Name() == name && span.Parent().SpanID() == under.SpanContext().SpanID() {
			return span
		}
	}
	t.Fatalf("got no span %s below %s, want one", name, under.Name())
	return nil
}

// heartbeats are the outcomes of a span's heartbeats.
func heartbeats(span sdktrace.ReadOnlySpan) (out []string) {
	for _, event := range span.Events() {
		if event.Name == "heartbeat" {
			out = append(out, event.Attributes[0].Value.AsString())
		}
	}
	return out
}

func TestTasksAreTraced(t *testing.T) {
	b, recorder := traced(t)
	b.publish("pay", `export default () => "paid";`)
	b.publish("fail", `export default () => { throw Object.assign(new Error("secret text"), { code: "NoMoney" }); };`)
	b.publish("flaky", `export default async (e) => {
		await cs.cadence.heartbeat(1);
		if (e.cadence.attempt == 0) throw new Error("not yet");
	};`)
	b.bind(b.binding("pay", "fail", "flaky"))
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{7}, SpanID: trace.SpanID{8}, TraceFlags: trace.FlagsSampled})
	run := b.beginIn(trace.ContextWithSpanContext(t.Context(), parent), plan{Activity: "pay", ActivityID: "a1"})
	b.wait(run)
	span := spans(t, recorder, 1, "cadence.activity", "cadence.activity.type", "pay")[0]
	if got := span.Parent(); got.TraceID() != parent.TraceID() || got.SpanID() != parent.SpanID() || !got.IsRemote() {
		t.Errorf("got parent %v, want the remote %v of the workflow's header", got, parent)
	}
	for key, want := range map[attribute.Key]string{
		"cadence.domain": b.domain, "cadence.tasklist": tasklist, "cadence.workflow.id": run.GetID(), "cadence.workflow.run_id": run.GetRunID(),
		"cadence.activity.id": "a1", "cadence.outcome": "completed", "sous.tenant": b.tenant, "sous.namespace": namespace, "sous.worker": "worker",
	} {
		if got := attr(span, key).AsString(); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if waited := attr(span, "cadence.schedule_to_start_seconds"); waited.Type() != attribute.FLOAT64 || waited.AsFloat64() < 0 || waited.AsFloat64() > 60 {
		t.Errorf("got schedule-to-start time %v, want from 0 to 60 seconds", waited.String())
	}
	if span.SpanKind() != trace.SpanKindConsumer || span.Status().Code != codes.Unset {
		t.Errorf("span of the task: got kind %v and status %v, want a consumer without a status", span.SpanKind(), span.Status())
	}
	invoke := wantChild(t, recorder, span, "invoke")
	if id := attr(invoke, "faas.invocation_id").AsString(); id != b.activations("pay")[0].ActivationID || attr(invoke, "sous.trigger").AsString() != "cadence" {
		t.Errorf("span of the invocation: got attributes %v, want activation %s and trigger cadence", invoke.Attributes(), b.activations("pay")[0].ActivationID)
	}

	b.do(plan{Activity: "fail"})
	span = spans(t, recorder, 1, "cadence.activity", "cadence.activity.type", "fail")[0]
	if span.Status().Code != codes.Error || attr(span, "error.type").AsString() != "NoMoney" || attr(span, "cadence.outcome").AsString() != "failed" || span.Status().Description != "" {
		t.Errorf(`span of the failed task: got status %v and attributes %v, want an error without a text, error.type "NoMoney" and outcome "failed"`, span.Status(), span.Attributes())
	}
	if span.Parent().IsValid() {
		t.Errorf("got span with parent %v, want none", span.Parent())
	}
	if invoke := wantChild(t, recorder, span, "invoke"); invoke.Status().Code != codes.Error || attr(invoke, "sous.status").AsString() != "error" {
		t.Errorf(`span of the invocation: got status %v and attributes %v, want an error and sous.status "error"`, invoke.Status(), invoke.Attributes())
	}

	b.do(plan{Activity: "flaky", Attempts: 3, Heartbeat: 10 * time.Second})
	attempts := spans(t, recorder, 2, "cadence.activity", "cadence.activity.type", "flaky")
	for i, want := range []string{"failed", "completed"} {
		span := attempts[i]
		if attr(span, "cadence.attempt").AsInt64() != int64(i) || attr(span, "cadence.outcome").AsString() != want {
			t.Errorf("attempt %d: got attributes %v, want this attempt with outcome %s", i, span.Attributes(), want)
		}
		if got := heartbeats(span); len(got) == 0 || got[0] != "ok" {
			t.Errorf("attempt %d: got heartbeats %v, want ok first", i, got)
		}
		wantChild(t, recorder, wantChild(t, recorder, span, "invoke"), "cadence.heartbeat")
	}
}

func TestCancelledTaskIsTraced(t *testing.T) {
	b, recorder := traced(t)
	b.publish("fun", `export default async () => {
		for (;;) { await cs.cadence.heartbeat(); await new Promise(r => setTimeout(r, 200)); }
	};`)
	b.bind(b.binding("fun"))
	run := b.begin(plan{Activity: "fun", Heartbeat: 10 * time.Second, CancelOn: "stop"})
	eventually(t, "it runs", func() error { return b.counted("fun", 1, api.StatusRunning) })
	if err := b.client.SignalWorkflow(t.Context(), run.GetID(), run.GetRunID(), "stop", nil); err != nil {
		t.Fatalf("SignalWorkflow: %v", err)
	}
	b.wait(run)
	span := spans(t, recorder, 1, "cadence.activity", "cadence.activity.type", "fun")[0]
	beats := heartbeats(span)
	if len(beats) == 0 || beats[len(beats)-1] != "cancel" || attr(span, "cadence.outcome").AsString() != "cancelled" || span.Status().Code != codes.Unset {
		t.Errorf(`span of the task: got heartbeats %v, attributes %v and status %v, want the last heartbeat "cancel", outcome "cancelled" and no status`, beats, span.Attributes(), span.Status())
	}
}

// A task of an unknown type has a span as well; no function runs for it.
func TestUnknownTaskIsTraced(t *testing.T) {
	b, recorder := traced(t)
	b.publish("fun", `export default () => 1;`)
	b.bind(b.binding("fun"))
	b.do(plan{Activity: "strange", Timeout: time.Second})
	if span := spans(t, recorder, 1, "cadence.activity", "cadence.activity.type", "strange")[0]; attr(span, "error.type").AsString() != "unknown" {
		t.Errorf("span of an unknown activity: got attributes %v, want error.type \"unknown\"", span.Attributes())
	}
}

// A workflow that a function starts continues the function's trace, and so do the
// workflow's activities.
func TestStartedWorkflowsGoOnWithTheTrace(t *testing.T) {
	b, recorder := traced(t)
	b.publish("pay", `export default () => "paid";`)
	b.publish("start", `export default (event) => cs.cadence.start("plan", {
		domain: event.domain, tasklist: "workflows", input: { Activity: "pay" }, executionTimeoutSeconds: 60,
	});`, func(c *api.VersionConfig) {
		c.Capabilities.Cadence = &api.CadenceCapability{Domains: []string{b.domain}, Workflows: []string{"plan"}}
	})
	b.bind(b.binding("pay"))
	out, err := b.replica.engine.Invoke(t.Context(), api.Invocation{
		Tenant: b.tenant, Namespace: namespace, Function: "start", Ref: api.Ref{Alias: "prod"},
		Trigger: api.Trigger{Type: api.TriggerAPI}, Access: api.AccessUnrestricted, Event: fmt.Appendf(nil, `{"domain":%q}`, b.domain),
	})
	if err != nil || out.Activation.Status != api.StatusSuccess {
		t.Fatalf("Invoke: got error %v and outcome %+v, want success", err, out)
	}
	activity := spans(t, recorder, 1, "cadence.activity", "cadence.activity.type", "pay")[0]
	start := spans(t, recorder, 1, "cadence.start", "", "")[0]
	if activity.Parent().SpanID() != start.SpanContext().SpanID() || activity.SpanContext().TraceID() != start.SpanContext().TraceID() {
		t.Errorf("span of the activity: got parent %v, want %v", activity.Parent(), start.SpanContext())
	}
}
