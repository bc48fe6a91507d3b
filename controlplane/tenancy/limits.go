package tenancy

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage/calls"
	"github.com/codesous/sous/storage/quotas"
)

const (
	pathLimits = rest.PathTenant + "/limits"
	pathUsage  = rest.PathTenant + "/usage"
)

// usageDays is the number of days that a reading of the usage has by default.
const usageDays = 7

type putLimitsInput struct {
	rest.TenantPath
	Body quota.TenantLimits
}

type limitsOutput struct{ Body quota.TenantLimitsStatus }

type usageInput struct {
	rest.TenantPath
	From string `query:"from" doc:"the first day in UTC, such as 2026-11-19; by default six days before the last one"`
	To   string `query:"to" doc:"the last day in UTC; by default today"`
	By   string `query:"by" enum:"function" doc:"function adds the days of each function"`
}

// Resolve refuses days that are no dates.
func (in *usageInput) Resolve(huma.Context) []error {
	_, from := dayOf("from", in.From, 0)
	_, to := dayOf("to", in.To, 0)
	return rest.Problems(api.ValidateTenant(string(in.Tenant)), from, to)
}

type usageOutput struct{ Body quota.TenantUsage }

// dayOf returns a date as the number of days since 1970, or the default for "".
func dayOf(parameter, date string, otherwise int64) (int64, error) {
	if date == "" {
		return otherwise, nil
	}
	at, err := time.Parse(time.DateOnly, date)
	if err != nil || at.Unix() < 0 {
		return 0, api.InvalidField(parameter, "must be a date such as 2026-11-25")
	}
	return at.Unix() / int64(24*time.Hour/time.Second), nil
}

// limitEndpoints declares the routes of the limits of a tenant and of what it has used. Only the
// administrator of the platform sets limits: a tenant's own would not be any.
func (a *API) limitEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathLimits, Action: access.LimitsRead, Extent: rest.WholeTenant,
			ID: "get-tenant-limits", Tag: "tenants", Summary: "Read the limits of a tenant",
		}, a.getLimits),
		rest.Operation(rest.Route{
			Method: http.MethodPut, Path: pathLimits, Action: access.LimitsWrite, Extent: rest.Platform,
			ID: "put-tenant-limits", Tag: "tenants", Summary: "Set the limits of a tenant",
			Description: "Replaces all limits that were set before. A limit that is left out or 0 is that of the server, and -1 is none. All replicas apply them within seconds. " +
				"A limit below the present use deletes nothing: it refuses what would add to it. For keys of all tenants only.",
		}, a.putLimits),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathUsage, Action: access.UsageRead, Extent: rest.WholeTenant,
			ID: "get-tenant-usage", Tag: "tenants", Summary: "Read what a tenant uses: of each quota now, and by its functions each day",
			Description: "The days are those of the calls' ends in UTC and are kept for 400 days. At most 100 days at a time.",
		}, a.getUsage),
	}
}

// getLimits answers with the limits of a tenant. Errors: CodeStoreUnavailable.
func (a *API) getLimits(ctx context.Context, in *tenantInput) (*limitsOutput, error) {
	set, err := quotas.Read(ctx, a.store, string(in.Tenant))
	if err != nil {
		return nil, err
	}
	return &limitsOutput{Body: quota.TenantLimitsStatus{Set: set, Limits: a.quotas.InForce(set)}}, nil
}

// putLimits sets the limits of a tenant, which need not exist yet. Errors: CodeInvalid.
func (a *API) putLimits(ctx context.Context, in *putLimitsInput) (*limitsOutput, error) {
	if err := quotas.Set(ctx, a.store, string(in.Tenant), in.Body); err != nil {
		return nil, err
	}
	return &limitsOutput{Body: quota.TenantLimitsStatus{Set: in.Body, Limits: a.quotas.InForce(in.Body)}}, nil
}

// getUsage answers with the use of the quotas and of the days. Errors: CodeInvalid.
func (a *API) getUsage(ctx context.Context, in *usageInput) (*usageOutput, error) {
	tenant := string(in.Tenant)
	today := a.clock().Unix() / int64(24*time.Hour/time.Second)
	to, err := dayOf("to", in.To, today)
	if err != nil {
		return nil, err
	}
	from, err := dayOf("from", in.From, to-usageDays+1)
	if err != nil {
		return nil, err
	}
	out := &usageOutput{Body: quota.TenantUsage{Tenant: tenant}}
	out.Body.Quotas, err = a.quotas.Usage(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out.Body.Days, out.Body.ByName, err = calls.New(a.store).Usage(ctx, tenant, from, to, in.By == "function")
	return out, err
}
