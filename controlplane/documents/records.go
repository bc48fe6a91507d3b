package documents

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// recordBody is the body of a put by path. It is api.DocumentPut without the names, which
// stand in the path.
type recordBody struct {
	Value      json.RawMessage `json:"value"`
	Metadata   json.RawMessage `json:"metadata,omitempty" doc:"an object; the default is {}"`
	TTLSeconds *int64          `json:"ttlSeconds,omitempty" doc:"60 to 2,592,000; if it is left out, the document does not expire"`
	IfRevision *int64          `json:"ifRevision,omitempty" doc:"the current revision that the document must have; 0: it must not exist"`
}

// metadataParameter is the prefix of a list's parameters that name members of metadata.
const metadataParameter = "metadata."

// recordEndpoints declares the routes of documents with paths of their own.
func (a *API) recordEndpoints() []rest.Endpoint {
	one := rest.JSON(api.Document{})
	match := rest.HeaderParameter("If-Match", "the ETag that the document must have now, else 412")
	text, yes := &huma.Schema{Type: huma.TypeString}, &huma.Schema{Type: huma.TypeBoolean}
	return []rest.Endpoint{
		a.handle(rest.Route{
			Method: http.MethodPut, Path: pathRecord, Action: access.StorageWrite, Extent: rest.HandlerNamespace,
			ID: "put-record", Summary: "Write a document",
			Description: "Creates the document, or replaces its value, metadata and time to live. If-None-Match: * only creates (412 if it exists).",
			Parameters:  []*huma.Param{match, rest.HeaderParameter("If-None-Match", "*: there must be none")},
			Request:     rest.JSON(recordBody{}), Answer: one,
		}, a.putRecord),
		a.handle(rest.Route{
			Method: http.MethodGet, Path: pathRecord, Action: access.StorageRead, Extent: rest.HandlerNamespace,
			ID: "get-record", Summary: "Read a document", Description: "The ETag is its revision.",
			Parameters: []*huma.Param{rest.HeaderParameter(headerIfRevision, "the revision that it must have, else 409")},
			Answer:     one,
		}, a.getRecord),
		a.handle(rest.Route{
			Method: http.MethodDelete, Path: pathRecord, Action: access.StorageDelete, Extent: rest.HandlerNamespace,
			ID: "delete-record", Summary: "Delete a document; deleting a missing one succeeds",
			Parameters: []*huma.Param{match}, Status: http.StatusNoContent,
		}, a.deleteRecord),
		a.handle(rest.Route{
			Method: http.MethodGet, Path: pathRecords, Action: access.StorageRead, Extent: rest.HandlerNamespace,
			ID: "list-records", Summary: "List documents by key",
			Description: "A parameter metadata.<name> takes those whose metadata has the member, as JSON or as text. " +
				"A page may be short, even empty, and still have a nextCursor.",
			Parameters: []*huma.Param{
				rest.QueryParameter("prefix", "of the keys", text),
				rest.QueryParameter("limit", "how many documents at most", &huma.Schema{Type: huma.TypeInteger, Default: api.DefaultDocumentPage}),
				rest.QueryParameter("cursor", "nextCursor of the previous page", text),
				rest.QueryParameter("includeMetadata", "default false", yes),
				rest.QueryParameter("includeValues", "default false", yes),
			},
			QueryPrefix: metadataParameter,
			Answer:      rest.JSON(api.DocumentPage{}),
		}, a.listRecords),
	}
}

// recordKey returns the key of a path. The keys "." and ".." are refused: they have
// another meaning in a path, and most clients and proxies remove them.
func (p path) recordKey() (string, error) {
	if p.key == "." || p.key == ".." {
		return "", api.DocumentFieldError("key", "cannot be part of a path: use storage/get and the like")
	}
	return p.key, api.ValidateDocumentKey(p.key)
}

// putRecord writes a document, and answers with it and its new revision. A precondition in
// a header fails with CodePreconditionFailed, one in the body with CodeRevisionMismatch.
// Other errors: CodeDocumentInvalid (also for a value that breaks the namespace's schema),
// CodeQuotaExceeded, CodeRateLimited.
//
//	PUT …/records/c-17, If-None-Match: *   {"value": 1}   200, ETag: "1"
//	PUT …/records/c-17, If-None-Match: *   {"value": 2}   412
//	PUT …/records/c-17, If-Match: "1"      {"value": 2}   200, ETag: "2"
//	PUT …/records/c-17                     {"value": 3}   200, ETag: "3": unconditional
func (a *API) putRecord(w http.ResponseWriter, r *http.Request, p path) error {
	key, err := p.recordKey()
	if err != nil {
		return err
	}
	var body recordBody
	if err := decodeBody(w, r, &body); err != nil {
		return err
	}
	must, err := readPrecondition(r, body.IfRevision)
	if err != nil {
		return err
	}
	d, err := a.documents.Put(r.Context(), p.tenant, p.install, api.DocumentPut{Namespace: p.namespace, DocumentItem: api.DocumentItem{
		Key: key, Value: body.Value, Metadata: body.Metadata, TTLSeconds: body.TTLSeconds, IfRevision: must.revision,
	}})
	if err != nil {
		return must.failed(err)
	}
	return answerDocument(w, r, d)
}

// getRecord answers with a document. Errors: CodeDocumentNotFound, also for one that has
// expired; CodeRevisionMismatch by If-Revision-Match.
func (a *API) getRecord(w http.ResponseWriter, r *http.Request, p path) error {
	key, err := p.recordKey()
	if err != nil {
		return err
	}
	revision, err := revisionHeader(r)
	if err != nil {
		return err
	}
	d, err := a.documents.Get(r.Context(), p.tenant, p.install, api.DocumentGet{Namespace: p.namespace, Key: key, IfRevision: revision})
	if err != nil {
		return err
	}
	return answerDocument(w, r, d)
}

// deleteRecord deletes a document. One that does not exist is deleted already, unless
// If-Match requires a revision: then the condition does not hold. A repeat of a conditional
// delete therefore answers 412.
func (a *API) deleteRecord(w http.ResponseWriter, r *http.Request, p path) error {
	key, err := p.recordKey()
	if err != nil {
		return err
	}
	must, err := readPrecondition(r, nil)
	if err != nil {
		return err
	}
	if must.header == "If-None-Match" {
		return api.DocumentFieldError(must.header, "does not stand with a delete")
	}
	if err := a.documents.Delete(r.Context(), p.tenant, p.install, api.DocumentDelete{Namespace: p.namespace, Key: key, IfRevision: must.revision}); err != nil {
		return must.failed(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listRecords answers with a page of documents by key. Cursors are made and verified by
// storage/documents.
func (a *API) listRecords(w http.ResponseWriter, r *http.Request, p path) error {
	list, err := listQuery(r.URL.Query())
	if err != nil {
		return err
	}
	list.Namespace = p.namespace
	page, err := a.documents.List(r.Context(), p.tenant, p.install, list)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, page)
}

// listQuery decodes the parameters of a list. Unknown parameters are ignored; the bounds
// of limit are checked by the service. Errors: CodeDocumentInvalid.
func listQuery(query url.Values) (list api.DocumentList, err error) {
	list.KeyPrefix, list.Cursor = query.Get("prefix"), query.Get("cursor")
	if limit := query.Get("limit"); limit != "" {
		list.Limit, err = strconv.Atoi(limit)
		if err != nil || list.Limit < 1 {
			return list, api.DocumentFieldError("limit", "must be from 1 to "+strconv.Itoa(api.MaxDocumentPage))
		}
	}
	for name, to := range map[string]*bool{"includeMetadata": &list.IncludeMetadata, "includeValues": &list.IncludeValues} {
		if text := query.Get(name); text != "" {
			*to, err = strconv.ParseBool(text)
			if err != nil {
				return list, api.DocumentFieldError(name, "must be true or false")
			}
		}
	}
	for name, values := range query {
		member, of := strings.CutPrefix(name, metadataParameter)
		if !of {
			continue
		}
		if len(values) > 1 {
			return list, api.DocumentFieldError(name, "stands twice")
		}
		if list.Metadata == nil {
			list.Metadata = map[string]json.RawMessage{}
		}
		list.Metadata[member], err = metadataValue(values[0])
		if err != nil {
			return list, err
		}
	}
	return list, nil
}

// metadataValue returns text that is JSON as it is, and other text as a JSON string. The
// string "7" is therefore written with its quotes:
//
//	metadata.size=7        7
//	metadata.size="7"      "7"
//	metadata.colour=red    "red"
func metadataValue(text string) (json.RawMessage, error) {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return api.EncodeJSON(text)
}
