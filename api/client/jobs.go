package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/api/worker/parts"
)

// Queue returns the handle of a queue of n. It sends no request.
func (n *Namespace) Queue(name string) *Queue { return &Queue{namespace: n, name: name} }

// Queue is one queue: its jobs and its configuration.
type Queue struct {
	namespace *Namespace
	name      string
}

func (q *Queue) client() *Client { return q.namespace.tenant.c }

func (q *Queue) path(rest ...string) string {
	return q.namespace.path(append([]string{"queues", q.name}, rest...)...)
}

// Enqueue adds all of the jobs or none, and returns the result of each in order. With an
// idempotency key ("" for none) the call is safe to repeat for a day, and the client
// repeats it if the server asks for it. CodeQueueDraining, CodeQueueReserved,
// CodeBatchSealed, CodeBatchNotFound, CodeJobNotFound (a dependency).
func (q *Queue) Enqueue(ctx context.Context, idempotencyKey string, jobs ...api.NewJob) ([]api.EnqueuedJob, error) {
	r := &request{method: http.MethodPost, path: q.path("jobs"), header: http.Header{}}
	if idempotencyKey != "" {
		r.header.Set("Idempotency-Key", idempotencyKey)
	}
	in := struct {
		Jobs []api.NewJob `json:"jobs"`
	}{jobs}
	var out struct {
		Jobs []api.EnqueuedJob `json:"jobs"`
	}
	a, err := q.client().call(ctx, r, in, &out)
	if err != nil {
		return nil, err
	}
	for i := range out.Jobs {
		out.Jobs[i].Replayed = a.header.Get("Idempotent-Replayed") == "true"
	}
	return out.Jobs, nil
}

// JobFilter narrows a list of jobs. State "" is pending; a TagValue needs a Tag.
type JobFilter struct {
	State         api.JobState
	Tag, TagValue string
	ID            string // the beginning or the end of the id, at least 4 characters
}

// Jobs returns one page of the queue's jobs of one state, without their errors. A
// page may be shorter than its limit and still have a cursor.
func (q *Queue) Jobs(ctx context.Context, f JobFilter, o PageOptions) (api.Page[api.Job], error) {
	query := o.query()
	for name, value := range map[string]string{"state": string(f.State), "tag": f.Tag, "tag_value": f.TagValue, "id": f.ID} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var out api.Page[api.Job]
	_, err := q.client().call(ctx, &request{method: http.MethodGet, path: q.path("jobs"), query: query}, nil, &out)
	return out, err
}

// Iterations returns one page of the iterations of a job with agent, oldest first. CodeJobNotFound.
func (t *Tenant) Iterations(ctx context.Context, id string, o PageOptions) (api.Page[agent.Iteration], error) {
	var out api.Page[agent.Iteration]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("jobs", id, "iterations"), query: o.query()}, nil, &out)
	return out, err
}

// Job returns one job with its attempts and errors. CodeJobNotFound.
func (t *Tenant) Job(ctx context.Context, id string) (api.Job, error) {
	var out api.Job
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("jobs", id)}, nil, &out)
	return out, err
}

// JobHistory returns one job with its attempts, errors and timeline. CodeJobNotFound.
func (t *Tenant) JobHistory(ctx context.Context, id string) (event.JobHistory, error) {
	var out event.JobHistory
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("jobs", id), query: url.Values{"include": {"timeline"}}}, nil, &out)
	return out, err
}

// DeleteJob removes a job that is not active, and its record. CodeJobNotFound,
// CodeJobState.
func (t *Tenant) DeleteJob(ctx context.Context, id string) error {
	_, err := t.c.call(ctx, &request{method: http.MethodDelete, path: t.path("jobs", id)}, nil, nil)
	return err
}

// RetryJob runs a dead or cancelled job for one more attempt. CodeJobNotFound,
// CodeJobState.
func (t *Tenant) RetryJob(ctx context.Context, id string) (api.Job, error) {
	return t.transitionJob(ctx, id, "retry", nil)
}

// CancelJob ends a job that has not ended. CodeJobNotFound, CodeJobState.
func (t *Tenant) CancelJob(ctx context.Context, id string) (api.Job, error) {
	return t.transitionJob(ctx, id, "cancel", nil)
}

// HoldJob holds a job that waits to run until it is approved. CodeJobNotFound,
// CodeJobState.
func (t *Tenant) HoldJob(ctx context.Context, id, reason string) (api.Job, error) {
	return t.transitionJob(ctx, id, "hold", map[string]string{"reason": reason})
}

// DecideJob approves or rejects a held job, with a comment for a run that awaits the approval.
// CodeJobNotFound, CodeJobState.
func (t *Tenant) DecideJob(ctx context.Context, id string, approved bool, comment string) (api.Job, error) {
	verb := "reject"
	if approved {
		verb = "approve"
	}
	return t.transitionJob(ctx, id, verb, map[string]string{"comment": comment})
}

// ApproveJob makes a held job pending. CodeJobNotFound, CodeJobState.
func (t *Tenant) ApproveJob(ctx context.Context, id string) (api.Job, error) {
	return t.transitionJob(ctx, id, "approve", nil)
}

// RejectJob ends a held job as dead. CodeJobNotFound, CodeJobState.
func (t *Tenant) RejectJob(ctx context.Context, id string) (api.Job, error) {
	return t.transitionJob(ctx, id, "reject", nil)
}

// MoveJob moves a job that waits to run to another queue of its namespace.
// CodeJobNotFound, CodeJobState, CodeQueueReserved.
func (t *Tenant) MoveJob(ctx context.Context, id, queue string) (api.Job, error) {
	return t.transitionJob(ctx, id, "move", map[string]string{"queue": queue})
}

func (t *Tenant) transitionJob(ctx context.Context, id, verb string, in any) (api.Job, error) {
	var out api.Job
	_, err := t.c.call(ctx, &request{method: http.MethodPost, path: t.path("jobs", id) + ":" + verb}, in, &out)
	return out, err
}

// Workers returns one page of the workers that fetched or sent a heartbeat lately, by id.
func (t *Tenant) Workers(ctx context.Context, o PageOptions) (api.Page[api.Worker], error) {
	var out api.Page[api.Worker]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("workers"), query: o.query()}, nil, &out)
	return out, err
}

// maxFetchedBytes bounds the response of a fetch. The server stops after the jobs that
// reach about 16 MiB of payloads.
const maxFetchedBytes = 128 << 20

// FetchJobs leases pending jobs of n's queues and waits up to r.WaitMS for the first. The
// client never repeats it: the jobs of a lost response are leased, and become pending
// when their leases expire. With the methods below, n implements worker.Source.
func (n *Namespace) FetchJobs(ctx context.Context, r api.FetchRequest) ([]api.FetchedJob, error) {
	r.Namespace = n.name
	var out struct {
		Jobs []api.FetchedJob `json:"jobs"`
	}
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodPost, path: n.tenant.path("jobs") + ":fetch", limit: maxFetchedBytes}, r, &out)
	return out.Jobs, err
}

// Bounds of one call, below those of the server.
const (
	maxAckBytes  = 7 << 20
	maxFailBytes = 900 << 10
	maxBeatBytes = 7 << 20
)

// AckJobs settles attempts that succeeded. Like FailJobs and HeartbeatJobs it returns one
// outcome for each job in order, and splits the jobs into requests of bounded size. It
// repeats a request without a response, which is safe: a repeat by the same lease epoch
// succeeds. After an error some jobs may be settled and others not.
func (n *Namespace) AckJobs(ctx context.Context, acks []api.JobAck) ([]api.JobOutcome, error) {
	return settle(ctx, n.tenant, "ack", acks, maxAckBytes, parts.Ack, func(part []api.JobAck) any {
		return map[string]any{"acks": part}
	})
}

// FailJobs settles attempts that failed. It cuts texts that are longer than the server keeps.
func (n *Namespace) FailJobs(ctx context.Context, fails []api.JobFail) ([]api.JobOutcome, error) {
	return settle(ctx, n.tenant, "fail", parts.Cut(fails), maxFailBytes, parts.Fail, func(part []api.JobFail) any {
		return map[string]any{"fails": part}
	})
}

// HeartbeatJobs extends leases, and sends progress and checkpoints.
func (n *Namespace) HeartbeatJobs(ctx context.Context, workerID string, beats []api.JobHeartbeat) ([]api.JobOutcome, error) {
	return settle(ctx, n.tenant, "heartbeat", beats, maxBeatBytes, parts.Heartbeat, func(part []api.JobHeartbeat) any {
		return map[string]any{"worker_id": workerID, "jobs": part}
	})
}

// settle sends jobs in requests of bounded size, one after the other.
func settle[T any](ctx context.Context, t *Tenant, verb string, jobs []T, most int, size func(*T) int, body func([]T) any) ([]api.JobOutcome, error) {
	out := make([]api.JobOutcome, 0, len(jobs))
	for part := range parts.Of(jobs, most, size) {
		outcomes, err := t.settleOnce(ctx, verb, body(part))
		if err != nil {
			return nil, err
		}
		out = append(out, outcomes...)
	}
	return out, nil
}

// settleOnce sends one request, and repeats it at most MaxAttempts times without a response.
func (t *Tenant) settleOnce(ctx context.Context, verb string, in any) ([]api.JobOutcome, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	r := &request{method: http.MethodPost, path: t.path("jobs") + ":" + verb, body: raw, contentType: contentJSON}
	for attempt := 1; ; attempt++ {
		a, err := t.c.once(ctx, r)
		var gone *UnreachableError
		switch {
		case err == nil && (a.status == http.StatusOK || a.status == http.StatusConflict):
			var out struct {
				Jobs []api.JobOutcome `json:"jobs"`
			}
			if err := json.Unmarshal(a.body, &out); err != nil || out.Jobs == nil {
				return nil, responseError(a)
			}
			return out.Jobs, nil
		case err == nil && a.status != http.StatusServiceUnavailable:
			return nil, responseError(a)
		case err == nil:
			err = responseError(a)
		case !errors.As(err, &gone):
			return nil, err
		}
		if attempt >= t.c.cfg.MaxAttempts {
			return nil, err
		}
		wait := settleRetryWait
		if a != nil {
			wait = max(wait, retryAfter(a.header))
		}
		if pause := sleep.For(ctx, min(wait, t.c.cfg.MaxRetryWait)); pause != nil {
			return nil, errors.Join(err, pause)
		}
	}
}

// settleRetryWait is the shortest pause before a request without a response is repeated.
const settleRetryWait = 100 * time.Millisecond
