package controlplane

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
)

// recordBody is the body of a put by path.
type recordBody struct {
	Value      json.RawMessage `json:"value"`
	Metadata   json.RawMessage `json:"metadata,omitempty" doc:"an object; left out it is {}"`
	TTLSeconds *int64          `json:"ttlSeconds,omitempty" doc:"60 to 2,592,000; left out the document stays"`
	IfRevision *int64          `json:"ifRevision,omitempty" doc:"the revision that the document must have now; 0: there must be none"`
}

// metadataParameter begins the parameters of a list that name members of metadata.
const metadataParameter = "metadata."

// routeRecords serves documents at paths of their own.
func (s *Server) routeRecords(t storageRoutes) {
	one := map[string]any{contentTypeJSON: api.Document{}}
	match := headerParameter("If-Match", "the ETag that the document must have now, else 412")
	t.add(documented{
		method: http.MethodPut, path: pathRecord, id: "put-record",
		summary:     "Write a document",
		description: "Makes it, or replaces its value, metadata and time to live. If-None-Match: * makes it only (412 where it exists).",
		parameters:  []*huma.Param{match, headerParameter("If-None-Match", "*: there must be none")},
		request:     map[string]any{contentTypeJSON: recordBody{}}, status: http.StatusOK, answer: one,
	}, s.putRecord)
	t.add(documented{
		method: http.MethodGet, path: pathRecord, id: "get-record",
		summary: "Read a document", description: "The ETag is its revision.",
		parameters: []*huma.Param{headerParameter(headerIfRevision, "the revision that it must have, else 409")},
		status:     http.StatusOK, answer: one,
	}, s.getRecord)
	t.add(documented{
		method: http.MethodDelete, path: pathRecord, id: "delete-record",
		summary:    "Delete a document; one that is not there is deleted already",
		parameters: []*huma.Param{match}, status: http.StatusNoContent,
	}, s.deleteRecord)
	text, yes := &huma.Schema{Type: huma.TypeString}, &huma.Schema{Type: huma.TypeBoolean}
	t.add(documented{
		method: http.MethodGet, path: pathRecords, id: "list-records",
		summary: "List documents by key",
		description: "A parameter metadata.<name> takes those whose metadata has the member, as JSON or as text. " +
			"A page may be short, even empty, and still have a nextCursor.",
		parameters: []*huma.Param{
			queryParameter("prefix", "of the keys", text),
			queryParameter("limit", "how many documents at most", &huma.Schema{Type: huma.TypeInteger, Default: api.DefaultDocumentPage}),
			queryParameter("cursor", "nextCursor of the page before", text),
			queryParameter("includeMetadata", "default false", yes),
			queryParameter("includeValues", "default false", yes),
		},
		status: http.StatusOK, answer: map[string]any{contentTypeJSON: api.DocumentPage{}},
	}, s.listRecords)
}

// recordKey is the key of a path. Two of them mean something else in a path, and most
// clients and proxies take them away.
func (p storagePath) recordKey() (string, error) {
	if p.key == "." || p.key == ".." {
		return "", api.DocumentFieldError("key", "cannot be part of a path: use storage/get and the like")
	}
	return p.key, api.ValidateDocumentKey(p.key)
}

func (s *Server) putRecord(w http.ResponseWriter, r *http.Request, p storagePath) error {
	key, err := p.recordKey()
	if err != nil {
		return err
	}
	var body recordBody
	if err := storageBody(w, r, &body); err != nil {
		return err
	}
	must, err := readPrecondition(r, body.IfRevision)
	if err != nil {
		return err
	}
	d, err := s.documents.Put(r.Context(), p.tenant, p.install, api.DocumentPut{Namespace: p.namespace, DocumentItem: api.DocumentItem{
		Key: key, Value: body.Value, Metadata: body.Metadata, TTLSeconds: body.TTLSeconds, IfRevision: must.revision,
	}})
	if err != nil {
		return must.failed(err)
	}
	s.answerDocument(w, r, d)
	return nil
}

func (s *Server) getRecord(w http.ResponseWriter, r *http.Request, p storagePath) error {
	key, err := p.recordKey()
	if err != nil {
		return err
	}
	revision, err := revisionHeader(r)
	if err != nil {
		return err
	}
	d, err := s.documents.Get(r.Context(), p.tenant, p.install, api.DocumentGet{Namespace: p.namespace, Key: key, IfRevision: revision})
	if err != nil {
		return err
	}
	s.answerDocument(w, r, d)
	return nil
}

func (s *Server) deleteRecord(w http.ResponseWriter, r *http.Request, p storagePath) error {
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
	if err := s.documents.Delete(r.Context(), p.tenant, p.install, api.DocumentDelete{Namespace: p.namespace, Key: key, IfRevision: must.revision}); err != nil {
		return must.failed(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) listRecords(w http.ResponseWriter, r *http.Request, p storagePath) error {
	list, err := listQuery(r.URL.Query())
	if err != nil {
		return err
	}
	list.Namespace = p.namespace
	page, err := s.documents.List(r.Context(), p.tenant, p.install, list)
	if err != nil {
		return err
	}
	s.writeJSON(w, r, page)
	return nil
}

// listQuery reads a list's parameters.
func listQuery(query url.Values) (list api.DocumentList, err error) {
	list.KeyPrefix, list.Cursor = query.Get("prefix"), query.Get("cursor")
	if limit := query.Get("limit"); limit != "" {
		if list.Limit, err = strconv.Atoi(limit); err != nil || list.Limit < 1 {
			return list, api.DocumentFieldError("limit", "must be from 1 to "+strconv.Itoa(api.MaxDocumentPage))
		}
	}
	for name, to := range map[string]*bool{"includeMetadata": &list.IncludeMetadata, "includeValues": &list.IncludeValues} {
		if text := query.Get(name); text != "" {
			if *to, err = strconv.ParseBool(text); err != nil {
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
		if list.Metadata[member], err = metadataValue(values[0]); err != nil {
			return list, err
		}
	}
	return list, nil
}

// metadataValue is a value as JSON, or the text that it is.
func metadataValue(text string) (json.RawMessage, error) {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return api.EncodeJSON(text)
}
