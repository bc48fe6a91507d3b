package storage

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/codesous/sous/api"
)

// Documents keeps the documents, namespace by namespace of a tenant's installs, with what
// is counted of them and a feed of their changes. Names and values are the caller's to
// check.
//
// A document that has expired is gone for every reader at once; its record, and what it
// takes of a quota, goes with whoever meets it first: a reader, a writer who lacks room,
// or the sweeper.
type Documents struct {
	s      *Store
	floors Floors // of the sets of what expires
	feeds  feeds
}

// NewDocuments gives the documents in s.
func NewDocuments(s *Store) *Documents { return &Documents{s: s, feeds: feeds{s: s}} }

// StoredDocument is a document as it is stored.
type StoredDocument struct {
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
func (d *StoredDocument) Expired(nowMS int64) bool {
	return d.ExpiresAtMS > 0 && d.ExpiresAtMS <= nowMS
}

// DocumentCount is how much there is of documents.
type DocumentCount struct{ Records, Bytes int64 }

// DocumentQuota is how much there may be, 0 for no bound.
type DocumentQuota struct{ NamespaceRecords, NamespaceBytes, TenantRecords, TenantBytes int64 }

// Get reads a document. CodeDocumentNotFound.
func (r *Documents) Get(ctx context.Context, p DocumentPath, key string, nowMS int64) (*StoredDocument, error) {
	raw, err := Optional(r.s.rdb.HGet(ctx, r.s.keys.documents(p).records(), key))
	if err != nil {
		return nil, failure(ctx, "read document", err)
	}
	if raw == "" { // there is none, or it is being removed
		return nil, documentNotFound(key)
	}
	d, err := readDocument(key, raw)
	if err != nil {
		return nil, err
	}
	if d.Expired(nowMS) {
		// The answer is the same where this fails, and the sweeper comes by.
		_ = r.Expire(ctx, p, []string{key}, nowMS)
		return nil, documentNotFound(key)
	}
	return d, nil
}

func documentNotFound(key string) error {
	return api.Errorf(api.CodeDocumentNotFound, "there is no document %q", key)
}

// readDocument reads a record, or one without its value.
func readDocument(key, raw string) (*StoredDocument, error) {
	d := &StoredDocument{Key: key}
	if err := json.Unmarshal([]byte(raw), d); err != nil {
		return nil, api.Wrap(api.CodeInternal, err, fmt.Sprintf("the record of document %q cannot be read", key))
	}
	return d, nil
}

// Use is how much a namespace of documents and its tenant hold. It is never less than what
// is stored; after a crash it may be more, until the sweeper has counted again.
func (r *Documents) Use(ctx context.Context, p DocumentPath) (namespace, tenant DocumentCount, err error) {
	pipe := r.s.rdb.Pipeline()
	of := pipe.HMGet(ctx, r.s.keys.documentUsage(p.Tenant, p.Install), p.Namespace+":r", p.Namespace+":b")
	all := pipe.HMGet(ctx, r.s.keys.documentTenantUsage(p.Tenant), "r", "b")
	if _, err := pipe.Exec(ctx); err != nil {
		return namespace, tenant, failure(ctx, "read use", err)
	}
	return documentCount(of.Val()), documentCount(all.Val()), nil
}

// documentCount reads two counters, which may be missing.
func documentCount(fields []any) DocumentCount {
	return DocumentCount{Records: replyInt(fields[0]), Bytes: replyInt(fields[1])}
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
func (r *Documents) CursorKey(ctx context.Context) ([]byte, error) {
	var fresh [32]byte
	if _, err := rand.Read(fresh[:]); err != nil {
		return nil, fmt.Errorf("make cursor key: %w", err)
	}
	if err := r.s.rdb.SetNX(ctx, keyDocumentCursor, fresh[:], 0).Err(); err != nil {
		return nil, failure(ctx, "make cursor key", err)
	}
	key, err := r.s.rdb.Get(ctx, keyDocumentCursor).Bytes()
	return key, failure(ctx, "read cursor key", err)
}
