package rest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/jsonsize"
	"github.com/codesous/sous/controlplane/access"
)

// newAPI starts the OpenAPI document. huma's own routes, and the links to schemas that
// it adds to answers, are disabled: Server serves the document itself, as a whole.
func newAPI(r chi.Router, version string) huma.API {
	config := huma.DefaultConfig("code-sous", version)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: decodeJSON}
	config.Formats = map[string]huma.Format{ContentTypeJSON: format, "json": format} // also for types that end in +json
	config.Info.Description = "Publish JavaScript and TypeScript functions and invoke them. " +
		"Requests say who sends them: Authorization: Bearer <API key>. " +
		"Errors are application/problem+json; docs/errors.md lists their codes."
	config.Info.License = &huma.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"}
	config.Servers = []*huma.Server{{URL: "/", Description: "The server that this document comes from"}}
	config.Tags = documentTags()
	config.Components.Responses = problemResponses(config.Components.Schemas)
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		securityBearer: {Type: "http", Scheme: "bearer", BearerFormat: "API key", Description: "An API key, if the server requires keys."},
		securityRunner: {Type: "http", Scheme: "bearer", Description: "The runners' token, RUNNER_STORAGE_API_TOKEN of the server."},
	}
	return humachi.New(r, config)
}

// maxDecoded bounds the decoded form of a body, in bytes: 100,000 numbers.
const maxDecoded = 4 << 20

// decodeJSON is json.Unmarshal with an error for numbers that does not mention Go
// types: the schema admits 1e3 as an integer, and any number of digits.
//
// The decoded form is bounded: huma decodes a body without a type first, and reports each value that
// the schema does not admit.
func decodeJSON(data []byte, v any) error {
	if !jsonsize.Fits(data, reflect.TypeOf(v), maxDecoded) {
		return errors.New("it has more values than a request may have")
	}
	err := json.Unmarshal(data, v)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return fmt.Errorf("%s cannot be the %s: an integer has neither fraction nor exponent, and at most 64 bits", mismatch.Value, cmp.Or(mismatch.Field, "field's value"))
	}
	return err
}

// adapterOn returns an adapter by which huma registers routes on r, behind its
// middleware.
func adapterOn(r chi.Router) huma.Adapter { return humachi.NewAdapter(r) }

// typedAPI registers the routes of Operations, on a router of their own.
type typedAPI struct {
	huma.API
	adapter huma.Adapter
}

// Adapter returns the router for huma.
func (t typedAPI) Adapter() huma.Adapter { return t.adapter }

// content describes a body of several content types.
func content(registry huma.Registry, types Content) map[string]*huma.MediaType {
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

// PathParameter describes a parameter of a path.
func PathParameter(name string, schema *huma.Schema) *huma.Param {
	return &huma.Param{Name: name, In: "path", Required: true, Schema: schema}
}

// QueryParameter describes a parameter of a query.
func QueryParameter(name, description string, schema *huma.Schema) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: schema}
}

// HeaderParameter describes a header of a request.
func HeaderParameter(name, description string) *huma.Param {
	return &huma.Param{Name: name, In: "header", Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
}

// The document's names for API keys and for the runners' token.
const (
	securityBearer = "bearer"
	securityRunner = "runner"
)

// secure adds to the document which routes need a key or a token. A function decides
// whether its endpoint, which is none of the routes, needs a key.
func (s *Server) secure(op *huma.Operation, route *Route) {
	switch {
	case route == nil:
		op.Security = []map[string][]string{{securityBearer: {}}, {}}
	case route.Action == access.Public:
		op.Security = []map[string][]string{}
	case route.Action == access.Runner:
		op.Security = []map[string][]string{{securityRunner: {}}}
	default:
		op.Security = []map[string][]string{{securityBearer: {}}}
	}
}

// completeDocument adds to the document what huma cannot derive.
func (s *Server) completeDocument(a huma.API) {
	document := a.OpenAPI()
	for _, op := range s.direct.Operations {
		described := *op
		document.AddOperation(&described)
	}
	for path, item := range document.Paths {
		for _, op := range operations(item) {
			route := s.routes[op.Method+" "+path]
			s.secure(op, route)
			declareProblems(op, route)
		}
	}
	schemas := document.Components.Schemas.Map()
	// Only a put has a value. huma derives the field from DocumentItem, where it is required.
	step := schemas["DocumentStep"]
	step.Required = slices.DeleteFunc(step.Required, func(name string) bool { return name == "value" })
	// huma has no nullable references.
	for schema, field := range map[string]string{"Activation": "error", "FunctionCalls": "last_failure"} {
		properties := schemas[schema].Properties
		properties[field] = &huma.Schema{OneOf: []*huma.Schema{properties[field], {Type: "null"}}}
	}
}

// openapiJSON returns the document as JSON.
func openapiJSON(document *huma.OpenAPI) ([]byte, error) {
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("rest: encode the OpenAPI document: %w", err)
	}
	return raw, nil
}

// The kinds of names that several paths share, each with its pattern in the document.
// The path's Resolve refuses a name that does not match, with CodeValidationName.
type (
	// TenantName is a tenant in a path.
	TenantName string
	// ResourceName is a namespace, a function or another resource that is named alike.
	ResourceName string
)

// PatternSchema returns the schema of strings that match a pattern as a whole.
func PatternSchema(pattern string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^" + pattern + "$"}
}

// Schema returns the pattern of tenants.
func (TenantName) Schema(huma.Registry) *huma.Schema { return PatternSchema(api.TenantPattern) }

// Schema returns the pattern of namespaces and functions.
func (ResourceName) Schema(huma.Registry) *huma.Schema { return PatternSchema(api.NamePattern) }

// The paths that resources of several kinds stand below.
const (
	PathTenant     = "/v1/tenants/{tenant}"
	PathNamespaces = PathTenant + "/namespaces"
	PathNamespace  = PathNamespaces + "/{namespace}"
)

// TenantPath holds the parameters of PathTenant, T in docs/api.md.
type TenantPath struct {
	Tenant TenantName `path:"tenant"`
}

// NamespacePath holds the parameters of PathNamespace, N in docs/api.md.
type NamespacePath struct {
	TenantPath
	Namespace ResourceName `path:"namespace"`
}

// Resolve refuses a tenant that does not match its pattern.
func (p *TenantPath) Resolve(huma.Context) []error {
	return Problems(api.ValidateTenant(string(p.Tenant)))
}

// Resolve refuses a name out of its pattern.
func (p *NamespacePath) Resolve(huma.Context) []error {
	return Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("namespace", string(p.Namespace)))
}

// Problems returns those errs that are not nil, for a Resolve method.
func Problems(errs ...error) []error {
	var found []error
	for _, err := range errs {
		if err != nil {
			found = append(found, err)
		}
	}
	return found
}
