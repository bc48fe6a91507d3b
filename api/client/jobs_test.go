package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/api/worker"
)

var _ worker.Source = (*client.Namespace)(nil)

func payments(c *client.Client) *client.Namespace { return c.Tenant("t_default").Namespace("payments") }

func TestJobRequests(t *testing.T) {
	t.Parallel()
	const tenant, bearer = "/v1/tenants/t_default", "Bearer k1"
	const queue = tenant + "/namespaces/payments/queues/emails"
	type call func(ctx context.Context, c *client.Client) error
	post := func(path, body string) seen {
		s := seen{Method: "POST", URI: path, Body: body, Auth: bearer}
		if body != "" {
			s.ContentType = "application/json"
		}
		return s
	}
	for name, tt := range map[string]struct {
		call call
		body string
		want seen
	}{
		"enqueue": {func(ctx context.Context, c *client.Client) error {
			made, err := payments(c).Queue("emails").Enqueue(ctx, "", api.NewJob{Payload: json.RawMessage(`1`)}, api.NewJob{JobOptions: api.JobOptions{Hold: true}})
			if err == nil && (len(made) != 1 || made[0].ID != "j1") {
				err = fmt.Errorf("%+v", made)
			}
			return err
		}, `{"jobs":[{"id":"j1"}]}`, post(queue+"/jobs", `{"jobs":[{"payload":1},{"hold":true}]}`)},
		"fetch": {func(ctx context.Context, c *client.Client) error {
			jobs, err := payments(c).FetchJobs(ctx, api.FetchRequest{Queues: []string{"emails"}, WorkerID: "w1", WaitMS: 5})
			if err == nil && (len(jobs) != 1 || jobs[0].ID != "j1") {
				err = fmt.Errorf("%+v", jobs)
			}
			return err
		}, `{"jobs":[{"id":"j1"}]}`, post(tenant+"/jobs:fetch", `{"namespace":"payments","queues":["emails"],"worker_id":"w1","wait_ms":5}`)},
		"heartbeat": {func(ctx context.Context, c *client.Client) error {
			_, err := payments(c).HeartbeatJobs(ctx, "w1", []api.JobHeartbeat{{ID: "j1", LeaseEpoch: 2}})
			return err
		}, `{"jobs":[{"id":"j1","ok":true}]}`, post(tenant+"/jobs:heartbeat", `{"jobs":[{"id":"j1","lease_epoch":2}],"worker_id":"w1"}`)},
		"list": {func(ctx context.Context, c *client.Client) error {
			_, err := payments(c).Queue("emails").Jobs(ctx, client.JobFilter{State: api.JobDead, Tag: "a", TagValue: "b", ID: "5f0d"}, client.PageOptions{Limit: 3})
			return err
		}, `{"items":[]}`, seen{Method: "GET", URI: queue + "/jobs?id=5f0d&limit=3&state=dead&tag=a&tag_value=b", Auth: bearer}},
		"search": {func(ctx context.Context, c *client.Client) error {
			q := search.Jobs{States: []api.JobState{api.JobDead}, Tags: []search.Tag{{Key: "a", Value: "b"}}, Words: "x y"}
			page, err := c.Tenant("t_default").SearchJobs(ctx, q, client.PageOptions{Limit: 3})
			if err == nil && (page.Mirror == nil || page.Mirror.LagMS != 5) {
				err = fmt.Errorf("%+v", page)
			}
			return err
		}, `{"items":[],"next_cursor":null,"mirror":{"lag_ms":5}}`, seen{Method: "GET", URI: tenant + "/jobs?limit=3&q=x+y&state=dead&tag.a=b", Auth: bearer}},
		"hold": {func(ctx context.Context, c *client.Client) error {
			_, err := c.Tenant("t_default").HoldJob(ctx, "j1", "why")
			return err
		}, `{}`, post(tenant+"/jobs/j1:hold", `{"reason":"why"}`)},
		"move": {func(ctx context.Context, c *client.Client) error {
			_, err := c.Tenant("t_default").MoveJob(ctx, "j1", "slow")
			return err
		}, `{}`, post(tenant+"/jobs/j1:move", `{"queue":"slow"}`)},
		"configure": {func(ctx context.Context, c *client.Client) error {
			on := true
			_, err := payments(c).Queue("emails").Configure(ctx, client.QueueChange{Paused: &on, IfMatch: `"a"`})
			return err
		}, `{}`, seen{Method: "PATCH", URI: queue, Body: `{"paused":true}`, ContentType: "application/json", Auth: bearer, IfMatch: `"a"`}},
		"redrive": {func(ctx context.Context, c *client.Client) error {
			n, err := payments(c).Queue("emails").Redrive(ctx, client.Redrive{Reason: api.DeadFatal, Limit: 5})
			if err == nil && n != 5 {
				err = fmt.Errorf("%d", n)
			}
			return err
		}, `{"redriven":5}`, post(queue+":redrive", `{"reason":"fatal","limit":5}`)},
		"clear": {func(ctx context.Context, c *client.Client) error {
			_, err := payments(c).Queue("emails").Clear(ctx)
			return err
		}, `{"cleared":1}`, post(queue+":clear", "")},
		"batch": {func(ctx context.Context, c *client.Client) error {
			_, err := payments(c).CreateBatch(ctx, &api.BatchCallback{Queue: "reports"})
			return err
		}, `{"id":"b1"}`, post(tenant+"/namespaces/payments/batches", `{"callback":{"queue":"reports"}}`)},
		"seal": {func(ctx context.Context, c *client.Client) error {
			_, err := payments(c).SealBatch(ctx, "b1")
			return err
		}, `{"id":"b1"}`, post(tenant+"/namespaces/payments/batches/b1:seal", "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, all := serve(t, 200, tt.body)
			if err := tt.call(t.Context(), c); err != nil {
				t.Fatalf("call: %v", err)
			}
			if diff := cmp.Diff([]seen{tt.want}, *all); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// A settling is repeated until it is answered; a fetch never is.
func TestSettlingsAreRepeated(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := start(t, func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			panic(http.ErrAbortHandler) // no answer
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusConflict) // none succeeded: an answer all the same
			_, _ = io.WriteString(w, `{"jobs":[{"id":"j1","ok":false,"code":"CS_JOB_LEASE_LOST"}]}`)
		}
	})
	got, err := payments(c).AckJobs(t.Context(), []api.JobAck{{ID: "j1", LeaseEpoch: 1}})
	if err != nil || len(got) != 1 || got[0].Code != api.CodeJobLeaseLost || asked.Load() != 3 {
		t.Errorf("AckJobs: got outcomes %+v and error %v after %d requests, want CodeJobLeaseLost after 3", got, err, asked.Load())
	}
	asked.Store(1)
	if _, err := payments(c).FetchJobs(t.Context(), api.FetchRequest{}); err == nil || asked.Load() != 2 {
		t.Errorf("FetchJobs: got error %v after %d requests, want an error after 2", err, asked.Load())
	}
}

// Many large results go in several calls, and their outcomes come in order.
func TestSettlingsAreCutToSize(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	c := start(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if r.ContentLength > 8<<20 {
			t.Errorf("got a body of %d bytes, want at most %d", r.ContentLength, 8<<20)
		}
		var in struct{ Acks []api.JobAck }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Errorf("Decode: %v", err)
		}
		var out struct {
			Jobs []api.JobOutcome `json:"jobs"`
		}
		for _, a := range in.Acks {
			out.Jobs = append(out.Jobs, api.JobOutcome{ID: a.ID, OK: true})
		}
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Errorf("Encode: %v", err)
		}
	})
	large := json.RawMessage(`"` + strings.Repeat("x", 1<<20-2) + `"`)
	acks := make([]api.JobAck, 20)
	for i := range acks {
		acks[i] = api.JobAck{ID: fmt.Sprint(i), Result: large}
	}
	got, err := payments(c).AckJobs(t.Context(), acks)
	if err != nil || len(got) != len(acks) || calls.Load() != 4 {
		t.Fatalf("AckJobs: got %d outcomes in %d calls and error %v, want %d outcomes in 4 calls", len(got), calls.Load(), err, len(acks))
	}
	for i := range got {
		if got[i].ID != acks[i].ID {
			t.Errorf("outcome %d: got job %s, want %s", i, got[i].ID, acks[i].ID)
		}
	}
}
