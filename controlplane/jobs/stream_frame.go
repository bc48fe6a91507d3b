package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/api/worker/wire"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue"
)

// maxFrameEnqueues bounds the enqueues of a frame, which run at the same time.
const maxFrameEnqueues = 16

// examine refuses a frame that has too much, before it is converted. It returns the number of elements
// of its lists. CodeInvalid is its error.
func examine(f *workerv1.LifecycleRequest) (elements int64, err error) {
	jobs := 0
	for _, e := range f.GetEnqueues() {
		jobs += len(e.GetJobs())
	}
	for _, part := range []struct {
		name        string
		count, most int
	}{
		{"acks", len(f.GetAcks()), api.MaxSettleJobs}, {"fails", len(f.GetFails()), api.MaxSettleJobs}, {"heartbeats", len(f.GetHeartbeats()), api.MaxSettleJobs},
		{"enqueues", len(f.GetEnqueues()), maxFrameEnqueues}, {"enqueues.jobs", jobs, api.MaxEnqueueJobs}, {"cancel_fetches", len(f.GetCancelFetches()), streamFetches},
	} {
		if part.count > part.most {
			return 0, api.InvalidField(part.name, fmt.Sprintf("has %d, and a frame may have %d", part.count, part.most))
		}
		elements += int64(part.count)
	}
	if f.GetRequestId() == 0 {
		return 0, api.InvalidField("request_id", "must be positive")
	}
	for _, e := range f.GetEnqueues() {
		for _, j := range e.GetJobs() {
			elements += int64(len(j.GetTags()) + len(j.GetDependsOn()) + len(j.GetChain().GetSteps()))
		}
	}
	return elements, nil
}

// handle carries out a frame and answers it. Its parts run concurrently, but for the fetch, which
// finds the room that settled jobs leave. A frame that the stream does not outlive is carried out
// nonetheless: it may have taken or settled jobs already.
func (x *session) handle(c *call) {
	if err := x.charge(c.frame); err != nil {
		x.forget(c)
		x.refuse(c.frame.GetRequestId(), err, false)
		return
	}
	res := &workerv1.LifecycleResponse{RequestId: c.frame.GetRequestId()}
	ctx := context.WithoutCancel(x.ctx)
	x.settleParts(ctx, c.frame, res)
	if c.frame.GetFetch() != nil {
		x.fetch(ctx, c, res)
		return
	}
	x.forget(c)
	x.count(res)
	_ = x.send(res) // an error ends the stream
}

// charge has each part of a frame count in the rates of the client, as its request would.
func (x *session) charge(f *workerv1.LifecycleRequest) error {
	writes := len(f.GetEnqueues())
	for _, n := range []int{len(f.GetAcks()), len(f.GetFails()), len(f.GetHeartbeats())} {
		writes += min(n, 1)
	}
	for range writes {
		if err := x.duplex.Pace(x.ctx, true); err != nil {
			return err
		}
	}
	if f.GetFetch() == nil {
		return nil
	}
	return x.duplex.Pace(x.ctx, false)
}

// count counts a frame by its response.
func (x *session) count(res *workerv1.LifecycleResponse) {
	outcome := frameOK
	if len(refusals(res)) > 0 {
		outcome = frameError
	}
	x.m.frames.WithLabelValues(outcome).Inc()
}

// settleParts carries out all parts of a frame but the fetch.
func (x *session) settleParts(ctx context.Context, frame *workerv1.LifecycleRequest, res *workerv1.LifecycleResponse) {
	var parts sync.WaitGroup
	part := func(f func()) { parts.Go(func() { x.guard(f) }) }
	if acks := frame.GetAcks(); len(acks) > 0 {
		part(func() { res.Acked = settlePart(ctx, x, &x.settle.ack, wire.ToAcks(acks), ackFault) })
	}
	if fails := frame.GetFails(); len(fails) > 0 {
		part(func() {
			res.Failed = settlePart(ctx, x, &x.settle.fail, wire.ToFails(fails), func(*api.JobFail) string { return "" })
		})
	}
	if beats := frame.GetHeartbeats(); len(beats) > 0 {
		part(func() {
			alive := x.settle.heartbeat
			alive.do = func(ctx context.Context, tenant string, jobs []api.JobHeartbeat) ([]api.JobOutcome, error) {
				if err := x.api.queue.NoteAlive(ctx, tenant, x.namespace, x.id); err != nil {
					return nil, err
				}
				return x.settle.heartbeat.do(ctx, tenant, jobs)
			}
			res.Extended = settlePart(ctx, x, &alive, wire.ToHeartbeats(beats), heartbeatFault)
		})
	}
	res.Enqueued = make([]*workerv1.Enqueued, len(frame.GetEnqueues()))
	for i, e := range frame.GetEnqueues() {
		part(func() { res.Enqueued[i] = x.enqueuePart(ctx, e) })
	}
	parts.Wait()
}

// settlePart settles the jobs of one part of a frame. fault names the field of a job that is no JSON, ""
// for none.
func settlePart[T any](ctx context.Context, x *session, s *settlement[T], jobs []T, fault func(*T) string) *workerv1.Settled {
	err := rest.CallerOf(ctx).Need(access.JobSettle)
	for i := range jobs {
		if field := fault(&jobs[i]); field != "" && err == nil {
			err = noJSON(s.field, i, field)
		}
	}
	var outcomes []api.JobOutcome
	if err == nil {
		outcomes, err = s.settle(ctx, x.api, x.tenant, jobs)
	}
	if err != nil {
		return &workerv1.Settled{Error: wire.FromError(rest.Refusal(ctx, err))}
	}
	return &workerv1.Settled{Outcomes: wire.FromOutcomes(outcomes)}
}

// noJSON returns the error of a field that is stored as JSON and is none. The HTTP API cannot meet it.
func noJSON(list string, i int, field string) error {
	return api.Errorf(api.CodeValidationJSON, "%s[%d].%s is not JSON in UTF-8", list, i, field)
}

// isJSON reports whether raw is JSON in UTF-8, or empty.
func isJSON(raw json.RawMessage) bool { return len(raw) == 0 || utf8.Valid(raw) && json.Valid(raw) }

func ackFault(a *api.JobAck) string {
	switch {
	case !isJSON(a.Result):
		return "result"
	case !isJSON(a.Checkpoint):
		return "checkpoint"
	}
	return ""
}

func heartbeatFault(h *api.JobHeartbeat) string {
	if !isJSON(h.Checkpoint) {
		return "checkpoint"
	}
	return ""
}

func jobFault(j *api.NewJob) string {
	switch {
	case !isJSON(j.Payload):
		return "payload"
	case !isJSON(j.ResultSchema):
		return "result_schema"
	case j.Chain == nil:
		return ""
	}
	for i := range j.Chain.Steps {
		if field := jobFault(&j.Chain.Steps[i].NewJob); field != "" {
			return fmt.Sprintf("chain.steps[%d].%s", i, field)
		}
	}
	for name, step := range map[string]*api.ChainStep{"on_failure": j.Chain.OnFailure, "on_exit": j.Chain.OnExit} {
		if step == nil {
			continue
		}
		if field := jobFault(&step.NewJob); field != "" {
			return "chain." + name + "." + field
		}
	}
	return ""
}

// enqueuePart adds the jobs of one enqueue of a frame.
func (x *session) enqueuePart(ctx context.Context, e *workerv1.Enqueue) *workerv1.Enqueued {
	add := queue.Enqueue{Tenant: x.tenant, Namespace: x.namespace, Queue: e.GetQueue(), Jobs: wire.ToNewJobs(e.GetJobs()), IdempotencyKey: e.GetIdempotencyKey()}
	err := rest.CallerOf(ctx).Need(access.JobEnqueue)
	if err == nil {
		err = validateQueuePath(x.tenant, x.namespace, add.Queue)
	}
	if err == nil {
		err = refuseReserved(add.Queue)
	}
	if err == nil && len(add.IdempotencyKey) > rest.MaxIdempotencyKey {
		err = api.InvalidField("idempotency_key", "is too long")
	}
	for i := range add.Jobs {
		if field := jobFault(&add.Jobs[i]); field != "" && err == nil {
			err = noJSON("jobs", i, field)
		}
	}
	var jobs []api.EnqueuedJob
	if err == nil {
		jobs, err = x.api.enqueue(ctx, add)
	}
	if err != nil {
		return wire.FromEnqueued(nil, rest.Refusal(ctx, err))
	}
	return wire.FromEnqueued(jobs, nil)
}
