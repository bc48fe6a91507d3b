package client_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

func TestKeyAndAuditRequests(t *testing.T) {
	t.Parallel()
	const bearer, path = "Bearer k1", "/v1/tenants/t_default"
	const record = `{"id":"key_1","tenant":"t_default","name":"ci","roles":["developer"],"namespace":"side","created_at_ms":7,"expires_at_ms":9}`
	key := api.Key{ID: "key_1", Tenant: "t_default", Name: "ci", Roles: []string{"developer"}, Namespace: "side", CreatedAtMS: 7, ExpiresAtMS: 9}
	tests := map[string]struct {
		call   func(ctx context.Context, tenant *client.Tenant) (got any, err error)
		status int
		body   string
		want   any
		seen   seen
	}{
		"create": {
			call: func(ctx context.Context, tenant *client.Tenant) (any, error) {
				return tenant.CreateKey(ctx, client.NewKey{Name: "ci", Roles: []string{"developer"}, Namespace: "side", ExpiresAtMS: 9})
			},
			status: 201, body: `{"key":"sous_1",` + record[1:], want: api.NewKey{Key: key, Secret: "sous_1"},
			seen: seen{Method: "POST", URI: path + "/keys", Body: `{"name":"ci","roles":["developer"],"namespace":"side","expires_at_ms":9}`,
				ContentType: "application/json", Auth: bearer},
		},
		"create without what may be left out": {
			call: func(ctx context.Context, tenant *client.Tenant) (any, error) {
				return tenant.CreateKey(ctx, client.NewKey{Name: "ci", Roles: []string{"role:x"}})
			},
			status: 201, body: `{"key":"sous_1"}`, want: api.NewKey{Secret: "sous_1"},
			seen: seen{Method: "POST", URI: path + "/keys", Body: `{"name":"ci","roles":["role:x"]}`, ContentType: "application/json", Auth: bearer},
		},
		"list": {
			call: func(ctx context.Context, tenant *client.Tenant) (any, error) {
				return tenant.Keys(ctx, client.PageOptions{Cursor: "c", Limit: 2})
			},
			status: 200, body: `{"items":[` + record + `],"next_cursor":null}`, want: api.Page[api.Key]{Items: []api.Key{key}},
			seen: seen{Method: "GET", URI: path + "/keys?cursor=c&limit=2", Auth: bearer},
		},
		"get": {
			call:   func(ctx context.Context, tenant *client.Tenant) (any, error) { return tenant.Key(ctx, "key_1") },
			status: 200, body: record, want: key,
			seen: seen{Method: "GET", URI: path + "/keys/key_1", Auth: bearer},
		},
		"revoke": {
			call: func(ctx context.Context, tenant *client.Tenant) (any, error) {
				return nil, tenant.RevokeKey(ctx, "../key")
			},
			status: 204,
			seen:   seen{Method: "DELETE", URI: path + "/keys/..%2Fkey", Auth: bearer},
		},
		"audit": {
			call: func(ctx context.Context, tenant *client.Tenant) (any, error) {
				return tenant.Audit(ctx, client.AuditFilter{Action: "cs:key:create", Sub: "key_1"}, client.PageOptions{Limit: 5})
			},
			status: 200,
			body: `{"items":[{"id":"5-0","at_ms":5,"sub":"key_1","action":"cs:key:create","method":"POST","path":"/v1","status":403,` +
				`"code":"CS_AUTHZ_DENIED","request_id":"req_1"}],"next_cursor":null}`,
			want: api.Page[api.AuditEvent]{Items: []api.AuditEvent{{
				ID: "5-0", AtMS: 5, Sub: "key_1", Action: "cs:key:create", Method: "POST", Path: "/v1", Status: 403,
				Code: api.CodeAuthzDenied, RequestID: "req_1",
			}}},
			seen: seen{Method: "GET", URI: path + "/audit?action=cs%3Akey%3Acreate&limit=5&sub=key_1", Auth: bearer},
		},
		"audit of everything": {
			call: func(ctx context.Context, tenant *client.Tenant) (any, error) {
				return tenant.Audit(ctx, client.AuditFilter{}, client.PageOptions{})
			},
			status: 200, body: `{"items":[],"next_cursor":null}`, want: api.Page[api.AuditEvent]{Items: []api.AuditEvent{}},
			seen: seen{Method: "GET", URI: path + "/audit", Auth: bearer},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, all := serve(t, tt.status, tt.body)
			got, err := tt.call(t.Context(), c.Tenant("t_default"))
			if err != nil {
				t.Fatalf("call: %v", err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("answer (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]seen{tt.seen}, *all); d != "" {
				t.Errorf("requests (-want +got):\n%s", d)
			}
		})
	}
}
