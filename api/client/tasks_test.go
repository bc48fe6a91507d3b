package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

func TestTaskRequests(t *testing.T) {
	t.Parallel()
	const task, bearer = "/v1/tenants/t_default/tasks/email-send/j1", "Bearer k1"
	sent := func(method, path, body string) seen {
		s := seen{Method: method, URI: path, Body: body, Auth: bearer}
		if body != "" {
			s.ContentType = "application/json"
		}
		return s
	}
	for name, tt := range map[string]struct {
		call func(ctx context.Context, t *client.Tenant) (api.Task, error)
		want seen
	}{
		"create": {func(ctx context.Context, t *client.Tenant) (api.Task, error) {
			task, created, err := t.CreateTask(ctx, "email-send", "j1", api.NewTask{ParamsRef: "s3://a", StepCount: 3, Payload: json.RawMessage(`{"a":1}`)})
			if created {
				err = fmt.Errorf("a 200 is no creation")
			}
			return task, err
		}, sent("PUT", task, `{"params_ref":"s3://a","step_count":3,"payload":{"a":1}}`)},
		"get": {func(ctx context.Context, t *client.Tenant) (api.Task, error) { return t.Task(ctx, "email-send", "j1") }, sent("GET", task, "")},
		"claim": {func(ctx context.Context, t *client.Tenant) (api.Task, error) {
			return t.ClaimTask(ctx, "email-send", "j1", api.TaskClaim{Worker: "w1", TimeoutMS: 2000})
		}, sent("POST", task+":claim", `{"worker":"w1","timeout_ms":2000}`)},
		"step": {func(ctx context.Context, t *client.Tenant) (api.Task, error) {
			return t.StepTask(ctx, "email-send", "j1", api.TaskStep{Worker: "w1"})
		}, sent("POST", task+":step", `{"worker":"w1","step":0}`)},
		"complete": {func(ctx context.Context, t *client.Tenant) (api.Task, error) {
			return t.CompleteTask(ctx, "email-send", "j1", api.TaskCompletion{Worker: "w1", ResultRef: "s3://b"})
		}, sent("POST", task+":complete", `{"worker":"w1","result_ref":"s3://b"}`)},
		"fail": {func(ctx context.Context, t *client.Tenant) (api.Task, error) {
			return t.FailTask(ctx, "email-send", "j1", api.TaskFailure{Worker: "w1", Error: "broke"})
		}, sent("POST", task+":fail", `{"worker":"w1","error":"broke"}`)},
		"cancel": {func(ctx context.Context, t *client.Tenant) (api.Task, error) {
			return t.CancelTask(ctx, "email-send", "j1")
		}, sent("POST", task+":cancel", "")},
		"list": {func(ctx context.Context, t *client.Tenant) (api.Task, error) {
			page, err := t.Tasks(ctx, client.TaskFilter{Type: "email-send", Stuck: true}, client.PageOptions{Limit: 3})
			return api.Task{TaskID: fmt.Sprintf("j%d", len(page.Items)+1)}, err
		}, sent("GET", "/v1/tenants/t_default/tasks?limit=3&stuck=true&type=email-send", "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, all := serve(t, 200, `{"task_id":"j1"}`)
			got, err := tt.call(t.Context(), c.Tenant("t_default"))
			if err != nil || got.TaskID != "j1" {
				t.Fatalf("got task %v and error %v, want task j1 and no error", got, err)
			}
			if diff := cmp.Diff([]seen{tt.want}, *all); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// Reports of workers are safe to repeat, and are repeated where the store was away.
func TestTaskReportsAreRepeated(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := start(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"task_id":"j1","state":"claimed"}`)
	})
	if got, err := c.Tenant("t_default").ClaimTask(t.Context(), "email-send", "j1", api.TaskClaim{Worker: "w1"}); err != nil || got.State != api.TaskClaimed || asked.Load() != 2 {
		t.Errorf("ClaimTask: got task %+v and error %v after %d requests, want it claimed after 2", got, err, asked.Load())
	}
	if _, created, err := c.Tenant("t_default").CreateTask(t.Context(), "email-send", "j1", api.NewTask{}); err != nil || !created {
		t.Errorf("CreateTask: got created %v and error %v, want true and no error", created, err)
	}
}
