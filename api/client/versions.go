package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/codesous/sous/api"
)

// Publish turns a draft into a version. Config, a JSON object of the fields of
// api.VersionConfig, wins over the manifest; Alias is set to the version.
type Publish struct {
	DraftID string          `json:"draft_id"`
	Config  json.RawMessage `json:"config,omitempty"`
	Alias   string          `json:"alias,omitempty"`
}

// Published is what became of a draft. Created is false where the latest version
// had the same files and config already: then Version is that one.
type Published struct {
	Version       int64  `json:"version"`
	SHA256        string `json:"sha256"`
	PublishedAtMS int64  `json:"published_at_ms"`
	Created       bool   `json:"-"`
}

// maxBundleAnswer leaves room for what a tar adds to the files.
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

// Versions gives one page of the function's versions, newest first.
func (f *Function) Versions(ctx context.Context, o PageOptions) (api.Page[api.Version], error) {
	var out api.Page[api.Version]
	_, err := f.client().call(ctx, &request{method: http.MethodGet, path: f.path("versions"), query: o.query()}, nil, &out)
	return out, err
}

// Version gives version n. CodeVersionNotFound.
func (f *Function) Version(ctx context.Context, n int64) (api.Version, error) {
	var out api.Version
	r := &request{method: http.MethodGet, path: f.path("versions", strconv.FormatInt(n, 10))}
	_, err := f.client().call(ctx, r, nil, &out)
	return out, err
}

// Bundle gives the tar of version n, byte for byte. CodeVersionNotFound.
func (f *Function) Bundle(ctx context.Context, n int64) ([]byte, error) {
	a, err := f.client().do(ctx, &request{
		method: http.MethodGet, path: f.path("versions", strconv.FormatInt(n, 10), "bundle"), limit: maxBundleAnswer,
	})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}
