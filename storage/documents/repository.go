package documents

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/floors"
)

// The scripts of documents, by the names of their files in package lua.
const (
	scriptWrite         = "document_write.lua"
	scriptRegister      = "document_register.lua"
	scriptPage          = "document_page.lua"
	scriptDue           = "document_due.lua"
	scriptDrop          = "document_drop.lua"
	scriptSchema        = "document_schema.lua"
	scriptUninstall     = "document_uninstall.lua"
	scriptRecount       = "document_recount.lua"
	scriptRecountTenant = "document_recount_tenant.lua"
)

// Repository keeps documents, the counts of each namespace and tenant, and a feed of each
// namespace's changes. The caller validates names and values. It is safe for concurrent use,
// by any number of processes.
//
// No reader sees a document that has expired. Its record, and its share of a quota, are
// removed by the first caller that meets it: a reader, a writer that lacks room, or the
// sweeper.
type Repository struct {
	s      *storage.Store
	floors floors.Floors // of the sets of expiring documents
	feeds  feeds
}

// NewRepository returns the documents in s.
func NewRepository(s *storage.Store) *Repository { return &Repository{s: s, feeds: feeds{s: s}} }

// Record is a stored document. The order of its fields is that of the stored JSON; scripts
// rely on it. Revision is 1 for a new document and grows by one with each put; a document
// that is created again after a removal begins at 1. Times are milliseconds since 1970, by
// the clock of the writer.
type Record struct {
	Key         string `json:"-"`
	Revision    int64  `json:"revision"`
	CreatedAtMS int64  `json:"created_at_ms"`
	ExpiresAtMS int64  `json:"expires_at_ms"` // 0: never
	// Bytes counts against the quota: the bytes of key, metadata and value.
	Bytes       int64           `json:"bytes"`
	UpdatedAtMS int64           `json:"updated_at_ms"`
	Metadata    json.RawMessage `json:"metadata"`
	Value       json.RawMessage `json:"value"` // nil if it was not requested
}

// Expired reports whether the document has expired at nowMS.
func (d *Record) Expired(nowMS int64) bool {
	return d.ExpiresAtMS > 0 && d.ExpiresAtMS <= nowMS
}

// Count is a number of documents and their bytes.
type Count struct{ Records, Bytes int64 }

// Quota limits the documents and bytes of a namespace and of a tenant; a zero field is no
// limit.
type Quota struct{ NamespaceRecords, NamespaceBytes, TenantRecords, TenantBytes int64 }

// Get returns a document with its value. A document that has expired at nowMS does not exist;
// Get then also tries to remove it. CodeDocumentNotFound.
func (r *Repository) Get(ctx context.Context, p storage.DocumentPath, key string, nowMS int64) (*Record, error) {
	raw, err := storage.Optional(r.s.Client().HGet(ctx, r.s.Keys().Documents(p).Records(), key))
	if err != nil {
		return nil, storage.Failure(ctx, "read document", err)
	}
	if raw == "" { // it does not exist, or it is being removed
		return nil, notFound(key)
	}
	d, err := parseRecord(key, raw)
	if err != nil {
		return nil, err
	}
	if d.Expired(nowMS) {
		// Best effort: the answer does not depend on it, and the sweeper removes the rest.
		_ = r.Expire(ctx, p, []string{key}, nowMS)
		return nil, notFound(key)
	}
	return d, nil
}

func notFound(key string) error {
	return api.Errorf(api.CodeDocumentNotFound, "document %q does not exist", key)
}

// parseRecord parses a stored record, with or without its value.
func parseRecord(key, raw string) (*Record, error) {
	d := &Record{Key: key}
	if err := json.Unmarshal([]byte(raw), d); err != nil {
		return nil, api.Wrap(api.CodeInternal, err, fmt.Sprintf("the record of document %q cannot be read", key))
	}
	return d, nil
}

// Use returns the counts of a namespace and of its tenant. They are never below the stored
// amount. After a crash they may be above it, until the sweeper has recounted.
func (r *Repository) Use(ctx context.Context, p storage.DocumentPath) (namespace, tenant Count, err error) {
	pipe := r.s.Client().Pipeline()
	of := pipe.HMGet(ctx, r.s.Keys().DocumentUsage(p.Tenant, p.Install), p.Namespace+":r", p.Namespace+":b")
	all := pipe.HMGet(ctx, r.s.Keys().DocumentTenantUsage(p.Tenant), "r", "b")
	if _, err := pipe.Exec(ctx); err != nil {
		return namespace, tenant, storage.Failure(ctx, "read use", err)
	}
	return countOf(of.Val()), countOf(all.Val()), nil
}

// countOf parses two counters, each of which may be missing.
func countOf(fields []any) Count {
	return Count{Records: replyInt(fields[0]), Bytes: replyInt(fields[1])}
}

// replyInt returns the number in a reply of a script or a hash, an integer or its decimal text,
// and 0 for any other reply.
func replyInt(v any) int64 {
	if n, ok := v.(int64); ok {
		return n
	}
	text, _ := v.(string)
	n, _ := strconv.ParseInt(text, 10, 64) // counters are written by scripts only
	return n
}

// CursorKey returns the 32 bytes that authenticate cursors. They are the same in every process
// and never change: the first process stores them, and each process reads them back.
func (r *Repository) CursorKey(ctx context.Context) ([]byte, error) {
	var fresh [32]byte
	if _, err := rand.Read(fresh[:]); err != nil {
		return nil, fmt.Errorf("make cursor key: %w", err)
	}
	if err := r.s.Client().SetNX(ctx, r.s.Keys().DocumentCursorKey(), fresh[:], 0).Err(); err != nil {
		return nil, storage.Failure(ctx, "make cursor key", err)
	}
	key, err := r.s.Client().Get(ctx, r.s.Keys().DocumentCursorKey()).Bytes()
	return key, storage.Failure(ctx, "read cursor key", err)
}
