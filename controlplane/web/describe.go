package web

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/rest"
)

// describe returns the description of the endpoints in the OpenAPI document. A function
// answers with any status and any content type. OpenAPI has no parameter that spans several
// segments of a path, so {path} stands for all of them.
func describe() []*huma.Operation {
	var described []*huma.Operation
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		op := &huma.Operation{
			Method: method, Path: Prefix + "{tenant}/{namespace}/{function}/{alias}/{path}",
			OperationID: "web-" + strings.ToLower(method), Tags: []string{"web"},
			Summary: "Call a function by " + method,
			Description: "The function receives the request as an event and chooses the answer. The path may have any number of segments, or none. " +
				"A function may be public; otherwise the key needs cs:function:invoke.",
			Parameters: []*huma.Param{
				rest.PathParameter("tenant", rest.PatternSchema(api.TenantPattern)),
				rest.PathParameter("namespace", rest.PatternSchema(api.NamePattern)),
				rest.PathParameter("function", rest.PatternSchema(api.NamePattern)),
				rest.PathParameter("alias", &huma.Schema{Type: huma.TypeString, Description: "an alias, or the number of a version"}),
				rest.PathParameter("path", &huma.Schema{Type: huma.TypeString}),
			},
			Responses: map[string]*huma.Response{
				"2XX": {Description: "The answer of the function", Content: anything()},
				"3XX": {Description: "A redirect by the function", Content: anything()},
				"4XX": {Description: "A refusal by the function, or a problem of the platform", Content: anything()},
			},
		}
		if method != http.MethodGet && method != http.MethodDelete {
			op.RequestBody = &huma.RequestBody{Content: anything()}
		}
		described = append(described, op)
	}
	return described
}

// anything describes a body that the function or its caller chooses.
func anything() map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"*/*": {Schema: &huma.Schema{}}}
}
