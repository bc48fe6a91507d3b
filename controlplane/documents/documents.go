// Package documents serves the document store: records by path, the operations of the
// store's contract, namespaces with their schemas and feeds, and installs.
package documents

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage/documents"
)

const (
	pathInstalls           = rest.PathTenant + "/installs"
	pathInstall            = pathInstalls + "/{install}"
	pathStorage            = pathInstall + "/storage"
	pathDocumentNamespaces = pathStorage + "/namespaces"
	pathDocumentNamespace  = pathDocumentNamespaces + "/{document_namespace}"
	pathDocumentSchema     = pathDocumentNamespace + "/schema"
	pathDocumentChanges    = pathDocumentNamespace + "/changes"
	pathRecords            = pathDocumentNamespace + "/records"
	pathRecord             = pathRecords + "/{key}"
)

// headerIfRevision makes a get conditional.
const headerIfRevision = "If-Revision-Match"

// path holds the parameters of a request's path; those that its route does not have
// are "".
type path struct{ tenant, install, namespace, key string }

func pathOf(r *http.Request) path {
	return path{
		tenant: rest.PathParam(r, "tenant"), install: rest.PathParam(r, "install"),
		namespace: rest.PathParam(r, "document_namespace"), key: rest.PathParam(r, "key"),
	}
}

// handler answers a request for documents, or returns why it does not.
type handler func(w http.ResponseWriter, r *http.Request, p path) error

// API serves documents.
type API struct {
	documents *documents.Service
	waits     *rest.Waits
}

// New returns the API of a document service. Followed feeds are counted against waits.
func New(service *documents.Service, waits *rest.Waits) *API {
	return &API{documents: service, waits: waits}
}

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	var all []rest.Endpoint
	for _, some := range [][]rest.Endpoint{
		a.recordEndpoints(), a.formEndpoints(), a.namespaceEndpoints(), a.changeEndpoints(), a.installEndpoints(), a.runnerEndpoints(),
	} {
		all = append(all, some...)
	}
	return all
}

// handle declares a route whose caller must enter the path's install. Its errors have
// the codes of the documents API.
func (a *API) handle(route rest.Route, handle handler) rest.Endpoint {
	route.Tag, route.Failure = "storage", documents.Failure
	route.Parameters = append(pathParameters(route.Path), route.Parameters...)
	return rest.Handle(route, func(w http.ResponseWriter, r *http.Request) error {
		p := pathOf(r)
		if err := needInstall(rest.CallerOf(r.Context()), p.install); err != nil {
			return err
		}
		return handle(w, r, p)
	})
}

// pathParameters describes the parameters of a path.
func pathParameters(path string) []*huma.Param {
	var out []*huma.Param
	for _, p := range []struct {
		name   string
		schema *huma.Schema
	}{
		{"tenant", rest.TenantName("").Schema(nil)},
		{"install", &huma.Schema{Type: huma.TypeString, Description: api.InstallPattern + ", or fn.<namespace>.<function>"}},
		{"document_namespace", rest.PatternSchema(api.DocumentNamespacePattern)},
		{"key", &huma.Schema{Type: huma.TypeString, Description: "at most 128 characters, no slash, no control characters"}},
	} {
		if strings.Contains(path, "{"+p.name+"}") {
			out = append(out, rest.PathParameter(p.name, p.schema))
		}
	}
	return out
}

// needInstall returns CodeAuthzDenied if c is limited to one namespace and install is
// not that of a function in it.
func needInstall(c *access.Caller, install string) error {
	if c.Namespace == "" {
		return nil
	}
	namespace, _, ok := api.InstallOf(install)
	if !ok {
		namespace = ""
	}
	return c.NeedNamespace(namespace)
}

// decodeBody reads a request's body into v.
func decodeBody(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := rest.ReadBody(w, r, api.MaxRequestBytes)
	if err != nil {
		return err
	}
	return documents.Decode(body, v)
}

// answerDocument answers with a document; its ETag is its revision.
func answerDocument(w http.ResponseWriter, r *http.Request, d *api.Document) error {
	w.Header().Set("ETag", rest.RevisionTag(d.Revision))
	return rest.WriteJSON(w, r, http.StatusOK, d)
}

// revisionHeader returns the value of If-Revision-Match, nil without the header.
// Errors: CodeDocumentInvalid.
func revisionHeader(r *http.Request) (*int64, error) {
	values := r.Header.Values(headerIfRevision)
	if len(values) == 0 {
		return nil, nil //nolint:nilnil // documented: nothing was asked
	}
	n, err := strconv.ParseInt(strings.Trim(strings.TrimSpace(values[0]), `"`), 10, 64)
	if err != nil || n < 0 || len(values) > 1 {
		return nil, api.DocumentFieldError(headerIfRevision, "must be a revision")
	}
	return &n, nil
}

// precondition is the revision that a document must have, by a header or by the body.
type precondition struct {
	revision *int64
	header   string // the header that requires it, "" for the body
}

// readPrecondition returns the precondition of a request, which may have one of
// If-Match, If-None-Match and ifRevision. Errors: CodeDocumentInvalid.
func readPrecondition(r *http.Request, ifRevision *int64) (precondition, error) {
	match, none := r.Header.Values("If-Match"), r.Header.Values("If-None-Match")
	given := len(match) + len(none)
	if ifRevision != nil {
		given++
	}
	switch {
	case given > 1:
		return precondition{}, api.DocumentFieldError("ifRevision", "stands alone: give one of ifRevision, If-Match and If-None-Match")
	case len(none) == 1:
		if strings.TrimSpace(none[0]) != "*" {
			return precondition{}, api.DocumentFieldError("If-None-Match", "must be *")
		}
		absent := int64(0)
		return precondition{&absent, "If-None-Match"}, nil
	case len(match) == 1:
		text, err := strconv.Unquote(strings.TrimSpace(match[0]))
		n, bad := strconv.ParseInt(text, 10, 64)
		if err != nil || bad != nil || n < 1 {
			return precondition{}, api.DocumentFieldError("If-Match", `must be the ETag of a document, such as "3"`)
		}
		return precondition{&n, "If-Match"}, nil
	}
	return precondition{revision: ifRevision}, nil
}

// failed returns CodePreconditionFailed for an error that a header's precondition
// caused, and other errors as they are.
func (p precondition) failed(err error) error {
	code := api.ErrorCode(err)
	if p.header == "" || code != api.CodeRevisionMismatch && code != api.CodeDocumentNotFound {
		return err
	}
	return api.Wrap(api.CodePreconditionFailed, err, "the document is not as "+p.header+" says")
}
