package controlplane_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/worker"
	"github.com/codesous/sous/api/worker/stream"
	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/api/worker/v1/workerv1connect"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/controlplane/admission"
	"github.com/codesous/sous/controlplane/jobs"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// workerStream is a stream of a worker of the queue emails in the namespace payments.
type workerStream struct {
	t    *testing.T
	bidi *connect.BidiStreamForClient[workerv1.LifecycleRequest, workerv1.LifecycleResponse]
	last uint64
	end  func() // as of a worker that dies
}

// unencrypted is a client that speaks HTTP/2 without TLS.
func unencrypted(t *testing.T) *http.Client {
	t.Helper()
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// dialStream opens a stream and introduces its worker.
func dialStream(t *testing.T, h *harness, key string, options ...connect.ClientOption) *workerStream {
	t.Helper()
	s := newStream(t, h, key, options...)
	s.send(&workerv1.LifecycleRequest{Hello: &workerv1.Hello{Tenant: h.tenant, Namespace: "payments", WorkerId: "w1", Hostname: "host", Version: "1"}})
	s.receive()
	return s
}

func newStream(t *testing.T, h *harness, key string, options ...connect.ClientOption) *workerStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	bidi := workerv1connect.NewWorkerServiceClient(unencrypted(t), h.URL, options...).Lifecycle(ctx)
	if key != "" {
		bidi.RequestHeader().Set("Authorization", "Bearer "+key)
	}
	s := &workerStream{t: t, bidi: bidi, end: func() {
		cancel()
		_ = bidi.CloseRequest()
		_ = bidi.CloseResponse()
	}}
	t.Cleanup(s.end)
	return s
}

// send sends a frame and returns its id.
func (s *workerStream) send(frame *workerv1.LifecycleRequest) uint64 {
	s.t.Helper()
	s.last++
	frame.RequestId = s.last
	if err := s.bidi.Send(frame); err != nil && !errors.Is(err, io.EOF) {
		s.t.Fatalf("Send: %v", err)
	}
	return s.last
}

func (s *workerStream) receive() *workerv1.LifecycleResponse {
	s.t.Helper()
	res, err := s.bidi.Receive()
	if err != nil {
		s.t.Fatalf("Receive: %v", err)
	}
	return res
}

// call sends a frame and returns its answer, which must be the next response.
func (s *workerStream) call(frame *workerv1.LifecycleRequest) *workerv1.LifecycleResponse {
	s.t.Helper()
	id := s.send(frame)
	res := s.receive()
	if res.GetRequestId() != id {
		s.t.Fatalf("got %v, want the answer to %d", res, id)
	}
	return res
}

// ends returns the error with which the stream ends, after any responses.
func (s *workerStream) ends() error {
	s.t.Helper()
	for {
		_, err := s.bidi.Receive()
		if err != nil {
			return err
		}
	}
}

// code is the code of the API in the error of a stream.
func streamCode(err error) api.Code {
	var coded *connect.Error
	if !errors.As(err, &coded) {
		return ""
	}
	for _, d := range coded.Details() {
		value, _ := d.Value()
		if detail, is := value.(*workerv1.Error); is {
			return api.Code(detail.GetCode())
		}
	}
	return ""
}

func enqueueOf(payloads ...string) []*workerv1.Enqueue {
	e := &workerv1.Enqueue{Queue: "emails"}
	for _, p := range payloads {
		e.Jobs = append(e.Jobs, &workerv1.NewJob{Payload: []byte(p), Tags: map[string]string{"a": "b"}})
	}
	return []*workerv1.Enqueue{e}
}

func fetchOf(credits uint32, wait *int64) *workerv1.Fetch {
	return &workerv1.Fetch{Queues: []string{"emails"}, Credits: credits, WaitMs: wait}
}

// A frame carries all parts, and its response answers each. The protocols of Connect and gRPC do the same.
func TestStreamCarriesTheLifeOfJobs(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t)
			s := dialStream(t, h, "", options...)
			now := int64(0)
			res := s.call(&workerv1.LifecycleRequest{Enqueues: append(enqueueOf(`1`, `{"n":2}`), &workerv1.Enqueue{Queue: "fn.hello"}), Fetch: fetchOf(10, &now)})
			if len(res.GetEnqueued()) != 2 || len(res.GetEnqueued()[0].GetJobs()) != 2 || res.GetEnqueued()[1].GetError().GetCode() != string(api.CodeQueueReserved) {
				t.Fatalf("got %v, want two jobs and a refusal", res.GetEnqueued())
			}
			taken := res.GetFetched().GetJobs()
			if len(taken) != 2 || !res.GetFetched().GetDone() || string(taken[1].GetPayload()) != `{"n":2}` || taken[0].GetTags()["a"] != "b" {
				t.Fatalf("got %v, want both jobs", res.GetFetched())
			}
			res = s.call(&workerv1.LifecycleRequest{
				Acks:       []*workerv1.Ack{{Id: taken[0].GetId(), LeaseEpoch: taken[0].GetLeaseEpoch(), Result: []byte(`"done"`)}, {Id: taken[0].GetId(), LeaseEpoch: 99}},
				Fails:      []*workerv1.Fail{{Id: taken[1].GetId(), LeaseEpoch: taken[1].GetLeaseEpoch(), Error: "no", Fatal: true}},
				Heartbeats: []*workerv1.Heartbeat{{Id: "01ARZ3NDEKTSV4RRFFQ69G5FAV", LeaseEpoch: 1}},
			})
			acked, failed, extended := res.GetAcked().GetOutcomes(), res.GetFailed().GetOutcomes(), res.GetExtended().GetOutcomes()
			if len(acked) != 2 || !acked[0].GetOk() || acked[1].GetOk() || len(failed) != 1 || !failed[0].GetOk() || len(extended) != 1 || extended[0].GetOk() {
				t.Fatalf("got %v, want an outcome for each job", res)
			}
			if got := h.job(t, taken[0].GetId()); got.State != api.JobCompleted || string(got.Result) != `"done"` || got.WorkerID != "w1" {
				t.Errorf("got %+v, want a completed job", got)
			}
			if got := h.job(t, taken[1].GetId()); got.State != api.JobDead || got.DeadReason != api.DeadFatal {
				t.Errorf("got %+v, want a dead job", got)
			}
			if err := s.bidi.CloseRequest(); err != nil {
				t.Fatalf("CloseRequest: %v", err)
			}
			if err := s.ends(); !errors.Is(err, io.EOF) {
				t.Errorf("got error %v, want the end of the stream", err)
			}
		})
	}
}

// A fetch without a wait has jobs pushed as they arrive, as many as it has credits, and can be cancelled.
func TestStreamPushesJobsForCredits(t *testing.T) {
	t.Parallel()
	h := start(t)
	s, producer := dialStream(t, h, ""), dialStream(t, h, "")
	id := s.send(&workerv1.LifecycleRequest{Fetch: fetchOf(3, nil)})
	if res := s.receive(); res.GetRequestId() != id || res.GetFetched().GetDone() || len(res.GetFetched().GetJobs()) != 0 {
		t.Fatalf("got %v, want a fetch that waits", res)
	}
	for n := range 2 {
		producer.call(&workerv1.LifecycleRequest{Enqueues: enqueueOf(fmt.Sprint(n))})
		if res := s.receive(); res.GetRequestId() != id || res.GetFetched().GetDone() || len(res.GetFetched().GetJobs()) != 1 {
			t.Fatalf("got %v, want one job", res)
		}
	}
	producer.call(&workerv1.LifecycleRequest{Enqueues: enqueueOf("3", "4")})
	if res := s.receive(); !res.GetFetched().GetDone() || len(res.GetFetched().GetJobs()) != 1 {
		t.Fatalf("got %v, want the last job for the credits", res)
	}
	// The fourth job is for another fetch, which ends with it.
	once := fetchOf(5, nil)
	once.Once = true
	if res := s.call(&workerv1.LifecycleRequest{Fetch: once}); !res.GetFetched().GetDone() || len(res.GetFetched().GetJobs()) != 1 {
		t.Fatalf("got %v, want the fourth job", res)
	}
	second := s.send(&workerv1.LifecycleRequest{Fetch: fetchOf(1, nil)})
	s.receive()
	cancelling := s.send(&workerv1.LifecycleRequest{CancelFetches: []uint64{second}})
	for range 2 {
		switch res := s.receive(); res.GetRequestId() {
		case second:
			if !res.GetFetched().GetDone() {
				t.Errorf("got %v, want the end of the fetch", res)
			}
		case cancelling:
		default:
			t.Errorf("got %v, want the end of the fetch and an answer", res)
		}
	}
}

// A worker that goes away while its fetch waits takes no job with it.
func TestStreamThatEndsTakesNoJob(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	h := start(t, func(c *controlplane.Config) { c.Metrics = reg })
	s, other := dialStream(t, h, ""), dialStream(t, h, "")
	s.call(&workerv1.LifecycleRequest{Fetch: fetchOf(3, nil)})
	s.end()
	storagetest.Eventually(t, func() bool { return metricstest.Value(t, reg, "sous_worker_streams") == 1 })
	now := int64(0)
	res := other.call(&workerv1.LifecycleRequest{Enqueues: enqueueOf("1"), Fetch: fetchOf(1, &now)})
	if jobs := res.GetFetched().GetJobs(); len(jobs) != 1 || jobs[0].GetAttempt() != 1 {
		t.Errorf("got %v, want the job in its first attempt", res.GetFetched())
	}
}

// A stream is read at its rate.
func TestStreamHasARateOfFrames(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	h := start(t, func(c *controlplane.Config) { c.Metrics, c.Streams = reg, jobs.StreamConfig{FrameRate: 10} })
	s := dialStream(t, h, "")
	begin := time.Now()
	for range 20 {
		s.call(&workerv1.LifecycleRequest{})
	}
	// 10 at once, and then one each 100 ms.
	if took := time.Since(begin); took < 800*time.Millisecond {
		t.Errorf("20 frames took %s, want at least 800ms", took)
	}
	if got := metricstest.Value(t, reg, "sous_worker_frames_total", "outcome=paced"); got < 5 {
		t.Errorf("got %g paced frames, want at least 5", got)
	}
}

// Ten answers in a row that refuse a frame close the stream; nine do not.
func TestStreamEndsAfterErrorsInARow(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	h := start(t, func(c *controlplane.Config) { c.Metrics = reg })
	s := dialStream(t, h, "")
	for range 2 {
		for range 9 {
			if res := s.call(&workerv1.LifecycleRequest{Acks: make([]*workerv1.Ack, 1001)}); res.GetError() == nil {
				t.Fatalf("got %v, want a refusal", res)
			}
		}
		s.call(&workerv1.LifecycleRequest{})
	}
	for range 10 {
		s.send(&workerv1.LifecycleRequest{Fetch: fetchOf(0, nil)})
	}
	if err := s.ends(); connect.CodeOf(err) != connect.CodeResourceExhausted || streamCode(err) != api.CodeCapacityLimit {
		t.Errorf("got error %v, want %s", err, api.CodeCapacityLimit)
	}
	if got := metricstest.Value(t, reg, "sous_worker_streams_closed_total", "reason=errors"); got != 1 {
		t.Errorf("got %g streams closed for errors, want 1", got)
	}
}

// A replica handles so many frames at once; one more is refused with a hint.
func TestFramesInFlightAreLimited(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	h := start(t, func(c *controlplane.Config) { c.Metrics, c.Streams = reg, jobs.StreamConfig{Frames: 1} })
	s, other := dialStream(t, h, ""), dialStream(t, h, "")
	entered, leave := make(chan struct{}), make(chan struct{})
	h.engine.authorize = func(*api.Invocation) error {
		close(entered)
		<-leave
		return nil
	}
	held := enqueueOf("1")
	held[0].Jobs[0].Chain = &workerv1.Chain{Steps: []*workerv1.ChainStep{{Queue: "fn.hello", Job: &workerv1.NewJob{Target: &workerv1.Target{Function: "hello", Alias: "prod"}}}}}
	s.send(&workerv1.LifecycleRequest{Enqueues: held})
	<-entered
	res := other.call(&workerv1.LifecycleRequest{})
	if e := res.GetError(); e.GetCode() != string(api.CodeOverloaded) || e.GetRetryAfterMs() < 2 || e.GetRetryAfterMs() > 8 {
		t.Errorf("got %v, want %s with a hint of 2 to 8 ms", res, api.CodeOverloaded)
	}
	if got := metricstest.Value(t, reg, "sous_worker_frames_total", "outcome=overloaded"); got != 1 {
		t.Errorf("got %g frames refused, want 1", got)
	}
	close(leave)
	if res := s.receive(); res.GetEnqueued()[0].GetError() != nil {
		t.Errorf("got %v, want a job", res)
	}
	storagetest.Eventually(t, func() bool { return other.call(&workerv1.LifecycleRequest{}).GetError() == nil })
}

// A frame that takes jobs while too many fetches are at work tries again, where a request is refused.
func TestStreamWaitsAtTheGateOfAQueue(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	store := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	h := startWith(t, store, queue.Config{Fetches: 1, Metrics: reg})
	s, other := dialStream(t, h, ""), dialStream(t, h, "")
	s.call(&workerv1.LifecycleRequest{Enqueues: enqueueOf("1", "2")})
	entered, leave := make(chan struct{}), make(chan struct{})
	var first sync.Once
	store.Client().AddHook(storagetest.Before(func(cmds []redis.Cmder) {
		if strings.HasPrefix(cmds[0].Name(), "evalsha") {
			first.Do(func() { close(entered); <-leave })
		}
	}))
	s.send(&workerv1.LifecycleRequest{Fetch: fetchOf(1, nil)})
	<-entered
	other.send(&workerv1.LifecycleRequest{Fetch: fetchOf(1, nil)})
	storagetest.Eventually(t, func() bool { return metricstest.Value(t, reg, "sous_queue_fetches_total", "outcome=overloaded") > 0 })
	close(leave)
	for _, worker := range []*workerStream{s, other} {
		if res := worker.receive(); len(res.GetFetched().GetJobs()) != 1 {
			t.Errorf("got %v, want a job", res)
		}
	}
}

// A worker that does not read its answers loses its stream. The jobs that did not leave return to their
// queue at once.
func TestStreamOfAWorkerThatDoesNotReadEnds(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	h := start(t, func(c *controlplane.Config) { c.Metrics, c.AnswerTimeout = reg, 200*time.Millisecond })
	s := dialStream(t, h, "")
	// More than the window of the client, in small answers, whose deadlines are near.
	const count = 64
	payload := `"` + strings.Repeat("x", 100<<10) + `"`
	for range count / 16 {
		s.call(&workerv1.LifecycleRequest{Enqueues: enqueueOf(slices.Repeat([]string{payload}, 16)...)})
	}
	for range count {
		s.send(&workerv1.LifecycleRequest{Fetch: fetchOf(1, nil)})
	}
	storagetest.Eventually(t, func() bool { return metricstest.Value(t, reg, "sous_worker_streams") == 0 })
	returned := func() int64 {
		q, err := h.queue.GetQueue(t.Context(), h.tenant, "payments", "emails")
		if err != nil {
			t.Fatalf("GetQueue: %v", err)
		}
		return q.Depths[api.JobPending] + q.Depths[api.JobRetrying]
	}
	storagetest.Eventually(t, func() bool { return returned() > 0 })
}

// A stream needs HTTP/2, the first frame must introduce the worker, and a frame has a largest size.
func TestStreamRefusesWhatIsNoFrame(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.call(t, "POST", workerv1connect.WorkerServiceLifecycleProcedure, "", "Content-Type", "application/connect+proto")
	a.refused(t, http.StatusUnprocessableEntity, api.CodeInvalid)
	for name, first := range map[string]*workerv1.LifecycleRequest{
		"no hello":      {},
		"no tenant":     {Hello: &workerv1.Hello{Namespace: "payments", WorkerId: "w1"}},
		"bad namespace": {Hello: &workerv1.Hello{Tenant: h.tenant, Namespace: "Pay", WorkerId: "w1"}},
		"no worker":     {Hello: &workerv1.Hello{Tenant: h.tenant, Namespace: "payments"}},
	} {
		s := newStream(t, h, "")
		s.send(first)
		if err := s.ends(); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: got error %v, want %s", name, err, connect.CodeInvalidArgument)
		}
	}
	s := dialStream(t, h, "")
	s.send(&workerv1.LifecycleRequest{Enqueues: enqueueOf(`"` + string(bytes.Repeat([]byte("x"), 10<<20)) + `"`)})
	if err := s.ends(); streamCode(err) != api.CodeBodyLimit {
		t.Errorf("got error %v, want %s", err, api.CodeBodyLimit)
	}
	bad := dialStream(t, h, "")
	if err := bad.bidi.Send(&workerv1.LifecycleRequest{}); err != nil { // without an id
		t.Fatalf("Send: %v", err)
	}
	if res := bad.receive(); res.GetError().GetFields()[0].GetPath() != "request_id" {
		t.Errorf("got %v, want a refusal of request_id", res)
	}
}

// Fields that are stored as JSON must be JSON, since other workers get it as it is.
func TestStreamStoresOnlyJSON(t *testing.T) {
	t.Parallel()
	h := start(t)
	s := dialStream(t, h, "")
	now := int64(0)
	job := s.call(&workerv1.LifecycleRequest{Enqueues: enqueueOf("1"), Fetch: fetchOf(1, &now)}).GetFetched().GetJobs()[0]
	const injected = `{},"lease_epoch":7,"x":{}`
	for name, frame := range map[string]*workerv1.LifecycleRequest{
		"acks[0].result":           {Acks: []*workerv1.Ack{{Id: job.GetId(), LeaseEpoch: job.GetLeaseEpoch(), Result: []byte(injected)}}},
		"acks[0].checkpoint":       {Acks: []*workerv1.Ack{{Id: job.GetId(), LeaseEpoch: job.GetLeaseEpoch(), Continue: true, Checkpoint: []byte("\"\xff\"")}}},
		"jobs[0].checkpoint":       {Heartbeats: []*workerv1.Heartbeat{{Id: job.GetId(), LeaseEpoch: job.GetLeaseEpoch(), Checkpoint: []byte(injected)}}},
		"jobs[1].payload":          {Enqueues: enqueueOf("1", "\"\xff\"")},
		"jobs[0].result_schema":    {Enqueues: []*workerv1.Enqueue{{Queue: "emails", Jobs: []*workerv1.NewJob{{ResultSchema: []byte("{")}}}}},
		"chain.steps[0].payload":   {Enqueues: []*workerv1.Enqueue{{Queue: "emails", Jobs: []*workerv1.NewJob{{Chain: &workerv1.Chain{Steps: []*workerv1.ChainStep{{Job: &workerv1.NewJob{Payload: []byte("{")}}}}}}}}},
		"chain.on_failure.payload": {Enqueues: []*workerv1.Enqueue{{Queue: "emails", Jobs: []*workerv1.NewJob{{Chain: &workerv1.Chain{OnFailure: &workerv1.ChainStep{Job: &workerv1.NewJob{Payload: []byte("{")}}}}}}}},
	} {
		res := s.call(frame)
		var got *workerv1.Error
		for _, e := range []*workerv1.Error{res.GetAcked().GetError(), res.GetExtended().GetError()} {
			if e != nil {
				got = e
			}
		}
		if e := res.GetEnqueued(); len(e) > 0 {
			got = e[0].GetError()
		}
		if got.GetCode() != string(api.CodeValidationJSON) || !strings.Contains(got.GetMessage(), name) {
			t.Errorf("got %v, want %s of %s", res, api.CodeValidationJSON, name)
		}
		s.call(&workerv1.LifecycleRequest{})
	}
	res := s.call(&workerv1.LifecycleRequest{Acks: []*workerv1.Ack{{Id: job.GetId(), LeaseEpoch: job.GetLeaseEpoch(), Result: []byte(`{"a":1}`)}}})
	if !res.GetAcked().GetOutcomes()[0].GetOk() {
		t.Errorf("got %v, want the job settled", res)
	}
}

// The id of a fetch in progress is taken, and a stream that its worker half closes ends although a fetch
// waits.
func TestStreamEndsWithItsWaitingFetches(t *testing.T) {
	t.Parallel()
	h := start(t)
	s := dialStream(t, h, "")
	id := s.send(&workerv1.LifecycleRequest{Fetch: fetchOf(1, nil)})
	s.receive()
	if err := s.bidi.Send(&workerv1.LifecycleRequest{RequestId: id, Fetch: fetchOf(1, nil)}); err != nil {
		t.Fatalf("Send: %v", err)
	}
	if res := s.receive(); res.GetError().GetFields()[0].GetPath() != "request_id" {
		t.Errorf("got %v, want a refusal of request_id", res)
	}
	for range 63 {
		s.call(&workerv1.LifecycleRequest{Fetch: fetchOf(1, nil)})
	}
	if res := s.call(&workerv1.LifecycleRequest{Fetch: fetchOf(1, nil)}); res.GetError().GetCode() != string(api.CodeCapacityLimit) {
		t.Errorf("got %v, want %s for fetch 65", res, api.CodeCapacityLimit)
	}
	s.send(&workerv1.LifecycleRequest{Fetch: fetchOf(1000, nil)})
	if err := s.bidi.CloseRequest(); err != nil {
		t.Fatalf("CloseRequest: %v", err)
	}
	if err := s.ends(); !errors.Is(err, io.EOF) {
		t.Errorf("got error %v, want the end of the stream", err)
	}
}

// Jobs that are large together come in several responses, which clients of gRPC take.
func TestStreamSplitsLargeFetches(t *testing.T) {
	t.Parallel()
	h := start(t)
	s := dialStream(t, h, "", connect.WithGRPC(), connect.WithReadMaxBytes(4<<20))
	payload := `"` + strings.Repeat("x", 900<<10) + `"`
	for range 6 {
		s.call(&workerv1.LifecycleRequest{Enqueues: enqueueOf(payload)})
	}
	s.send(&workerv1.LifecycleRequest{Fetch: fetchOf(6, nil)})
	responses, taken := 0, 0
	for done := false; !done; responses++ {
		res := s.receive()
		taken, done = taken+len(res.GetFetched().GetJobs()), res.GetFetched().GetDone()
	}
	if taken != 6 || responses < 3 {
		t.Errorf("got %d jobs in %d responses, want 6 in at least 3", taken, responses)
	}
}

// A frame may not have more elements than a request, however few bytes it has, nor a first frame more
// bytes than it needs. Both are refused before they take memory.
func TestStreamRefusesFramesThatGrow(t *testing.T) {
	t.Parallel()
	h := start(t)
	s := newStream(t, h, "")
	s.send(&workerv1.LifecycleRequest{Hello: &workerv1.Hello{Tenant: h.tenant, Namespace: "payments", WorkerId: "w1", Version: strings.Repeat("x", 65<<10)}})
	if err := s.ends(); streamCode(err) != api.CodeBodyLimit {
		t.Errorf("a large first frame: got error %v, want %s", err, api.CodeBodyLimit)
	}
	s = dialStream(t, h, "")
	s.send(&workerv1.LifecycleRequest{Acks: make([]*workerv1.Ack, 50_000)})
	if err := s.ends(); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("50,000 acks: got error %v, want %s", err, connect.CodeInvalidArgument)
	}
}

// Frames in JSON are refused, since only those of protobuf are counted before they take memory.
func TestStreamRefusesJSON(t *testing.T) {
	t.Parallel()
	h := start(t)
	s := newStream(t, h, "", connect.WithProtoJSON())
	s.send(&workerv1.LifecycleRequest{Hello: &workerv1.Hello{Tenant: h.tenant, Namespace: "payments", WorkerId: "w1"}})
	if _, err := s.bidi.Receive(); err == nil {
		t.Error("Receive: got no error, want a refusal")
	}
}

// A part of a frame counts in the rates of the client as its request would.
func TestPartsOfFramesCountInTheRates(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *controlplane.Config) { c.Rates = admission.RateConfig{Reads: 1000, Writes: 1} })
	s := dialStream(t, h, "") // the request is the one write of the second
	acks := []*workerv1.Ack{{Id: "01ARZ3NDEKTSV4RRFFQ69G5FAV", LeaseEpoch: 1}}
	fails := []*workerv1.Fail{{Id: "01ARZ3NDEKTSV4RRFFQ69G5FAV", LeaseEpoch: 1}}
	if res := s.call(&workerv1.LifecycleRequest{Acks: acks, Fails: fails, Enqueues: enqueueOf("1")}); res.GetError().GetCode() != string(api.CodeCapacityLimit) {
		t.Errorf("got %v, want %s", res, api.CodeCapacityLimit)
	}
	now := int64(0)
	if res := s.call(&workerv1.LifecycleRequest{Fetch: fetchOf(1, &now)}); res.GetError() != nil {
		t.Errorf("a fetch: got %v, want no error", res)
	}
}

// A panic ends the stream instead of the process.
func TestPanicEndsOnlyItsStream(t *testing.T) {
	t.Parallel()
	h := start(t)
	s := dialStream(t, h, "")
	h.engine.authorize = func(*api.Invocation) error { panic("of the test") }
	e := enqueueOf("1")
	e[0].Jobs[0].Chain = &workerv1.Chain{Steps: []*workerv1.ChainStep{{Queue: "fn.hello", Job: &workerv1.NewJob{Target: &workerv1.Target{Function: "hello", Alias: "prod"}}}}}
	s.send(&workerv1.LifecycleRequest{Enqueues: e})
	if err := s.ends(); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("got error %v, want %s", err, connect.CodeInternal)
	}
	dialStream(t, h, "")
}

// A server that drains ends the fetches, lets jobs be settled, and then ends the stream.
func TestStreamDrains(t *testing.T) {
	t.Parallel()
	h := start(t)
	s := dialStream(t, h, "")
	now := int64(0)
	taken := s.call(&workerv1.LifecycleRequest{Enqueues: enqueueOf("1"), Fetch: fetchOf(1, &now)}).GetFetched().GetJobs()
	waiting := s.send(&workerv1.LifecycleRequest{Fetch: fetchOf(1, nil)})
	s.receive()
	h.control.Drain()
	seen := map[string]bool{}
	for range 2 {
		res := s.receive()
		seen["draining"] = seen["draining"] || res.GetDraining()
		seen["done"] = seen["done"] || res.GetRequestId() == waiting && res.GetFetched().GetDone()
	}
	if !seen["draining"] || !seen["done"] {
		t.Fatalf("got %v, want a notice and the end of the fetch", seen)
	}
	res := s.call(&workerv1.LifecycleRequest{Acks: []*workerv1.Ack{{Id: taken[0].GetId(), LeaseEpoch: taken[0].GetLeaseEpoch()}}, Fetch: fetchOf(1, nil)})
	if !res.GetAcked().GetOutcomes()[0].GetOk() || !res.GetFetched().GetDone() {
		t.Errorf("got %v, want an ack, and a fetch that ends", res)
	}
	if err := s.ends(); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("got error %v, want %s", err, connect.CodeUnavailable)
	}
}

// A stream has the rights of its key, for as long as the key holds.
func TestStreamHasTheRightsOfItsKey(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	viewer, _ := k.key(t, "viewer")
	admin, record := k.key(t, "admin")
	confined, _ := k.key(t, "admin", func(key *api.Key) { key.Namespace = "billing" })
	hello := func(tenant string) *workerv1.LifecycleRequest {
		return &workerv1.LifecycleRequest{Hello: &workerv1.Hello{Tenant: tenant, Namespace: "payments", WorkerId: "w1"}}
	}
	for name, test := range map[string]struct {
		key    string
		tenant string
		want   connect.Code
	}{
		"no key":            {"", k.tenant, connect.CodeUnauthenticated},
		"viewer":            {viewer, k.tenant, connect.CodePermissionDenied},
		"another tenant":    {admin, "t_other1", connect.CodeNotFound},
		"another namespace": {confined, k.tenant, connect.CodePermissionDenied},
	} {
		s := newStream(t, k.harness, test.key)
		s.send(hello(test.tenant))
		if err := s.ends(); connect.CodeOf(err) != test.want {
			t.Errorf("%s: got error %v, want %s", name, err, test.want)
		}
	}
	s := newStream(t, k.harness, admin)
	if res := s.call(hello("")); res.GetError() != nil {
		t.Fatalf("got %v, want the tenant of the key", res)
	}
	if a := k.as(t, admin, "DELETE", "/v1/tenants/"+k.tenant+"/keys/"+record.ID, ""); a.status != http.StatusNoContent {
		t.Fatalf("revoke: got status %d, want 204", a.status)
	}
	var err error
	for range 100 {
		s.send(&workerv1.LifecycleRequest{})
		_, err = s.bidi.Receive()
		if err != nil {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	if connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("got error %v, want %s", err, connect.CodeUnauthenticated)
	}
}

// The Go worker takes and settles its jobs on a stream; behind a proxy of HTTP/1.1 it uses requests.
func TestTheWorkerOnAStream(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(*testing.T, *harness) string{
		"stream": func(_ *testing.T, h *harness) string { return h.URL },
		"fallback": func(t *testing.T, h *harness) string {
			at, err := url.Parse(h.URL)
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			proxy := httptest.NewServer(httputil.NewSingleHostReverseProxy(at))
			t.Cleanup(proxy.Close)
			return proxy.URL
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := prometheus.NewRegistry()
			h := start(t, func(c *controlplane.Config) { c.Metrics = reg })
			at := through(t, h)
			c, err := client.New(at, client.Config{})
			if err != nil {
				t.Fatalf("New: %v", err)
			}
			namespace := c.Tenant(h.tenant).Namespace("payments")
			var failures atomic.Int64
			source, err := stream.New(stream.Config{
				URL: at, Tenant: h.tenant, Namespace: "payments", Fallback: namespace, OnError: func(error) { failures.Add(1) },
			})
			if err != nil {
				t.Fatalf("New: %v", err)
			}
			t.Cleanup(source.Close)
			const total = 200
			made, err := namespace.Queue("emails").Enqueue(t.Context(), "", make([]api.NewJob, total)...)
			if err != nil {
				t.Fatalf("Enqueue: %v", err)
			}
			w, err := worker.New(source, worker.Config{Concurrency: 8, OnError: func(err error) { t.Errorf("OnError: got error %v, want no call", err) }})
			if err != nil {
				t.Fatalf("New: %v", err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var done atomic.Int64
			w.Handle("emails", func(_ context.Context, j *worker.Job) error {
				n := done.Add(1)
				if n == total {
					stop()
				}
				if n == 1 {
					return worker.Fatal(errors.New("no UTF-8: \xff"))
				}
				return j.Return(j.ID)
			})
			if err := w.Run(ctx); err != nil {
				t.Fatalf("Run: %v", err)
			}
			states := map[api.JobState]int{}
			for _, job := range made {
				got := h.job(t, job.ID)
				states[got.State]++
				if got.State == api.JobCompleted && string(got.Result) != `"`+job.ID+`"` {
					t.Errorf("got result %s, want the id of the job", got.Result)
				}
			}
			if states[api.JobCompleted] != total-1 || states[api.JobDead] != 1 {
				t.Errorf("got %v, want %d completed and 1 dead", states, total-1)
			}
			streamed := metricstest.Value(t, reg, "sous_worker_frames_total", "outcome=ok") > 0
			if streamed != (name == "stream") || (failures.Load() > 0) != (name == "fallback") {
				t.Errorf("got frames %v and %d failures to open a stream, want frames only on a stream", streamed, failures.Load())
			}
		})
	}
}

// A stream that breaks is opened again, and what was in progress is repeated: no job is lost, and none
// is completed twice.
func TestTheWorkerOutlivesItsStream(t *testing.T) {
	t.Parallel()
	h := start(t)
	maintain(t, h)
	c, err := client.New(h.URL, client.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	namespace := c.Tenant(h.tenant).Namespace("payments")
	source, err := stream.New(stream.Config{URL: h.URL, Tenant: h.tenant, Namespace: "payments", Fallback: namespace})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(source.Close)
	const total = 300
	made, err := namespace.Queue("emails").Enqueue(t.Context(), "", make([]api.NewJob, total)...)
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	w, err := worker.New(source, worker.Config{Concurrency: 4, Lease: 2 * time.Second})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var runs atomic.Int64
	w.Handle("emails", func(context.Context, *worker.Job) error {
		if runs.Add(1)%50 == 0 {
			h.CloseClientConnections()
		}
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	storagetest.Eventually(t, func() bool {
		stats, err := namespace.Queue("emails").Get(t.Context())
		return err == nil && stats.Depths[api.JobCompleted] == total
	})
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	for _, job := range made {
		if got := h.job(t, job.ID); got.State != api.JobCompleted {
			t.Errorf("got %s, want it completed", got.State)
		}
	}
}
