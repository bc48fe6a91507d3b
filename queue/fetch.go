package queue

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/claim"
	"github.com/codesous/sous/queue/internal/gate"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/queue/internal/workers"
)

// DefaultFetches is the default limit of the fetches that take jobs of one queue at once.
const DefaultFetches = gate.DefaultLimit

// Fetch is a worker's call for jobs.
type Fetch struct {
	Tenant, Namespace string
	// Queues are served in this order: a later one supplies the jobs of Count that the earlier
	// ones do not have. At most api.MaxFetchQueues.
	Queues            []string
	WorkerID          string
	Count             int           // maximum number of jobs (default 1, at most api.MaxFetchJobs)
	Lease             time.Duration // from api.MinLeaseMS to api.MaxLeaseMS (default api.DefaultLeaseMS)
	Wait              time.Duration // how long to wait for the first job, at most api.MaxFetchWaitMS
	Hostname, Version string        // reported by the worker
	// Until ends the wait when it is closed. Unlike the end of ctx it never interrupts a
	// claim, which may have taken jobs already. nil never ends it.
	Until <-chan struct{}
	// Internal is set for workers of the platform. Only they may fetch from fn queues.
	Internal bool
}

// validate checks the call and sets the defaults of Count and Lease: CodeInvalid…,
// CodeQueueReserved.
func (f *Fetch) validate() error {
	if err := api.ValidateWorkerID(f.WorkerID); err != nil {
		return err
	}
	if len(f.Queues) == 0 || len(f.Queues) > api.MaxFetchQueues {
		return api.InvalidField("queues", "must name from 1 to "+strconv.Itoa(api.MaxFetchQueues)+" queues")
	}
	for _, q := range f.Queues {
		if err := api.ValidateQueue(q); err != nil {
			return err
		}
		if !f.Internal && strings.HasPrefix(q, api.FunctionQueuePrefix) {
			return api.Errorf(api.CodeQueueReserved, "queue %s is reserved for the platform's own workers", q)
		}
	}
	if f.Count == 0 {
		f.Count = 1
	}
	if f.Lease == 0 {
		f.Lease = api.DefaultLeaseMS * time.Millisecond
	}
	switch lease := f.Lease.Milliseconds(); {
	case f.Count < 0 || f.Count > api.MaxFetchJobs:
		return api.InvalidRange("count", 1, api.MaxFetchJobs)
	case lease < api.MinLeaseMS || lease > api.MaxLeaseMS:
		return api.InvalidRange("lease_ms", api.MinLeaseMS, api.MaxLeaseMS)
	case f.Wait < 0 || f.Wait.Milliseconds() > api.MaxFetchWaitMS:
		return api.InvalidRange("wait_ms", 0, api.MaxFetchWaitMS)
	}
	return nil
}

// Fetch claims pending jobs under leases and returns them. It returns none if there was none
// until Wait had passed or Until was closed. A queue that does not exist is empty. Errors:
// CodeInvalid…, CodeQueueReserved, CodeShuttingDown, CodeStoreUnavailable, ctx's; CodeOverloaded
// with the time to try again if too many fetches take jobs of the queues and Wait is 0.
//
// Fetch returns as soon as it has one job; it does not wait for Count of them. While it waits
// it looks again when it is notified, when a rate limit may allow more, and each PollInterval.
func (b *Broker) Fetch(ctx context.Context, f Fetch) ([]api.FetchedJob, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	queues := make([]jobstore.Queue, len(f.Queues))
	for i, q := range f.Queues {
		queues[i] = jobstore.Queue{Tenant: f.Tenant, Namespace: f.Namespace, Name: q}
	}
	if !f.Internal {
		err := b.workers.Note(ctx, f.Tenant, workers.Fetch{
			WorkerID: f.WorkerID, Hostname: f.Hostname, Namespace: f.Namespace, Queues: f.Queues, Version: f.Version,
		})
		if err != nil {
			return nil, err
		}
	}
	if f.Wait == 0 {
		jobs, _, err := b.fetchNow(ctx, &f, queues)
		return jobs, err
	}
	// Before the first claim: a job that is enqueued after it wakes this fetch.
	woken, done := b.notifier.Wait(queues)
	defer done()
	// The timer is not part of ctx, because an interrupted claim could leave jobs under
	// leases that no worker knows of.
	over := time.NewTimer(f.Wait)
	defer over.Stop()
	for {
		jobs, again, err := b.fetchNow(ctx, &f, queues)
		var coded *api.Error
		switch {
		case errors.Is(err, gate.ErrFull) && errors.As(err, &coded):
			again = coded.RetryAfter
		case len(jobs) > 0 || err != nil:
			return jobs, err
		}
		poll := time.NewTimer(min(b.poll, again))
		select {
		case <-woken:
		case <-poll.C:
		case <-over.C:
			poll.Stop()
			return nil, nil
		case <-f.Until:
			poll.Stop()
			return nil, nil
		case <-ctx.Done():
			poll.Stop()
			return nil, ctx.Err()
		case <-b.life.Done():
			poll.Stop()
			return nil, api.Errorf(api.CodeShuttingDown, "the queue is closed")
		}
		poll.Stop()
	}
}

// fetchNow claims the jobs that are pending now. again is as in claimPending. A claim that
// has started is completed even if ctx ends: jobs that were claimed for a caller that has
// gone are put back, without counting an attempt. They are snoozed for 0 ms, so maintenance
// makes them pending. If the process dies before, they are reclaimed when their leases expire.
func (b *Broker) fetchNow(ctx context.Context, f *Fetch, queues []jobstore.Queue) (jobs []api.FetchedJob, again time.Duration, err error) {
	if ctx.Err() != nil {
		return nil, 0, ctx.Err()
	}
	whole := context.WithoutCancel(ctx)
	jobs, again, err = b.claimPending(whole, f, queues)
	if len(jobs) == 0 || ctx.Err() == nil {
		return jobs, again, err
	}
	at := int64(0)
	back := make([]api.JobFail, len(jobs))
	for i := range jobs {
		back[i] = api.JobFail{ID: jobs[i].ID, LeaseEpoch: jobs[i].LeaseEpoch, SnoozeMS: &at}
	}
	if _, err := b.Fail(whole, f.Tenant, back); err != nil {
		b.log.Warn("jobs claimed for a worker that disconnected were not put back; they are reclaimed when their leases expire", zap.String("tenant", f.Tenant), zap.Error(err))
	}
	return nil, again, ctx.Err()
}

// claimPending claims jobs of queues, in their order. again is how long to wait before a
// rate limit may allow more; see claim.Claimer.Take. Each queue is a claim of its own, so an
// error in a later queue must not lose the jobs of the earlier ones. A queue whose gate is full is
// left out; the error is gate.Refusal's if the other queues have no jobs.
func (b *Broker) claimPending(ctx context.Context, f *Fetch, queues []jobstore.Queue) (jobs []api.FetchedJob, again time.Duration, err error) {
	again = claim.LongPause
	if len(queues) > 1 {
		// An empty set does not exist, so one command finds that nothing is pending.
		var keys []string
		for _, q := range queues {
			keys = append(keys, b.jobs.Sets(q, api.JobPending)...)
		}
		if n, err := b.rdb.Exists(ctx, keys...).Result(); err != nil || n == 0 {
			return nil, again, jobstore.Failure(ctx, "read queues", err)
		}
	}
	var refusal error
	for _, q := range queues {
		more, after, err := b.claimFrom(ctx, f, q, f.Count-len(jobs))
		if errors.Is(err, gate.ErrFull) {
			refusal = err
			continue
		}
		jobs = append(jobs, more...)
		if err != nil {
			if len(jobs) > 0 {
				return jobs, again, nil // they are leased and must reach the worker
			}
			return nil, again, err
		}
		again = min(again, after)
		if len(jobs) == f.Count {
			break
		}
	}
	if len(jobs) == 0 {
		return nil, again, refusal
	}
	return jobs, again, nil
}

// claimFrom claims up to want jobs of q. Fetches of clients pass the gate of q; the error of one that it
// refuses is gate.Refusal's.
func (b *Broker) claimFrom(ctx context.Context, f *Fetch, q jobstore.Queue, want int) (jobs []api.FetchedJob, again time.Duration, err error) {
	if !f.Internal {
		if !b.gate.Enter(q) {
			b.metrics.fetches.WithLabelValues(outcomeOverloaded).Inc()
			return nil, 0, gate.Refusal(b.random())
		}
		defer b.gate.Leave(q)
	}
	jobs, again, err = b.guard.Take(ctx, q, claim.Request{WorkerID: f.WorkerID, Host: jobstore.HostOf(f.Hostname), Lease: f.Lease}, want)
	b.boundLeases(ctx, q, jobs, f.Lease)
	return jobs, again, err
}
