package documents

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
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

// Repository keeps the documents, namespace by namespace of a tenant's installs, with what
// is counted of them and a feed of their changes. Names and values are the caller's to
// check.
//
// A document that has expired is gone for every reader at once; its record, and what it
// takes of a quota, goes with whoever meets it first: a reader, a writer who lacks room,
// or the sweeper.
type Repository struct {
	s      *storage.Store
	floors storage.Floors // of the sets of what expires
	feeds  feeds
}

// NewRepository gives the documents in s.
func NewRepository(s *storage.Store) *Repository { return &Repository{s: s, feeds: feeds{s: s}} }

// Record is a document as it is stored.
type Record struct {
	Key         string `json:"-"`
	Revision    int64  `json:"revision"`
	CreatedAtMS int64  `json:"created_at_ms"`
	ExpiresAtMS int64  `json:"expires_at_ms"` // 0: never
	// Bytes is what it takes of a quota: its key, metadata and value.
	Bytes       int64           `json:"bytes"`
	UpdatedAtMS int64           `json:"updated_at_ms"`
	Metadata    json.RawMessage `json:"metadata"`
	Value       json.RawMessage `json:"value"` // nil where it was not asked for
}

// Expired says whether the document is gone at nowMS.
func (d *Record) Expired(nowMS int64) bool {
	return d.ExpiresAtMS > 0 && d.ExpiresAtMS <= nowMS
}

// Count is how much there is of documents.
type Count struct{ Records, Bytes int64 }

// Quota is how much there may be, 0 for no bound.
type Quota struct{ NamespaceRecords, NamespaceBytes, TenantRecords, TenantBytes int64 }

// Get reads a document. CodeDocumentNotFound.
func (r *Repository) Get(ctx context.Context, p storage.DocumentPath, key string, nowMS int64) (*Record, error) {
	raw, err := storage.Optional(r.s.Client().HGet(ctx, r.s.Keys().Documents(p).Records(), key))
	if err != nil {
		return nil, storage.Failure(ctx, "read document", err)
	}
	if raw == "" { // there is none, or it is being removed
		return nil, notFound(key)
	}
	d, err := parseRecord(key, raw)
	if err != nil {
		return nil, err
	}
	if d.Expired(nowMS) {
		// The answer is the same where this fails, and the sweeper comes by.
		_ = r.Expire(ctx, p, []string{key}, nowMS)
		return nil, notFound(key)
	}
	return d, nil
}

func notFound(key string) error {
	return api.Errorf(api.CodeDocumentNotFound, "there is no document %q", key)
}

// parseRecord reads a record, or one without its value.
func parseRecord(key, raw string) (*Record, error) {
	d := &Record{Key: key}
	if err := json.Unmarshal([]byte(raw), d); err != nil {
		return nil, api.Wrap(api.CodeInternal, err, fmt.Sprintf("the record of document %q cannot be read", key))
	}
	return d, nil
}

// Use is how much a namespace of documents and its tenant hold. It is never less than what
// is stored; after a crash it may be more, until the sweeper has counted again.
func (r *Repository) Use(ctx context.Context, p storage.DocumentPath) (namespace, tenant Count, err error) {
	pipe := r.s.Client().Pipeline()
	of := pipe.HMGet(ctx, r.s.Keys().DocumentUsage(p.Tenant, p.Install), p.Namespace+":r", p.Namespace+":b")
	all := pipe.HMGet(ctx, r.s.Keys().DocumentTenantUsage(p.Tenant), "r", "b")
	if _, err := pipe.Exec(ctx); err != nil {
		return namespace, tenant, storage.Failure(ctx, "read use", err)
	}
	return countOf(of.Val()), countOf(all.Val()), nil
}

// countOf reads two counters, which may be missing.
func countOf(fields []any) Count {
	return Count{Records: replyInt(fields[0]), Bytes: replyInt(fields[1])}
}

// replyInt reads a number that a script or a hash holds; what is none is 0.
func replyInt(v any) int64 {
	if n, ok := v.(int64); ok {
		return n
	}
	text, _ := v.(string)
	n, _ := strconv.ParseInt(text, 10, 64) // counters are written by scripts only
	return n
}

// CursorKey gives the key that cursors are authenticated with, the same to every process.
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
