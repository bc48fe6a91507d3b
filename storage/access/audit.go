package access

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// auditMax is the number of events that each stream of a tenant's audit keeps; older ones are
// dropped. Store.AuditRetentionMS bounds their age.
const auditMax = 10_000

// auditWindow is the number of events that one command reads.
const auditWindow = 200

// Audit keeps the changes of each tenant and their authors in a stream, and the requests that
// were refused in another, so that a caller who may change nothing displaces no change. An
// entry has the fields of api.AuditEvent that are not empty. A change and its event are
// separate writes, so a crash can leave a change without its event. Releases before 0.2 wrote
// refusals among the changes, where they stay until they are dropped. Audit is safe for
// concurrent use.
type Audit struct{ s *storage.Store }

// NewAudit returns the audit in s.
func NewAudit(s *storage.Store) *Audit { return &Audit{s} }

// Append adds an event, to the stream of refusals if e.Refused is set; the store assigns its
// id, and e.ID is ignored. The event may be stored twice where an answer of the store is lost.
// CodeStoreUnavailable.
//
// The same command drops the events that are too old. A stream without new events expires as
// a whole; List leaves out events that are too old at any time.
func (r *Audit) Append(ctx context.Context, tenant string, e api.AuditEvent) error {
	values := []any{"at_ms", e.AtMS, "status", e.Status}
	if e.Count > 0 {
		values = append(values, "count", e.Count)
	}
	for _, field := range []struct{ name, value string }{
		{"sub", e.Sub}, {"action", e.Action}, {"method", e.Method}, {"path", e.Path}, {"made", e.Made}, {"code", string(e.Code)},
		{"request_id", e.RequestID}, {"activation_id", e.ActivationID}, {"last_activation_id", e.LastActivationID},
	} {
		if field.value != "" { // see storage.StreamEntries
			values = append(values, field.name, field.value)
		}
	}
	stream := r.s.Keys().Audit(tenant)
	if e.Refused {
		stream = r.s.Keys().Refusals(tenant)
	}
	keep := r.s.AuditRetentionMS(tenant)
	pipe := r.s.Client().Pipeline()
	pipe.XAdd(ctx, &redis.XAddArgs{Stream: stream, MaxLen: auditMax, Values: values})
	pipe.XTrimMinID(ctx, stream, r.oldest(tenant))
	pipe.PExpire(ctx, stream, time.Duration(keep)*time.Millisecond)
	_, err := pipe.Exec(ctx)
	return storage.Failure(ctx, "write audit", err)
}

// oldest returns the id from which a tenant's events are kept.
func (r *Audit) oldest(tenant string) string {
	return strconv.FormatInt(max(0, r.s.NowMS()-r.s.AuditRetentionMS(tenant)), 10)
}

// AuditFilter selects events of a tenant. A zero field accepts all.
type AuditFilter struct {
	Tenant  string
	Action  string
	Sub     string
	Refused *bool  // only refused requests, or only others
	Cursor  string // where an earlier page ended; "" is the newest
	Limit   int    // 0 means api.DefaultPageLimit
}

func (f *AuditFilter) accepts(e *api.AuditEvent) bool {
	return (f.Action == "" || e.Action == f.Action) && (f.Sub == "" || e.Sub == f.Sub) && (f.Refused == nil || e.Refused == *f.Refused)
}

// List returns a page of a tenant's audit, newest first. The filter is applied while it
// scans, and the scan is limited: a page may be short and still have a next cursor, which
// is "" at the end. CodeValidationCursor.
func (r *Audit) List(ctx context.Context, f AuditFilter) (items []api.AuditEvent, next string, err error) {
	limit := storage.PageLimit(f.Limit)
	changes, refusals, err := r.streams(&f)
	if err != nil {
		return nil, "", err
	}
	for budget := storage.ScanBudget; budget > 0; budget-- {
		first, err := later(ctx, changes, refusals)
		if err != nil {
			return nil, "", err
		}
		if first == nil {
			return items, "", nil
		}
		e, err := auditEvent(first.window[0])
		if err != nil {
			return nil, "", err
		}
		first.take()
		e.Refused = first == refusals || e.Status >= 400 && e.Status < 500
		if !f.accepts(&e) {
			continue
		}
		items = append(items, e)
		if len(items) == limit {
			break
		}
	}
	more, err := later(ctx, changes, refusals)
	if more == nil || err != nil {
		return items, "", err
	}
	return items, changes.from + "_" + refusals.from, nil
}

// streams returns the two streams of f's tenant, each from where the page before ended. A
// cursor is the id of the last event of each that the scan has passed, "+" for none, joined
// by "_". A cursor without "_" is one of an earlier release.
func (r *Audit) streams(f *AuditFilter) (changes, refusals *auditStream, err error) {
	changes = &auditStream{audit: r, tenant: f.Tenant, key: r.s.Keys().Audit(f.Tenant), from: newest}
	refusals = &auditStream{audit: r, tenant: f.Tenant, key: r.s.Keys().Refusals(f.Tenant), from: newest}
	if f.Cursor == "" {
		return changes, refusals, nil
	}
	var joined bool
	changes.from, refusals.from, joined = strings.Cut(f.Cursor, "_")
	if !joined {
		refusals.from = changes.from
	}
	for _, from := range []string{changes.from, refusals.from} {
		if !isStreamID(from) && !(from == newest && joined) {
			return nil, nil, api.Errorf(api.CodeValidationCursor, "not an audit cursor: %q", f.Cursor)
		}
	}
	return changes, refusals, nil
}

// newest stands for the end of a stream.
const newest = "+"

// auditStream reads a stream from its newest entry to its oldest.
type auditStream struct {
	audit       *Audit
	tenant, key string
	from        string // the id of the last entry that was taken, or newest
	window      []storage.StreamEntry
	ended       bool
}

// fill reads the next window where the present one is empty.
func (s *auditStream) fill(ctx context.Context) error {
	if len(s.window) > 0 || s.ended {
		return nil
	}
	from := s.from
	if from != newest {
		from = "(" + from
	}
	var err error
	s.window, err = storage.StreamEntries(s.audit.s.Client().Do(ctx, "XREVRANGE", s.key, from, s.audit.oldest(s.tenant), "COUNT", auditWindow))
	if err != nil {
		return storage.Failure(ctx, "list audit", err)
	}
	s.ended = len(s.window) < auditWindow
	return nil
}

// take drops the first entry of the window.
func (s *auditStream) take() { s.from, s.window = s.window[0].ID, s.window[1:] }

// later returns the stream with the later next entry, nil if both have ended.
func later(ctx context.Context, a, b *auditStream) (*auditStream, error) {
	for _, s := range []*auditStream{a, b} {
		if err := s.fill(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case len(a.window) == 0 && len(b.window) == 0:
		return nil, nil
	case len(a.window) == 0:
		return b, nil
	case len(b.window) == 0 || !before(a.window[0], b.window[0]):
		return a, nil
	}
	return b, nil
}

// before reports whether entry a was written before b, which is of the other stream: the
// sequence numbers of their ids do not compare.
func before(a, b storage.StreamEntry) bool {
	written := func(e storage.StreamEntry) (ms, at int64) {
		text, _, _ := strings.Cut(e.ID, "-")
		ms, _ = strconv.ParseInt(text, 10, 64) // the store made it
		at, _ = strconv.ParseInt(e.Fields["at_ms"], 10, 64)
		return ms, at
	}
	aMS, aAt := written(a)
	bMS, bAt := written(b)
	return aMS < bMS || aMS == bMS && aAt < bAt
}

// isStreamID reports whether s has the form of the id of a stream entry: milliseconds, a
// hyphen, and a sequence number within the millisecond.
func isStreamID(s string) bool {
	ms, seq, ok := strings.Cut(s, "-")
	_, errMS := strconv.ParseUint(ms, 10, 64)
	_, errSeq := strconv.ParseUint(seq, 10, 64)
	return ok && errMS == nil && errSeq == nil
}

// auditEvent decodes an entry of the stream.
func auditEvent(entry storage.StreamEntry) (api.AuditEvent, error) {
	text := func(field string) string { return entry.Fields[field] }
	e := api.AuditEvent{
		ID: entry.ID, Sub: text("sub"), Action: text("action"), Method: text("method"), Path: text("path"), Made: text("made"),
		Code: api.Code(text("code")), RequestID: text("request_id"),
		ActivationID: text("activation_id"), LastActivationID: text("last_activation_id"),
	}
	var err error
	if count := text("count"); count != "" {
		e.Count, err = strconv.ParseInt(count, 10, 64)
		if err != nil {
			return e, fmt.Errorf("decode audit event %s: %w", entry.ID, err)
		}
	}
	e.AtMS, err = strconv.ParseInt(text("at_ms"), 10, 64)
	if err != nil {
		return e, fmt.Errorf("decode audit event %s: %w", entry.ID, err)
	}
	e.Status, err = strconv.Atoi(text("status"))
	if err != nil {
		return e, fmt.Errorf("decode audit event %s: %w", entry.ID, err)
	}
	return e, nil
}
