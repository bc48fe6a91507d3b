package controlplane

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
)

const (
	pathDraft      = pathFunction + "/draft"
	contentTypeTar = "application/x-tar"
)

// draftBody is an upload as JSON.
type draftBody struct {
	Files draftFiles `json:"files" doc:"paths to contents in base64"`
}

// draftFiles are base64 in JSON.
type draftFiles map[string][]byte

// UnmarshalJSON says which file is not base64, which encoding/json would not.
func (f *draftFiles) UnmarshalJSON(raw []byte) error {
	var encoded map[string]string
	if err := json.Unmarshal(raw, &encoded); err != nil {
		return err
	}
	*f = make(draftFiles, len(encoded))
	for _, name := range slices.Sorted(maps.Keys(encoded)) {
		content, err := base64.StdEncoding.DecodeString(encoded[name])
		if err != nil {
			return fieldError("files."+name, "is not base64")
		}
		(*f)[name] = content
	}
	return nil
}

// Schema is an object of strings.
func (draftFiles) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type:                 huma.TypeObject,
		AdditionalProperties: &huma.Schema{Type: huma.TypeString, Format: "byte"},
	}
}

func (s *Server) routeDrafts(r chi.Router, a huma.API) {
	request := map[string]any{contentTypeJSON: draftBody{}, contentTypeTar: nil}
	document(a, documented{
		method: http.MethodPut, path: pathDraft, id: "upload-draft", tag: "functions",
		summary: "Upload files as a draft",
		description: "Files as base64 in JSON (at most 24 MiB) or as a tar (at most 16 MiB). " +
			"A draft lives for a day and can be published once; its source is checked when it is.",
		parameters: functionParameters(),
		request:    request,
		status:     http.StatusOK, answer: map[string]any{contentTypeJSON: api.DraftReceipt{}},
	})
	decoder := newStrictDecoder[draftBody](a, map[string]any{contentTypeJSON: draftBody{}})
	r.Put(pathDraft, func(w http.ResponseWriter, r *http.Request) {
		receipt, err := s.uploadDraft(w, r, decoder)
		if err != nil {
			s.fail(w, r, requestIDOf(r.Context()), err)
			return
		}
		s.writeJSON(w, r, receipt)
	})
}

func (s *Server) uploadDraft(w http.ResponseWriter, r *http.Request, decoder strictDecoder[draftBody]) (api.DraftReceipt, error) {
	tenant, namespace, function := pathParam(r, "tenant"), pathParam(r, "namespace"), pathParam(r, "function")
	if err := validateFunctionPath(tenant, namespace, function); err != nil {
		return api.DraftReceipt{}, err
	}
	files, err := readDraft(w, r, decoder)
	if err != nil {
		return api.DraftReceipt{}, err
	}
	return s.storeDraft(r.Context(), tenant, namespace, function, files)
}

// readDraft reads either form of an upload.
func readDraft(w http.ResponseWriter, r *http.Request, decoder strictDecoder[draftBody]) (map[string][]byte, error) {
	contentType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Header.Get("Content-Type") == "" {
		contentType, err = contentTypeJSON, nil
	}
	switch {
	case err == nil && contentType == contentTypeTar:
		body, err := readBody(w, r, api.MaxBundleBytes)
		if err != nil {
			return nil, err
		}
		return bundle.Unpack(bytes.NewReader(body))
	case err == nil && contentType == contentTypeJSON:
		body, err := readBody(w, r, api.MaxDraftJSONBytes)
		if err != nil {
			return nil, err
		}
		draft, err := decoder.decode(body)
		return draft.Files, err
	}
	return nil, api.Errorf(api.CodeMediaType, "a draft is %s or %s", contentTypeJSON, contentTypeTar)
}

// storeDraft keeps files for a day. Their source is not looked at: no tenant's
// source is parsed in this process, and publish has it checked in a sandbox.
func (s *Server) storeDraft(ctx context.Context, tenant, namespace, function string, files map[string][]byte) (api.DraftReceipt, error) {
	packed, err := bundle.Pack(files)
	if err != nil {
		return api.DraftReceipt{}, err
	}
	nowMS := s.now()
	draft := api.Draft{
		DraftID:     api.NewDraftID(nowMS),
		SHA256:      bundle.Digest(packed),
		Files:       files,
		CreatedAtMS: nowMS,
		ExpiresAtMS: nowMS + api.DraftTTLMS,
	}
	if err := s.drafts.Put(ctx, tenant, namespace, function, draft); err != nil {
		return api.DraftReceipt{}, err
	}
	return api.DraftReceipt{
		DraftID:     draft.DraftID,
		SHA256:      draft.SHA256,
		SizeBytes:   int64(len(packed)),
		ExpiresAtMS: draft.ExpiresAtMS,
	}, nil
}
