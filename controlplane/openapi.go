package controlplane

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/codesous/sous/api"
)

// newAPI begins the OpenAPI document. Its own routes, and links to schemas in
// every answer, are left out: the document is served whole and checked in tests.
func newAPI(r chi.Router, version string) huma.API {
	config := huma.DefaultConfig("code-sous", version)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: decodeJSON}
	config.Formats = map[string]huma.Format{contentTypeJSON: format, "json": format} // what ends in +json, too
	config.Info.Description = "Publish JavaScript and TypeScript functions and invoke them. " +
		"Requests say who sends them: Authorization: Bearer <API key>. " +
		"Errors are application/problem+json; docs/errors.md lists their codes."
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		securityBearer: {Type: "http", Scheme: "bearer", Description: "An API key, where the server asks for keys."},
		securityRunner: {Type: "http", Scheme: "bearer", Description: "The runners' token, RUNNER_STORAGE_API_TOKEN of the server."},
	}
	return humachi.New(r, config)
}

// decodeJSON is json.Unmarshal whose complaint about a number says nothing of our types:
// the schema lets 1e3 pass as an integer, and any number of digits.
func decodeJSON(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return fmt.Errorf("%s cannot be the %s: an integer has neither fraction nor exponent, and at most 64 bits", mismatch.Value, cmp.Or(mismatch.Field, "field's value"))
	}
	return err
}

// adapterOn lets huma register routes on r, behind its middlewares.
func adapterOn(r chi.Router) huma.Adapter { return humachi.NewAdapter(r) }

// typedAPI registers routes that huma decodes, on a router of their own.
type typedAPI struct {
	huma.API
	adapter huma.Adapter
	server  *Server
}

// Adapter gives huma the router.
func (t typedAPI) Adapter() huma.Adapter { return t.adapter }

// register adds a route whose handler answers with errors of api.
func register[I, O any](t typedAPI, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	// buffered has read the body within bounds of its own; huma's would leave a
	// deadline on the connection.
	op.MaxBodyBytes, op.BodyReadTimeout = -1, -1
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	op.Responses["default"] = problemResponse(t.OpenAPI().Components.Schemas)
	huma.Register(t, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err != nil {
			p := newProblem(err, requestIDOf(ctx))
			p.note(ctx)
			t.server.logFailure(ctx, p, op.Method, op.Path, err)
			return nil, p
		}
		return out, nil
	})
}

// documented describes a route that huma does not serve: parameters by hand,
// bodies from the types that its handler really uses.
type documented struct {
	method, path, id, tag, summary, description string
	parameters                                  []*huma.Param
	// request and answer map content types to a value of the type that is
	// encoded; a nil value is opaque bytes.
	request map[string]any
	status  int
	answer  map[string]any
	// also has the answers of further statuses.
	also map[int]map[string]any
}

func document(a huma.API, d documented) {
	registry := a.OpenAPI().Components.Schemas
	op := &huma.Operation{
		Method: d.method, Path: d.path, OperationID: d.id, Tags: []string{d.tag},
		Summary: d.summary, Description: d.description, Parameters: d.parameters,
		Responses: map[string]*huma.Response{
			strconv.Itoa(d.status): {Description: http.StatusText(d.status), Content: content(registry, d.answer)},
			"default":              problemResponse(registry),
		},
	}
	for status, answer := range d.also {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: content(registry, answer)}
	}
	if d.request != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: content(registry, d.request)}
	}
	a.OpenAPI().AddOperation(op)
}

// problemResponse is how every route fails.
func problemResponse(registry huma.Registry) *huma.Response {
	return &huma.Response{
		Description: "Error",
		Content:     content(registry, map[string]any{contentTypeProblem: Problem{}}),
	}
}

func content(registry huma.Registry, types map[string]any) map[string]*huma.MediaType {
	out := map[string]*huma.MediaType{}
	for contentType, v := range types {
		schema := &huma.Schema{Type: huma.TypeString, Format: "binary"}
		if v != nil {
			t := reflect.TypeOf(v)
			schema = registry.Schema(t, true, t.Name())
		}
		out[contentType] = &huma.MediaType{Schema: schema}
	}
	return out
}

// pathParameter and queryParameter describe a parameter with the schema of a
// name type below.
func pathParameter(name string, schema *huma.Schema) *huma.Param {
	return &huma.Param{Name: name, In: "path", Required: true, Schema: schema}
}

func queryParameter(name, description string, schema *huma.Schema) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: schema}
}

func headerParameter(name, description string) *huma.Param {
	return &huma.Param{Name: name, In: "header", Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
}

// functionParameters describe the path of a function.
func functionParameters(more ...*huma.Param) []*huma.Param {
	return append([]*huma.Param{
		pathParameter("tenant", tenantName("").Schema(nil)),
		pathParameter("namespace", resourceName("").Schema(nil)),
		pathParameter("function", resourceName("").Schema(nil)),
	}, more...)
}

// What the document calls keys, and the runners' token.
const (
	securityBearer = "bearer"
	securityRunner = "runner"
)

// secure says in the document which routes need a key.
func secure(a huma.API) {
	for path, item := range a.OpenAPI().Paths {
		for _, op := range operations(item) {
			switch rules[op.Method+" "+path].action {
			case actionPublic:
			case actionRunner:
				op.Security = []map[string][]string{{securityRunner: {}}}
			default:
				op.Security = []map[string][]string{{securityBearer: {}}}
			}
		}
	}
}

// completeDocument adds to the document what huma does not know.
func completeDocument(a huma.API) {
	secure(a)
	// huma knows no reference that may be null; an activation's error is one.
	activation := a.OpenAPI().Components.Schemas.Map()["Activation"]
	activation.Properties["error"] = &huma.Schema{OneOf: []*huma.Schema{activation.Properties["error"], {Type: "null"}}}
}

// openapiJSON encodes the document.
func openapiJSON(document *huma.OpenAPI) ([]byte, error) {
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("controlplane: encode the OpenAPI document: %w", err)
	}
	return raw, nil
}

// The kinds of names, each with its pattern in the document. What breaks it is
// refused by the path's Resolve, with the code for names.
type (
	tenantName   string
	resourceName string
	aliasName    string
	queueName    string
)

func patternSchema(pattern string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^" + pattern + "$"}
}

// Schema is the pattern of tenants.
func (tenantName) Schema(huma.Registry) *huma.Schema { return patternSchema(api.TenantPattern) }

// Schema is the pattern of namespaces and functions.
func (resourceName) Schema(huma.Registry) *huma.Schema { return patternSchema(api.NamePattern) }

// Schema is the pattern of aliases.
func (aliasName) Schema(huma.Registry) *huma.Schema { return patternSchema(api.AliasPattern) }

// Schema is the pattern of queues.
func (queueName) Schema(huma.Registry) *huma.Schema {
	return patternSchema(`(` + regexp.QuoteMeta(api.FunctionQueuePrefix) + `)?` + api.NamePattern)
}

// TenantPath is the path T of docs/api.md.
type TenantPath struct {
	Tenant tenantName `path:"tenant"`
}

// NamespacePath is N.
type NamespacePath struct {
	TenantPath
	Namespace resourceName `path:"namespace"`
}

// FunctionPath is F.
type FunctionPath struct {
	NamespacePath
	Function resourceName `path:"function"`
}

// Resolve refuses a name out of its pattern.
func (p *TenantPath) Resolve(huma.Context) []error {
	return problems(api.ValidateTenant(string(p.Tenant)))
}

// Resolve refuses a name out of its pattern.
func (p *NamespacePath) Resolve(huma.Context) []error {
	return problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("namespace", string(p.Namespace)))
}

// Resolve refuses a name out of its pattern.
func (p *FunctionPath) Resolve(huma.Context) []error {
	return problems(validateFunctionPath(p.names()))
}

// names are the path's names as the repositories take them.
func (p *FunctionPath) names() (tenant, namespace, function string) {
	return string(p.Tenant), string(p.Namespace), string(p.Function)
}

// problems leaves out what is no error.
func problems(errs ...error) []error {
	var found []error
	for _, err := range errs {
		if err != nil {
			found = append(found, err)
		}
	}
	return found
}
