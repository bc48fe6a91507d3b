package controlplane

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/codesous/sous/api"
)

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

type outcomesBody struct {
	Jobs []api.JobOutcome `json:"jobs" doc:"one for each job of the request, in order"`
}

// Bounds of what settles jobs. A result may have 1 MiB, a checkpoint 256 KiB.
const (
	maxAckBytes       = 8 << 20
	maxHeartbeatBytes = 8 << 20
)

// settling is a route that settles jobs: how its body is read, and what is done.
type settling[B, T any] struct {
	verb, summary string
	limit         int64
	jobs          func(*B) []T
	field         string // where the jobs stand
	id            func(*T) string
	begin         func(ctx context.Context, tenant string, body *B) error
	do            func(ctx context.Context, tenant string, jobs []T) ([]api.JobOutcome, error)
}

func (s *Server) routeSettling(r chi.Router, a huma.API) {
	routeSettle(s, r, a, settling[ackBody, api.JobAck]{
		verb: "ack", summary: "Say of jobs that their attempt went well", limit: maxAckBytes,
		jobs: func(b *ackBody) []api.JobAck { return b.Acks }, field: "acks",
		id: func(j *api.JobAck) string { return j.ID }, do: s.queue.Ack,
	})
	routeSettle(s, r, a, settling[failBody, api.JobFail]{
		verb: "fail", summary: "Say of jobs that their attempt failed", limit: api.MaxRequestBytes,
		jobs: func(b *failBody) []api.JobFail { return b.Fails }, field: "fails",
		id: func(j *api.JobFail) string { return j.ID }, do: s.queue.Fail,
	})
	routeSettle(s, r, a, settling[heartbeatBody, api.JobHeartbeat]{
		verb: "heartbeat", summary: "Extend the leases of jobs, and keep their progress and checkpoints", limit: maxHeartbeatBytes,
		jobs: func(b *heartbeatBody) []api.JobHeartbeat { return b.Jobs }, field: "jobs",
		id: func(j *api.JobHeartbeat) string { return j.ID }, do: s.queue.Heartbeat,
		begin: func(ctx context.Context, tenant string, b *heartbeatBody) error {
			return s.queue.NoteAlive(ctx, tenant, callerOf(ctx).namespace, b.WorkerID)
		},
	})
}

func routeSettle[B, T any](s *Server, r chi.Router, a huma.API, how settling[B, T]) {
	var body B
	path := pathJobs + ":" + how.verb
	request := map[string]any{contentTypeJSON: body}
	answer := map[string]any{contentTypeJSON: outcomesBody{}}
	document(a, documented{
		method: http.MethodPost, path: path, id: how.verb + "-jobs", tag: "jobs",
		summary:     how.summary,
		description: "Up to 1,000. Answers an outcome for each in order: 200 if any succeeded, 409 if none did. A repeat of what the same lease epoch did is a success.",
		parameters:  []*huma.Param{pathParameter("tenant", tenantName("").Schema(nil))},
		request:     request,
		status:      http.StatusOK, answer: answer,
		also: map[int]map[string]any{http.StatusConflict: answer},
	})
	decoder := newStrictDecoder[B](a, request)
	r.Post(path, func(w http.ResponseWriter, r *http.Request) {
		outcomes, err := settle(s, w, r, decoder, &how)
		if err != nil {
			s.fail(w, r, requestIDOf(r.Context()), err)
			return
		}
		status := http.StatusConflict
		for i := range outcomes {
			if outcomes[i].OK {
				status = http.StatusOK
				break
			}
		}
		s.writeJSONStatus(w, r, status, outcomesBody{outcomes})
	})
}

// settle reads the request and settles its jobs.
func settle[B, T any](s *Server, w http.ResponseWriter, r *http.Request, decoder strictDecoder[B], how *settling[B, T]) ([]api.JobOutcome, error) {
	ctx, tenant := r.Context(), pathParam(r, "tenant")
	if err := api.ValidateTenant(tenant); err != nil {
		return nil, err
	}
	raw, err := readBody(w, r, how.limit)
	if err != nil {
		return nil, err
	}
	body, err := decoder.decode(raw)
	if err != nil {
		return nil, err
	}
	jobs := how.jobs(&body)
	switch {
	case len(jobs) == 0:
		return nil, fieldError(how.field, "must hold at least one")
	case len(jobs) > api.MaxSettleJobs:
		return nil, fieldError(how.field, "are too many")
	}
	if how.begin != nil {
		if err := how.begin(ctx, tenant, &body); err != nil {
			return nil, err
		}
	}
	return settleKnown(ctx, s, tenant, jobs, how)
}

// settleKnown settles the jobs that are the caller's to settle, and answers of the
// others that they do not exist.
func settleKnown[B, T any](ctx context.Context, s *Server, tenant string, jobs []T, how *settling[B, T]) ([]api.JobOutcome, error) {
	known, places, err := s.settleable(ctx, tenant, len(jobs), func(i int) string { return how.id(&jobs[i]) })
	if err != nil {
		return nil, err
	}
	if len(places) == len(jobs) {
		return how.do(ctx, tenant, jobs)
	}
	var mine []T
	for _, i := range places {
		mine = append(mine, jobs[i])
	}
	var done []api.JobOutcome
	if len(mine) > 0 {
		if done, err = how.do(ctx, tenant, mine); err != nil {
			return nil, err
		}
	}
	out := make([]api.JobOutcome, len(jobs))
	for i := range jobs {
		if id := how.id(&jobs[i]); !known[id] {
			out[i] = api.JobOutcome{ID: id, Code: api.CodeJobNotFound, Message: jobNotFound(id).Message}
		}
	}
	for k, i := range places {
		out[i] = done[k]
	}
	return out, nil
}

// settleable says which ids are of jobs that the caller may settle, and at which
// places they stand.
func (s *Server) settleable(ctx context.Context, tenant string, n int, id func(int) string) (known map[string]bool, places []int, err error) {
	ids := make([]string, 0, n)
	for i := range n {
		if api.ValidateJobID(id(i)) == nil {
			ids = append(ids, id(i))
		}
	}
	if known, err = s.queue.Settleable(ctx, tenant, callerOf(ctx).namespace, ids); err != nil {
		return nil, nil, err
	}
	places = make([]int, 0, n)
	for i := range n {
		if known[id(i)] {
			places = append(places, i)
		}
	}
	return known, places, nil
}
