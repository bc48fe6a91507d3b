package client_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

func TestBindingRequests(t *testing.T) {
	t.Parallel()
	const bindings, bearer, contentType = "/v1/tenants/t_default/namespaces/payments/cadence/workers", "Bearer k1", "application/json"
	charges := func(c *client.Client) *client.Binding { return payments(c).Binding("charges") }
	domain, off := "others", false
	for name, tt := range map[string]struct {
		call func(ctx context.Context, c *client.Client) error
		want seen
	}{
		"create": {func(ctx context.Context, c *client.Client) error {
			_, err := payments(c).CreateBinding(ctx, api.NewBinding{
				Name: "charges", Domain: "d", Tasklist: "t", ActivityMap: map[string]api.JobTarget{"Charge": {Function: "charge"}},
				Pollers: api.BindingPollers{Activity: 2}, Enabled: &off,
			})
			return err
		}, seen{Method: "POST", URI: bindings, ContentType: contentType, Auth: bearer,
			Body: `{"name":"charges","domain":"d","tasklist":"t","activity_map":{"Charge":{"function":"charge"}},"pollers":{"activity":2},"enabled":false}`}},
		"list": {func(ctx context.Context, c *client.Client) error {
			_, err := payments(c).Bindings(ctx, client.PageOptions{Limit: 3})
			return err
		}, seen{Method: "GET", URI: bindings + "?limit=3", Auth: bearer}},
		"get": {func(ctx context.Context, c *client.Client) error {
			b, err := charges(c).Get(ctx)
			if err == nil && (b.Revision != 7 || b.Status.Taken != 3 || len(b.Shares) != 1) {
				err = fmt.Errorf("%+v", b)
			}
			return err
		}, seen{Method: "GET", URI: bindings + "/charges", Auth: bearer}},
		"update": {func(ctx context.Context, c *client.Client) error {
			_, err := charges(c).Update(ctx, client.BindingChange{Domain: &domain, Limits: &api.BindingLimits{MaxInflightTasks: 4}, Without: []string{"worker_id"}, IfMatch: 7})
			return err
		}, seen{Method: "PATCH", URI: bindings + "/charges", Body: `{"domain":"others","limits":{"max_inflight_tasks":4},"worker_id":null}`, ContentType: contentType, Auth: bearer, IfMatch: `"7"`}},
		"update of nothing": {func(ctx context.Context, c *client.Client) error {
			_, err := charges(c).Update(ctx, client.BindingChange{})
			return err
		}, seen{Method: "PATCH", URI: bindings + "/charges", Body: `{}`, ContentType: contentType, Auth: bearer}},
		"delete": {func(ctx context.Context, c *client.Client) error { return charges(c).Delete(ctx, 7) },
			seen{Method: "DELETE", URI: bindings + "/charges", Auth: bearer, IfMatch: `"7"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, all := serve(t, 200, `{"revision":7,"status":{"state":"running","taken":3},"replicas":[{"replica":"r1","taken":3}]}`)
			if err := tt.call(t.Context(), c); err != nil {
				t.Fatalf("%s: got error %v, want none", name, err)
			}
			if diff := cmp.Diff([]seen{tt.want}, *all); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
