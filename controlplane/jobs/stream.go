package jobs

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/httpstatus"
	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/api/worker/v1/workerv1connect"
	"github.com/codesous/sous/api/worker/wire"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// The defaults of StreamConfig.
const (
	DefaultStreamFrames    = 2048
	DefaultStreamFrameRate = 500
	DefaultStreamErrors    = 10
)

const (
	// maxFrameBytes bounds a frame: an enqueue of the largest jobs, or many results.
	maxFrameBytes = api.MaxEnqueueBytes + 1<<20
	// firstFrameBytes bounds the first frame, which is read before it is known whose it is.
	firstFrameBytes = 64 << 10
	// streamFrames is how many frames of one stream are handled at the same time. Further ones are not
	// read until one has been answered.
	streamFrames = 64
	// streamFetches is how many fetches of one stream may be in progress.
	streamFetches = 64
	// drainGrace is how long a worker may settle its jobs on the stream of a server that shuts down.
	drainGrace = 5 * time.Second
)

// StreamConfig bounds the streams of workers. Zero values mean the defaults.
type StreamConfig struct {
	// Frames is how many frames of all streams are handled at the same time (default 2,048).
	Frames int
	// FrameRate is how many frames of one stream are read in a second (default 500).
	FrameRate int
	// Errors is after how many answers with an error in a row a stream is closed (default 10).
	Errors int
}

// streams serves workerv1connect.WorkerServiceHandler.
type streams struct {
	api    *API
	cfg    StreamConfig
	frames chan struct{} // has a token for each frame that is handled
	settle settlements
	m      *streamMetrics
}

func newStreams(a *API, cfg StreamConfig) *streams {
	cfg.Frames = cmp.Or(cfg.Frames, DefaultStreamFrames)
	cfg.FrameRate = cmp.Or(cfg.FrameRate, DefaultStreamFrameRate)
	cfg.Errors = cmp.Or(cfg.Errors, DefaultStreamErrors)
	return &streams{api: a, cfg: cfg, frames: make(chan struct{}, cfg.Frames), settle: a.settlements(), m: newStreamMetrics()}
}

// Collectors returns the metrics of the streams of workers.
func (a *API) Collectors() []prometheus.Collector { return a.streams.m.collectors() }

// streamEndpoints declares the stream of workers, which is no part of the OpenAPI document. Each part of
// a frame needs the action of the corresponding route. The tenant and the namespace stand in the first
// frame; introduce checks them.
// Compression is off: a small frame could decompress to a large one.
func (a *API) streamEndpoints() []rest.Endpoint {
	_, handler := workerv1connect.NewWorkerServiceHandler(a.streams, connect.WithCompression("gzip", nil, nil), connect.WithCodec(boundedCodec{}))
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodPost, Path: workerv1connect.WorkerServiceLifecycleProcedure, Action: access.AnyKey, Extent: rest.HandlerNamespace,
		}, func(w http.ResponseWriter, r *http.Request) error {
			if r.ProtoMajor < 2 {
				return api.Errorf(api.CodeInvalid, "the stream of workers needs HTTP/2 from end to end: use it without a proxy that speaks HTTP/1.1, or use the HTTP API")
			}
			switch r.Header.Get("Content-Type") {
			case "application/connect+proto", "application/grpc", "application/grpc+proto":
			default: // frames in JSON would need bounds of their own
				return api.Errorf(api.CodeInvalid, "the stream of workers has messages of protobuf: use the content type application/connect+proto or application/grpc")
			}
			d, r := rest.OpenDuplex(w, r, firstFrameBytes)
			defer d.End()
			handler.ServeHTTP(d.Writer(), r)
			return nil
		}),
	}
}

// Lifecycle serves one stream until the worker ends it, the server drains, the key was revoked or has
// expired, or too many frames in a row were refused.
func (s *streams) Lifecycle(ctx context.Context, stream *bidiStream) error {
	d := rest.DuplexOf(ctx)
	first, err := stream.Receive()
	if err != nil {
		return streamError(ctx, endOfFrames(err))
	}
	who, err := introduce(ctx, first.GetHello())
	if err != nil {
		return streamError(ctx, err)
	}
	select {
	case <-rest.Drained(ctx):
		return streamError(ctx, errDrained)
	default:
	}
	release, err := d.Begin(who.tenant, maxFrameBytes, s.api.waits)
	defer release()
	if err != nil {
		return streamError(ctx, err)
	}
	s.m.open.Inc()
	defer s.m.open.Dec()
	x := newSession(ctx, s, who, d, stream)
	reason, err := x.serve(first)
	s.m.closed.WithLabelValues(reason).Inc()
	return streamError(ctx, err)
}

// worker has the names in the first frame of a stream.
type worker struct {
	tenant, namespace, id, hostname, version string
}

// introduce examines the hello of a stream. Errors: CodeInvalid, CodeTenantNotFound, CodeAuthzDenied.
func introduce(ctx context.Context, hello *workerv1.Hello) (worker, error) {
	c := rest.CallerOf(ctx)
	who := worker{
		tenant: hello.GetTenant(), namespace: hello.GetNamespace(), id: hello.GetWorkerId(), hostname: hello.GetHostname(), version: hello.GetVersion(),
	}
	if hello == nil {
		return who, api.InvalidField("hello", "the first frame must introduce the worker")
	}
	if who.tenant == "" && c.Tenant != api.AllTenants {
		who.tenant = c.Tenant
	}
	if err := api.ValidateTenant(who.tenant); err != nil {
		return who, err
	}
	if !c.Enters(who.tenant) {
		return who, rest.TenantNotFound(who.tenant)
	}
	if err := api.ValidateName("namespace", who.namespace); err != nil {
		return who, err
	}
	if err := api.ValidateWorkerID(who.id); err != nil {
		return who, err
	}
	if err := c.NeedNamespace(who.namespace); err != nil {
		return who, err
	}
	if c.Need(access.JobEnqueue) == nil {
		return who, nil // a producer
	}
	return who, c.Need(access.JobFetch)
}

// streamError returns the error with which a stream ends, nil for none. Its detail has the code of the
// API.
func streamError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	coded := rest.Refusal(ctx, err)
	out := connect.NewError(connectCode(coded.Code), errors.New(coded.Message))
	if detail, err := connect.NewErrorDetail(wire.FromError(coded)); err == nil {
		out.AddDetail(detail)
	}
	return out
}

// connectCode returns the code of the protocol for a code of the API.
func connectCode(code api.Code) connect.Code {
	switch httpstatus.Of(code) {
	case http.StatusUnauthorized:
		return connect.CodeUnauthenticated
	case http.StatusForbidden:
		return connect.CodePermissionDenied
	case http.StatusNotFound:
		return connect.CodeNotFound
	case http.StatusConflict:
		return connect.CodeFailedPrecondition
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return connect.CodeResourceExhausted
	case http.StatusServiceUnavailable:
		return connect.CodeUnavailable
	case http.StatusInternalServerError:
		return connect.CodeInternal
	}
	return connect.CodeInvalidArgument
}

// busy returns the error of a frame that arrives while too many others are handled. It may be sent
// again in 2 to 8 ms, at random, so that workers do not come back together.
func busy() *api.Error {
	err := api.Errorf(api.CodeOverloaded, "this replica handles too many frames at the moment")
	err.RetryAfter = 2*time.Millisecond + rand.N(6*time.Millisecond)
	return err
}

// streamMetrics are the metrics of the streams of workers.
type streamMetrics struct {
	open   prometheus.Gauge
	frames *prometheus.CounterVec
	closed *prometheus.CounterVec
}

// The outcomes of frames, and the reasons for which streams end.
const (
	frameOK         = "ok"
	frameError      = "error"
	frameOverloaded = "overloaded"
	framePaced      = "paced"

	closedClient  = "client"
	closedErrors  = "errors"
	closedDrain   = "drain"
	closedRefused = "refused"
)

func newStreamMetrics() *streamMetrics {
	m := &streamMetrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "sous_worker_streams", Help: "Streams of workers that are open."}),
		frames: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sous_worker_frames_total", Help: "Frames of the streams of workers, by outcome; those that waited because of the rate are counted as paced, too.",
		}, []string{"outcome"}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sous_worker_streams_closed_total", Help: "Streams of workers that ended, by reason.",
		}, []string{"reason"}),
	}
	for _, outcome := range []string{frameOK, frameError, frameOverloaded, framePaced} {
		m.frames.WithLabelValues(outcome)
	}
	for _, reason := range []string{closedClient, closedErrors, closedDrain, closedRefused} {
		m.closed.WithLabelValues(reason)
	}
	return m
}

func (m *streamMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.open, m.frames, m.closed}
}
