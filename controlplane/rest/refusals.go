package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
)

// Limits of the events of refused requests. The first singleRefusals of a key within a window
// are written one by one; the further ones are counted by action and code, and written as one
// event for each when the window ends. At most maxRefusals counts are kept, maxTenantRefusals of
// one tenant, and what exceeds that is in the metrics only.
const (
	refusalWindow     = time.Minute
	singleRefusals    = 8
	maxRefusals       = 4096
	maxTenantRefusals = 512
	maxCallers        = 4096 // whose single events are counted
	maxTenantCallers  = 512  // in the audit of one tenant
)

// refusalLog writes the refused requests to the audit, of which a caller without any right to
// change something can make any number. It is safe for concurrent use.
type refusalLog struct {
	append func(ctx context.Context, tenant string, e api.AuditEvent) error
	log    *zap.Logger
	window time.Duration
	total  *prometheus.CounterVec

	mu            sync.Mutex
	single        map[refusalCaller]int
	counts        map[refusal]*api.AuditEvent
	tenantCallers map[string]int // parts of single
	tenantCounts  map[string]int // parts of counts
	timer         *time.Timer    // while a window is open
	closed        bool
}

// refusalCaller is a key in the tenant whose audit has its events.
type refusalCaller struct{ tenant, sub string }

// refusal is the key of one event: equal refusals are counted together.
type refusal struct {
	refusalCaller
	action, method string
	status         int
	code           api.Code
}

func newRefusalLog(audits AuditLog, log *zap.Logger) *refusalLog {
	l := &refusalLog{
		append: audits.Append, log: log, window: refusalWindow,
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "audit_refusals_total",
			Help: "Refused requests that would have changed something, by how the audit has them.",
		}, []string{"recorded"}),
	}
	l.clear()
	return l
}

// The values of the label recorded.
const (
	recordedSingle = "event"
	recordedCount  = "count"
	recordedLost   = "none"
)

// note records the refused request that e describes. It waits for the store only if the event
// is written alone.
func (l *refusalLog) note(ctx context.Context, tenant string, e api.AuditEvent) error {
	e.Refused = true
	if l.countSingle(refusalCaller{tenant, e.Sub}) {
		l.total.WithLabelValues(recordedSingle).Inc()
		return l.append(ctx, tenant, e)
	}
	key := refusal{refusalCaller{tenant, e.Sub}, e.Action, e.Method, e.Status, e.Code}
	l.mu.Lock()
	defer l.mu.Unlock()
	counted := l.counts[key]
	if counted == nil {
		if len(l.counts) >= maxRefusals || l.tenantCounts[tenant] >= maxTenantRefusals {
			l.total.WithLabelValues(recordedLost).Inc()
			return nil
		}
		counted = &e
		l.counts[key] = counted
		l.tenantCounts[tenant]++
	}
	counted.Count++
	counted.Path, counted.RequestID = e.Path, e.RequestID
	l.total.WithLabelValues(recordedCount).Inc()
	return nil
}

// countSingle reports whether the caller's next refusal is written alone. The first one of
// any caller opens the window.
func (l *refusalLog) countSingle(who refusalCaller) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil && !l.closed {
		l.timer = time.AfterFunc(l.window, l.flush)
	}
	n, known := l.single[who]
	if n >= singleRefusals {
		return false
	}
	if !known {
		if len(l.single) >= maxCallers || l.tenantCallers[who.tenant] >= maxTenantCallers {
			return false
		}
		l.tenantCallers[who.tenant]++
	}
	l.single[who] = n + 1
	return true
}

// clear begins a window.
func (l *refusalLog) clear() {
	l.single, l.counts = map[refusalCaller]int{}, map[refusal]*api.AuditEvent{}
	l.tenantCallers, l.tenantCounts = map[string]int{}, map[string]int{}
}

// flush ends the window: it writes what was counted. The first failure ends the writing, so
// that a store that does not answer delays Close once; the other events are logged as lost.
func (l *refusalLog) flush() {
	l.mu.Lock()
	counts := l.counts
	l.clear()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.mu.Unlock()
	var failed error
	for key, e := range counts {
		if failed == nil {
			ctx, cancel := context.WithTimeout(context.Background(), auditTimeout)
			failed = l.append(ctx, key.tenant, *e)
			cancel()
		}
		if failed != nil {
			l.log.Warn("an audit event was lost", zap.String("tenant", key.tenant), zap.Any("event", e), zap.Error(failed))
		}
	}
}

// close writes what was counted. Requests must have ended.
func (l *refusalLog) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.flush()
}

// refused reports whether a status says that the server refused a request, which then changed
// nothing.
func refused(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}
