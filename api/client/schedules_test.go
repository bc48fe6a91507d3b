package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

func TestScheduleRequests(t *testing.T) {
	t.Parallel()
	const schedules, bearer, contentType = "/v1/tenants/t_default/namespaces/payments/schedules", "Bearer k1", "application/json"
	nightly := func(c *client.Client) *client.Schedule { return payments(c).Schedule("nightly") }
	cron := "0 6 * * *"
	for name, tt := range map[string]struct {
		call func(ctx context.Context, c *client.Client) error
		want seen
	}{
		"create": {func(ctx context.Context, c *client.Client) error {
			_, err := payments(c).CreateSchedule(ctx, api.NewSchedule{Name: "nightly", EverySeconds: 5, Ref: &api.JobTarget{Function: "hello"}, Payload: json.RawMessage(`{"n":1}`)})
			return err
		}, seen{Method: "POST", URI: schedules, Body: `{"name":"nightly","every_seconds":5,"ref":{"function":"hello"},"payload":{"n":1}}`, ContentType: contentType, Auth: bearer}},
		"list": {func(ctx context.Context, c *client.Client) error {
			_, err := payments(c).Schedules(ctx, client.PageOptions{Limit: 3})
			return err
		}, seen{Method: "GET", URI: schedules + "?limit=3", Auth: bearer}},
		"get": {func(ctx context.Context, c *client.Client) error {
			s, err := nightly(c).Get(ctx)
			if err == nil && s.Revision != 7 {
				err = fmt.Errorf("%+v", s)
			}
			return err
		}, seen{Method: "GET", URI: schedules + "/nightly", Auth: bearer}},
		"update": {func(ctx context.Context, c *client.Client) error {
			_, err := nightly(c).Update(ctx, client.ScheduleChange{Cron: &cron, Without: []string{"every_seconds", "payload"}, IfMatch: 7})
			return err
		}, seen{Method: "PATCH", URI: schedules + "/nightly", Body: `{"cron":"0 6 * * *","every_seconds":null,"payload":null}`, ContentType: contentType, Auth: bearer, IfMatch: `"7"`}},
		"update of nothing": {func(ctx context.Context, c *client.Client) error {
			_, err := nightly(c).Update(ctx, client.ScheduleChange{})
			return err
		}, seen{Method: "PATCH", URI: schedules + "/nightly", Body: `{}`, ContentType: contentType, Auth: bearer}},
		"delete": {func(ctx context.Context, c *client.Client) error { return nightly(c).Delete(ctx, 7) },
			seen{Method: "DELETE", URI: schedules + "/nightly", Auth: bearer, IfMatch: `"7"`}},
		"run": {func(ctx context.Context, c *client.Client) error {
			run, err := nightly(c).Run(ctx, "once")
			if err == nil && run.JobID != "j1" {
				err = fmt.Errorf("%+v", run)
			}
			return err
		}, seen{Method: "POST", URI: schedules + "/nightly:run", Auth: bearer, Idempotency: "once"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, all := serve(t, 200, `{"job_id":"j1","revision":7}`)
			if err := tt.call(t.Context(), c); err != nil {
				t.Fatalf("call: %v", err)
			}
			if diff := cmp.Diff([]seen{tt.want}, *all); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
