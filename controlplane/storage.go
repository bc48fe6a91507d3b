package controlplane

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/documents"
)

const (
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

// storageFailure gives the failure of a route of the document storage its code there.
func storageFailure(r *http.Request, err error) error {
	routed := chi.RouteContext(r.Context())
	if routed == nil {
		return err
	}
	if pattern := routed.RoutePattern(); pattern == pathInternalStorage || strings.HasPrefix(pattern, pathInstalls) {
		return documents.Failure(err)
	}
	return err
}

// storagePath is where a request to the document storage goes; what its route does not
// name is "".
type storagePath struct{ tenant, install, namespace, key string }

// storageCall answers a request to the document storage, or gives why it does not.
type storageCall func(w http.ResponseWriter, r *http.Request, p storagePath) error

// storageRoutes registers routes of the document storage and describes them.
type storageRoutes struct {
	server *Server
	router chi.Router
	api    huma.API
}

func (s *Server) routeStorage(r chi.Router, a huma.API) {
	routes := storageRoutes{s, r, a}
	s.routeRecords(routes)
	s.routeStorageForms(routes)
	s.routeDocumentNamespaces(routes)
	s.routeDocumentChanges(routes)
	s.routeInstalls(routes)
	s.routeInternalStorage(routes)
}

// add registers a route whose caller must enter the path's install.
func (t storageRoutes) add(d documented, call storageCall) {
	d.tag = "storage"
	d.parameters = append(storageParameters(d.path), d.parameters...)
	document(t.api, d)
	t.router.Method(d.method, d.path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := storagePath{
			tenant: pathParam(r, "tenant"), install: pathParam(r, "install"),
			namespace: pathParam(r, "document_namespace"), key: pathParam(r, "key"),
		}
		err := callerOf(r.Context()).needInstall(p.install)
		if err == nil {
			err = call(w, r, p)
		}
		if err != nil {
			t.server.fail(w, r, requestIDOf(r.Context()), err)
		}
	}))
}

// storageParameters describes those of a path.
func storageParameters(path string) []*huma.Param {
	var out []*huma.Param
	for _, p := range []struct {
		name   string
		schema *huma.Schema
	}{
		{"tenant", tenantName("").Schema(nil)},
		{"install", &huma.Schema{Type: huma.TypeString, Description: api.InstallPattern + ", or fn.<namespace>.<function>"}},
		{"document_namespace", patternSchema(api.DocumentNamespacePattern)},
		{"key", &huma.Schema{Type: huma.TypeString, Description: "at most 128 characters, no slash, no control characters"}},
	} {
		if strings.Contains(path, "{"+p.name+"}") {
			out = append(out, pathParameter(p.name, p.schema))
		}
	}
	return out
}

// needInstall refuses (CodeAuthzDenied) an install that is no function's of the one
// namespace that c enters.
func (c *caller) needInstall(install string) error {
	if c.namespace == "" {
		return nil
	}
	namespace, _, ok := api.InstallOf(install)
	if !ok {
		namespace = ""
	}
	return c.needNamespace(namespace)
}

// storageBody reads a request's body.
func storageBody(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := readBody(w, r, api.MaxRequestBytes)
	if err != nil {
		return err
	}
	return documents.Decode(body, v)
}

// answerDocument answers with a document and its revision.
func (s *Server) answerDocument(w http.ResponseWriter, r *http.Request, d *api.Document) {
	w.Header().Set("ETag", revisionTag(d.Revision))
	s.writeJSON(w, r, d)
}

// revisionHeader reads If-Revision-Match; nil where it is not there.
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

// precondition is what If-Match and If-None-Match ask of a document.
type precondition struct {
	revision *int64
	header   string // which of them said it, "" for none
}

// readPrecondition reads these headers; a request has one of them, or ifRevision.
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

// failed gives an error that came of a header the code for headers.
func (p precondition) failed(err error) error {
	code := api.ErrorCode(err)
	if p.header == "" || code != api.CodeRevisionMismatch && code != api.CodeDocumentNotFound {
		return err
	}
	return api.Wrap(api.CodePreconditionFailed, err, "the document is not as "+p.header+" says")
}
