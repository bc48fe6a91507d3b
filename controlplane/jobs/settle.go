package jobs

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// ackBody, failBody and heartbeatBody are the requests that settle jobs.
type ackBody struct {
	Acks []api.JobAck `json:"acks"`
}

type failBody struct {
	Fails []api.JobFail `json:"fails"`
}

type heartbeatBody struct {
	WorkerID string             `json:"worker_id"`
	Jobs     []api.JobHeartbeat `json:"jobs"`
}

// outcomesBody is the answer to a request that settles jobs.
type outcomesBody struct {
	Jobs []api.JobOutcome `json:"jobs" doc:"one for each job of the request, in order"`
}

// Limits of the bodies that settle jobs. They hold many results of 1 MiB, or checkpoints
// of 256 KiB.
const (
	MaxAckBytes       = 8 << 20
	MaxHeartbeatBytes = 8 << 20
)

// settlement is an operation that settles jobs. T is one of its jobs.
type settlement[T any] struct {
	field string          // of a request, which holds the jobs
	id    func(*T) string // of a job
	do    func(ctx context.Context, tenant string, jobs []T) ([]api.JobOutcome, error)
}

// settlements are the three operations, for the routes and for the stream of workers.
type settlements struct {
	ack       settlement[api.JobAck]
	fail      settlement[api.JobFail]
	heartbeat settlement[api.JobHeartbeat]
}

func (a *API) settlements() settlements {
	return settlements{
		ack:       settlement[api.JobAck]{"acks", func(j *api.JobAck) string { return j.ID }, a.router.Ack},
		fail:      settlement[api.JobFail]{"fails", func(j *api.JobFail) string { return j.ID }, a.router.Fail},
		heartbeat: settlement[api.JobHeartbeat]{"jobs", func(j *api.JobHeartbeat) string { return j.ID }, a.router.Heartbeat},
	}
}

// settling describes a route that settles jobs. B is the body, T one of its jobs. The three
// routes differ only in this.
type settling[B, T any] struct {
	settlement[T]
	verb, summary string
	bodies        rest.Decoder[B]
	limit         int64
	jobs          func(*B) []T // of a body
	// begin is called before the jobs are settled, nil for none.
	begin func(ctx context.Context, tenant string, body *B) error
}

// settleEndpoints declares :ack, :fail and :heartbeat. Heartbeats settle nothing, but have
// the same form: they prove the lease of each job and get an outcome each. They also
// refresh the record of the worker in T/workers, even if all of their leases are lost.
func (a *API) settleEndpoints() []rest.Endpoint {
	kinds := a.settlements()
	return []rest.Endpoint{
		settleEndpoint(a, settling[ackBody, api.JobAck]{
			verb: "ack", summary: "Say of jobs that their attempt went well", limit: MaxAckBytes,
			jobs: func(b *ackBody) []api.JobAck { return b.Acks }, settlement: kinds.ack,
		}),
		settleEndpoint(a, settling[failBody, api.JobFail]{
			verb: "fail", summary: "Say of jobs that their attempt failed", limit: api.MaxRequestBytes,
			jobs: func(b *failBody) []api.JobFail { return b.Fails }, settlement: kinds.fail,
		}),
		settleEndpoint(a, settling[heartbeatBody, api.JobHeartbeat]{
			verb: "heartbeat", summary: "Extend the leases of jobs, and keep their progress and checkpoints", limit: MaxHeartbeatBytes,
			jobs: func(b *heartbeatBody) []api.JobHeartbeat { return b.Jobs }, settlement: kinds.heartbeat,
			begin: func(ctx context.Context, tenant string, b *heartbeatBody) error {
				return a.queue.NoteAlive(ctx, tenant, rest.CallerOf(ctx).Namespace, b.WorkerID)
			},
		}),
	}
}

// settleEndpoint declares a route that settles jobs. It answers 200 if at least one
// job was settled, else 409: a request whose leases are all lost must not look like a
// success. Each job has an outcome of its own, in the order of the request:
//
//	POST T/jobs:ack {"acks": [{"id": A, "lease_epoch": 1}, {"id": B, "lease_epoch": 3}]}
//	200 {"jobs": [{"id": A, "ok": true, …},
//	              {"id": B, "ok": false, "code": "CS_JOB_LEASE_LOST", …}]}
//
// A client that got no answer repeats the whole call: jobs that the same epoch settled
// before succeed again.
func settleEndpoint[B, T any](a *API, how settling[B, T]) rest.Endpoint {
	var body B
	how.bodies = rest.NewDecoder[B]()
	return rest.Handle(rest.Route{
		Method: http.MethodPost, Path: pathJobs + ":" + how.verb, Action: access.JobSettle, Extent: rest.HandlerNamespace,
		ID: how.verb + "-jobs", Tag: "jobs", Summary: how.summary,
		Description: "At most 1,000 jobs. The answer has an outcome for each job, in order: 200 if any succeeded, 409 if none did. A repeated call of the same lease epoch succeeds.",
		Parameters:  []*huma.Param{rest.PathParameter("tenant", rest.TenantName("").Schema(nil))},
		Request:     rest.JSON(body),
		Answer:      rest.JSON(outcomesBody{}),
		Also:        []rest.Answer{{Status: http.StatusConflict, Content: rest.JSON(outcomesBody{})}},
	}, func(w http.ResponseWriter, r *http.Request) error {
		outcomes, err := settle(a, w, r, &how)
		if err != nil {
			return err
		}
		status := http.StatusConflict
		for i := range outcomes {
			if outcomes[i].OK {
				status = http.StatusOK
				break
			}
		}
		return rest.WriteJSON(w, r, status, outcomesBody{outcomes})
	})
}

// settle decodes the request and settles its jobs. Errors concern the request as a whole: those of
// settlement.settle.
func settle[B, T any](a *API, w http.ResponseWriter, r *http.Request, how *settling[B, T]) ([]api.JobOutcome, error) {
	ctx, tenant := r.Context(), rest.PathParam(r, "tenant")
	if err := api.ValidateTenant(tenant); err != nil {
		return nil, err
	}
	raw, err := rest.ReadBody(w, r, how.limit)
	if err != nil {
		return nil, err
	}
	body, err := how.bodies.Decode(raw)
	if err != nil {
		return nil, err
	}
	jobs := how.jobs(&body)
	if err := how.check(jobs); err != nil {
		return nil, err
	}
	if how.begin != nil {
		if err := how.begin(ctx, tenant, &body); err != nil {
			return nil, err
		}
	}
	return how.settle(ctx, a, tenant, jobs)
}

// check returns CodeInvalid for none or more than api.MaxSettleJobs jobs.
func (s *settlement[T]) check(jobs []T) error {
	switch {
	case len(jobs) == 0:
		return api.InvalidField(s.field, "must hold at least one")
	case len(jobs) > api.MaxSettleJobs:
		return api.InvalidField(s.field, "are too many")
	}
	return nil
}

// settle settles the jobs that the caller may settle. The outcome of each of the
// others is CodeJobNotFound: they do not exist, lie in another namespace, or belong to the
// platform's fn queues. Errors: those of the broker; some jobs may be settled then.
func (s *settlement[T]) settle(ctx context.Context, a *API, tenant string, jobs []T) ([]api.JobOutcome, error) {
	known, indexes, err := a.settleable(ctx, tenant, len(jobs), func(i int) string { return s.id(&jobs[i]) })
	if err != nil {
		return nil, err
	}
	if len(indexes) == len(jobs) {
		return s.do(ctx, tenant, jobs)
	}
	var mine []T
	for _, i := range indexes {
		mine = append(mine, jobs[i])
	}
	var done []api.JobOutcome
	if len(mine) > 0 {
		done, err = s.do(ctx, tenant, mine)
		if err != nil {
			return nil, err
		}
	}
	out := make([]api.JobOutcome, len(jobs))
	for i := range jobs {
		if id := s.id(&jobs[i]); !known[id] {
			out[i] = api.JobOutcome{ID: id, Code: api.CodeJobNotFound, Message: jobNotFound(id).Message}
		}
	}
	for k, i := range indexes {
		out[i] = done[k]
	}
	return out, nil
}

// settleable returns which of n ids belong to jobs that the caller may settle, and the
// indexes of those, in order. Malformed ids belong to none. An id that occurs twice has two
// indexes.
func (a *API) settleable(ctx context.Context, tenant string, n int, id func(int) string) (known map[string]bool, indexes []int, err error) {
	ids := make([]string, 0, n)
	for i := range n {
		if api.ValidateJobID(id(i)) == nil {
			ids = append(ids, id(i))
		}
	}
	known, err = a.queue.Settleable(ctx, tenant, rest.CallerOf(ctx).Namespace, ids)
	if err != nil {
		return nil, nil, err
	}
	indexes = make([]int, 0, n)
	for i := range n {
		if known[id(i)] {
			indexes = append(indexes, i)
		}
	}
	return known, indexes, nil
}
