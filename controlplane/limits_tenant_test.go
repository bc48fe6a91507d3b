package controlplane_test

import (
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage/kvstore"
)

// TestLimitsOfTenants: only a key of all tenants sets limits, and the answer has those in force.
func TestLimitsOfTenants(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	own, _ := k.key(t, api.RoleAdmin)
	platform, _ := k.key(t, api.RoleAdmin, ofTenant(api.AllTenants))
	path := "/v1/tenants/" + k.tenant + "/limits"
	if a := k.as(t, own, "PUT", path, `{"functions":1000000}`); a.status != 403 {
		t.Errorf("PUT by the tenant's own administrator: got %d %s, want 403", a.status, a.body)
	}
	if a := k.as(t, platform, "PUT", path, `{"functions":7,"calls_per_second":-1}`); a.status != 200 {
		t.Fatalf("PUT: got %d %s, want 200", a.status, a.body)
	}
	status := ok[quota.TenantLimitsStatus](t, k.as(t, own, "GET", path, ""), 200)
	if status.Set.Functions != 7 || status.Limits.Functions != 7 || status.Limits.KVBytes != quota.DefaultTenantLimits().KVBytes {
		t.Errorf("GET: got %+v, want 7 functions and the default of kv_bytes", status)
	}
	for _, body := range []string{`{"functions":-2}`, `{"weight":1001}`, `{"ghosts":1}`} {
		if a := k.as(t, platform, "PUT", path, body); a.status != 422 {
			t.Errorf("PUT %s: got %d %s, want 422", body, a.status, a.body)
		}
	}
	usage := ok[quota.TenantUsage](t, k.as(t, own, "GET", "/v1/tenants/"+k.tenant+"/usage?from=2026-01-01&to=2026-01-31", ""), 200)
	if len(usage.Quotas) != len(quota.Stored())+len(quota.Rates()) || len(usage.Days) != 0 {
		t.Errorf("usage: got %d quotas and %d days, want all quotas and no day", len(usage.Quotas), len(usage.Days))
	}
	for _, query := range []string{"from=yesterday", "from=2026-01-02&to=2026-01-01", "from=2020-01-01&to=2026-01-01", "by=tenant"} {
		if a := k.as(t, own, "GET", "/v1/tenants/"+k.tenant+"/usage?"+query, ""); a.status != 422 {
			t.Errorf("usage?%s: got %d %s, want 422", query, a.status, a.body)
		}
	}
}

// TestKVOverHTTP lists, reads and deletes keys that no path could contain.
func TestKVOverHTTP(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	h := startOn(t, store)
	kv, base := kvstore.New(store), "/v1/tenants/"+h.tenant+"/namespaces/payments/kv"
	for key, value := range map[string]string{"u/1": `{"a":1}`, "u/2": `"two"`, "v": `3`} {
		if err := kv.Set(t.Context(), h.tenant, "payments", key, []byte(value), 0); err != nil {
			t.Fatalf("Set: %v", err)
		}
	}
	first := ok[api.Page[api.KVEntry]](t, h.call(t, "GET", base+"?prefix=u%2F&limit=1", ""), 200)
	if len(first.Items) != 1 || first.Items[0].Key != "u/1" || first.Items[0].Bytes != 7 || first.NextCursor == nil {
		t.Fatalf("first page: got %+v, want u/1 of 7 bytes and a cursor", first)
	}
	second := ok[api.Page[api.KVEntry]](t, h.call(t, "GET", base+"?prefix=u%2F&limit=1&cursor="+*first.NextCursor, ""), 200)
	if len(second.Items) != 1 || second.Items[0].Key != "u/2" || second.NextCursor != nil {
		t.Errorf("second page: got %+v, want u/2 and no cursor", second)
	}
	if got := ok[api.KVEntry](t, h.call(t, "GET", base+"/value?key=u%2F1", ""), 200); string(got.Value) != `{"a":1}` {
		t.Errorf("value: got %s, want %s", got.Value, `{"a":1}`)
	}
	if a := h.call(t, "DELETE", base+"/value?key=u%2F1", ""); a.status != 204 {
		t.Errorf("DELETE: got %d %s, want 204", a.status, a.body)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if a := h.call(t, method, base+"/value?key=u%2F1", ""); a.status != 404 || !strings.Contains(string(a.body), "CS_KV_NOT_FOUND") {
			t.Errorf("%s of a deleted key: got %d %s, want 404", method, a.status, a.body)
		}
	}
	if a := h.call(t, "GET", base+"/value", ""); a.status != 422 {
		t.Errorf("GET without a key: got %d %s, want 422", a.status, a.body)
	}
}
