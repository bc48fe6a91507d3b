package vault

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
)

// actionSecretRead is how the audit calls the reading of a secret.
const actionSecretRead = "secret.read"

// The ways of reading, as methods of the events.
const (
	readOpened     = "OPEN" // a replica opened the sealed value
	readByFunction = "GET"  // an activation asked for it
)

const (
	// readWindow is how long readings are gathered: less than the minute after which
	// each is promised to stand in the audit.
	readWindow  = 50 * time.Second
	readTimeout = 5 * time.Second // to write one event
	readRetry   = 5 * time.Second // between tries
	maxReadings = 4096            // events that are gathered
)

// auditLog gathers the readings of secrets into events: a function that reads all the
// time leaves one event a minute, not one a call, because the audit keeps a bounded number
// of events.
//
// An event waits for its window, 50 s, and is then written once with the number of its
// readings. Events that a killed replica had not written are lost; those that the store
// does not take are kept and tried again, up to maxReadings.
type auditLog struct {
	append func(ctx context.Context, tenant string, e api.AuditEvent) error
	nowMS  func() int64
	window time.Duration
	logger *zap.Logger
	life   context.Context
	lost   prometheus.Counter

	mu      sync.Mutex
	open    map[reading]*api.AuditEvent
	timer   *time.Timer // while there is something to write
	closed  bool
	writing sync.Mutex
}

// reading is the key of one event: equal readings are counted together. sub names the
// version, not the activation; the event names its first and its last activation. made is
// name@version of the secret.
type reading struct {
	tenant, sub, method, path, made string
	code                            api.Code
}

// newAuditLog returns the log of a vault; a window of 0 stands for readWindow.
func newAuditLog(life context.Context, store *storage.Store, window time.Duration, logger *zap.Logger) *auditLog {
	if window <= 0 {
		window = readWindow
	}
	return &auditLog{
		append: access.NewAudit(store).Append, nowMS: store.NowMS, window: window, logger: logger, life: life,
		open: map[reading]*api.AuditEvent{},
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "secret_audit_lost_total",
			Help: "Audit events of secret reads that could not be written.",
		}),
	}
}

// reader is the activation for which secrets are read.
type reader struct{ tenant, namespace, sub, activation, request string }

// note counts a reading by who; version is that of the secret, 0 if it has none. It does
// not wait for the store. The first reading of a window starts its clock, and a full log is
// written without delay.
func (l *auditLog) note(who *reader, method, name string, version int64, err error) {
	key := reading{
		tenant: who.tenant, sub: who.sub, method: method, code: api.ErrorCode(err),
		path: "/v1/tenants/" + who.tenant + "/namespaces/" + who.namespace + "/secrets/" + name,
		made: name,
	}
	if version > 0 {
		key.made += "@" + strconv.FormatInt(version, 10)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.open[key]
	if e == nil {
		e = &api.AuditEvent{
			AtMS: l.nowMS(), Sub: key.sub, Action: actionSecretRead, Method: method, Path: key.path, Made: key.made,
			Status: readStatus(key.code), Code: key.code, RequestID: who.request, ActivationID: who.activation,
		}
		l.open[key] = e
		if l.timer == nil {
			l.timer = time.AfterFunc(l.window, func() { l.flush(l.life) })
		}
		if len(l.open) == maxReadings {
			l.timer.Reset(0)
		}
	}
	e.Count++
	e.LastActivationID = who.activation
}

// readStatus is the status of a reading, as if it had been a request.
func readStatus(code api.Code) int {
	switch code {
	case "":
		return http.StatusOK
	case api.CodeHostSecretNotFound:
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

// flush writes the gathered events. Those that the store does not take are tried again
// later, unless life has ended or too many wait.
func (l *auditLog) flush(life context.Context) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	gathered := l.open
	l.open = map[reading]*api.AuditEvent{}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.mu.Unlock()
	var failed error // the first failure ends the flush: a store that does not answer delays Close once
	for key, e := range gathered {
		if failed == nil {
			ctx, cancel := context.WithTimeout(life, readTimeout)
			failed = l.append(ctx, key.tenant, *e)
			cancel()
		}
		if failed != nil {
			l.again(key, e, failed)
		}
	}
}

// again keeps an event that was not written for the next flush, together with the readings
// that were noted meanwhile. It counts and logs the event as lost after close, or if
// maxReadings wait.
func (l *auditLog) again(key reading, e *api.AuditEvent, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.open) >= maxReadings {
		l.lost.Inc()
		l.logger.Warn("an audit event was lost", zap.String("tenant", key.tenant), zap.Any("event", e), zap.Error(err))
		return
	}
	if later := l.open[key]; later != nil {
		e.Count += later.Count
		e.LastActivationID = later.LastActivationID
	}
	l.open[key] = e
	if l.timer == nil {
		l.timer = time.AfterFunc(min(l.window, readRetry), func() { l.flush(l.life) })
	}
}

// waiting returns the number of events that are not written yet.
func (l *auditLog) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// close writes the remaining events; ctx applies to that. note must not be called any more.
func (l *auditLog) close(ctx context.Context) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.flush(ctx)
}
