package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/codesous/sous/api"
)

// Publish is the request that publishes a draft as a version. Config is a JSON object with
// fields of api.VersionConfig, which override the manifest. Alias, if not "", is set to
// the version.
type Publish struct {
	DraftID string          `json:"draft_id"`
	Config  json.RawMessage `json:"config,omitempty"`
	Alias   string          `json:"alias,omitempty"`
	// Verify, if false, publishes modules that may fail when they are loaded.
	Verify *bool `json:"verify,omitempty"`
}

// Published is the result of a publish. Created is false if the latest version has the same
// files and config; then Version is that one.
type Published struct {
	Version       int64  `json:"version"`
	SHA256        string `json:"sha256"`
	PublishedAtMS int64  `json:"published_at_ms"`
	Created       bool   `json:"-"`
}

// maxBundleAnswer bounds a bundle with the overhead of its tar.
const maxBundleAnswer = api.MaxBundleBytes + 2<<20

// Publish publishes a draft. CodeDraftNotFound, CodeDraftExpired,
// CodeDraftConsumed, CodeValidationSource (Fields say where), CodeValidationManifest.
func (f *Function) Publish(ctx context.Context, p Publish) (Published, error) {
	var out Published
	a, err := f.client().call(ctx, &request{method: http.MethodPost, path: f.path("versions")}, p, &out)
	if err != nil {
		return Published{}, err
	}
	out.Created = a.status == http.StatusCreated
	return out, nil
}

// Versions returns one page of the function's versions, newest first.
func (f *Function) Versions(ctx context.Context, o PageOptions) (api.Page[api.Version], error) {
	var out api.Page[api.Version]
	_, err := f.client().call(ctx, &request{method: http.MethodGet, path: f.path("versions"), query: o.query()}, nil, &out)
	return out, err
}

// Version returns version n. CodeVersionNotFound.
func (f *Function) Version(ctx context.Context, n int64) (api.Version, error) {
	var out api.Version
	r := &request{method: http.MethodGet, path: f.path("versions", strconv.FormatInt(n, 10))}
	_, err := f.client().call(ctx, r, nil, &out)
	return out, err
}

// Bundle returns the tar of version n, byte for byte. CodeVersionNotFound.
func (f *Function) Bundle(ctx context.Context, n int64) ([]byte, error) {
	a, err := f.client().do(ctx, &request{
		method: http.MethodGet, path: f.path("versions", strconv.FormatInt(n, 10), "bundle"), limit: maxBundleAnswer,
	})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}
