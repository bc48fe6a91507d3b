package controlplane

import (
	"encoding/json"
	"net/http"

	"github.com/codesous/sous/api"
)

// documentNamespaces is the answer of a list of namespaces.
type documentNamespaces struct {
	Items []api.DocumentNamespace `json:"items"`
	// Use is what all of the tenant's documents take.
	Use api.DocumentUse `json:"tenantUse" doc:"of all of the tenant's installs together"`
}

func (s *Server) routeDocumentNamespaces(t storageRoutes) {
	t.add(documented{
		method: http.MethodGet, path: pathDocumentNamespaces, id: "list-document-namespaces",
		summary: "List an install's namespaces with what they hold and may hold",
		status:  http.StatusOK, answer: map[string]any{contentTypeJSON: documentNamespaces{}},
	}, s.listDocumentNamespaces)
	t.add(documented{
		method: http.MethodGet, path: pathDocumentNamespace, id: "get-document-namespace",
		summary: "Read what a namespace of documents holds and may hold",
		status:  http.StatusOK, answer: map[string]any{contentTypeJSON: api.DocumentNamespace{}},
	}, s.getDocumentNamespace)
	t.add(documented{
		method: http.MethodDelete, path: pathDocumentNamespace, id: "delete-document-namespace",
		summary: "Delete a namespace with its documents and its schema", status: http.StatusNoContent,
	}, s.deleteDocumentNamespace)
	schema := map[string]any{contentTypeJSON: anyJSON{}}
	t.add(documented{
		method: http.MethodPut, path: pathDocumentSchema, id: "put-document-schema",
		summary: "Give a namespace a JSON Schema",
		description: "Draft 2020-12, at most 64 KiB, all in one: every $ref begins with #. What is written from then on keeps to it; " +
			"what is there stays as it is.",
		request: schema, status: http.StatusNoContent,
	}, s.putDocumentSchema)
	t.add(documented{
		method: http.MethodGet, path: pathDocumentSchema, id: "get-document-schema",
		summary: "Read a namespace's JSON Schema", status: http.StatusOK, answer: schema,
	}, s.getDocumentSchema)
	t.add(documented{
		method: http.MethodDelete, path: pathDocumentSchema, id: "delete-document-schema",
		summary: "Take a namespace its JSON Schema", status: http.StatusNoContent,
	}, s.deleteDocumentSchema)
}

func (s *Server) listDocumentNamespaces(w http.ResponseWriter, r *http.Request, p storagePath) error {
	all, err := s.documents.Namespaces(r.Context(), p.tenant, p.install)
	if err != nil {
		return err
	}
	use, err := s.documents.TenantUse(r.Context(), p.tenant)
	if err != nil {
		return err
	}
	s.writeJSON(w, r, documentNamespaces{all, *use})
	return nil
}

func (s *Server) getDocumentNamespace(w http.ResponseWriter, r *http.Request, p storagePath) error {
	found, err := s.documents.Namespace(r.Context(), p.tenant, p.install, p.namespace)
	if err != nil {
		return err
	}
	s.writeJSON(w, r, found)
	return nil
}

func (s *Server) deleteDocumentNamespace(w http.ResponseWriter, r *http.Request, p storagePath) error {
	if err := s.documents.DeleteNamespace(r.Context(), p.tenant, p.install, p.namespace); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) putDocumentSchema(w http.ResponseWriter, r *http.Request, p storagePath) error {
	body, err := readBody(w, r, api.MaxRequestBytes)
	if err != nil {
		return err
	}
	if err := s.documents.SetSchema(r.Context(), p.tenant, p.install, p.namespace, body); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) getDocumentSchema(w http.ResponseWriter, r *http.Request, p storagePath) error {
	raw, err := s.documents.Schema(r.Context(), p.tenant, p.install, p.namespace)
	if err != nil {
		return err
	}
	s.writeJSON(w, r, json.RawMessage(raw))
	return nil
}

func (s *Server) deleteDocumentSchema(w http.ResponseWriter, r *http.Request, p storagePath) error {
	if err := s.documents.DeleteSchema(r.Context(), p.tenant, p.install, p.namespace); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
