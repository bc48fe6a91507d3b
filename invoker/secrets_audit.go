package invoker

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

// readBook gathers the readings of secrets, so that a function that reads all the time
// leaves one event a minute and not one a call: the audit keeps a number of events.
type readBook struct {
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

// reading is what is counted in one event.
type reading struct {
	tenant, sub, method, path, made string
	code                            api.Code
}

func newReadBook(life context.Context, store *storage.Store, window time.Duration, logger *zap.Logger) *readBook {
	if window <= 0 {
		window = readWindow
	}
	return &readBook{
		append: access.NewAudit(store).Append, nowMS: store.NowMS, window: window, logger: logger, life: life,
		open: map[reading]*api.AuditEvent{},
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "secret_audit_lost_total",
			Help: "Events of the reading of secrets that could not be written to the audit.",
		}),
	}
}

// reader is on whose behalf secrets are read.
type reader struct{ tenant, namespace, sub, activation, request string }

// note counts a reading.
func (b *readBook) note(who *reader, method, name string, version int64, err error) {
	key := reading{
		tenant: who.tenant, sub: who.sub, method: method, code: api.ErrorCode(err),
		path: "/v1/tenants/" + who.tenant + "/namespaces/" + who.namespace + "/secrets/" + name,
		made: name,
	}
	if version > 0 {
		key.made += "@" + strconv.FormatInt(version, 10)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.open[key]
	if e == nil {
		e = &api.AuditEvent{
			AtMS: b.nowMS(), Sub: key.sub, Action: actionSecretRead, Method: method, Path: key.path, Made: key.made,
			Status: readStatus(key.code), Code: key.code, RequestID: who.request, ActivationID: who.activation,
		}
		b.open[key] = e
		if b.timer == nil {
			b.timer = time.AfterFunc(b.window, func() { b.flush(b.life) })
		}
		if len(b.open) == maxReadings {
			b.timer.Reset(0)
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

// flush writes what was gathered. What the store does not take is tried again with what
// follows, unless life has ended or it is too much.
func (b *readBook) flush(life context.Context) {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	gathered := b.open
	b.open = map[reading]*api.AuditEvent{}
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	b.mu.Unlock()
	var failed error // then the others wait, too: a store that is away delays the end once
	for key, e := range gathered {
		if failed == nil {
			ctx, cancel := context.WithTimeout(life, readTimeout)
			failed = b.append(ctx, key.tenant, *e)
			cancel()
		}
		if failed != nil {
			b.again(key, e, failed)
		}
	}
}

// again keeps an event that was not written.
func (b *readBook) again(key reading, e *api.AuditEvent, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.open) >= maxReadings {
		b.lost.Inc()
		b.logger.Warn("an audit event was lost", zap.String("tenant", key.tenant), zap.Any("event", e), zap.Error(err))
		return
	}
	if later := b.open[key]; later != nil {
		e.Count += later.Count
		e.LastActivationID = later.LastActivationID
	}
	b.open[key] = e
	if b.timer == nil {
		b.timer = time.AfterFunc(min(b.window, readRetry), func() { b.flush(b.life) })
	}
}

// waiting is how many events are gathered.
func (b *readBook) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}

// close writes what is left, within ctx; nothing may be noted any more.
func (b *readBook) close(ctx context.Context) {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.flush(ctx)
}
