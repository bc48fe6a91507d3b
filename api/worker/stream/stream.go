// Package stream lets a worker take and settle its jobs on one connection instead of by a request for
// each call:
//
//	source, err := stream.New(stream.Config{
//		URL: "https://sous.example", Key: key, Tenant: "t_acme01", Namespace: "default",
//		Fallback: c.Tenant("t_acme01").Namespace("default"),
//	})
//	defer source.Close()
//	w, err := worker.New(source, worker.Config{Concurrency: 20})
//
// The connection needs HTTP/2 from end to end. Where it cannot be opened, as behind a proxy that
// speaks HTTP/1.1 to the server, calls use Fallback, and the stream is tried again later.
package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/worker"
	"github.com/codesous/sous/api/worker/parts"
	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/api/worker/v1/workerv1connect"
	"github.com/codesous/sous/api/worker/wire"
)

const (
	// openTimeout bounds the opening of a stream.
	openTimeout = 10 * time.Second
	// leastPause and mostPause bound the time before a stream that could not be opened is tried again.
	// It doubles each time, and is random from a half of that on.
	leastPause = time.Second
	mostPause  = time.Minute
	// maxResponseBytes bounds a response, of which the server splits larger ones.
	maxResponseBytes = 16 << 20
	// maxFrameBytes bounds the variable fields of a frame, below the bound of the server.
	maxFrameBytes = 7 << 20
	// steadyTime is how long a stream must last to be replaced soon.
	steadyTime = 30 * time.Second
	// cancelTimeout bounds the wait for the last jobs of a fetch that was cancelled, and for a frame that is
	// being sent when its call is.
	cancelTimeout = 5 * time.Second
	// pingInterval is how long a stream may be silent before the server is asked whether it is there.
	pingInterval = 15 * time.Second
)

// Config configures a Source. URL, Tenant, Namespace and Fallback are required.
type Config struct {
	// URL is that of the server, such as https://sous.example.
	URL string
	// Key is the API key ("" for a server without them).
	Key string
	// Tenant and Namespace have the queues.
	Tenant, Namespace string
	// Fallback serves calls while there is no stream. It is a *client.Namespace.
	Fallback worker.Source
	// Client sends the request of the stream (default: one that speaks HTTP/2 only, without TLS where
	// the URL has http).
	Client *http.Client
	// OnError receives the reason why a stream could not be opened or broke (default: ignored).
	OnError func(error)
}

// Source is a worker.Source over a stream. It is safe for concurrent use.
type Source struct {
	cfg    Config
	client workerv1connect.WorkerServiceClient

	opening sync.Mutex // one at a time
	mu      sync.Mutex
	closed  bool
	hello   *workerv1.Hello // of the worker, nil before its first fetch
	conn    *conn           // nil for none
	retryAt time.Time       // when a stream may be opened again
	pause   time.Duration
}

// New returns a Source. It opens the stream with the first call that needs it.
func New(cfg Config) (*Source, error) {
	at, err := url.Parse(cfg.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("stream: %w", err)
	case at.Scheme != "http" && at.Scheme != "https":
		return nil, errors.New("stream: the URL must begin with http:// or https://")
	case cfg.Fallback == nil:
		return nil, errors.New("stream: a fallback is required")
	}
	if err := errors.Join(api.ValidateTenant(cfg.Tenant), api.ValidateName("namespace", cfg.Namespace)); err != nil {
		return nil, err
	}
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	if cfg.Client == nil {
		protocols := &http.Protocols{}
		protocols.SetHTTP2(at.Scheme == "https")
		protocols.SetUnencryptedHTTP2(at.Scheme == "http")
		cfg.Client = &http.Client{Transport: &http.Transport{
			Protocols: protocols, Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: openTimeout}).DialContext, TLSHandshakeTimeout: openTimeout,
			HTTP2: &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: pingInterval}, // a dead server ends the stream
		}}
	}
	return &Source{
		cfg: cfg, pause: leastPause,
		client: workerv1connect.NewWorkerServiceClient(cfg.Client, strings.TrimSuffix(cfg.URL, "/"), connect.WithReadMaxBytes(maxResponseBytes)),
	}, nil
}

// Close ends the stream. Calls in progress fail; later ones use the fallback.
func (s *Source) Close() {
	s.mu.Lock()
	c := s.conn
	s.conn, s.closed = nil, true
	s.mu.Unlock()
	if c != nil {
		c.end(errClosed)
	}
}

// FetchJobs implements worker.Source.
func (s *Source) FetchJobs(ctx context.Context, r api.FetchRequest) ([]api.FetchedJob, error) {
	s.introduce(&r)
	c := s.stream(ctx, r.WorkerID)
	if c == nil {
		return s.cfg.Fallback.FetchJobs(ctx, r)
	}
	jobs, err := c.fetch(ctx, &workerv1.Fetch{Queues: r.Queues, Credits: uint32(max(1, r.Count)), LeaseMs: r.LeaseMS, WaitMs: &r.WaitMS, Once: true}) //nolint:gosec // positive
	return wire.ToJobs(s.cfg.Namespace, jobs), err
}

// AckJobs implements worker.Source.
func (s *Source) AckJobs(ctx context.Context, acks []api.JobAck) ([]api.JobOutcome, error) {
	c := s.stream(ctx, "")
	if c == nil {
		return s.cfg.Fallback.AckJobs(ctx, acks)
	}
	return settle(ctx, c, acks, parts.Ack, func(part []api.JobAck) *workerv1.LifecycleRequest {
		return &workerv1.LifecycleRequest{Acks: wire.FromAcks(part)}
	}, (*workerv1.LifecycleResponse).GetAcked)
}

// FailJobs implements worker.Source.
func (s *Source) FailJobs(ctx context.Context, fails []api.JobFail) ([]api.JobOutcome, error) {
	c := s.stream(ctx, "")
	if c == nil {
		return s.cfg.Fallback.FailJobs(ctx, fails)
	}
	return settle(ctx, c, parts.Cut(fails), parts.Fail, func(part []api.JobFail) *workerv1.LifecycleRequest {
		return &workerv1.LifecycleRequest{Fails: wire.FromFails(part)}
	}, (*workerv1.LifecycleResponse).GetFailed)
}

// HeartbeatJobs implements worker.Source.
func (s *Source) HeartbeatJobs(ctx context.Context, workerID string, beats []api.JobHeartbeat) ([]api.JobOutcome, error) {
	c := s.stream(ctx, workerID)
	if c == nil {
		return s.cfg.Fallback.HeartbeatJobs(ctx, workerID, beats)
	}
	return settle(ctx, c, beats, parts.Heartbeat, func(part []api.JobHeartbeat) *workerv1.LifecycleRequest {
		return &workerv1.LifecycleRequest{Heartbeats: wire.FromHeartbeats(part)}
	}, (*workerv1.LifecycleResponse).GetExtended)
}

// settle sends jobs in frames of bounded size, one after the other, and returns their outcomes.
func settle[T any](ctx context.Context, c *conn, jobs []T, size func(*T) int, frame func([]T) *workerv1.LifecycleRequest, part func(*workerv1.LifecycleResponse) *workerv1.Settled) ([]api.JobOutcome, error) {
	out := make([]api.JobOutcome, 0, len(jobs))
	for some := range parts.Of(jobs, maxFrameBytes, size) {
		res, err := c.call(ctx, frame(some))
		if err != nil {
			return nil, err
		}
		settled := part(res)
		if settled == nil {
			return nil, errMalformed
		}
		if err := wire.ToError(settled.GetError()); err != nil {
			return nil, err
		}
		out = append(out, wire.ToOutcomes(settled.GetOutcomes())...)
	}
	return out, nil
}

// Enqueue adds jobs to a queue, all or none, on the stream of the worker. A repeat under the same key
// adds nothing ("" for none). It fails with ErrNoStream where there is none.
func (s *Source) Enqueue(ctx context.Context, queue, key string, jobs ...api.NewJob) ([]api.EnqueuedJob, error) {
	c := s.stream(ctx, "")
	if c == nil {
		return nil, ErrNoStream
	}
	res, err := c.call(ctx, &workerv1.LifecycleRequest{Enqueues: []*workerv1.Enqueue{{Queue: queue, Jobs: wire.FromNewJobs(jobs), IdempotencyKey: key}}})
	if err != nil {
		return nil, err
	}
	if len(res.GetEnqueued()) != 1 {
		return nil, errMalformed
	}
	return wire.ToEnqueued(res.GetEnqueued()[0])
}

// The errors of a Source.
var (
	// ErrNoStream means that there is no stream at the moment: use the HTTP API.
	ErrNoStream = errors.New("stream: there is no stream at the moment")
	// ErrBroken means that the stream broke: the outcome of the call is unknown.
	ErrBroken = errors.New("stream: the stream broke before the answer")

	errClosed    = errors.New("stream: the source was closed")
	errMalformed = errors.New("stream: a response lacks the part that its frame asked for")
)

// introduce keeps the names of the worker for the stream's hello. Those of its first fetch count.
func (s *Source) introduce(r *api.FetchRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hello == nil {
		s.hello = &workerv1.Hello{Tenant: s.cfg.Tenant, Namespace: s.cfg.Namespace, WorkerId: r.WorkerID, Hostname: r.Hostname, Version: r.Version}
	}
}

// stream returns the stream of the worker of that id ("": of any), nil if there is none now. It opens it
// if it may.
func (s *Source) stream(ctx context.Context, workerID string) *conn {
	if c, final := s.current(workerID); final {
		return c
	}
	if !s.opening.TryLock() {
		return nil // another call opens it
	}
	defer s.opening.Unlock()
	if c, final := s.current(workerID); final {
		return c
	}
	c, err := s.open(ctx)
	if err == nil && s.adopt(c) {
		return c
	}
	if err != nil && ctx.Err() == nil {
		s.postpone()
		s.cfg.OnError(fmt.Errorf("stream: a stream could not be opened, so calls use the fallback: %w", err))
	}
	return nil
}

// adopt makes c the stream of later calls, unless the source was closed.
func (s *Source) adopt(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.end(errClosed)
		return false
	}
	s.conn = c
	return true
}

// postpone sets when a stream may be opened again.
func (s *Source) postpone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause = min(2*s.pause, mostPause)
	s.retryAt = time.Now().Add(s.pause/2 + rand.N(s.pause/2))
}

// ended notes that a stream that was open has ended. One that did not last is not replaced at once.
func (s *Source) ended(lasted time.Duration, err error) {
	if lasted > steadyTime {
		s.mu.Lock()
		s.pause = leastPause / 2
		s.mu.Unlock()
	}
	s.postpone()
	if err != nil {
		s.cfg.OnError(fmt.Errorf("stream: the stream ended, so calls use the fallback for now: %w", err))
	}
}

// current returns the stream for a call of the worker of that id. final is false if one may be opened.
func (s *Source) current(workerID string) (c *conn, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed, s.hello == nil, workerID != "" && workerID != s.hello.GetWorkerId():
		return nil, true
	case s.conn != nil && s.conn.usable():
		return s.conn, true
	}
	return nil, time.Now().Before(s.retryAt)
}

// open opens a stream, and returns once the server has answered its first frame.
func (s *Source) open(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	hello := s.hello
	s.mu.Unlock()
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	opening, stop := context.WithTimeout(ctx, openTimeout)
	defer stop()
	bidi := s.client.Lifecycle(life)
	if s.cfg.Key != "" {
		bidi.RequestHeader().Set("Authorization", "Bearer "+s.cfg.Key)
	}
	c := &conn{bidi: bidi, cancel: cancel, life: life, calls: map[uint64]*call{}, sending: make(chan struct{}, 1)}
	// A send that blocks, as where TLS gets no answer, ends with the time to open.
	abort := context.AfterFunc(opening, func() { c.end(context.Cause(opening)) })
	go c.receive()
	_, err := c.call(opening, &workerv1.LifecycleRequest{Hello: hello})
	if err == nil && !abort() {
		err = context.Cause(opening)
	}
	if err != nil {
		c.end(err)
		return nil, err
	}
	opened := time.Now()
	context.AfterFunc(life, func() { s.ended(time.Since(opened), c.failure()) })
	return c, nil
}
