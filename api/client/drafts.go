package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
)

// UploadFiles uploads a draft as files by their slash-separated paths.
// CodeValidationBundle, CodeBodyLimit, CodeFunctionNotFound.
func (f *Function) UploadFiles(ctx context.Context, files map[string][]byte) (api.DraftReceipt, error) {
	in := struct {
		Files map[string][]byte `json:"files"` // base64, as encoding/json has it
	}{files}
	var out api.DraftReceipt
	_, err := f.client().call(ctx, &request{method: http.MethodPut, path: f.path("draft")}, in, &out)
	return out, err
}

// UploadTar uploads a draft as a tar of regular files. Errors as for UploadFiles.
func (f *Function) UploadTar(ctx context.Context, tar []byte) (api.DraftReceipt, error) {
	var out api.DraftReceipt
	r := &request{method: http.MethodPut, path: f.path("draft"), body: tar, contentType: contentTar}
	_, err := f.client().call(ctx, r, nil, &out)
	return out, err
}
