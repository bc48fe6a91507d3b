package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/codesous/sous/api"
)

// AuditFilter narrows a list of audit events; zero values match everything.
type AuditFilter struct {
	Action  string // such as cs:function:publish
	Sub     string // the id of the caller's key
	Refused *bool  // only refused requests, or only others
}

// Audit returns one page of the tenant's audit, newest first. A page may be shorter
// than its limit and still have a cursor.
func (t *Tenant) Audit(ctx context.Context, f AuditFilter, o PageOptions) (api.Page[api.AuditEvent], error) {
	q := o.query()
	if f.Action != "" {
		q.Set("action", f.Action)
	}
	if f.Sub != "" {
		q.Set("sub", f.Sub)
	}
	if f.Refused != nil {
		q.Set("refused", strconv.FormatBool(*f.Refused))
	}
	var out api.Page[api.AuditEvent]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("audit"), query: q}, nil, &out)
	return out, err
}
