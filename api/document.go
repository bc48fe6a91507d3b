package api

import (
	"encoding/json"
)

// The error codes of the document storage, as its contract defines them. The REST API,
// the internal API and the host calls all return these codes.
const (
	CodeRevisionMismatch   Code = "REVISION_MISMATCH"
	CodeQuotaExceeded      Code = "QUOTA_EXCEEDED"
	CodeDocumentInvalid    Code = "VALIDATION_FAILED"
	CodeDocumentNotFound   Code = "NOT_FOUND"
	CodeStorageDenied      Code = "UNAUTHORIZED"
	CodeRateLimited        Code = "RATE_LIMITED"
	CodeStorageInternal    Code = "INTERNAL_ERROR"
	CodeBulkPartialFailure Code = "BULK_PARTIAL_FAILURE"
)

// Limits of the document storage. The contract defines most of them.
const (
	MaxDocumentInstalls      = 10_000 // of a tenant, including those of its functions
	MaxDocumentNamespaces    = 32     // of an install
	MaxDocumentKeyCharacters = 128    // of Unicode
	MaxDocumentValueBytes    = 64 << 10
	MaxDocumentMetadataBytes = 4 << 10
	MaxDocumentNesting       = 200 // levels of arrays and objects in a value
	MaxDocumentBulkItems     = 20
	MaxDocumentBulkBytes     = 512 << 10 // of values and metadata together
	MinDocumentTTLSeconds    = 60
	MaxDocumentTTLSeconds    = 30 * 24 * 60 * 60
	DefaultDocumentPage      = 25
	MaxDocumentPage          = 100
	MaxSchemaBytes           = 64 << 10 // of a JSON Schema, for documents or job results
)

// Limits of the feed of a namespace: the feed keeps DocumentChangesEach changes for each
// document, but at least MinDocumentChanges and at most MaxDocumentChanges.
const (
	DocumentChangesEach = 10
	MinDocumentChanges  = 1_000
	MaxDocumentChanges  = 10_000
)

// The default quotas of documents.
const (
	DefaultNamespaceRecords = 10_000
	DefaultNamespaceBytes   = 64 << 20
	DefaultTenantRecords    = 10 * DefaultNamespaceRecords
	DefaultTenantBytes      = 10 * DefaultNamespaceBytes
)

// Document is a record of the document storage. Lists omit Value and Metadata unless
// the request includes them.
type Document struct {
	Namespace    string          `json:"namespace"`
	Key          string          `json:"key"`
	Revision     int64           `json:"revision"` // counts the key's writes, from 1
	Value        json.RawMessage `json:"value,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`              // an object
	TTLExpiresAt *Moment         `json:"ttlExpiresAt" format:"date-time"` // null: it does not expire
	CreatedAt    Moment          `json:"createdAt" format:"date-time"`
	UpdatedAt    Moment          `json:"updatedAt" format:"date-time"`
}

// DocumentItem is a write of one document. IfRevision is the revision that the
// document must have; 0 requires that it does not exist, nil writes in any case. A nil
// TTLSeconds means that the document does not expire.
type DocumentItem struct {
	Key        string          `json:"key"`
	Value      json.RawMessage `json:"value"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	TTLSeconds *int64          `json:"ttlSeconds,omitempty"`
	IfRevision *int64          `json:"ifRevision,omitempty"`
}

// DocumentPut is the request of storage.put.
type DocumentPut struct {
	Namespace string `json:"namespace"`
	DocumentItem
}

// DocumentGet is the request of storage.get. IfRevision is the If-Revision-Match header.
type DocumentGet struct {
	Namespace  string `json:"namespace"`
	Key        string `json:"key"`
	IfRevision *int64 `json:"ifRevision,omitempty"`
}

// DocumentList is the request of storage.list: the documents whose keys begin with
// KeyPrefix and whose metadata has every member of Metadata, by key. The filter is applied
// while scanning, so a page can be short and still have a cursor.
type DocumentList struct {
	Namespace       string                     `json:"namespace"`
	Cursor          string                     `json:"cursor,omitempty"`
	Limit           int                        `json:"limit,omitempty"` // 0: DefaultDocumentPage
	KeyPrefix       string                     `json:"keyPrefix,omitempty"`
	Metadata        map[string]json.RawMessage `json:"metadata,omitempty"`
	IncludeMetadata bool                       `json:"includeMetadata,omitempty"`
	IncludeValues   bool                       `json:"includeValues,omitempty"`
}

// DocumentPage is the answer of storage.list.
type DocumentPage struct {
	Items      []Document `json:"items"`
	NextCursor *string    `json:"nextCursor"` // null at the end
}

// DocumentDelete is the request of storage.delete.
type DocumentDelete struct {
	Namespace  string `json:"namespace"`
	Key        string `json:"key"`
	IfRevision *int64 `json:"ifRevision,omitempty"`
}

// DocumentBulkPut is the request of storage.bulkPut: all items or none.
type DocumentBulkPut struct {
	Namespace string         `json:"namespace"`
	Items     []DocumentItem `json:"items"`
}

// The steps of a transaction.
const (
	DocumentStepCheck  = "check" // requires IfRevision and changes nothing
	DocumentStepPut    = "put"
	DocumentStepDelete = "delete" // without IfRevision, a missing document is no error
)

// DocumentStep is a check or a write in a transaction.
type DocumentStep struct {
	Op string `json:"op"`
	DocumentItem
}

// DocumentTransact is the request of storage.transact: up to MaxDocumentBulkItems steps,
// each on another key of one namespace, all or none:
//
//	{"namespace": "stock", "operations": [
//	  {"op": "check", "key": "open", "ifRevision": 4},
//	  {"op": "put", "key": "pen", "value": 9, "ifRevision": 12},
//	  {"op": "delete", "key": "cart-7"}]}
type DocumentTransact struct {
	Namespace  string         `json:"namespace"`
	Operations []DocumentStep `json:"operations"`
}

// DocumentResult is the result of one write of several. Revision is 0 if the key has no
// document after it.
type DocumentResult struct {
	Key          string  `json:"key"`
	Revision     int64   `json:"revision"`
	TTLExpiresAt *Moment `json:"ttlExpiresAt" format:"date-time"`
}

// DocumentResults is the answer of storage.bulkPut and storage.transact, in order.
type DocumentResults struct {
	Items []DocumentResult `json:"items"`
}

// DocumentUse is the usage and the quota of a namespace of documents, or of a tenant.
// Bytes counts keys, values and metadata.
type DocumentUse struct {
	Records    int64 `json:"records"`
	Bytes      int64 `json:"bytes"`
	MaxRecords int64 `json:"maxRecords"`
	MaxBytes   int64 `json:"maxBytes"`
}

// DocumentNamespace describes a namespace of documents and its usage.
type DocumentNamespace struct {
	Namespace string      `json:"namespace"`
	Use       DocumentUse `json:"use"`
	HasSchema bool        `json:"hasSchema"`
}

// DocumentChange is an entry of a namespace's change feed. Ids increase; a crash can
// leave a gap, or an entry for a change that was not made.
type DocumentChange struct {
	ID       int64  `json:"id"`
	Op       string `json:"op"` // put, delete, expire
	Key      string `json:"key"`
	Revision int64  `json:"revision"` // of a put: the new one; else the last
	At       Moment `json:"at" format:"date-time"`
}

// Install is an owner of documents: a function (see FunctionInstall), or any id that
// the tenant uses. It is created by its first document, or by registration.
type Install struct {
	Install     string `json:"install"`
	Description string `json:"description,omitempty"`
	// Functions lists the functions that may use the install, if their manifests ask
	// for it: <namespace>/<function> or <namespace>/*.
	Functions []string `json:"functions,omitempty"`
	CreatedAt Moment   `json:"createdAt,omitzero" format:"date-time"` // zero if it is not registered
}

// FunctionInstall returns the install of a function's own documents.
func FunctionInstall(namespace, function string) string { return "fn." + namespace + "." + function }

// ItemError describes why one of several items failed. Index counts from 0.
type ItemError struct {
	Index   int    `json:"index"`
	Code    Code   `json:"code"`
	Message string `json:"message,omitempty"`
}

// QuotaUse names a quota that a request would exceed, its limit and the usage before the
// request. RetryAfterMS is the time after which a request of the same kind may be admitted, 0
// where time does not free the quota.
type QuotaUse struct {
	Scope        string `json:"scope"` // namespace, tenant
	Unit         string `json:"unit"`  // records, bytes, or a quota.Name
	Limit        int64  `json:"limit"`
	Used         int64  `json:"used"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}
