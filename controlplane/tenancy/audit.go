package tenancy

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	storeaccess "github.com/codesous/sous/storage/access"
)

const pathAudit = rest.PathTenant + "/audit"

// listAuditInput filters by equality; "" accepts all.
type listAuditInput struct {
	rest.TenantPath
	rest.PageQuery
	Action  string `query:"action" maxLength:"64" doc:"cs:function:publish and so on"`
	Sub     string `query:"sub" maxLength:"64" doc:"the id of the key of the caller"`
	Refused string `query:"refused" enum:"true,false" doc:"only refused requests, or only others; both if it is left out"`
}

// auditEndpoints declares the route of the audit, which shows requests to all namespaces and
// is therefore closed to keys of one.
func (a *API) auditEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathAudit, Action: access.AuditRead, Extent: rest.WholeTenant,
			ID: "list-audit", Tag: "audit", Summary: "List the changes, and the refused attempts to change, newest first",
			Description: "The last 10,000 changes and the last 10,000 refusals of the tenant, of the last 90 days unless the server says otherwise. " +
				"Refusals that a key repeats within a minute are one event with a count. Filters are applied while scanning: a page may be short, " +
				"even empty, and still have a next_cursor.",
		}, a.listAudit),
	}
}

// listAudit answers with a page of the tenant's audit, newest first. rest.Server writes
// most of the events, at the end of the requests that they describe.
func (a *API) listAudit(ctx context.Context, in *listAuditInput) (*rest.PageOutput[api.AuditEvent], error) {
	tenant := string(in.Tenant)
	var refused *bool
	if in.Refused != "" {
		only := in.Refused == "true"
		refused = &only
	}
	return rest.ReadPage(rest.ListScope("audit", tenant, in.Action, in.Sub, in.Refused), in.Cursor, func(position string) ([]api.AuditEvent, string, error) {
		return a.events.List(ctx, storeaccess.AuditFilter{
			Tenant: tenant, Action: in.Action, Sub: in.Sub, Refused: refused, Cursor: position, Limit: in.Limit,
		})
	})
}
