package jobs

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue"
)

// A fetch claims jobs in rounds of at most fetchRound, and stops once it holds
// fetchBytes: the size of jobs is known only after they are claimed. A later round claims as
// many jobs as fit if they are as large as the earlier ones. An answer exceeds fetchBytes by
// the jobs of its last round at most: fetchRound jobs of 1.25 MiB, a payload and a
// checkpoint, are 80 MiB.
const (
	fetchRound = 64
	fetchBytes = 16 << 20
)

// releaseTimeout bounds the return of jobs whose fetcher has gone.
const releaseTimeout = 5 * time.Second

// fetchedBody is the answer to a fetch. appendFetched encodes it.
type fetchedBody struct {
	Jobs []api.FetchedJob `json:"jobs"`
}

// fetchEndpoints declares :fetch. A worker asks for two jobs, and waits up to ten seconds
// for the first:
//
//	POST T/jobs:fetch
//	{"namespace": "payments", "queues": ["emails"], "worker_id": "w1", "count": 2, "wait_ms": 10000}
//
//	200 {"jobs": [{"id": A, "namespace": "payments", "queue": "emails", "payload": …, "attempt": 1,
//	     "max_attempts": 4, "lease_epoch": 1, "lease_expires_ms": …, "created_at_ms": …}]}
//
// After ten seconds without a job the answer is {"jobs": []}. Until lease_expires_ms only
// this worker can settle A, by its lease_epoch; heartbeats move that moment.
func (a *API) fetchEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodPost, Path: pathJobs + ":fetch", Action: access.JobFetch, Extent: rest.HandlerNamespace,
			ID: "fetch-jobs", Tag: "jobs", Summary: "Take pending jobs under a lease",
			Description: "From the queues in the order given, up to count (default 1, at most 1,000); fewer where they are large, since a fetch claims no more jobs once it holds 16 MiB. " +
				"Where there is none, waits up to wait_ms for the first. Queues that do not exist are empty.",
			Parameters: []*huma.Param{rest.PathParameter("tenant", rest.TenantName("").Schema(nil))},
			Request:    rest.JSON(api.FetchRequest{}),
			Answer:     rest.JSON(fetchedBody{}),
		}, a.fetchJobs),
	}
}

// fetchJobs answers with jobs under leases. If the client goes away before it has the
// answer, the jobs are released at once instead of when their leases expire. An answer that
// was sent but did not arrive looks delivered here: those jobs wait for their leases.
//
//	0 ms    the fetch begins to wait
//	700 ms  a job is enqueued and claimed for it: attempt 1, lease epoch 1
//	701 ms  the write of the answer fails: the job is released
//	702 ms  another fetch claims it: attempt 1 again, lease epoch 2
func (a *API) fetchJobs(w http.ResponseWriter, r *http.Request) error {
	tenant := rest.PathParam(r, "tenant")
	jobs, err := a.fetch(w, r, tenant)
	if err == nil {
		err = r.Context().Err()
	}
	if err != nil {
		a.release(r.Context(), tenant, jobs)
		return err
	}
	body, err := appendFetched(nil, jobs)
	if err == nil {
		err = rest.HoldAnswer(w, len(body))
	}
	if err != nil {
		a.release(r.Context(), tenant, jobs)
		return err
	}
	if !rest.WriteBody(w, r, http.StatusOK, body) {
		a.release(r.Context(), tenant, jobs)
	}
	return nil
}

// fetch decodes the request and claims jobs. The jobs that it returns are leased, even
// if it also returns an error.
//
// A fetch that waits takes a place of a.waits. Without a free place it claims what there is
// and does not wait; only if there was no job is that an error, so that the client pauses
// before its next fetch. Errors: CodeInvalid, CodeAuthzDenied for another namespace,
// CodeCapacityLimit, those of queue.Broker.Fetch.
func (a *API) fetch(w http.ResponseWriter, r *http.Request, tenant string) ([]api.FetchedJob, error) {
	if err := api.ValidateTenant(tenant); err != nil {
		return nil, err
	}
	body, err := rest.ReadBody(w, r, api.MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	request, err := a.fetchBodies.Decode(body)
	if err != nil {
		return nil, err
	}
	if err := validateFetch(&request); err != nil {
		return nil, err
	}
	if err := rest.CallerOf(r.Context()).NeedNamespace(request.Namespace); err != nil {
		return nil, err
	}
	f := queue.Fetch{
		Tenant: tenant, Namespace: request.Namespace, Queues: request.Queues, WorkerID: request.WorkerID,
		Lease: time.Duration(request.LeaseMS) * time.Millisecond, Wait: time.Duration(request.WaitMS) * time.Millisecond,
		Hostname: request.Hostname, Version: request.Version,
	}
	waits := false
	if f.Wait > 0 {
		release, err := rest.Wait(w, r, a.waits, tenant)
		defer release()
		waits = err == nil
		if !waits {
			f.Wait = 0
		}
	}
	if waits {
		// The wait ends with the client's connection and when the server drains. A
		// claim must not be interrupted.
		wait, cancel := context.WithCancel(r.Context())
		defer cancel()
		f.Until = wait.Done()
		go func() {
			select {
			case <-rest.Drained(wait):
				cancel()
			case <-wait.Done():
			}
		}()
	}
	jobs, err := a.fetchRounds(context.WithoutCancel(r.Context()), f, max(1, request.Count))
	if err == nil && len(jobs) == 0 && request.WaitMS > 0 && !waits {
		err = api.Errorf(api.CodeCapacityLimit, "there is no job, and too many fetches wait for one already")
	}
	return jobs, err
}

// validateFetch checks the fields that the broker cannot: it is called in rounds, and
// with durations. A count of 0 means 1, a lease of 0 means api.DefaultLeaseMS.
func validateFetch(f *api.FetchRequest) error {
	between := func(path string, n, least, most int64) error {
		if n < least || n > most {
			return api.InvalidRange(path, least, most)
		}
		return nil
	}
	if err := api.ValidateName("namespace", f.Namespace); err != nil {
		return err
	}
	if err := between("count", int64(f.Count), 0, api.MaxFetchJobs); err != nil {
		return err
	}
	if f.LeaseMS != 0 {
		if err := between("lease_ms", f.LeaseMS, api.MinLeaseMS, api.MaxLeaseMS); err != nil {
			return err
		}
	}
	return between("wait_ms", f.WaitMS, 0, api.MaxFetchWaitMS)
}

// fetchRounds claims up to count jobs. Only the first round waits; a round that returns
// fewer jobs than it asked for was the last. If a round fails after earlier ones claimed
// jobs, it returns those jobs without an error: they are leased to the caller.
func (a *API) fetchRounds(ctx context.Context, f queue.Fetch, count int) (jobs []api.FetchedJob, err error) {
	for size := 0; len(jobs) < count && size < fetchBytes; {
		f.Count = roundOf(count-len(jobs), len(jobs), size)
		more, err := a.router.Fetch(ctx, f)
		jobs = append(jobs, more...)
		if err != nil && len(jobs) > 0 {
			a.log.Warn("a fetch of jobs was interrupted; the jobs that it claimed are returned", zap.String("tenant", f.Tenant), zap.Int("jobs", len(jobs)), zap.Error(err))
			return jobs, nil // they are leased: hand them out
		}
		if err != nil || len(more) < f.Count {
			return jobs, err
		}
		for i := range more {
			size += len(more[i].Payload) + len(more[i].Checkpoint)
		}
		f.Wait, f.Until = 0, nil
	}
	return jobs, nil
}

// roundOf returns the number of jobs to claim next, of the wanted ones, after so many that
// have size bytes together, less than fetchBytes.
func roundOf(wanted, claimed, size int) int {
	round := min(fetchRound, wanted)
	if size > 0 {
		round = min(round, (fetchBytes-size)*claimed/size+1)
	}
	return round
}

// release returns jobs to their queues whose fetcher did not receive them. It fails them
// with a snooze of 0 ms: they are due immediately and the attempt does not count. If the
// release fails, the jobs return when their leases expire.
func (a *API) release(ctx context.Context, tenant string, jobs []api.FetchedJob) {
	if len(jobs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	now := int64(0)
	fails := make([]api.JobFail, len(jobs))
	for i := range jobs {
		fails[i] = api.JobFail{ID: jobs[i].ID, LeaseEpoch: jobs[i].LeaseEpoch, SnoozeMS: &now}
	}
	if _, err := a.queue.Fail(ctx, tenant, fails); err != nil {
		a.log.Warn("jobs whose fetcher has gone could not be released; they return when their leases expire", zap.String("request_id", rest.RequestID(ctx)),
			zap.String("tenant", tenant), zap.Int("jobs", len(jobs)), zap.Error(err))
	}
}

// appendFetched encodes a fetchedBody by hand: payloads are stored as JSON, and
// encoding/json would parse all of them again. A test compares it with encoding/json.
func appendFetched(b []byte, jobs []api.FetchedJob) ([]byte, error) {
	size := 0
	for i := range jobs {
		size += 400 + len(jobs[i].Payload) + len(jobs[i].Checkpoint)
	}
	b = append(append(make([]byte, 0, size+16), b...), `{"jobs":[`...)
	for i := range jobs {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		b, err = appendJob(b, &jobs[i])
		if err != nil {
			return nil, err
		}
	}
	return append(b, "]}\n"...), nil
}

// appendJob encodes one job, with the fields and the omissions of api.FetchedJob's tags.
// Ids and names need no escaping, by their patterns. The last field is always present: its
// comma becomes the closing brace.
func appendJob(b []byte, j *api.FetchedJob) ([]byte, error) {
	text := func(name, value string) {
		b = append(append(append(append(append(b, '"'), name...), `":"`...), value...), `",`...)
	}
	number := func(name string, value int64) {
		b = append(strconv.AppendInt(append(append(append(b, '"'), name...), `":`...), value, 10), ',')
	}
	raw := func(name string, value []byte) {
		b = append(append(append(append(append(b, '"'), name...), `":`...), value...), ',')
	}
	b = append(b, '{')
	text("id", j.ID)
	text("namespace", j.Namespace)
	text("queue", j.Queue)
	raw("payload", j.Payload)
	number("attempt", int64(j.Attempt))
	number("max_attempts", int64(j.MaxAttempts))
	number("lease_epoch", j.LeaseEpoch)
	number("lease_expires_ms", j.LeaseExpiresMS)
	if len(j.Checkpoint) > 0 {
		raw("checkpoint", j.Checkpoint)
	}
	if len(j.Tags) > 0 {
		tags, err := api.EncodeJSON(j.Tags)
		if err != nil {
			return nil, err
		}
		raw("tags", tags)
	}
	if j.ParentID != "" {
		text("parent_id", j.ParentID)
	}
	if j.CallbackOf != "" {
		text("callback_of", j.CallbackOf)
	}
	if j.Provider != "" {
		text("provider", j.Provider)
	}
	if j.Model != "" {
		model, err := api.EncodeJSON(j.Model)
		if err != nil {
			return nil, err
		}
		raw("model", model)
	}
	number("created_at_ms", j.CreatedAtMS)
	b[len(b)-1] = '}'
	return b, nil
}
