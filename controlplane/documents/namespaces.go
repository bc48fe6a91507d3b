package documents

import (
	"encoding/json"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// documentNamespaces is the answer to a list of namespaces. The list has no pages: an
// install has at most api.MaxDocumentNamespaces.
type documentNamespaces struct {
	Items []api.DocumentNamespace `json:"items"`
	// Use is the size of all of the tenant's documents.
	Use api.DocumentUse `json:"tenantUse" doc:"of all of the tenant's installs together"`
}

// namespaceEndpoints declares the routes of namespaces and of their schemas. A namespace is
// created by its first document or its schema.
func (a *API) namespaceEndpoints() []rest.Endpoint {
	schema := rest.JSON(rest.AnyJSON{})
	return []rest.Endpoint{
		a.handle(rest.Route{
			Method: http.MethodGet, Path: pathDocumentNamespaces, Action: access.StorageRead, Extent: rest.HandlerNamespace,
			ID: "list-document-namespaces", Summary: "List the namespaces of an install with their usage and quotas",
			Answer: rest.JSON(documentNamespaces{}),
		}, a.listDocumentNamespaces),
		a.handle(rest.Route{
			Method: http.MethodGet, Path: pathDocumentNamespace, Action: access.StorageRead, Extent: rest.HandlerNamespace,
			ID: "get-document-namespace", Summary: "Read the usage and quota of a document namespace",
			Answer: rest.JSON(api.DocumentNamespace{}),
		}, a.getDocumentNamespace),
		a.handle(rest.Route{
			Method: http.MethodDelete, Path: pathDocumentNamespace, Action: access.StorageAdmin, Extent: rest.HandlerNamespace,
			ID: "delete-document-namespace", Summary: "Delete a namespace with its documents and its schema", Status: http.StatusNoContent,
		}, a.deleteDocumentNamespace),
		a.handle(rest.Route{
			Method: http.MethodPut, Path: pathDocumentSchema, Action: access.StorageAdmin, Extent: rest.HandlerNamespace,
			ID: "put-document-schema", Summary: "Set the JSON Schema of a namespace",
			Description: "Draft 2020-12, at most 64 KiB, in one document: every $ref begins with #. Later writes must conform to it; " +
				"documents that are stored already are not validated.",
			Request: schema, Status: http.StatusNoContent,
		}, a.putDocumentSchema),
		a.handle(rest.Route{
			Method: http.MethodGet, Path: pathDocumentSchema, Action: access.StorageRead, Extent: rest.HandlerNamespace,
			ID: "get-document-schema", Summary: "Read a namespace's JSON Schema", Answer: schema,
		}, a.getDocumentSchema),
		a.handle(rest.Route{
			Method: http.MethodDelete, Path: pathDocumentSchema, Action: access.StorageAdmin, Extent: rest.HandlerNamespace,
			ID: "delete-document-schema", Summary: "Delete the JSON Schema of a namespace", Status: http.StatusNoContent,
		}, a.deleteDocumentSchema),
	}
}

// listDocumentNamespaces answers with the usage and quota of each namespace of an install.
// The tenant's usage is read after them, so the two need not add up.
func (a *API) listDocumentNamespaces(w http.ResponseWriter, r *http.Request, p path) error {
	all, err := a.documents.Namespaces(r.Context(), p.tenant, p.install)
	if err != nil {
		return err
	}
	use, err := a.documents.TenantUse(r.Context(), p.tenant)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, documentNamespaces{all, *use})
}

// getDocumentNamespace answers with the usage and quota of a namespace. Errors:
// CodeDocumentNotFound.
func (a *API) getDocumentNamespace(w http.ResponseWriter, r *http.Request, p path) error {
	found, err := a.documents.Namespace(r.Context(), p.tenant, p.install, p.namespace)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, found)
}

// deleteDocumentNamespace deletes a namespace step by step. An interrupted call has deleted
// some of the documents and can be repeated; documents that are written meanwhile may stay.
// Errors: CodeDocumentNotFound, CodeStoreConflict if others write faster than it deletes.
func (a *API) deleteDocumentNamespace(w http.ResponseWriter, r *http.Request, p path) error {
	if err := a.documents.DeleteNamespace(r.Context(), p.tenant, p.install, p.namespace); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// putDocumentSchema sets the JSON Schema that later writes must match. Existing
// documents are not checked: one that does not match can be read, and fails its next
// write. The body is stored as it was sent. Errors: CodeDocumentInvalid.
func (a *API) putDocumentSchema(w http.ResponseWriter, r *http.Request, p path) error {
	body, err := rest.ReadBody(w, r, api.MaxRequestBytes)
	if err != nil {
		return err
	}
	if err := a.documents.SetSchema(r.Context(), p.tenant, p.install, p.namespace, body); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// getDocumentSchema answers with the schema. Errors: CodeDocumentNotFound without one.
func (a *API) getDocumentSchema(w http.ResponseWriter, r *http.Request, p path) error {
	raw, err := a.documents.Schema(r.Context(), p.tenant, p.install, p.namespace)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, json.RawMessage(raw))
}

// deleteDocumentSchema deletes the schema; later writes may have any value. Errors:
// CodeDocumentNotFound without one.
func (a *API) deleteDocumentSchema(w http.ResponseWriter, r *http.Request, p path) error {
	if err := a.documents.DeleteSchema(r.Context(), p.tenant, p.install, p.namespace); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
