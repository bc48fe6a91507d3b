package invoker

import (
	"context"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage/activations"
)

// Quotas are the rates of the tenants: a quotas.Keeper. It must be safe for concurrent use and
// must not send a command for each call.
type Quotas interface {
	// Call admits a call of a function, or returns CodeTenantRate.
	Call(ctx context.Context, tenant string) error
	// Egress admits a request of a function to another server, or returns CodeTenantRate.
	Egress(ctx context.Context, tenant string) error
	// Records returns CodeTenantRate if log lines, large results and long errors of the tenant's
	// activations may not be stored.
	Records(ctx context.Context, tenant string) error
	// Charge adds what a call has used: bytes, or thousandths of CPU seconds and GB-seconds.
	Charge(tenant string, q quota.Name, amount int64)
	// Overdrawn returns CodeTenantRate if the tenant has used much more of a rate than it was
	// granted. It must not block.
	Overdrawn(tenant string, q quota.Name) error
}

// admit refuses a call of a tenant that has used up a rate. Error: CodeTenantRate.
func (i *Invoker) admit(ctx context.Context, tenant string) error {
	if i.quotas == nil {
		return nil
	}
	return i.quotas.Call(ctx, tenant)
}

// admitRecord refuses an idempotent call whose result may not be stored, since repeats of the call
// are answered with it. Error: CodeTenantRate.
func (i *Invoker) admitRecord(ctx context.Context, inv *api.Invocation) error {
	if i.quotas == nil || inv.IdempotencyKey == "" {
		return nil
	}
	return i.quotas.Records(ctx, inv.Tenant)
}

// chargesEgress returns the function that charges a tenant with the bytes of its functions'
// exchanges with other servers, as they flow. Its error, CodeTenantRate, ends an exchange of a
// tenant that has used up a rate meanwhile.
func chargesEgress(quotas Quotas) func(tenant string, bytes int64) error {
	return func(tenant string, bytes int64) error {
		quotas.Charge(tenant, quota.Egress, bytes)
		quotas.Charge(tenant, quota.EgressDay, bytes)
		if err := quotas.Overdrawn(tenant, quota.Egress); err != nil {
			return err
		}
		return quotas.Overdrawn(tenant, quota.EgressDay)
	}
}

// charge charges the tenant with what an activation has used, except for egress, which
// chargesEgress charges before.
func (i *Invoker) charge(rec *activations.Record, took time.Duration) {
	if i.quotas == nil {
		return
	}
	i.quotas.Charge(rec.Tenant, quota.CPU, int64(rec.CPUMS))
	i.quotas.Charge(rec.Tenant, quota.Memory, quota.MilliGBSeconds(rec.MemoryMB, took.Milliseconds()))
	if !rec.Short {
		i.quotas.Charge(rec.Tenant, quota.RecordBytes, int64(min(len(rec.Result), api.MaxStoredResultBytes)+rec.Error.Bytes()))
	}
}
