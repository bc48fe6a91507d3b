package rest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
)

// auditTimeout bounds the write of an event, which outlives its request.
const auditTimeout = 5 * time.Second

// maxAuditPath is how much of a path an event keeps, in bytes. Every path that names
// something that can exist is shorter.
const maxAuditPath = 512

// NoteMade adds to the audit log what the request of ctx created, if the path does not contain
// it: the id of a key, the number of a version. Outside of requests it does
// nothing.
func NoteMade(ctx context.Context, what string) {
	if x := exchangeOf(ctx); x != nil {
		x.made = what
	}
}

// audit writes the event of a request that changed something, or was refused to; refusalLog
// bounds the number of the latter. The event belongs to the caller's own tenant, so that a caller cannot fill the log of
// another; for an administrator of all tenants it belongs to the path's tenant.
//
// The event is written after the handler, whose status it has, and without the deadline
// of the request: a client that goes away must not prevent it. A crash in between loses
// the event, but not the change; a failed write is logged with the whole event.
func (s *Server) audit(r *http.Request, x *exchange) {
	if x.caller == nil || !x.action.Audited() {
		return
	}
	tenant := x.caller.Tenant
	if tenant == api.AllTenants {
		tenant = x.tenant
		if api.ValidateTenant(tenant) != nil {
			return // such a request cannot have changed anything
		}
	}
	path := api.WithoutKeys(r.URL.Path)
	path = strings.ToValidUTF8(path[:min(len(path), maxAuditPath)], "\ufffd")
	event := api.AuditEvent{
		AtMS: s.now(), Sub: x.caller.Sub, Action: string(x.action), Method: r.Method,
		Path: path, Made: x.made, Status: x.answer.status, Code: x.code, RequestID: x.requestID,
	}
	if event.Status == 0 { // a panic: serve will answer with this
		event.Status, event.Code = http.StatusInternalServerError, api.CodeInternal
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), auditTimeout)
	defer cancel()
	write := s.audits.Append
	if refused(event.Status) {
		write = s.refusals.note
	}
	if err := write(ctx, tenant, event); err != nil {
		s.log.Warn("an audit event was lost", zap.String("request_id", x.requestID), zap.String("tenant", tenant), zap.Any("event", event), zap.Error(err))
	}
}
