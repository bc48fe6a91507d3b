package access

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// auditMax is the number of events that a tenant's audit keeps; older ones are dropped.
const auditMax = 10_000

// auditWindow is the number of events that one command reads.
const auditWindow = 200

// Audit keeps the changes of each tenant and their authors, in a stream: an entry has the
// fields of api.AuditEvent that are not empty. A change and its event are separate writes, so
// a crash can leave a change without its event. Audit is safe for concurrent use.
type Audit struct{ s *storage.Store }

// NewAudit returns the audit in s.
func NewAudit(s *storage.Store) *Audit { return &Audit{s} }

// Append adds an event; the store assigns its id, and e.ID is ignored. The event may be stored
// twice where an answer of the store is lost. CodeStoreUnavailable.
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
	return storage.Failure(ctx, "write audit", r.s.Client().XAdd(ctx, &redis.XAddArgs{
		Stream: r.s.Keys().Audit(tenant), MaxLen: auditMax, Values: values,
	}).Err())
}

// AuditFilter selects events of a tenant. A zero field accepts all.
type AuditFilter struct {
	Tenant string
	Action string
	Sub    string
	Cursor string // where an earlier page ended; "" is the newest
	Limit  int    // 0 means api.DefaultPageLimit
}

// List returns a page of a tenant's audit, newest first. The filter is applied while it
// scans, and the scan is limited: a page may be short and still have a next cursor, which
// is "" at the end. CodeValidationCursor.
func (r *Audit) List(ctx context.Context, f AuditFilter) (items []api.AuditEvent, next string, err error) {
	limit := storage.PageLimit(f.Limit)
	from := "+"
	if f.Cursor != "" {
		if !isStreamID(f.Cursor) {
			return nil, "", api.Errorf(api.CodeValidationCursor, "not an audit cursor: %q", f.Cursor)
		}
		from = "(" + f.Cursor
	}
	for budget := storage.ScanBudget; ; {
		// One more than the window: it decides whether the stream has older events.
		found, err := storage.StreamEntries(r.s.Client().Do(ctx, "XREVRANGE", r.s.Keys().Audit(f.Tenant), from, "-", "COUNT", auditWindow+1))
		if err != nil {
			return nil, "", storage.Failure(ctx, "list audit", err)
		}
		for i, entry := range found[:min(len(found), auditWindow)] {
			e, err := auditEvent(entry)
			if err != nil {
				return nil, "", err
			}
			from = "(" + entry.ID
			if f.Action != "" && e.Action != f.Action || f.Sub != "" && e.Sub != f.Sub {
				continue
			}
			items = append(items, e)
			if len(items) == limit {
				if i == len(found)-1 {
					return items, "", nil
				}
				return items, entry.ID, nil
			}
		}
		if len(found) <= auditWindow {
			return items, "", nil
		}
		budget -= auditWindow
		if budget <= 0 {
			return items, from[1:], nil
		}
	}
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
