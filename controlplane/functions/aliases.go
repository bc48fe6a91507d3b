package functions

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathAliases = pathFunction + "/aliases"
	pathAlias   = pathAliases + "/{alias}"
)

type aliasName string

// Schema returns the pattern of aliases.
func (aliasName) Schema(huma.Registry) *huma.Schema { return rest.PatternSchema(api.AliasPattern) }

// AliasPath holds the parameters of an alias's path. The alias need not exist.
type AliasPath struct {
	FunctionPath
	Alias aliasName `path:"alias"`
}

// Resolve refuses a name that does not match its pattern.
func (p *AliasPath) Resolve(huma.Context) []error {
	return rest.Problems(rest.ValidateFunctionPath(p.names()), api.ValidateAlias(string(p.Alias)))
}

// Condition holds the precondition of a write. At most one of the two may be set. An alias
// has no revision: its ETag is the version that it points at, so a move from 3 to 4 and
// back to 3 satisfies If-Match: "3" again.
type Condition struct {
	IfMatch     string `header:"If-Match" doc:"the ETag that the alias must have now"`
	IfNoneMatch string `header:"If-None-Match" doc:"* if the alias must not exist"`
}

type setAliasBody struct {
	Version int64 `json:"version" minimum:"1" doc:"a version that exists"`
}

type setAliasInput struct {
	AliasPath
	Condition
	Body setAliasBody
}

type aliasInput struct{ AliasPath }

type deleteAliasInput struct {
	AliasPath
	Condition
}

type aliasOutput struct {
	ETag string `header:"ETag"`
	Body api.Alias
}

type listAliasesInput struct {
	FunctionPath
	rest.PageQuery
}

// aliasEndpoints declares the routes of aliases. Setting and deleting one is an action of its
// own, cs:function:alias:set, so that operators can roll back without the right to publish.
func (a *API) aliasEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPut, Path: pathAlias, Action: access.AliasSet, Extent: rest.PathNamespaceOnly,
			ID: "set-alias", Tag: "aliases", Summary: "Point an alias at a version",
			Description: "If-Match with the version that the alias points at now, as its ETag, guards the write; If-None-Match: * only creates.",
		}, a.setAlias),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathAliases, Action: access.FunctionRead, Extent: rest.PathNamespaceOnly,
			ID: "list-aliases", Tag: "aliases", Summary: "List a function's aliases by name",
		}, a.listAliases),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathAlias, Action: access.FunctionRead, Extent: rest.PathNamespaceOnly,
			ID: "get-alias", Tag: "aliases", Summary: "Read an alias", Description: "The ETag is the version that it points at.",
		}, a.getAlias),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathAlias, Action: access.AliasSet, Extent: rest.PathNamespaceOnly,
			ID: "delete-alias", Tag: "aliases", Summary: "Delete an alias",
		}, a.deleteAlias),
	}
}

// answerAlias answers with an alias. Its ETag is the version that it points at.
func answerAlias(a api.Alias) *aliasOutput {
	return &aliasOutput{ETag: rest.RevisionTag(a.Version), Body: a}
}

// setAlias points an alias at a version, and drops the function from the caches of all
// replicas. A deployment that must not overwrite another one:
//
//	GET F/aliases/prod                                200, ETag: "3"
//	PUT F/aliases/prod, If-Match: "3", {"version":4}  200, ETag: "4"
//	the same from another client, {"version":5}       412 CS_PRECONDITION_FAILED
//
// Errors: CodeFunctionNotFound, CodeVersionNotFound, CodePreconditionFailed, CodeInvalid.
func (a *API) setAlias(ctx context.Context, in *setAliasInput) (*aliasOutput, error) {
	tenant, namespace, function := in.names()
	match, err := a.matchAlias(ctx, &in.AliasPath, &in.Condition)
	if err != nil {
		return nil, err
	}
	set, err := a.aliases.Set(ctx, tenant, namespace, function, string(in.Alias), in.Body.Version, match, a.clock().UnixMilli())
	if match != nil && *match == 0 && api.ErrorCode(err) == api.CodePreconditionFailed {
		err = api.Errorf(api.CodePreconditionFailed, "the alias exists, and If-None-Match says that it must not")
	}
	if err != nil {
		return nil, err
	}
	a.engine.FunctionChanged(ctx, tenant, namespace, function)
	return answerAlias(set), nil
}

// getAlias answers with an alias, uncached. Errors: CodeAliasNotFound, CodeFunctionNotFound.
func (a *API) getAlias(ctx context.Context, in *aliasInput) (*aliasOutput, error) {
	tenant, namespace, function := in.names()
	found, err := a.aliases.Get(ctx, tenant, namespace, function, string(in.Alias))
	if api.ErrorCode(err) == api.CodeAliasNotFound {
		if _, missing := a.functions.Get(ctx, tenant, namespace, function); missing != nil {
			return nil, missing
		}
	}
	if err != nil {
		return nil, err
	}
	return answerAlias(found), nil
}

// deleteAlias deletes an alias, and drops the function from the caches of all replicas, so
// that its next invocation gets CodeAliasNotFound. Errors: CodeAliasNotFound,
// CodePreconditionFailed, CodeInvalid.
func (a *API) deleteAlias(ctx context.Context, in *deleteAliasInput) (*struct{}, error) {
	tenant, namespace, function := in.names()
	match, err := a.matchAlias(ctx, &in.AliasPath, &in.Condition)
	if err != nil {
		return nil, err
	}
	if err := a.aliases.Delete(ctx, tenant, namespace, function, string(in.Alias), match); err != nil {
		return nil, err
	}
	a.engine.FunctionChanged(ctx, tenant, namespace, function)
	return nil, nil
}

// listAliases answers with a page of a function's aliases. An empty first page costs
// one more read, to tell a function without aliases from one that does not exist.
func (a *API) listAliases(ctx context.Context, in *listAliasesInput) (*rest.PageOutput[api.Alias], error) {
	tenant, namespace, function := in.names()
	return rest.ReadPage(rest.ListScope("aliases", tenant, namespace, function), in.Cursor, func(after string) ([]api.Alias, string, error) {
		items, next, err := a.aliases.List(ctx, tenant, namespace, function, after, in.Limit)
		if err == nil && len(items) == 0 && after == "" {
			_, err = a.functions.Get(ctx, tenant, namespace, function)
		}
		return items, next, err
	})
}

// matchAlias returns the version that the alias must point at when it is written: nil
// for any, 0 if the alias must not exist. Errors: CodePreconditionFailed,
// CodeInvalid.
//
//	If-Match  If-None-Match   result
//	                          nil
//	          *               0
//	"3", "4"                  the alias points at 3 now: 3; at 5: CodePreconditionFailed
//	*                         its present version
//	any       any             CodeInvalid
func (a *API) matchAlias(ctx context.Context, p *AliasPath, c *Condition) (*int64, error) {
	if err := rest.OnePrecondition(c.IfMatch, c.IfNoneMatch); err != nil {
		return nil, err
	}
	switch {
	case c.IfNoneMatch != "":
		return new(int64), nil
	case c.IfMatch == "":
		return nil, nil //nolint:nilnil // documented: no precondition
	}
	// The header may list several tags. The one that holds is read here, and guards the
	// write.
	tenant, namespace, function := p.names()
	current, err := a.aliases.Get(ctx, tenant, namespace, function, string(p.Alias))
	if err != nil && api.ErrorCode(err) != api.CodeAliasNotFound {
		return nil, err
	}
	if err == nil && rest.NamesTag(c.IfMatch, answerAlias(current).ETag) {
		return &current.Version, nil
	}
	return nil, api.Errorf(api.CodePreconditionFailed, "the alias does not have the ETag that If-Match names")
}
