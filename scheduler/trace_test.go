package scheduler_test

import (
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// A tick has a span of its own, which its job carries.
func TestTicksAreTraced(t *testing.T) {
	t.Parallel()
	f := newTicking(t, storage.Config{URL: storagetest.Redis(t).URL})
	recorder := tracetest.NewSpanRecorder()
	f.Trace(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	path := f.add(t, "nightly", func(s *api.Schedule) {
		s.Queue, s.Ref = nil, &api.JobTarget{Function: "report"}
	})
	f.ms.Store(f.load(t, path).State.NextTickMS)
	f.round(t)
	jobs, spans := f.jobs(t, "fn.report"), recorder.Ended()
	if len(jobs) != 1 || len(spans) != 1 || spans[0].Name() != "schedule.tick" {
		t.Fatalf("got %d jobs and spans %v, want one job and one span schedule.tick", len(jobs), spans)
	}
	if carried := f.stored(t, jobs[0].ID).Activation.Traceparent; !strings.Contains(carried, spans[0].SpanContext().SpanID().String()) {
		t.Errorf("traceparent of the job: got %q, want span %v", carried, spans[0].SpanContext())
	}
	told := map[string]string{}
	for _, kv := range spans[0].Attributes() {
		told[string(kv.Key)] = kv.Value.String()
	}
	if told["sous.schedule"] != "nightly" || told["messaging.message.id"] != jobs[0].ID || told["sous.status"] != "ok" || told["sous.tenant"] != f.tenant {
		t.Errorf("attributes of the span: got %v, want those of job %s", told, jobs[0].ID)
	}
}
