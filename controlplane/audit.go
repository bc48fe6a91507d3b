package controlplane

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/access"
)

const pathAudit = pathTenant + "/audit"

// auditTimeout bounds the writing of an event, which outlives its request.
const auditTimeout = 5 * time.Second

// maxAuditPath is how much of a path an event keeps, in bytes: more than any path
// has that names what can exist.
const maxAuditPath = 512

type listAuditInput struct {
	TenantPath
	PageQuery
	Action string `query:"action" maxLength:"64" doc:"cs:function:publish and so on"`
	Sub    string `query:"sub" maxLength:"64" doc:"the id of the key that asked"`
}

type auditPageOutput struct {
	Body api.Page[api.AuditEvent]
}

func (s *Server) routeAudit(t typedAPI) {
	register(t, huma.Operation{
		OperationID: "list-audit", Method: http.MethodGet, Path: pathAudit, Tags: []string{"audit"},
		Summary: "List who changed, or was refused to change, what; newest first",
		Description: "The last 10,000 events of the tenant. Filters are applied while scanning: a page may be short, " +
			"even empty, and still have a next_cursor.",
	}, s.listAudit)
}

func (s *Server) listAudit(ctx context.Context, in *listAuditInput) (*auditPageOutput, error) {
	tenant := string(in.Tenant)
	list := listScope("audit", tenant, in.Action, in.Sub)
	position, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.events.List(ctx, access.AuditFilter{
		Tenant: tenant, Action: in.Action, Sub: in.Sub, Cursor: position, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return &auditPageOutput{Body: page(items, list.seal(next))}, nil
}

// audit writes the event of a request that changes something, or would have. It
// stands in the caller's own tenant, so that nobody can fill another's; that of an
// administrator of all of them in the tenant that the path names.
func (s *Server) audit(r *http.Request, x *exchange) {
	if x.caller == nil || !x.action.changes() {
		return
	}
	tenant := x.caller.tenant
	if tenant == api.AllTenants {
		if tenant = x.tenant; api.ValidateTenant(tenant) != nil {
			return // nothing can have been done
		}
	}
	path := api.WithoutKeys(r.URL.Path)
	path = strings.ToValidUTF8(path[:min(len(path), maxAuditPath)], "\ufffd")
	event := api.AuditEvent{
		AtMS: s.now(), Sub: x.caller.sub, Action: string(x.action), Method: r.Method,
		Path: path, Made: x.made, Status: x.answer.status, Code: x.code, RequestID: x.requestID,
	}
	if event.Status == 0 { // a panic: what serve will answer
		event.Status, event.Code = http.StatusInternalServerError, api.CodeInternal
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), auditTimeout)
	defer cancel()
	if err := s.events.Append(ctx, tenant, event); err != nil {
		s.log.Warn("an audit event was lost", zap.String("request_id", x.requestID), zap.String("tenant", tenant), zap.Any("event", event), zap.Error(err))
	}
}
