package webhooks

import (
	"context"
	"time"

	"github.com/codesous/sous/storage"
)

// Tenants returns the tenants that have ever had a webhook.
func (r *Repository) Tenants(ctx context.Context) ([]string, error) {
	var out []string
	for part, err := range r.s.ScanSet(ctx, r.s.Keys().WebhookTenants()) {
		if err != nil {
			return nil, storage.Failure(ctx, "read tenants with webhooks", err)
		}
		out = append(out, part...)
	}
	return out, nil
}

// Lease takes or extends the lease under which the replica with that token delivers a tenant's
// webhooks. mine is false if another one has it.
func (r *Repository) Lease(ctx context.Context, tenant, token string, d time.Duration) (mine bool, err error) {
	reply, err := r.s.Script(ctx, scriptLease, []string{r.s.Keys().WebhookLease(tenant)}, token, d.Milliseconds())
	n, _ := reply.(int64)
	return n == 1, err
}

// Release ends the lease, so that another replica need not wait for its end.
func (r *Repository) Release(ctx context.Context, tenant, token string) error {
	_, err := r.Lease(ctx, tenant, token, 0)
	return err
}
