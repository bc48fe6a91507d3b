package invoker_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

var local = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// traced is a bench whose spans and log lines are recorded.
func traced(t *testing.T) (*bench, *tracetest.SpanRecorder, *observer.ObservedLogs) {
	t.Helper()
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	core, logs := observer.New(zap.InfoLevel)
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), func(c *invoker.Config) {
		c.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		c.Logger, c.EgressAllow = zap.New(core), local
	})
	return b, recorder, logs
}

// named are the ended spans of a name, the first that ended first.
func named(r *tracetest.SpanRecorder, name string) (out []sdktrace.ReadOnlySpan) {
	for _, span := range r.Ended() {
		if span.Name() == name {
			out = append(out, span)
		}
	}
	return out
}

func attr(span sdktrace.ReadOnlySpan, key attribute.Key) string {
	for _, kv := range span.Attributes() {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

func below(span, parent sdktrace.ReadOnlySpan) bool {
	return span.Parent().SpanID() == parent.SpanContext().SpanID() && span.SpanContext().TraceID() == parent.SpanContext().TraceID()
}

func TestInvocationsAreTraced(t *testing.T) {
	b, recorder, logs := traced(t)
	config := defaults()
	config.Capabilities.KV = &api.KVCapability{Prefixes: []string{"a"}, Ops: []string{"get"}}
	b.publish("fun", `export default async (e) => {
		await cs.kv.get("a");
		if (e) try { await cs.kv.set("b", "1"); } catch { throw new TypeError("secret text"); }
	};`, config)
	done := b.invoke("fun", `null`).Activation
	b.invoke("fun", `1`)
	if _, err := b.engine.Invoke(t.Context(), b.invocation("missing", `null`)); err == nil {
		t.Fatal("Invoke of a missing function succeeded, want an error")
	}
	got := named(recorder, "invoke")
	if len(got) != 3 {
		t.Fatalf("got %d spans, want 3", len(got))
	}
	for key, want := range map[attribute.Key]string{
		"sous.tenant": b.tenant, "sous.namespace": namespace, "faas.name": "fun", "faas.version": "1", "faas.trigger": "http", "faas.coldstart": "true",
		"faas.invocation_id": done.ActivationID, "sous.trigger": "api", "sous.attempt": "1", "sous.status": "success", "sous.replayed": "false", "error.type": "",
	} {
		if value := attr(got[0], key); value != want {
			t.Errorf("%s is %q, want %q", key, value, want)
		}
	}
	if attr(got[1], "error.type") != string(api.ErrException) || attr(got[1], "faas.coldstart") != "false" || got[1].Status().Code != codes.Error || got[1].Status().Description != "" {
		t.Errorf("got the span of a failure with %v and status %v, want error.type %s, no cold start, and an error without a description", got[1].Attributes(), got[1].Status(), api.ErrException)
	}
	if attr(got[2], "error.type") != string(api.CodeFunctionNotFound) || got[2].Status().Code != codes.Error {
		t.Errorf("got the span of a refusal with %v, want error.type %s", got[2].Attributes(), api.CodeFunctionNotFound)
	}
	gets, sets := named(recorder, "kv.get"), named(recorder, "kv.set")
	if len(gets) != 2 || !below(gets[0], got[0]) || !below(gets[1], got[1]) || len(gets[0].Attributes()) != 0 {
		t.Errorf("got spans of host calls %v, want one below each of the first two calls, without attributes", gets)
	}
	if len(sets) != 1 || attr(sets[0], "error.type") != string(api.CodeRuntimeCapabilityDenied) {
		t.Errorf("got spans of a refused host call %v, want one with error.type %s", sets, api.CodeRuntimeCapabilityDenied)
	}
	lines := logs.FilterMessage(invoker.LogActivation).All()
	if len(lines) != 2 || lines[0].ContextMap()["trace_id"] != got[0].SpanContext().TraceID().String() {
		t.Errorf("got log lines %v, want 2, the first with trace_id %s", lines, got[0].SpanContext().TraceID())
	}
	for _, span := range recorder.Ended() {
		for _, kv := range span.Attributes() {
			if strings.Contains(kv.Value.String(), "secret") {
				t.Errorf("got %s in span %s, want no secret", kv.Value.String(), span.Name())
			}
		}
	}
}

// What a function fetches knows of the trace, unless the function says otherwise, or
// nothing is traced.
func TestFetchCarriesTheTrace(t *testing.T) {
	var got [][]string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header["Traceparent"]) }))
	t.Cleanup(server.Close)
	const own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	source := `export default async (url) => {
		await fetch(url);
		await fetch(url, { headers: { traceparent: "` + own + `" } });
	};`
	config := defaults()
	config.Capabilities.HTTP = &api.HTTPCapability{AllowHosts: []string{"127.0.0.1:*", "127.0.0.1"}}
	b, recorder, _ := traced(t)
	b.publish("fun", source, config)
	if out := b.invoke("fun", `"`+server.URL+`"`).Activation; out.Status != api.StatusSuccess {
		t.Fatalf("invoke fun: got status %s, error %+v, want success", out.Status, out.Error)
	}
	span := named(recorder, "http.fetch")[0]
	if span.SpanKind() != trace.SpanKindClient || len(got) != 2 || len(got[0]) != 1 || !strings.Contains(got[0][0], span.SpanContext().SpanID().String()) {
		t.Errorf("got requests with %v, want the first to carry the client span %v", got, span.SpanContext())
	}
	if len(got[1]) != 1 || got[1][0] != own {
		t.Errorf("got header %v, want the function's own, %s", got[1], own)
	}
	got = nil
	quiet := newBench(t, b.store, func(c *invoker.Config) { c.EgressAllow = local })
	quiet.publish("fun", source, config)
	quiet.invoke("fun", `"`+server.URL+`"`)
	if len(got) != 2 || got[0] != nil {
		t.Errorf("got headers %v without traces, want none for the first request", got)
	}
}

// Each attempt of a job is in the trace that enqueued it, whichever replica makes it,
// and so is the function that receives its outcome.
func TestJobsGoOnWithTheTrace(t *testing.T) {
	b, recorder, logs := traced(t)
	config := asynchronous(2)
	config.OnSuccess = &api.Destination{Function: "next"}
	b.publish("fun", `export default (e, ctx) => { if (ctx.attempt == 1) throw new Error("again"); };`, config)
	b.publish("next", `export default () => 1;`, asynchronous(1))
	id := b.enqueue("fun", `null`)
	b.work()
	b.ends(id)
	b.eventually("all have ended", func() bool { return len(named(recorder, "job")) == 3 })
	enqueue, jobs, runs := named(recorder, "enqueue")[0], named(recorder, "job"), named(recorder, "invoke")
	if attr(enqueue, "faas.invocation_id") != id || attr(enqueue, "messaging.destination.name") != "fn.fun" || enqueue.SpanKind() != trace.SpanKindProducer {
		t.Errorf("span enqueue: got kind %s, attributes %v, want a producer of activation %s to fn.fun", enqueue.SpanKind(), enqueue.Attributes(), id)
	}
	for i, want := range []struct{ queue, attempt, status string }{{"fn.fun", "1", "error"}, {"fn.fun", "2", "success"}, {"fn.next", "1", "success"}} {
		job := jobs[i]
		if !below(job, enqueue) || job.SpanKind() != trace.SpanKindConsumer || attr(job, "messaging.destination.name") != want.queue || attr(job, "sous.attempt") != want.attempt {
			t.Errorf("job %d: got parent %v and %v, want a consumer below the enqueue, of queue %s, attempt %s", i, job.Parent(), job.Attributes(), want.queue, want.attempt)
		}
		if len(runs) != 3 || !below(runs[i], job) || attr(runs[i], "sous.status") != want.status {
			t.Errorf("run %d: got spans %v, want three, this one below its job with status %s", i, runs, want.status)
		}
		if failed := want.status == "error"; (job.Status().Code == codes.Error) != failed {
			t.Errorf("job %d: got status %v, want an error: %v", i, job.Status(), failed)
		}
	}
	for _, line := range logs.FilterMessage(invoker.LogActivation).All() {
		if line.ContextMap()["trace_id"] != enqueue.SpanContext().TraceID().String() {
			t.Errorf("got log line %v, want trace_id %s", line.ContextMap(), enqueue.SpanContext().TraceID())
		}
	}
}

// BenchmarkTracing is a warm call with and without spans.
func BenchmarkTracing(b *testing.B) {
	for name, provider := range map[string]trace.TracerProvider{
		"off": nil, "sampled": sdktrace.NewTracerProvider(), "not sampled": sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())),
	} {
		b.Run(name, func(b *testing.B) {
			store := storagetest.Open(b, storage.Config{URL: storagetest.Redis(b).URL, ScriptPrelude: "--\n"})
			bench := newBench(b, store, func(c *invoker.Config) { c.Tracer = provider })
			bench.publish("echo", `export default (e) => e;`, defaults())
			bench.invoke("echo", `0`)
			b.ReportAllocs()
			for b.Loop() {
				bench.invoke("echo", `0`)
			}
		})
	}
}
