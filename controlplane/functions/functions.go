package functions

import (
	"context"
	"net/http"
	"regexp"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/traffic"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathFunctions = rest.PathNamespace + "/functions"
	pathFunction  = pathFunctions + "/{function}"
	pathCalls     = pathFunctions + ":calls"
)

// FunctionPath holds the parameters of a function's path, F in docs/api.md. Inputs of
// Operations embed it; huma fills it from the path's parameters and calls Resolve before the
// handler. Handle routes read the same names with rest.PathParam.
type FunctionPath struct {
	rest.NamespacePath
	Function rest.ResourceName `path:"function"`
}

// Resolve refuses a name that does not match its pattern.
func (p *FunctionPath) Resolve(huma.Context) []error {
	return rest.Problems(rest.ValidateFunctionPath(p.names()))
}

// names returns the path's names as the repositories take them. Resolve has validated them.
func (p *FunctionPath) names() (tenant, namespace, function string) {
	return string(p.Tenant), string(p.Namespace), string(p.Function)
}

// functionParameters describes the parameters of a function's path, and more, for Handle
// routes. It is the counterpart of FunctionPath.
func functionParameters(more ...*huma.Param) []*huma.Param {
	return append([]*huma.Param{
		rest.PathParameter("tenant", rest.TenantName("").Schema(nil)),
		rest.PathParameter("namespace", rest.ResourceName("").Schema(nil)),
		rest.PathParameter("function", rest.ResourceName("").Schema(nil)),
	}, more...)
}

// createFunctionBody is the body of a request for a new function. Fields that are left
// out have the defaults of api.Function.
type createFunctionBody struct {
	Name        string            `json:"name" doc:"the name of the function in URLs"`
	Runtime     string            `json:"runtime,omitempty" doc:"cs-js"`
	Entry       string            `json:"entry,omitempty" doc:"the file to start from; function.js, else function.ts"`
	Handler     string            `json:"handler,omitempty" doc:"the export to call; default"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

type createFunctionInput struct {
	rest.NamespacePath
	Body createFunctionBody
}

type functionOutput struct{ Body api.Function }

// functionDetailOutput is a function with its latest version and its aliases. All versions
// and aliases have lists of their own.
type functionDetailOutput struct{ Body api.FunctionDetail }

// listFunctionsInput is a namespace and a page of its functions.
type listFunctionsInput struct {
	rest.NamespacePath
	rest.PageQuery
}

type functionInput struct{ FunctionPath }

// functionEndpoints declares the routes of function records. Function names share one URL
// space per namespace with deleted functions, which can be created again.
func (a *API) functionEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathFunctions, Action: access.FunctionCreate, Extent: rest.PathNamespaceOnly,
			ID: "create-function", Tag: "functions", Summary: "Create a function", Status: http.StatusCreated,
			Description: "The first function of a namespace creates it. A deleted function can be created again under its name, and has its versions and aliases again.",
		}, a.createFunction),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathFunctions, Action: access.FunctionRead, Extent: rest.PathNamespaceOnly,
			ID: "list-functions", Tag: "functions", Summary: "List a namespace's functions by name",
		}, a.listFunctions),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathCalls, Action: access.FunctionRead, Extent: rest.PathNamespaceOnly,
			ID: "list-function-calls", Tag: "functions", Summary: "List a namespace's functions by name, with aliases, calls and the last failure",
			Description: "The calls are those that ended in the current hour and the 23 hours before it. They are counted by each replica and written every 2 seconds, " +
				"so they are approximate: those of a killed replica's last seconds are missing.",
		}, a.listFunctionCalls),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathFunction, Action: access.FunctionRead, Extent: rest.PathNamespaceOnly,
			ID: "get-function", Tag: "functions", Summary: "Read a function with its latest version and its aliases",
		}, a.getFunction),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathFunction, Action: access.FunctionDelete, Extent: rest.PathNamespaceOnly,
			ID: "delete-function", Tag: "functions", Summary: "Delete a function", Description: "Later invocations answer 404; the versions stay.",
		}, a.deleteFunction),
	}
}

// createFunction creates a function, or revives a deleted one of that name with its
// versions and aliases. Errors: CodeFunctionExists, CodeInvalid, CodeValidationName.
func (a *API) createFunction(ctx context.Context, in *createFunctionInput) (*functionOutput, error) {
	if err := in.Body.validate(); err != nil {
		return nil, err
	}
	f, err := a.functions.Create(ctx, api.Function{
		Tenant:      string(in.Tenant),
		Namespace:   string(in.Namespace),
		Name:        in.Body.Name,
		Runtime:     api.RuntimeJS,
		Entry:       orDefault(in.Body.Entry, api.DefaultEntry),
		Handler:     orDefault(in.Body.Handler, api.DefaultHandler),
		Description: in.Body.Description,
		Labels:      in.Body.Labels,
		CreatedAtMS: a.clock().UnixMilli(),
	})
	if err != nil {
		return nil, err
	}
	rest.NoteMade(ctx, f.Name)
	// It may be a deleted function that was created again.
	a.engine.FunctionChanged(ctx, f.Tenant, f.Namespace, f.Name)
	return &functionOutput{Body: f}, nil
}

// handlerRE matches names of exports: ASCII identifiers of at most 64 characters.
var handlerRE = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]{0,63}$`)

// validate checks the fields of a new function. Empty ones are valid: they have defaults.
// Errors: CodeInvalid, CodeValidationName.
func (b *createFunctionBody) validate() error {
	if err := api.ValidateName("name", b.Name); err != nil {
		return err
	}
	switch {
	case b.Runtime != "" && b.Runtime != api.RuntimeJS:
		return api.InvalidField("runtime", "must be "+api.RuntimeJS)
	case b.Entry != "" && bundle.PathRefusal(b.Entry) != "":
		return api.InvalidField("entry", bundle.PathRefusal(b.Entry))
	case b.Handler != "" && !handlerRE.MatchString(b.Handler):
		return api.InvalidField("handler", "must be the name of an export")
	case utf8.RuneCountInString(b.Description) > api.MaxDescriptionLength:
		return api.InvalidField("description", "is too long")
	case len(b.Labels) > api.MaxLabels:
		return api.InvalidField("labels", "are too many")
	}
	for name, value := range b.Labels {
		if name == "" || utf8.RuneCountInString(name) > api.MaxLabelLength || utf8.RuneCountInString(value) > api.MaxLabelLength {
			return api.InvalidField("labels", "must have names and values of at most 128 characters")
		}
	}
	return nil
}

func orDefault(value, standard string) string {
	if value == "" {
		return standard
	}
	return value
}

// listFunctions answers with a page of a namespace's functions by name, without the
// deleted ones. A namespace that does not exist is empty.
func (a *API) listFunctions(ctx context.Context, in *listFunctionsInput) (*rest.PageOutput[api.Function], error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	return rest.ReadPage(rest.ListScope("functions", tenant, namespace), in.Cursor, func(after string) ([]api.Function, string, error) {
		return a.functions.List(ctx, tenant, namespace, after, in.Limit)
	})
}

// listFunctionCalls answers with a page of a namespace's functions by name, each as a summary
// (storage.Functions.Summaries) with its calls: all of this replica, and those of others until
// their last flush.
func (a *API) listFunctionCalls(ctx context.Context, in *listFunctionsInput) (*rest.PageOutput[traffic.FunctionCalls], error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	return rest.ReadPage(rest.ListScope("function-calls", tenant, namespace), in.Cursor, func(after string) ([]traffic.FunctionCalls, string, error) {
		items, next, err := a.functions.Summaries(ctx, tenant, namespace, after, in.Limit)
		if err != nil {
			return nil, "", err
		}
		a.counter.FlushCalls(ctx, tenant, namespace)
		return items, next, a.calls.Add(ctx, tenant, namespace, items)
	})
}

// getFunction answers with a function, its latest version and at most api.MaxPageLimit of
// its aliases.
func (a *API) getFunction(ctx context.Context, in *functionInput) (*functionDetailOutput, error) {
	tenant, namespace, function := in.names()
	detail, err := a.functions.Detail(ctx, tenant, namespace, function)
	if err != nil {
		return nil, err
	}
	if detail.Aliases == nil {
		detail.Aliases = []api.Alias{}
	}
	return &functionDetailOutput{Body: detail}, nil
}

// deleteFunction hides a function and drops it from the caches of all replicas. Its
// versions stay. Runs in progress continue; queued invocations end as refused. Errors:
// CodeFunctionNotFound, CodeStoreConflict.
func (a *API) deleteFunction(ctx context.Context, in *functionInput) (*struct{}, error) {
	tenant, namespace, function := in.names()
	if err := a.functions.Delete(ctx, tenant, namespace, function, a.clock().UnixMilli()); err != nil {
		return nil, err
	}
	a.engine.FunctionChanged(ctx, tenant, namespace, function)
	return nil, nil
}
