package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
)

// Limits returns the limits of the tenant.
func (t *Tenant) Limits(ctx context.Context) (quota.TenantLimitsStatus, error) {
	var out quota.TenantLimitsStatus
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("limits")}, nil, &out)
	return out, err
}

// SetLimits sets the limits of the tenant in the place of those before. It needs a key of all
// tenants. CodeInvalid, CodeAuthzDenied.
func (t *Tenant) SetLimits(ctx context.Context, limits quota.TenantLimits) (quota.TenantLimitsStatus, error) {
	var out quota.TenantLimitsStatus
	_, err := t.c.call(ctx, &request{method: http.MethodPut, path: t.path("limits")}, limits, &out)
	return out, err
}

// UsageOptions select the days of a usage, each as 2026-11-25 in UTC. "" is the default: the last
// seven days. ByFunction adds the days of each function.
type UsageOptions struct {
	From, To   string
	ByFunction bool
}

// Usage returns what the tenant uses. CodeInvalid.
func (t *Tenant) Usage(ctx context.Context, o UsageOptions) (quota.TenantUsage, error) {
	q := url.Values{}
	for name, value := range map[string]string{"from": o.From, "to": o.To} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if o.ByFunction {
		q.Set("by", "function")
	}
	var out quota.TenantUsage
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("usage"), query: q}, nil, &out)
	return out, err
}

// KV returns one page of the namespace's keys of cs.kv that begin with prefix, without values.
func (n *Namespace) KV(ctx context.Context, prefix string, o PageOptions) (api.Page[api.KVEntry], error) {
	q := o.query()
	if prefix != "" {
		q.Set("prefix", prefix)
	}
	var out api.Page[api.KVEntry]
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodGet, path: n.path("kv"), query: q}, nil, &out)
	return out, err
}

// KVValue returns a key of cs.kv with its value. CodeKVNotFound.
func (n *Namespace) KVValue(ctx context.Context, key string) (api.KVEntry, error) {
	var out api.KVEntry
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodGet, path: n.path("kv", "value"), query: url.Values{"key": {key}}}, nil, &out)
	return out, err
}

// DeleteKV deletes a key of cs.kv. CodeKVNotFound.
func (n *Namespace) DeleteKV(ctx context.Context, key string) error {
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodDelete, path: n.path("kv", "value"), query: url.Values{"key": {key}}}, nil, nil)
	return err
}
