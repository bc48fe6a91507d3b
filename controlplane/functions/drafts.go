package functions

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/jsonsize"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathDraft      = pathFunction + "/draft"
	contentTypeTar = "application/x-tar"
)

// draftBody is the JSON form of an upload:
//
//	{"files": {"function.js": "ZXhwb3J0IGRlZmF1bHQ…", "manifest.json": "ewog…"}}
type draftBody struct {
	Files draftFiles `json:"files" doc:"paths to contents in base64"`
}

// draftFiles maps paths to contents, which are base64 in JSON.
type draftFiles map[string][]byte

// maxDraftEntries bounds the entries of the map of a draft's files, in bytes without their contents.
const maxDraftEntries = 1 << 20

// UnmarshalJSON decodes the contents. Its error names the file that is not base64,
// unlike that of encoding/json: with several such files, the first by name.
func (f *draftFiles) UnmarshalJSON(raw []byte) error {
	var encoded map[string]string
	if !jsonsize.Fits(raw, reflect.TypeOf(encoded), maxDraftEntries) {
		return api.Errorf(api.CodeBodyLimit, "files: are too many")
	}
	if err := json.Unmarshal(raw, &encoded); err != nil {
		return err
	}
	*f = make(draftFiles, len(encoded))
	for _, name := range slices.Sorted(maps.Keys(encoded)) {
		content, err := base64.StdEncoding.DecodeString(encoded[name])
		if err != nil {
			return api.InvalidField("files."+name, "is not base64")
		}
		(*f)[name] = content
	}
	return nil
}

// Schema returns the schema of an object of base64 strings.
func (draftFiles) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type:                 huma.TypeObject,
		AdditionalProperties: &huma.Schema{Type: huma.TypeString, Format: "byte"},
	}
}

// draftEndpoints declares the upload. It is a Handle route, since an upload is larger than
// the body of an Operation and may be a tar.
func (a *API) draftEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodPut, Path: pathDraft, Action: access.DraftUpload, Extent: rest.PathNamespaceOnly,
			ID: "upload-draft", Tag: "functions", Summary: "Upload files as a draft",
			Description: "Files as base64 in JSON (at most 24 MiB) or as a tar (at most 16 MiB). " +
				"A draft lives for a day and can be published once; its source is checked when it is.",
			Parameters: functionParameters(),
			Request:    rest.Content{rest.ContentTypeJSON: draftBody{}, contentTypeTar: nil},
			Answer:     rest.JSON(api.DraftReceipt{}),
		}, a.uploadDraft),
	}
}

// uploadDraft stores an upload as a draft and answers with its receipt. Each upload is a
// new draft, also of equal files; earlier ones stay until they expire.
func (a *API) uploadDraft(w http.ResponseWriter, r *http.Request) error {
	tenant, namespace, function := rest.PathParam(r, "tenant"), rest.PathParam(r, "namespace"), rest.PathParam(r, "function")
	if err := rest.ValidateFunctionPath(tenant, namespace, function); err != nil {
		return err
	}
	files, err := readDraft(w, r, a.draftBodies)
	if err != nil {
		return err
	}
	receipt, err := a.storeDraft(r.Context(), tenant, namespace, function, files)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, receipt)
}

// readDraft decodes an upload in either form, which the Content-Type selects; without
// one it is JSON. Errors: CodeMediaType, CodeBodyLimit, CodeValidationBundle for a
// malformed tar, and those of Decode.
func readDraft(w http.ResponseWriter, r *http.Request, decoder rest.Decoder[draftBody]) (map[string][]byte, error) {
	contentType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Header.Get("Content-Type") == "" {
		contentType, err = rest.ContentTypeJSON, nil
	}
	switch {
	case err == nil && contentType == contentTypeTar:
		body, err := rest.ReadBody(w, r, api.MaxBundleBytes)
		if err != nil {
			return nil, err
		}
		return bundle.Unpack(bytes.NewReader(body))
	case err == nil && contentType == rest.ContentTypeJSON:
		body, err := rest.ReadBody(w, r, api.MaxDraftJSONBytes)
		if err != nil {
			return nil, err
		}
		draft, err := decoder.Decode(body)
		return draft.Files, err
	}
	return nil, api.Errorf(api.CodeMediaType, "a draft is %s or %s", rest.ContentTypeJSON, contentTypeTar)
}

// storeDraft stores files for a day. Their source is not parsed here: tenants' source
// is compiled only in sandboxes, when the draft is published. The receipt's digest is that
// of the canonical tar, so equal files have equal digests whatever form they came in.
// Errors: CodeValidationBundle, CodeBodyLimit, CodeFunctionNotFound.
func (a *API) storeDraft(ctx context.Context, tenant, namespace, function string, files map[string][]byte) (api.DraftReceipt, error) {
	packed, err := bundle.Pack(files)
	if err != nil {
		return api.DraftReceipt{}, err
	}
	nowMS := a.clock().UnixMilli()
	draft := api.Draft{
		DraftID:     api.NewDraftID(nowMS),
		SHA256:      bundle.Digest(packed),
		Files:       files,
		CreatedAtMS: nowMS,
		ExpiresAtMS: nowMS + api.DraftTTLMS,
	}
	if err := a.drafts.Put(ctx, tenant, namespace, function, draft); err != nil {
		return api.DraftReceipt{}, err
	}
	return api.DraftReceipt{
		DraftID:     draft.DraftID,
		SHA256:      draft.SHA256,
		SizeBytes:   int64(len(packed)),
		ExpiresAtMS: draft.ExpiresAtMS,
	}, nil
}
