package controlplane

import (
	"context"
	"net/http"
	"regexp"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
)

const (
	pathTenant     = "/v1/tenants/{tenant}"
	pathNamespaces = pathTenant + "/namespaces"
	pathFunctions  = pathNamespaces + "/{namespace}/functions"
	pathFunction   = pathFunctions + "/{function}"
	pathLimits     = "/v1/limits"
)

// createFunctionBody is what a new function is told; what is left out has the
// defaults of api.Function.
type createFunctionBody struct {
	Name        string            `json:"name" doc:"what the function is called in URLs"`
	Runtime     string            `json:"runtime,omitempty" doc:"cs-js"`
	Entry       string            `json:"entry,omitempty" doc:"the file to start from; function.js, else function.ts"`
	Handler     string            `json:"handler,omitempty" doc:"the export to call; default"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

type createFunctionInput struct {
	NamespacePath
	Body createFunctionBody
}

type functionOutput struct{ Body api.Function }

type functionDetailOutput struct{ Body api.FunctionDetail }

type listFunctionsInput struct {
	NamespacePath
	PageQuery
}

type functionInput struct{ FunctionPath }

type functionPageOutput struct{ Body api.Page[api.Function] }

func (s *Server) routeFunctions(t typedAPI) {
	tags := []string{"functions"}
	register(t, huma.Operation{
		OperationID: "create-function", Method: http.MethodPost, Path: pathFunctions, Tags: tags,
		Summary: "Create a function", DefaultStatus: http.StatusCreated,
		Description: "The namespace comes into being with its first function. The name of a deleted function can be created again: it revives with its versions and aliases.",
	}, s.createFunction)
	register(t, huma.Operation{
		OperationID: "list-functions", Method: http.MethodGet, Path: pathFunctions, Tags: tags,
		Summary: "List a namespace's functions by name",
	}, s.listFunctions)
	register(t, huma.Operation{
		OperationID: "get-function", Method: http.MethodGet, Path: pathFunction, Tags: tags,
		Summary: "Read a function with its latest version and its aliases",
	}, s.getFunction)
	register(t, huma.Operation{
		OperationID: "delete-function", Method: http.MethodDelete, Path: pathFunction, Tags: tags,
		Summary: "Delete a function", Description: "Invokes answer 404 from then on; its versions stay.",
	}, s.deleteFunction)
}

func (s *Server) createFunction(ctx context.Context, in *createFunctionInput) (*functionOutput, error) {
	if err := in.Body.validate(); err != nil {
		return nil, err
	}
	f, err := s.functions.Create(ctx, api.Function{
		Tenant:      string(in.Tenant),
		Namespace:   string(in.Namespace),
		Name:        in.Body.Name,
		Runtime:     api.RuntimeJS,
		Entry:       orDefault(in.Body.Entry, api.DefaultEntry),
		Handler:     orDefault(in.Body.Handler, api.DefaultHandler),
		Description: in.Body.Description,
		Labels:      in.Body.Labels,
		CreatedAtMS: s.now(),
	})
	if err != nil {
		return nil, err
	}
	noteMade(ctx, f.Name)
	// It may be a deleted function that revives.
	s.engine.Invalidate(ctx, f.Tenant, f.Namespace, f.Name)
	return &functionOutput{Body: f}, nil
}

var handlerRE = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]{0,63}$`)

// validate refuses what no function can be called or told.
func (b *createFunctionBody) validate() error {
	if err := api.ValidateName("name", b.Name); err != nil {
		return err
	}
	switch {
	case b.Runtime != "" && b.Runtime != api.RuntimeJS:
		return fieldError("runtime", "must be "+api.RuntimeJS)
	case b.Entry != "" && bundle.PathRefusal(b.Entry) != "":
		return fieldError("entry", bundle.PathRefusal(b.Entry))
	case b.Handler != "" && !handlerRE.MatchString(b.Handler):
		return fieldError("handler", "must be the name of an export")
	case utf8.RuneCountInString(b.Description) > api.MaxDescriptionLength:
		return fieldError("description", "is too long")
	case len(b.Labels) > api.MaxLabels:
		return fieldError("labels", "are too many")
	}
	for name, value := range b.Labels {
		if name == "" || utf8.RuneCountInString(name) > api.MaxLabelLength || utf8.RuneCountInString(value) > api.MaxLabelLength {
			return fieldError("labels", "must have names and values of at most 128 characters")
		}
	}
	return nil
}

func fieldError(path, why string) error {
	return api.Errorf(api.CodeValidation, "%s %s", path, why).WithFields(api.FieldError{Path: path, Message: why})
}

func orDefault(value, standard string) string {
	if value == "" {
		return standard
	}
	return value
}

func (s *Server) listFunctions(ctx context.Context, in *listFunctionsInput) (*functionPageOutput, error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	list := listScope("functions", tenant, namespace)
	after, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.functions.List(ctx, tenant, namespace, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return &functionPageOutput{Body: page(items, list.seal(next))}, nil
}

func (s *Server) getFunction(ctx context.Context, in *functionInput) (*functionDetailOutput, error) {
	tenant, namespace, function := in.names()
	detail, err := s.functions.Detail(ctx, tenant, namespace, function)
	if err != nil {
		return nil, err
	}
	if detail.Aliases == nil {
		detail.Aliases = []api.Alias{}
	}
	return &functionDetailOutput{Body: detail}, nil
}

func (s *Server) deleteFunction(ctx context.Context, in *functionInput) (*struct{}, error) {
	tenant, namespace, function := in.names()
	if err := s.functions.Delete(ctx, tenant, namespace, function, s.now()); err != nil {
		return nil, err
	}
	s.engine.Invalidate(ctx, tenant, namespace, function)
	return nil, nil
}
