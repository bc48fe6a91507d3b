package client_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api/client"
)

func TestSecretRequests(t *testing.T) {
	t.Parallel()
	const secrets, bearer, contentType = "/v1/tenants/t_default/namespaces/payments/secrets", "Bearer k1", "application/json"
	stripe := func(c *client.Client) *client.Secret { return payments(c).Secret("stripe") }
	for name, tt := range map[string]struct {
		call func(ctx context.Context, c *client.Client) error
		want seen
	}{
		"set": {func(ctx context.Context, c *client.Client) error {
			made, err := stripe(c).Set(ctx, "sk_live 1", client.SecretCondition{IfMatch: 6})
			if err == nil && (made.Version != 7 || made.Name != "stripe") {
				err = fmt.Errorf("%+v", made)
			}
			return err
		}, seen{Method: "PUT", URI: secrets + "/stripe", ContentType: contentType, Auth: bearer, IfMatch: `"6"`, Body: `{"value":"sk_live 1"}`}},
		"set anyway": {func(ctx context.Context, c *client.Client) error {
			_, err := stripe(c).Set(ctx, "x", client.SecretCondition{})
			return err
		}, seen{Method: "PUT", URI: secrets + "/stripe", ContentType: contentType, Auth: bearer, Body: `{"value":"x"}`}},
		"list": {func(ctx context.Context, c *client.Client) error {
			_, err := payments(c).Secrets(ctx, client.PageOptions{Limit: 3})
			return err
		}, seen{Method: "GET", URI: secrets + "?limit=3", Auth: bearer}},
		"get": {func(ctx context.Context, c *client.Client) error { _, err := stripe(c).Get(ctx); return err },
			seen{Method: "GET", URI: secrets + "/stripe", Auth: bearer}},
		"delete": {func(ctx context.Context, c *client.Client) error { return stripe(c).Delete(ctx, 7) },
			seen{Method: "DELETE", URI: secrets + "/stripe", Auth: bearer, IfMatch: `"7"`}},
		"rewrap": {func(ctx context.Context, c *client.Client) error {
			_, err := c.Tenant("t_default").RewrapSecrets(ctx, "c+1")
			return err
		}, seen{Method: "POST", URI: "/v1/tenants/t_default/secrets:rewrap?cursor=c%2B1", Auth: bearer}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, all := serve(t, 200, `{"name":"stripe","version":7}`)
			if name == "rewrap" || name == "list" {
				c, all = serve(t, 200, `{}`)
			}
			if err := tt.call(t.Context(), c); err != nil {
				t.Fatalf("call: %v", err)
			}
			if diff := cmp.Diff([]seen{tt.want}, *all); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
