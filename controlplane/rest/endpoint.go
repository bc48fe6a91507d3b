package rest

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/nearest"
	"github.com/codesous/sous/controlplane/access"
)

// Extent is how far into a tenant a route reaches. It decides what keys that are
// limited to one namespace may call. For a key of the namespace "billing":
//
//	WholeTenant        GET T/keys                  403
//	PathNamespaceOnly  GET N/functions             200 if {namespace} is billing, else 403
//	HandlerNamespace   GET T/jobs/{id}             200 if the job is in billing, else 404
//	NoNamespace        GET T                       200
//
// Keys without a namespace pass all of them.
type Extent int

const (
	// WholeTenant is closed to such keys. It is the zero value, so that a route that
	// says nothing is closed.
	WholeTenant Extent = iota
	// PathNamespaceOnly is open to keys of the path's {namespace}.
	PathNamespaceOnly
	// HandlerNamespace is checked by the handler: the namespace stands in the query or
	// in a record, or the answer leaves out other namespaces. The handler must call
	// NeedNamespace or EntersNamespace of its CallerOf: this package checks nothing here.
	HandlerNamespace
	// NoNamespace is open to them.
	NoNamespace
	// Platform is closed to all keys of one tenant: only administrators of the platform may call.
	Platform
)

// Route is where an endpoint is, who may call it, and how the OpenAPI document
// describes it.
type Route struct {
	Method, Path string
	// Action is what a caller's roles must grant, or one of access.Public, AnyKey and
	// Runner. A route with the zero value refuses every request.
	Action access.Action
	Extent Extent

	// ID is the operation's id in the document; "" leaves a Handle route out of it.
	// Tag groups the operations of the page /docs/reference.
	ID, Tag, Summary, Description string
	// Status is the status of success (0: 200, or 204 for an Operation without a body).
	Status int
	// Parameters are those of a Handle route; those of an Operation follow from its
	// input type.
	Parameters []*huma.Param
	// QueryPrefix begins the names of further query parameters of a Handle route, which the
	// document cannot declare ("" for none).
	QueryPrefix string
	// Request is the body of a Handle route. An Operation sets it only where its
	// handler reads the raw body itself.
	Request Content
	// Answer is the body of success of a Handle route.
	Answer Content
	// Also lists the answers of further statuses. The problem is added to every route.
	Also []Answer

	// Failure translates the errors of the route (nil: they stay as they are). It is how
	// the document storage keeps its own codes: documents.Failure turns CS_AUTHZ_DENIED
	// into UNAUTHORIZED, which has the same status. Only Handle routes may set it: it is
	// not applied to the errors of an Operation's handler.
	Failure func(error) error
}

// Content maps the content types of a body to a value of the type that is encoded; a
// nil value stands for opaque bytes.
type Content map[string]any

// JSON is the content of a body that holds v as JSON.
func JSON(v any) Content { return Content{ContentTypeJSON: v} }

// Answer describes the answers of one status.
type Answer struct {
	Status int
	// Description of the status (default: its text).
	Description string
	Content     Content
}

// Handler answers a request, or returns why it does not; the server then answers with
// the problem. An error that is returned after the answer has begun cannot change the
// status any more and corrupts the body.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Endpoint is a route with its handler. Operation and Handle make them. One declaration
// is the route, the permission, the documentation and the handler:
//
//	type jobInput struct{ JobPath }             // path parameters, checked by JobPath.Resolve
//	type jobOutput struct{ Body api.Job }       // the JSON of the answer
//
//	rest.Operation(rest.Route{
//		Method: http.MethodGet, Path: pathJob, Action: access.JobRead, Extent: rest.HandlerNamespace,
//		ID: "get-job", Tag: "jobs", Summary: "Read a job with its errors",
//	}, a.getJob)
//
//	func (a *API) getJob(ctx context.Context, in *jobInput) (*jobOutput, error)
//
// Server registers GET /v1/tenants/{tenant}/jobs/{job_id} (and HEAD with it). It admits
// only keys whose roles grant cs:job:read, of this tenant or of all tenants. It derives the
// parameters and the answer of get-job in the OpenAPI document from the two types, whose
// tags are huma's: path, query and header name the parameters, and minimum, maxLength, enum
// and so on are enforced before the handler runs. A field Status of the output replaces the route's
// status, and a field with the tag header sets a header of the answer.
//
// A handler decodes the request, authorizes what the route could not, calls one method
// and encodes its result. Operation leaves decoding and encoding to huma; Handle is for
// bodies that are large, opaque or streamed.
type Endpoint struct {
	Route
	mount func(on *mounting, route *Route)
}

// mounting holds the router and the document that endpoints are added to. document and
// typed describe the same OpenAPI document; routes of typed stand behind buffered.
type mounting struct {
	server   *Server
	router   chi.Router
	document huma.API
	typed    typedAPI
}

// Operation declares an endpoint whose request huma decodes and whose answer it
// encodes. Bodies have at most api.MaxRequestBytes. The document follows from I and O.
// handle is called concurrently, with an input of its own. An endpoint that answers
// without a body (204) has the output type struct{}, and handle returns nil for it;
// huma cannot encode a nil of any other type.
func Operation[I, O any](route Route, handle func(context.Context, *I) (*O, error)) Endpoint {
	return Endpoint{route, func(on *mounting, route *Route) { mountOperation(on, route, handle) }}
}

// mountOperation registers an Operation with huma, and logs the errors of its handler.
// huma writes the problem itself, since *Problem is a huma.StatusError.
func mountOperation[I, O any](on *mounting, route *Route, handle func(context.Context, *I) (*O, error)) {
	schemas := on.document.OpenAPI().Components.Schemas
	op := huma.Operation{
		OperationID: route.ID, Method: route.Method, Path: route.Path, Tags: []string{route.Tag},
		Summary: route.Summary, Description: route.Description, DefaultStatus: route.Status,
		// buffered has read the body within bounds of its own; huma's would leave a
		// deadline on the connection.
		MaxBodyBytes: -1, BodyReadTimeout: -1,
		SkipValidateBody: route.Request != nil,
		// A misspelt filter would answer with what it should leave out.
		RejectUnknownQueryParameters: true,
		Responses:                    responses(schemas, route.Also),
	}
	server := on.server
	huma.Register(on.typed, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err != nil {
			p := newProblem(err, RequestID(ctx))
			p.note(ctx)
			server.logFailure(ctx, p, op.Method, op.Path, err)
			return nil, p
		}
		return out, nil
	})
	if route.Request != nil {
		for _, registered := range operations(on.document.OpenAPI().Paths[route.Path]) {
			if registered.Method == route.Method {
				registered.RequestBody.Content = content(schemas, route.Request)
			}
		}
	}
}

// Handle declares an endpoint that reads its request and writes its answer itself:
// those with large, opaque or streamed bodies.
func Handle(route Route, handle Handler) Endpoint {
	return Endpoint{route, func(on *mounting, route *Route) {
		if route.ID != "" {
			describe(on.document, route)
		}
		server := on.server
		on.router.Method(route.Method, route.Path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			err := route.knowsQuery(r.URL.Query())
			if err == nil {
				err = handle(w, r)
			}
			if err != nil {
				server.fail(w, r, RequestID(r.Context()), err)
			}
		}))
	}}
}

// knowsQuery returns CodeInvalid for query parameters that a Handle route does not declare. A
// route without an ID is not described, so all of them are admitted.
func (route *Route) knowsQuery(query url.Values) error {
	var fields []api.FieldError
	for _, name := range slices.Sorted(maps.Keys(query)) {
		declared := func(p *huma.Param) bool { return p.In == "query" && p.Name == name }
		further := route.QueryPrefix != "" && strings.HasPrefix(name, route.QueryPrefix)
		if route.ID != "" && !further && !slices.ContainsFunc(route.Parameters, declared) {
			fields = append(fields, unknownParameter(name, route.Parameters))
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return api.Errorf(api.CodeInvalid, "%s: %s", fields[0].Path, fields[0].Message).WithFields(fields...)
}

// unknownQueryParameter is huma's message for a query parameter that an Operation does not
// declare, and the beginning of all messages about one.
const unknownQueryParameter = "unknown query parameter"

// unknownParameter returns the error of the query parameter name, which is not declared. It
// suggests the declared one with the most similar name, or lists all of them.
func unknownParameter(name string, declared []*huma.Param) api.FieldError {
	var names []string
	for _, p := range declared {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	message := unknownQueryParameter
	meant := nearest.Name(name, names)
	switch {
	case meant != "":
		message += "; did you mean " + meant + "?"
	case len(names) > 0:
		message += "; the operation has " + strings.Join(names, ", ")
	default:
		message += "; the operation has none"
	}
	return api.FieldError{Path: name, Message: message}
}

// describe adds a route that huma does not serve to the document. Nothing compares the
// description with the handler, except the tests that call every route.
func describe(document huma.API, route *Route) {
	schemas := document.OpenAPI().Components.Schemas
	status := route.Status
	if status == 0 {
		status = http.StatusOK
	}
	op := &huma.Operation{
		Method: route.Method, Path: route.Path, OperationID: route.ID, Tags: []string{route.Tag},
		Summary: route.Summary, Description: route.Description, Parameters: route.Parameters,
		Responses: responses(schemas, append([]Answer{{Status: status, Content: route.Answer}}, route.Also...)),
	}
	if route.Request != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: content(schemas, route.Request)}
	}
	document.OpenAPI().AddOperation(op)
}

// responses describes the answers of success.
func responses(schemas huma.Registry, answers []Answer) map[string]*huma.Response {
	all := map[string]*huma.Response{}
	for _, answer := range answers {
		described := &huma.Response{Description: answer.Description, Content: content(schemas, answer.Content)}
		if described.Description == "" {
			described.Description = http.StatusText(answer.Status)
		}
		all[strconv.Itoa(answer.Status)] = described
	}
	return all
}
