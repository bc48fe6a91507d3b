// Package documents serves the document storage: records by path, the operations of the
// storage's contract, namespaces with their schemas and feeds, and installs. The service
// behind it is storage/documents, whose methods document quotas, schemas and atomicity.
//
// The storage follows a contract that is older than the platform, and keeps its dialect:
// codes without CS_, names in camel case, times in RFC 3339. handle sets that dialect for
// all errors of a route (rest.Route.Failure); only codes for which the contract has no word
// stay the platform's:
//
//	a key that is not of the tenant      404 CS_TENANT_NOT_FOUND
//	a role that grants no cs:storage:…   403 UNAUTHORIZED
//	a body that is too large             413 CS_BODY_LIMIT
//	a document that does not exist       404 NOT_FOUND
//
// Every operation has two forms, over the same methods. By path (records.go), with ETag and
// If-Match; and as in the contract (forms.go), with the request as the body:
//
//	PUT  S/namespaces/carts/records/c-17  {"value": 1, "ifRevision": 3}
//	POST S/put  {"namespace": "carts", "key": "c-17", "value": 1, "ifRevision": 3}
//
// where S is T/installs/{install}/storage. Runners use the second form at an endpoint of
// their own, with a token instead of an API key.
//
// A namespace of documents lies within an install and is not a namespace of the tenant.
// needInstall checks keys that are limited to one: only installs of functions in it
// (fn.<namespace>.<function>) are open to them.
package documents

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/admission"
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

// headerIfRevision makes a get conditional: a document with another revision is a 409
// REVISION_MISMATCH, so that a caller which must not see a newer state notices one.
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
	waits     *admission.Waits
	feeds     *changeHub
}

// New returns the API of a document service. Followed feeds are counted against waits.
func New(service *documents.Service, waits *admission.Waits) *API {
	return &API{documents: service, waits: waits, feeds: newChangeHub()}
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
// the codes of the documents API. It completes route: tag, parameters of the path, Failure.
// The route's Extent must be WholeTenant or HandlerNamespace.
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

// pathParameters describes those of the parameters that occur in path.
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
// not that of a function in it. For a key of the namespace shop:
//
//	fn.shop.cart      allowed
//	fn.billing.cart   refused
//	inventory         refused: a registered install belongs to the tenant as a whole
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

// decodeBody reads a request's body into v. Errors: those of rest.ReadBody,
// CodeDocumentInvalid.
func decodeBody(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := rest.ReadBody(w, r, api.MaxRequestBytes)
	if err != nil {
		return err
	}
	return documents.Decode(body, v)
}

// answerDocument answers with a document; its ETag is its revision, as in "3".
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

// precondition is the revision that a document must have, by a header or by the body; 0 for
// a document that must not exist, nil for any. The two ways fail differently, as HTTP and
// the contract demand:
//
//	If-Match: "3", the document has revision 4      412 CS_PRECONDITION_FAILED
//	{"ifRevision": 3}, the document has revision 4  409 REVISION_MISMATCH
//
// Both are decided by the store's compare-and-set. Unlike the other resources, a document
// takes one tag in If-Match, neither a list nor *.
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
// caused, and other errors as they are. With If-Match a missing document breaks the
// condition, too.
func (p precondition) failed(err error) error {
	code := api.ErrorCode(err)
	if p.header == "" || code != api.CodeRevisionMismatch && code != api.CodeDocumentNotFound {
		return err
	}
	return api.Wrap(api.CodePreconditionFailed, err, "the document is not as "+p.header+" says")
}
