package api

import (
	"encoding/json"
	"time"
)

// The codes of the document storage are those of its contract: its REST, internal and
// host faces all answer with them.
const (
	CodeRevisionMismatch   Code = "REVISION_MISMATCH"
	CodeQuotaExceeded      Code = "QUOTA_EXCEEDED"
	CodeValidationFailed   Code = "VALIDATION_FAILED"
	CodeDocumentNotFound   Code = "NOT_FOUND"
	CodeStorageDenied      Code = "UNAUTHORIZED"
	CodeRateLimited        Code = "RATE_LIMITED"
	CodeStorageInternal    Code = "INTERNAL_ERROR"
	CodeBulkPartialFailure Code = "BULK_PARTIAL_FAILURE"
)

// Bounds of the document storage, as its contract has them, and where it is silent.
const (
	MaxDocumentInstalls      = 10_000 // of a tenant, its functions' own among them
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
	MaxSchemaBytes           = 64 << 10 // of JSON Schemas, here and of jobs' results
	MaxDocumentChanges       = 10_000   // that a namespace's feed keeps
)

// The quotas of documents where the configuration says nothing.
const (
	DefaultNamespaceRecords = 10_000
	DefaultNamespaceBytes   = 64 << 20
	DefaultTenantRecords    = 10 * DefaultNamespaceRecords
	DefaultTenantBytes      = 10 * DefaultNamespaceBytes
)

// Document is a record of the document storage. Lists leave Value and Metadata out
// unless asked for them.
type Document struct {
	Namespace    string          `json:"namespace"`
	Key          string          `json:"key"`
	Revision     int64           `json:"revision"` // counts the key's writes, from 1
	Value        json.RawMessage `json:"value,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"` // an object
	TTLExpiresAt *time.Time      `json:"ttlExpiresAt"`       // null: it stays
	CreatedAt    time.Time       `json:"createdAt"`
	UpdatedAt    time.Time       `json:"updatedAt"`
}

// DocumentItem is a write of one document. IfRevision is the revision that the
// document must have now; 0 means that there must be none. nil writes in any case.
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

// DocumentGet is the request of storage.get. IfRevision is what If-Revision-Match says.
type DocumentGet struct {
	Namespace  string `json:"namespace"`
	Key        string `json:"key"`
	IfRevision *int64 `json:"ifRevision,omitempty"`
}

// DocumentList is the request of storage.list: the documents whose keys begin with
// KeyPrefix and whose metadata has every member of Metadata, by key.
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
	DocumentStepCheck  = "check" // that the document has IfRevision, 0: that there is none
	DocumentStepPut    = "put"
	DocumentStepDelete = "delete" // of what is not there: nothing, unless IfRevision is set
)

// DocumentStep is a check or a write in a transaction.
type DocumentStep struct {
	Op string `json:"op"`
	DocumentItem
}

// DocumentTransact is the request of storage.transact: up to MaxDocumentBulkItems steps
// on as many keys of one namespace, all or none.
type DocumentTransact struct {
	Namespace  string         `json:"namespace"`
	Operations []DocumentStep `json:"operations"`
}

// DocumentResult says what became of one write of several. Revision is 0 for a key that
// has no document.
type DocumentResult struct {
	Key          string     `json:"key"`
	Revision     int64      `json:"revision"`
	TTLExpiresAt *time.Time `json:"ttlExpiresAt"`
}

// DocumentResults is the answer of storage.bulkPut and storage.transact, in order.
type DocumentResults struct {
	Items []DocumentResult `json:"items"`
}

// DocumentUse is how much a namespace of documents, or a tenant, holds and may hold.
// Bytes are those of keys, values and metadata.
type DocumentUse struct {
	Records    int64 `json:"records"`
	Bytes      int64 `json:"bytes"`
	MaxRecords int64 `json:"maxRecords"`
	MaxBytes   int64 `json:"maxBytes"`
}

// DocumentNamespace is a namespace of documents.
type DocumentNamespace struct {
	Namespace string      `json:"namespace"`
	Use       DocumentUse `json:"use"`
	HasSchema bool        `json:"hasSchema"`
}

// DocumentChange is an entry of a namespace's feed of changes. Ids grow, by one at the
// least; a change that a crash kept from happening may have one.
type DocumentChange struct {
	ID       int64     `json:"id"`
	Op       string    `json:"op"` // put, delete, expire
	Key      string    `json:"key"`
	Revision int64     `json:"revision"` // of a put: the new one; else the last
	At       time.Time `json:"at"`
}

// Install is whose documents some are: a function's own (FunctionInstall), or any id that
// the tenant uses. It comes into being with its first document, or by being registered.
type Install struct {
	Install     string `json:"install"`
	Description string `json:"description,omitempty"`
	// Functions may use the install, each <namespace>/<function> or <namespace>/*, beside
	// what their manifests say.
	Functions []string  `json:"functions,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"` // of what is registered
}

// FunctionInstall is the install of a function's own documents.
func FunctionInstall(namespace, function string) string { return "fn." + namespace + "." + function }

// ItemError says which of several items failed, and why.
type ItemError struct {
	Index   int    `json:"index"`
	Code    Code   `json:"code"`
	Message string `json:"message,omitempty"`
}

// QuotaUse says which quota was met: how much of it is used, and how much there is.
type QuotaUse struct {
	Scope string `json:"scope"` // namespace, tenant
	Unit  string `json:"unit"`  // records, bytes
	Limit int64  `json:"limit"`
	Used  int64  `json:"used"`
}
