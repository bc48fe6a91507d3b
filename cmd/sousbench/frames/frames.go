// Package frames holds the workers of benchmarks: a stream each, and one goroutine.
package frames

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"

	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/api/worker/v1/workerv1connect"
)

// Worker is a worker that sends one frame after the other.
type Worker struct {
	bidi *connect.BidiStreamForClient[workerv1.LifecycleRequest, workerv1.LifecycleResponse]
	id   uint64
	acks []*workerv1.Ack // of the jobs in hand
}

// New opens a stream of a worker to the server at url.
func New(ctx context.Context, url, tenant, namespace, name string) (*Worker, error) {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	c := workerv1connect.NewWorkerServiceClient(&http.Client{Transport: &http.Transport{Protocols: protocols}}, url)
	w := &Worker{bidi: c.Lifecycle(ctx)}
	err := w.Send(&workerv1.LifecycleRequest{Hello: &workerv1.Hello{Tenant: tenant, Namespace: namespace, WorkerId: name}})
	if err == nil {
		_, err = w.bidi.Receive()
	}
	return w, err
}

// Send sends a frame under the next id.
func (w *Worker) Send(frame *workerv1.LifecycleRequest) error {
	w.id++
	frame.RequestId = w.id
	return w.bidi.Send(frame)
}

// Receive returns the next answer.
func (w *Worker) Receive() (*workerv1.LifecycleResponse, error) { return w.bidi.Receive() }

// Load describes the frames of a worker.
type Load struct {
	Queues []string
	Add    func() *workerv1.Enqueue // what a frame adds, nil for nothing
	Take   int                      // jobs that a frame asks for
	Window int                      // frames that are under way
}

// Run sends frames until then, and then acknowledges the jobs in hand. It returns the number of jobs that
// were acknowledged, or else added. Frames that only take end with the queue.
func (w *Worker) Run(l Load, until time.Time) (done int, err error) {
	empty := false
	for underway := 0; ; {
		sending := time.Now().Before(until) && !empty
		for underway < l.Window && (sending || len(w.acks) > 0) {
			f := &workerv1.LifecycleRequest{}
			if l.Add != nil && sending {
				f.Enqueues = []*workerv1.Enqueue{l.Add()}
			}
			if l.Take > 0 && sending {
				now := int64(0)
				f.Fetch = &workerv1.Fetch{Queues: l.Queues, Credits: uint32(l.Take), WaitMs: &now} //nolint:gosec // a batch
			}
			f.Acks, w.acks = w.acks, nil
			if err := w.Send(f); err != nil {
				return done, err
			}
			underway++
		}
		if underway == 0 {
			return done, nil
		}
		res, err := w.bidi.Receive()
		if err != nil {
			return done, err
		}
		underway--
		added, acked, err := counts(res)
		if err != nil {
			return done, err
		}
		if l.Take == 0 && l.Add != nil {
			done += added
		}
		done += acked
		w.Keep(res.GetFetched().GetJobs())
		empty = empty || l.Add == nil && res.GetFetched() != nil && len(res.GetFetched().GetJobs()) == 0
	}
}

// counts returns how many jobs the frame of a response has added and acknowledged.
func counts(res *workerv1.LifecycleResponse) (added, acked int, err error) {
	if res.GetError() != nil {
		return 0, 0, errors.New(res.GetError().GetMessage())
	}
	for _, e := range res.GetEnqueued() {
		if e.GetError() != nil {
			return 0, 0, errors.New(e.GetError().GetMessage())
		}
		added += len(e.GetJobs())
	}
	for _, o := range res.GetAcked().GetOutcomes() {
		if !o.GetOk() {
			return 0, 0, errors.New(o.GetMessage())
		}
		acked++
	}
	return added, acked, nil
}

// Keep takes jobs into the hand.
func (w *Worker) Keep(jobs []*workerv1.Job) {
	for _, j := range jobs {
		w.acks = append(w.acks, &workerv1.Ack{Id: j.GetId(), LeaseEpoch: j.GetLeaseEpoch()})
	}
}

// Close ends the stream.
func (w *Worker) Close() { _ = w.bidi.CloseRequest() }
