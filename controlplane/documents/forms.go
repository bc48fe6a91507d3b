package documents

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage/documents"
)

// pathInternalStorage is the endpoint of runners. The contract defines the path, which
// therefore has no version and no tenant.
const pathInternalStorage = "/api/internal/ext-storage/install/{install}"

// formEndpoints declares the operations in the form of the store's contract. get is the
// only one without a body: its request is the query.
func (a *API) formEndpoints() []rest.Endpoint {
	text := &huma.Schema{Type: huma.TypeString}
	one, results := rest.JSON(api.Document{}), rest.JSON(api.DocumentResults{})
	return []rest.Endpoint{
		a.form("put", access.StorageWrite, rest.Route{
			ID: "storage-put", Summary: "Write a document", Request: rest.JSON(api.DocumentPut{}), Answer: one,
		}),
		a.form("list", access.StorageRead, rest.Route{
			ID: "storage-list", Summary: "List documents by key", Request: rest.JSON(api.DocumentList{}), Answer: rest.JSON(api.DocumentPage{}),
		}),
		a.form("delete", access.StorageDelete, rest.Route{
			ID: "storage-delete", Summary: "Delete a document", Request: rest.JSON(api.DocumentDelete{}), Status: http.StatusNoContent,
		}),
		a.form("bulkPut", access.StorageWrite, rest.Route{
			ID: "storage-bulk-put", Summary: "Write up to 20 documents, all or none", Request: rest.JSON(api.DocumentBulkPut{}), Answer: results,
		}),
		a.form("transact", access.StorageWrite, rest.Route{
			ID: "storage-transact", Summary: "Check and write up to 20 documents, all or none", Request: rest.JSON(api.DocumentTransact{}), Answer: results,
		}),
		a.handle(rest.Route{
			Method: http.MethodGet, Path: pathStorage + "/get", Action: access.StorageRead, Extent: rest.HandlerNamespace,
			ID: "storage-get", Summary: "Read a document",
			Parameters: []*huma.Param{
				rest.QueryParameter("namespace", "of the document", text), rest.QueryParameter("key", "of the document", text),
				rest.HeaderParameter(headerIfRevision, "the revision that it must have, else 409"),
			},
			Answer: one,
		}, a.getByQuery),
	}
}

// form declares an operation whose request is the body. It is decoded by
// documents.Service.Do, which the host calls of functions use as well.
func (a *API) form(operation string, action access.Action, route rest.Route) rest.Endpoint {
	route.Method, route.Path = http.MethodPost, pathStorage+"/"+operation
	route.Action, route.Extent = action, rest.HandlerNamespace
	return a.handle(route, func(w http.ResponseWriter, r *http.Request, p path) error {
		body, err := rest.ReadBody(w, r, api.MaxRequestBytes)
		if err != nil {
			return err
		}
		if operation == "transact" {
			if err := mayTransact(r, body); err != nil {
				return err
			}
		}
		return a.do(w, r, p.tenant, p.install, operation, body)
	})
}

// mayTransact returns CodeAuthzDenied for a transaction with deletes if the caller may
// only write: the route's action is cs:storage:write, a delete needs cs:storage:delete. The
// body is decoded once more for it.
func mayTransact(r *http.Request, body []byte) error {
	var request api.DocumentTransact
	if err := documents.Decode(body, &request); err != nil {
		return err
	}
	for i := range request.Operations {
		if request.Operations[i].Op == api.DocumentStepDelete {
			return rest.CallerOf(r.Context()).Need(access.StorageDelete)
		}
	}
	return nil
}

// do performs an operation and answers with its result: 204 for one without a result, a
// document with its ETag, and any other result as JSON.
func (a *API) do(w http.ResponseWriter, r *http.Request, tenant, install, operation string, body json.RawMessage) error {
	out, err := a.documents.Do(r.Context(), tenant, install, operation, body)
	if err != nil {
		return err
	}
	switch found := out.(type) {
	case nil:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case *api.Document:
		return answerDocument(w, r, found)
	}
	return rest.WriteJSON(w, r, http.StatusOK, out)
}

// getByQuery answers with the document that the query names. Errors: CodeDocumentInvalid,
// CodeDocumentNotFound, CodeRevisionMismatch.
func (a *API) getByQuery(w http.ResponseWriter, r *http.Request, p path) error {
	revision, err := revisionHeader(r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	d, err := a.documents.Get(r.Context(), p.tenant, p.install, api.DocumentGet{
		Namespace: query.Get("namespace"), Key: query.Get("key"), IfRevision: revision,
	})
	if err != nil {
		return err
	}
	return answerDocument(w, r, d)
}

// internalBody is the body of the internal endpoint, without the fields of the
// operation:
//
//	{"operation": "storage.get", "tenantId": "t_acme01", "namespace": "carts", "key": "c-17"}
type internalBody struct {
	Operation string `json:"operation" doc:"put, get, list, delete, bulkPut or transact, with or without storage. before it"`
	TenantID  string `json:"tenantId"`

	_ struct{} `additionalProperties:"true"` // the fields of the operation, in the document
}

// runnerEndpoints declares the endpoint of runners, which act for any tenant. Package rest
// checks their token (access.Runner); there is no caller, no role and no audit event.
func (a *API) runnerEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodPost, Path: pathInternalStorage, Action: access.Runner, Extent: rest.NoNamespace,
			ID: "internal-storage", Tag: "storage", Summary: "Perform an operation of the document storage for a runner",
			Description: "The body has the operation, the tenantId and the fields of the operation's own request; answers are those of the public routes. " +
				"Authorization: Bearer and the runners' token; without one configured there is no such route.",
			Parameters: pathParameters(pathInternalStorage),
			Request:    rest.JSON(internalBody{}),
			Answer:     rest.JSON(rest.AnyJSON{}),
			Also:       []rest.Answer{{Status: http.StatusNoContent}},
			Failure:    documents.Failure,
		}, a.internalStorage),
	}
}

// internalStorage performs the operation that the body names for the tenant that it
// names. The other fields of the body are the operation's own request, which Do decodes
// strictly. Errors: CodeDocumentInvalid, and those of the operation.
func (a *API) internalStorage(w http.ResponseWriter, r *http.Request) error {
	body, err := rest.ReadBody(w, r, api.MaxRequestBytes)
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
		return api.DocumentFieldError("tenantId", api.TenantRule)
	}
	request, err := api.EncodeJSON(fields)
	if err != nil {
		return err
	}
	return a.do(w, r, named.TenantID, rest.PathParam(r, "install"), named.Operation, request)
}
