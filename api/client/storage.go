package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/codesous/sous/api"
)

// Installs returns one page of the installs that hold documents or are registered, by id.
func (t *Tenant) Installs(ctx context.Context, o PageOptions) (api.Page[api.Install], error) {
	var out api.Page[api.Install]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("installs"), query: o.query()}, nil, &out)
	return out, err
}

// Install returns the handle of an install. It sends no request.
func (t *Tenant) Install(id string) *Install { return &Install{t, id} }

// Install is one install, an owner of documents; see api.Install.
type Install struct {
	tenant *Tenant
	id     string
}

func (i *Install) path(parts ...string) string {
	return i.tenant.path(append([]string{"installs", i.id}, parts...)...)
}

func (i *Install) storage(parts ...string) string {
	return i.path(append([]string{"storage"}, parts...)...)
}

// send sends a request to a route of the install.
func (i *Install) send(ctx context.Context, method, path string, in, out any) error {
	_, err := i.tenant.c.call(ctx, &request{method: method, path: path}, in, out)
	return err
}

// Register registers the install, or changes its registration, with the fields of install
// except its id. CodeDocumentInvalid.
func (i *Install) Register(ctx context.Context, install api.Install) (api.Install, error) {
	in := struct {
		Description string   `json:"description,omitempty"`
		Functions   []string `json:"functions,omitempty"`
	}{install.Description, install.Functions}
	var out api.Install
	err := i.send(ctx, http.MethodPut, i.path(), in, &out)
	return out, err
}

// Get returns the registration of the install. CodeDocumentNotFound.
func (i *Install) Get(ctx context.Context) (api.Install, error) {
	var out api.Install
	err := i.send(ctx, http.MethodGet, i.path(), nil, &out)
	return out, err
}

// Delete removes the install with all its documents. CodeDocumentNotFound.
func (i *Install) Delete(ctx context.Context) error {
	return i.send(ctx, http.MethodDelete, i.path(), nil, nil)
}

// PutDocument writes a document. CodeRevisionMismatch, CodeQuotaExceeded,
// CodeDocumentInvalid.
func (i *Install) PutDocument(ctx context.Context, put api.DocumentPut) (api.Document, error) {
	var out api.Document
	err := i.send(ctx, http.MethodPost, i.storage("put"), put, &out)
	return out, err
}

// Document reads a document. CodeDocumentNotFound, CodeRevisionMismatch.
func (i *Install) Document(ctx context.Context, get api.DocumentGet) (api.Document, error) {
	r := &request{
		method: http.MethodGet, path: i.storage("get"), header: http.Header{},
		query: url.Values{"namespace": {get.Namespace}, "key": {get.Key}},
	}
	if get.IfRevision != nil {
		r.header.Set("If-Revision-Match", strconv.FormatInt(*get.IfRevision, 10))
	}
	var out api.Document
	_, err := i.tenant.c.call(ctx, r, nil, &out)
	return out, err
}

// Documents returns one page of a namespace's documents, by key.
func (i *Install) Documents(ctx context.Context, list api.DocumentList) (api.DocumentPage, error) {
	var out api.DocumentPage
	_, err := i.tenant.c.call(ctx, &request{method: http.MethodPost, path: i.storage("list"), again: true}, list, &out)
	return out, err
}

// DeleteDocument removes a document. A missing document is an error only with IfRevision.
// CodeRevisionMismatch, CodeDocumentNotFound.
func (i *Install) DeleteDocument(ctx context.Context, del api.DocumentDelete) error {
	return i.send(ctx, http.MethodPost, i.storage("delete"), del, nil)
}

// BulkPut writes documents, all or none. CodeBulkPartialFailure, with Items.
func (i *Install) BulkPut(ctx context.Context, bulk api.DocumentBulkPut) (api.DocumentResults, error) {
	var out api.DocumentResults
	err := i.send(ctx, http.MethodPost, i.storage("bulkPut"), bulk, &out)
	return out, err
}

// Transact checks and writes documents, all or none. The code is that of the first step
// that failed, with Items.
func (i *Install) Transact(ctx context.Context, t api.DocumentTransact) (api.DocumentResults, error) {
	var out api.DocumentResults
	err := i.send(ctx, http.MethodPost, i.storage("transact"), t, &out)
	return out, err
}

// DocumentNamespaces are the namespaces of an install, and the usage of its tenant.
type DocumentNamespaces struct {
	Items     []api.DocumentNamespace `json:"items"`
	TenantUse api.DocumentUse         `json:"tenantUse"`
}

// Namespaces returns the install's namespaces.
func (i *Install) Namespaces(ctx context.Context) (DocumentNamespaces, error) {
	var out DocumentNamespaces
	err := i.send(ctx, http.MethodGet, i.storage("namespaces"), nil, &out)
	return out, err
}

// DeleteNamespace removes a namespace with its documents and its schema.
// CodeDocumentNotFound.
func (i *Install) DeleteNamespace(ctx context.Context, namespace string) error {
	return i.send(ctx, http.MethodDelete, i.storage("namespaces", namespace), nil, nil)
}

// Schema returns a namespace's JSON Schema. CodeDocumentNotFound.
func (i *Install) Schema(ctx context.Context, namespace string) (json.RawMessage, error) {
	var out json.RawMessage
	err := i.send(ctx, http.MethodGet, i.storage("namespaces", namespace, "schema"), nil, &out)
	return out, err
}

// SetSchema sets a namespace's JSON Schema. CodeDocumentInvalid.
func (i *Install) SetSchema(ctx context.Context, namespace string, schema json.RawMessage) error {
	return i.send(ctx, http.MethodPut, i.storage("namespaces", namespace, "schema"), schema, nil)
}

// DeleteSchema removes a namespace's JSON Schema. CodeDocumentNotFound.
func (i *Install) DeleteSchema(ctx context.Context, namespace string) error {
	return i.send(ctx, http.MethodDelete, i.storage("namespaces", namespace, "schema"), nil, nil)
}

// DocumentChanges is a page of a namespace's change feed.
type DocumentChanges struct {
	Items  []api.DocumentChange `json:"items"`
	Latest int64                `json:"latest"` // the namespace's last change
	Reset  bool                 `json:"reset"`  // changes before Items are lost
}

// Changes returns up to limit changes (0: the server's default) of a namespace after since.
func (i *Install) Changes(ctx context.Context, namespace string, since int64, limit int) (DocumentChanges, error) {
	r := &request{method: http.MethodGet, path: i.storage("namespaces", namespace, "changes"), query: PageOptions{Limit: limit}.query()}
	r.query.Set("since", strconv.FormatInt(since, 10))
	var out DocumentChanges
	_, err := i.tenant.c.call(ctx, r, nil, &out)
	return out, err
}

// FollowChanges calls handle with every change of a namespace after since, once and in
// order, until ctx ends or handle fails. It calls reset, which may be nil, if changes were
// lost. A broken stream is opened again at the same position, at most MaxAttempts times in
// a row without a change in between.
func (i *Install) FollowChanges(ctx context.Context, namespace string, since int64, handle func(api.DocumentChange) error, reset func() error) error {
	follow := &stream{
		c: i.tenant.c, path: i.storage("namespaces", namespace, "changes"),
		query: url.Values{"since": {strconv.FormatInt(since, 10)}},
	}
	follow.take = func(e sentEvent) (bool, error) {
		switch e.name {
		case eventReset:
			if reset == nil {
				return false, nil
			}
			return false, reset()
		case "put", "delete", "expire":
		default: // ignore other events
			return false, nil
		}
		var change api.DocumentChange
		if err := json.Unmarshal(e.data, &change); err != nil {
			return true, fmt.Errorf("change of %s: %w", namespace, err)
		}
		return false, handle(change)
	}
	return follow.run(ctx)
}
