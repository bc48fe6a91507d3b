package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// receiver is a collector.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*spans.Span
	resource map[string]string
	header   http.Header
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{resource: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var batch collector.ExportTraceServiceRequest
		err = errors.Join(err, proto.Unmarshal(body, &batch))
		if err != nil || request.URL.Path != "/v1/traces" {
			t.Errorf("export to %s: %v, want a valid request to /v1/traces", request.URL.Path, err)
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.header = request.Header
		for _, from := range batch.GetResourceSpans() {
			for _, kv := range from.GetResource().GetAttributes() {
				r.resource[kv.GetKey()] = kv.GetValue().GetStringValue()
			}
			for _, scope := range from.GetScopeSpans() {
				r.spans = append(r.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// in are the spans of a trace that have come, by name.
func (r *receiver) in(trace string) map[string][]*spans.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string][]*spans.Span{}
	for _, span := range r.spans {
		if string(span.GetTraceId()) == trace {
			out[span.GetName()] = append(out[span.GetName()], span)
		}
	}
	return out
}

// startTraced starts sous dev with a function hello.
func startTraced(t *testing.T, env []string, args ...string) *soustest.Server {
	t.Helper()
	server, err := soustest.Command{Args: append([]string{"dev", "--data-dir", t.TempDir()}, args...), Env: env}.Start(soustest.Executable(t))
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	source := filepath.Join(t.TempDir(), "hello")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatalf("os.Mkdir: %v", err)
	}
	if err := os.WriteFile(filepath.Join(source, "function.js"), []byte(`export default () => "hi";`), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	server.Sous(t, "fn", "deploy", source)
	return server
}

const invokePath = "/v1/tenants/t_default/namespaces/default/functions/hello:invoke"

// callHello invokes hello under a span of the caller's.
func callHello(t *testing.T, server *soustest.Server, mode, traceparent string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+invokePath,
		strings.NewReader(`{"ref":{"alias":"prod"},"mode":"`+mode+`","event":{}}`))
	if err != nil {
		t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Traceparent", traceparent)
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("POST %s = %s %s, %v, want a 2xx", invokePath, resp.Status, body, err)
	}
}

// What a caller begins goes on through the request, the queue and the function, and
// all of it reaches the collector, the last spans as the server ends.
func TestSpansReachACollector(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	server := startTraced(t, []string{
		"OTEL_EXPORTER_OTLP_HEADERS=x-key=s3cret", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test", "OTEL_BSP_SCHEDULE_DELAY=600000",
	}, "--trace-endpoint", r.URL, "--log-format", "json", "--trace-sample", "0")
	callHello(t, server, "sync", "00-11111111111111111111111111111111-b7ad6b7169203331-01")
	callHello(t, server, "async", "00-22222222222222222222222222222222-b7ad6b7169203331-01")
	callHello(t, server, "sync", "00-33333333333333333333333333333333-b7ad6b7169203331-00") // the caller keeps none
	for deadline := time.Now().Add(waitLimit); strings.Count(server.Output(), `"trace_id":"2222`) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no log line of the asynchronous invocation, want one:\n%s", server.Output())
		}
	}
	if err := server.Stop(); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	for trace, want := range map[byte][]string{0x11: {"POST " + invokeRoute, "invoke"}, 0x22: {"POST " + invokeRoute, "enqueue", "job", "invoke"}} {
		got := r.in(strings.Repeat(string(rune(trace)), 16))
		parent := "\xb7\xad\x6b\x71\x69\x20\x33\x31"
		if len(got) != len(want) {
			t.Errorf("trace %x: got spans %v, want one for each of %v", trace, got, want)
		}
		for _, name := range want { // each below the one before
			if len(got[name]) != 1 || string(got[name][0].GetParentSpanId()) != parent {
				t.Fatalf("trace %x: got spans %v called %s, want one below the span %x", trace, got[name], name, parent)
			}
			parent = string(got[name][0].GetSpanId())
		}
	}
	if got := r.in(strings.Repeat("\x33", 16)); len(got) != 0 {
		t.Errorf("trace that its caller does not sample: got spans %v, want none", got)
	}
	if r.resource["service.name"] != "sous" || r.resource["deployment.environment.name"] != "test" || r.header.Get("X-Key") != "s3cret" {
		t.Errorf("exported resource %v with header %v, want service.name sous, deployment.environment.name test and X-Key s3cret", r.resource, r.header)
	}
	if strings.Contains(server.Output(), "s3cret") {
		t.Error("the log holds the collector's key")
	}
}

const invokeRoute = "/v1/tenants/{tenant}/namespaces/{namespace}/functions/{function}:invoke"

// A collector that accepts connections and never answers delays no call, nor does a
// collector that is absent. The server's shutdown waits at most exportTimeout for it.
func TestDeadCollectorDelaysNoCall(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for name, endpoint := range map[string]string{"silent": "http://" + listener.Addr().String(), "absent": "http://127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startTraced(t, []string{"OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_BSP_MAX_QUEUE_SIZE=8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=4"},
				"--trace-endpoint", endpoint)
			began := time.Now()
			for range 100 { // more spans than may wait
				callHello(t, server, "sync", "00-11111111111111111111111111111111-b7ad6b7169203331-01")
			}
			if took := time.Since(began); took > exportTimeout {
				t.Errorf("100 calls took %s, want at most %s", took, exportTimeout)
			}
			began = time.Now()
			if err := server.Stop(); err != nil {
				t.Fatalf("Stop: %v", err)
			}
			if took := time.Since(began); took > flushTimeout+8*time.Second {
				t.Errorf("the end took %s, want at most %s", took, flushTimeout+8*time.Second)
			}
			if n := strings.Count(server.Output(), "cannot export spans to the collector"); n > 1 {
				t.Errorf("the failing collector was logged %d times, want at most once", n)
			}
		})
	}
}

// refusing is an exporter that returns err.
type refusing struct {
	sdktrace.SpanExporter
	err error
}

func (r *refusing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return r.err }

func TestCollectorsStateIsLoggedOnce(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	to := &refusing{}
	s := newSpanSender(to, zap.New(core))
	batch := tracetest.SpanStubs{{Name: "a"}, {Name: "b"}}.Snapshots()
	for _, err := range []error{nil, errors.New("away"), errors.New("away"), nil, nil, errors.New("away")} {
		to.err = err
		if err := s.ExportSpans(t.Context(), batch); err != nil {
			t.Errorf("ExportSpans = %v, want nil: the SDK would log the error, too", err)
		}
	}
	var levels []string
	for _, line := range logs.All() {
		levels = append(levels, line.Level.String())
	}
	if got := strings.Join(levels, " "); got != "warn info warn" {
		t.Errorf("levels logged = %q, want %q: %v", got, "warn info warn", logs.All())
	}
	if sent, lost := testutil.ToFloat64(s.spans.WithLabelValues(spansSent)), testutil.ToFloat64(s.spans.WithLabelValues(spansLost)); sent != 6 || lost != 6 {
		t.Errorf("%v spans sent, %v lost, want 6 and 6", sent, lost)
	}
}
