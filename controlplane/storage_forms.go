package controlplane

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/documents"
)

// pathInternalStorage is the endpoint of runners.
const pathInternalStorage = "/api/internal/ext-storage/install/{install}"

// MinStorageToken is how long the token of the internal endpoint is at least, in bytes.
const MinStorageToken = 16

// routeStorageForms serves the operations in the forms of the storage's contract.
func (s *Server) routeStorageForms(t storageRoutes) {
	post := func(operation, id, summary string, request, answer any) {
		d := documented{
			method: http.MethodPost, path: pathStorage + "/" + operation, id: id, summary: summary,
			request: map[string]any{contentTypeJSON: request}, status: http.StatusNoContent,
		}
		if answer != nil {
			d.status, d.answer = http.StatusOK, map[string]any{contentTypeJSON: answer}
		}
		t.add(d, s.storageForm(operation))
	}
	post("put", "storage-put", "Write a document", api.DocumentPut{}, api.Document{})
	post("list", "storage-list", "List documents by key", api.DocumentList{}, api.DocumentPage{})
	post("delete", "storage-delete", "Delete a document", api.DocumentDelete{}, nil)
	post("bulkPut", "storage-bulk-put", "Write up to 20 documents, all or none", api.DocumentBulkPut{}, api.DocumentResults{})
	post("transact", "storage-transact", "Check and write up to 20 documents, all or none", api.DocumentTransact{}, api.DocumentResults{})
	text := &huma.Schema{Type: huma.TypeString}
	t.add(documented{
		method: http.MethodGet, path: pathStorage + "/get", id: "storage-get", summary: "Read a document",
		parameters: []*huma.Param{
			queryParameter("namespace", "of the document", text), queryParameter("key", "of the document", text),
			headerParameter(headerIfRevision, "the revision that it must have, else 409"),
		},
		status: http.StatusOK, answer: map[string]any{contentTypeJSON: api.Document{}},
	}, s.getByQuery)
}

// storageForm does an operation whose request is the body.
func (s *Server) storageForm(operation string) storageCall {
	return func(w http.ResponseWriter, r *http.Request, p storagePath) error {
		body, err := readBody(w, r, api.MaxRequestBytes)
		if err != nil {
			return err
		}
		if operation == "transact" {
			if err := mayTransact(r, body); err != nil {
				return err
			}
		}
		return s.doStorage(w, r, p.tenant, p.install, operation, body)
	}
}

// mayTransact refuses (CodeAuthzDenied) a transaction that deletes to who may only write.
func mayTransact(r *http.Request, body []byte) error {
	var request api.DocumentTransact
	if err := documents.Decode(body, &request); err != nil {
		return err
	}
	for i := range request.Operations {
		if request.Operations[i].Op == api.DocumentStepDelete {
			return callerOf(r.Context()).need(actionStorageDelete)
		}
	}
	return nil
}

// doStorage does an operation and answers with what it gives.
func (s *Server) doStorage(w http.ResponseWriter, r *http.Request, tenant, install, operation string, body json.RawMessage) error {
	out, err := s.documents.Do(r.Context(), tenant, install, operation, body)
	switch found := out.(type) {
	case nil:
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
	case *api.Document:
		s.answerDocument(w, r, found)
	default:
		s.writeJSON(w, r, out)
	}
	return err
}

func (s *Server) getByQuery(w http.ResponseWriter, r *http.Request, p storagePath) error {
	revision, err := revisionHeader(r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	d, err := s.documents.Get(r.Context(), p.tenant, p.install, api.DocumentGet{
		Namespace: query.Get("namespace"), Key: query.Get("key"), IfRevision: revision,
	})
	if err != nil {
		return err
	}
	s.answerDocument(w, r, d)
	return nil
}

// internalBody is the body of the internal endpoint, beside the fields of the operation.
type internalBody struct {
	Operation string `json:"operation" doc:"put, get, list, delete, bulkPut or transact, with or without storage. before it"`
	TenantID  string `json:"tenantId"`
}

func (s *Server) routeInternalStorage(t storageRoutes) {
	document(t.api, documented{
		method: http.MethodPost, path: pathInternalStorage, id: "internal-storage", tag: "storage",
		summary: "Do an operation of the document storage for a runner",
		description: "The body has the operation, the tenantId and the fields of the operation's own request; answers are those of the public routes. " +
			"Authorization: Bearer and the runners' token; without one configured there is no such route.",
		parameters: storageParameters(pathInternalStorage),
		request:    map[string]any{contentTypeJSON: internalBody{}},
		status:     http.StatusOK, answer: map[string]any{contentTypeJSON: anyJSON{}},
		also: map[int]map[string]any{http.StatusNoContent: {}},
	})
	t.router.Post(pathInternalStorage, func(w http.ResponseWriter, r *http.Request) {
		if err := s.internalStorage(w, r); err != nil {
			s.fail(w, r, requestIDOf(r.Context()), err)
		}
	})
}

// admitRunner lets those in who have the token. Errors: CodeRouteNotFound where none is
// configured, CodeAuthnRequired, CodeAuthnInvalid.
func (s *Server) admitRunner(h http.Header) error {
	if s.runners == "" {
		return api.Errorf(api.CodeRouteNotFound, "there is nothing at this path; /docs lists the routes")
	}
	text, ok := bearer(h)
	if !ok {
		return api.Errorf(api.CodeAuthnRequired, "this needs the runners' token: Authorization: Bearer <token>")
	}
	// The digests are of one length, whatever was sent.
	sent, want := sha256.Sum256([]byte(text)), sha256.Sum256([]byte(s.runners))
	if subtle.ConstantTimeCompare(sent[:], want[:]) != 1 {
		return api.Errorf(api.CodeAuthnInvalid, "the token is not the runners'")
	}
	return nil
}

func (s *Server) internalStorage(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, api.MaxRequestBytes)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := documents.Decode(body, &fields); err != nil {
		return err
	}
	var named internalBody
	for name, to := range map[string]*string{"operation": &named.Operation, "tenantId": &named.TenantID} {
		raw, has := fields[name]
		if !has || json.Unmarshal(raw, to) != nil {
			return api.DocumentFieldError(name, "is required")
		}
		delete(fields, name)
	}
	if err := api.ValidateTenant(named.TenantID); err != nil {
		return api.DocumentFieldError("tenantId", "must match "+api.TenantPattern)
	}
	request, err := api.EncodeJSON(fields)
	if err != nil {
		return err
	}
	return s.doStorage(w, r, named.TenantID, pathParam(r, "install"), named.Operation, request)
}
