package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/codesous/sous/cmd/sous/internal/build"
	"github.com/codesous/sous/metrics"
)

// traceSettings are the settings of tracing: the collector, and the share of traces that are
// sent.
type traceSettings struct {
	Endpoint string  `koanf:"trace-endpoint"` // "": tracing is off, and no span is created
	Sample   float64 `koanf:"trace-sample"`   // from 0 to 1
}

const (
	// tracesPath is the path that OTLP defines for an endpoint without one.
	tracesPath = "/v1/traces"
	// The export of a batch of spans is repeated for exportTimeout; then the batch is
	// dropped and the next one is sent.
	exportRetryMin = 500 * time.Millisecond
	exportRetryMax = 2 * time.Second
	exportTimeout  = 5 * time.Second
	// flushTimeout bounds the export of the last spans when the server ends.
	flushTimeout = 2 * time.Second
)

// registerTracing adds the settings of tracing to flags.
func registerTracing(flags *pflag.FlagSet) {
	flags.String("trace-endpoint", "", "URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; off by default")
	flags.Float64("trace-sample", 1, "share of the traces started here that are kept, from 0 to 1; the caller decides on those that it started")
}

// validate refuses a share that is not from 0 to 1, and an endpoint that is no plain URL.
func (s *traceSettings) validate() error {
	if s.Sample < 0 || s.Sample > 1 || s.Sample != s.Sample { // NaN is unequal to itself
		return fmt.Errorf("trace-sample: %v is not from 0 to 1", s.Sample)
	}
	if s.Endpoint == "" {
		return nil
	}
	_, err := s.url()
	return err
}

// url returns the URL that spans are sent to: http://127.0.0.1:4318 becomes
// http://127.0.0.1:4318/v1/traces, and a URL with a path of its own stays. Its errors do not
// repeat the setting, which may hold a password that does not belong into a log.
func (s *traceSettings) url() (string, error) {
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil:
		return "", errors.New("trace-endpoint: not a URL") // the parser's error repeats the URL, which may hold a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", errors.New("trace-endpoint: want http://HOST:PORT or https://HOST:PORT")
	case u.User != nil:
		return "", errors.New("trace-endpoint: put credentials into OTEL_EXPORTER_OTLP_HEADERS, not into the URL")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("trace-endpoint: want no query and no fragment")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = tracesPath
	}
	return u.String(), nil
}

// openTracing returns the provider of tracers, nil if tracing is off. It is closed last,
// because the other parts end spans while they close. It does not contact the collector: an
// unavailable collector costs spans and nothing else.
func (p *platform) openTracing(ctx context.Context, s settings) (trace.TracerProvider, error) {
	if s.Trace.Endpoint == "" {
		return nil, nil //nolint:nilnil // documented: nothing is traced
	}
	target, err := s.Trace.url()
	if err != nil {
		return nil, err
	}
	about, err := traceResource(ctx)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(target), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: exportRetryMin, MaxInterval: exportRetryMax, MaxElapsedTime: exportTimeout,
	}))
	if err != nil {
		return nil, fmt.Errorf("trace-endpoint: %w", err)
	}
	sender := newSpanSender(exporter, p.logger.Named("trace"))
	if err := metrics.Register(p.metrics, sender.spans); err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(sender),
		sdktrace.WithoutPanicRecording(), // the text of a panic may hold secrets
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(s.Trace.Sample))))
	p.onClose(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			p.logger.Warn("the last spans could not be exported", zap.Error(err))
			return exporter.Shutdown(context.WithoutCancel(ctx)) // ends the export in progress
		}
		return nil
	})
	return provider, nil
}

// traceResource returns the attributes of this process in spans. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES come last, so that they override the others.
func traceResource(ctx context.Context) (*resource.Resource, error) {
	about, err := resource.New(ctx,
		resource.WithHost(), resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("sous"), semconv.ServiceVersion(build.Version()), semconv.ServiceInstanceID(uuid.NewString())),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return about, nil
}

// spanSender exports spans. It logs once when exports begin to fail, and once when they
// succeed again. The embedded exporter retries by itself, for up to exportTimeout, so a batch
// that fails here is not sent later.
type spanSender struct {
	sdktrace.SpanExporter
	logger  *zap.Logger
	spans   *prometheus.CounterVec
	failing atomic.Bool
}

// The outcomes of spans in the metric trace_spans_total.
const (
	spansSent = "sent"
	spansLost = "lost"
)

func newSpanSender(to sdktrace.SpanExporter, logger *zap.Logger) *spanSender {
	return &spanSender{SpanExporter: to, logger: logger, spans: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metrics.Namespace, Name: "trace_spans_total", Help: "Spans exported, by outcome: sent or lost.",
	}, []string{"outcome"})}
}

// ExportSpans implements sdktrace.SpanExporter. It logs failures itself and returns nil,
// because the SDK would log each of them.
func (s *spanSender) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		s.spans.WithLabelValues(spansLost).Add(float64(len(spans)))
		if !s.failing.Swap(true) {
			s.logger.Warn("cannot export spans to the collector: they are lost until it accepts them", zap.Error(err))
		}
		return nil
	}
	s.spans.WithLabelValues(spansSent).Add(float64(len(spans)))
	if s.failing.Swap(false) {
		s.logger.Info("the collector accepts spans again")
	}
	return nil
}
