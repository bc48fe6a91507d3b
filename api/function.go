package api

// Function is the record of a function. A deleted function keeps its record and its
// versions; DeletedAtMS is then set.
type Function struct {
	Tenant      string            `json:"tenant"`
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	Runtime     string            `json:"runtime"`
	Entry       string            `json:"entry"`
	Handler     string            `json:"handler"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	CreatedAtMS int64             `json:"created_at_ms"`
	DeletedAtMS *int64            `json:"deleted_at_ms"`
}

// FunctionDetail is a function with its latest version, null before the first one, and its
// aliases.
type FunctionDetail struct {
	Function
	LatestVersion *int64  `json:"latest_version"`
	Aliases       []Alias `json:"aliases"`
}

// Defaults of a function record. An empty Entry in a request means function.js, or
// function.ts if the bundle has no function.js.
const (
	RuntimeJS      = "cs-js"
	DefaultEntry   = "function.js"
	DefaultHandler = "default"
)

// Limits of a function's descriptive fields.
const (
	MaxDescriptionLength = 1024
	MaxLabels            = 32
	MaxLabelLength       = 128
)

// Alias is a name that points at a version.
type Alias struct {
	Alias       string `json:"alias"`
	Version     int64  `json:"version"`
	UpdatedAtMS int64  `json:"updated_at_ms"`
}

// Draft is an uploaded bundle that is not published yet. The files' bytes are base64 in
// JSON. SHA256 is the digest of their canonical tar (api/bundle).
type Draft struct {
	DraftID     string            `json:"draft_id"`
	SHA256      string            `json:"sha256"`
	Files       map[string][]byte `json:"files"`
	CreatedAtMS int64             `json:"created_at_ms"`
	ExpiresAtMS int64             `json:"expires_at_ms"`
}

// DraftReceipt is the response to an upload. SizeBytes is the size of the canonical tar.
type DraftReceipt struct {
	DraftID     string `json:"draft_id"`
	SHA256      string `json:"sha256"`
	SizeBytes   int64  `json:"size_bytes"`
	ExpiresAtMS int64  `json:"expires_at_ms"`
}

// DraftTTLMS is the lifetime of a draft and of the tombstone of a published one.
const DraftTTLMS = 24 * 60 * 60 * 1000
