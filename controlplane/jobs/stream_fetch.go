package jobs

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/sleep"
	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/api/worker/wire"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue"
)

const (
	// claimRetries bounds how long a frame tries again to take jobs.
	claimRetries = time.Second
	// responseBytes bounds the payloads and checkpoints of one response: clients of gRPC take messages of
	// 4 MiB unless set otherwise. A larger job is alone.
	responseBytes = 2 << 20
)

// waitOf returns the context of the wait of a fetch.
func waitOf(ctx context.Context, f *workerv1.Fetch) (context.Context, context.CancelFunc) {
	if f.WaitMs == nil || f.GetWaitMs() > math.MaxInt64/int64(time.Millisecond) {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(f.GetWaitMs())*time.Millisecond)
}

// fetch claims jobs that are there for the response of a frame. If credits are left, and the fetch waits,
// a goroutine serves the rest of it: the frame has been handled.
func (x *session) fetch(ctx context.Context, c *call, res *workerv1.LifecycleResponse) {
	f := c.frame.GetFetch()
	claim := queue.Fetch{
		Tenant: x.tenant, Namespace: x.namespace, Queues: f.GetQueues(), WorkerID: x.id,
		Lease: time.Duration(f.GetLeaseMs()) * time.Millisecond, Hostname: x.hostname, Version: x.version,
	}
	err := x.validate(ctx, f)
	var jobs []api.FetchedJob
	if err == nil {
		jobs, err = x.claim(ctx, claim, int(f.GetCredits()))
	}
	left := int(f.GetCredits()) - len(jobs)
	res.Fetched = &workerv1.Fetched{Done: left == 0 || c.until.Err() != nil || f.GetOnce() && len(jobs) > 0}
	if err != nil && len(jobs) == 0 {
		res.Fetched.Done, res.Fetched.Error = true, wire.FromError(rest.Refusal(ctx, err))
	}
	waits := !res.Fetched.GetDone()
	x.count(res)
	if x.deliver(c, res, jobs) && waits {
		x.work.Go(func() { x.guard(func() { x.await(ctx, c, claim, left) }) })
	}
}

// validate checks a fetch as a request is checked. Errors: CodeAuthzDenied, CodeInvalid.
func (x *session) validate(ctx context.Context, f *workerv1.Fetch) error {
	if err := rest.CallerOf(ctx).Need(access.JobFetch); err != nil {
		return err
	}
	if f.GetCredits() == 0 || f.GetCredits() > api.MaxFetchJobs {
		return api.InvalidRange("fetch.credits", 1, api.MaxFetchJobs)
	}
	if f.GetWaitMs() < 0 {
		return api.InvalidField("fetch.wait_ms", "must not be negative")
	}
	return validateFetch(&api.FetchRequest{Namespace: x.namespace, Count: int(f.GetCredits()), LeaseMS: f.GetLeaseMs()})
}

// claim takes up to count jobs. While too many fetches take jobs of a queue it tries again, since the
// worker would have to.
func (x *session) claim(ctx context.Context, f queue.Fetch, count int) ([]api.FetchedJob, error) {
	for until := time.Now().Add(claimRetries); ; {
		jobs, err := x.api.fetchRounds(ctx, f, count)
		var coded *api.Error
		if len(jobs) > 0 || !errors.As(err, &coded) || coded.Code != api.CodeOverloaded || coded.RetryAfter == 0 || time.Now().After(until) {
			return jobs, err
		}
		if sleep.For(x.ctx, coded.RetryAfter) != nil {
			return nil, err
		}
	}
}

// await sends jobs as they arrive, until the credits of a fetch are used or its wait ends. The last
// response says that the fetch is done.
func (x *session) await(ctx context.Context, c *call, claim queue.Fetch, credits int) {
	claim.Until, claim.Wait = c.until.Done(), time.Duration(api.MaxFetchWaitMS)*time.Millisecond
	for {
		jobs, err := x.api.fetchRounds(ctx, claim, credits)
		credits -= len(jobs)
		done := credits == 0 || c.until.Err() != nil || c.frame.GetFetch().GetOnce() && len(jobs) > 0
		res := &workerv1.LifecycleResponse{RequestId: c.frame.GetRequestId(), Fetched: &workerv1.Fetched{Done: done}}
		if err != nil && len(jobs) == 0 {
			done, res.Fetched.Done, res.Fetched.Error = true, true, wire.FromError(rest.Refusal(x.ctx, err))
		}
		if len(jobs) == 0 && !done {
			continue
		}
		if !x.deliver(c, res, jobs) || done {
			return
		}
	}
}

// deliver sends a response with jobs, in several parts where they are large. Jobs that it cannot send
// return to their queues. A worker whose share of memory is used up is told so, and its fetch ends.
func (x *session) deliver(c *call, res *workerv1.LifecycleResponse, jobs []api.FetchedJob) (delivered bool) {
	done := res.Fetched.GetDone()
	for {
		part := jobs[:fitting(jobs)]
		res.Fetched.Jobs = wire.FromJobs(part)
		res.Fetched.Done = done && len(part) == len(jobs)
		if res.Fetched.GetDone() {
			x.forget(c)
		}
		err := x.send(res)
		if err != nil {
			x.api.release(x.ctx, x.tenant, jobs)
			x.forget(c)
			if !errors.Is(err, errUnsent) {
				res.Fetched = &workerv1.Fetched{Done: true, Error: wire.FromError(rest.Refusal(x.ctx, err))}
				_ = x.send(res) // an error ends the stream
			}
			return false
		}
		jobs = jobs[len(part):]
		if len(jobs) == 0 {
			return true
		}
		res = &workerv1.LifecycleResponse{RequestId: res.GetRequestId(), Fetched: &workerv1.Fetched{}}
	}
}

// fitting returns how many of the jobs one response has.
func fitting(jobs []api.FetchedJob) int {
	size := 0
	for i := range jobs {
		size += len(jobs[i].Payload) + len(jobs[i].Checkpoint) + 400
		if i > 0 && size > responseBytes {
			return i
		}
	}
	return len(jobs)
}
