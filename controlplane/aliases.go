package controlplane

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
)

const (
	pathAliases = pathFunction + "/aliases"
	pathAlias   = pathAliases + "/{alias}"
)

// AliasPath is the path of an alias.
type AliasPath struct {
	FunctionPath
	Alias aliasName `path:"alias"`
}

// Resolve refuses a name out of its pattern.
func (p *AliasPath) Resolve(huma.Context) []error {
	return problems(validateFunctionPath(p.names()), api.ValidateAlias(string(p.Alias)))
}

// Condition is the precondition of a write.
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
	PageQuery
}

type aliasPageOutput struct{ Body api.Page[api.Alias] }

func (s *Server) routeAliases(t typedAPI) {
	tags := []string{"aliases"}
	register(t, huma.Operation{
		OperationID: "set-alias", Method: http.MethodPut, Path: pathAlias, Tags: tags,
		Summary:     "Point an alias at a version",
		Description: "If-Match with the version that the alias points at now, as its ETag, guards the write; If-None-Match: * only makes new ones.",
	}, s.setAlias)
	register(t, huma.Operation{
		OperationID: "list-aliases", Method: http.MethodGet, Path: pathAliases, Tags: tags,
		Summary: "List a function's aliases by name",
	}, s.listAliases)
	register(t, huma.Operation{
		OperationID: "get-alias", Method: http.MethodGet, Path: pathAlias, Tags: tags,
		Summary: "Read an alias", Description: "The ETag is the version that it points at.",
	}, s.getAlias)
	register(t, huma.Operation{
		OperationID: "delete-alias", Method: http.MethodDelete, Path: pathAlias, Tags: tags,
		Summary: "Delete an alias",
	}, s.deleteAlias)
}

// answerAlias gives an alias under its ETag, the version that it points at.
func answerAlias(a api.Alias) *aliasOutput {
	return &aliasOutput{ETag: `"` + strconv.FormatInt(a.Version, 10) + `"`, Body: a}
}

func (s *Server) setAlias(ctx context.Context, in *setAliasInput) (*aliasOutput, error) {
	tenant, namespace, function := in.names()
	match, err := s.matchAlias(ctx, &in.AliasPath, &in.Condition)
	if err != nil {
		return nil, err
	}
	a, err := s.aliases.Set(ctx, tenant, namespace, function, string(in.Alias), in.Body.Version, match, s.now())
	if match != nil && *match == 0 && api.ErrorCode(err) == api.CodePreconditionFailed {
		err = api.Errorf(api.CodePreconditionFailed, "the alias exists, and If-None-Match says that it must not")
	}
	if err != nil {
		return nil, err
	}
	s.engine.Invalidate(ctx, tenant, namespace, function)
	return answerAlias(a), nil
}

func (s *Server) getAlias(ctx context.Context, in *aliasInput) (*aliasOutput, error) {
	tenant, namespace, function := in.names()
	a, err := s.aliases.Get(ctx, tenant, namespace, function, string(in.Alias))
	if err != nil {
		return nil, err
	}
	return answerAlias(a), nil
}

func (s *Server) deleteAlias(ctx context.Context, in *deleteAliasInput) (*struct{}, error) {
	tenant, namespace, function := in.names()
	match, err := s.matchAlias(ctx, &in.AliasPath, &in.Condition)
	if err != nil {
		return nil, err
	}
	if err := s.aliases.Delete(ctx, tenant, namespace, function, string(in.Alias), match); err != nil {
		return nil, err
	}
	s.engine.Invalidate(ctx, tenant, namespace, function)
	return nil, nil
}

func (s *Server) listAliases(ctx context.Context, in *listAliasesInput) (*aliasPageOutput, error) {
	tenant, namespace, function := in.names()
	list := listScope("aliases", tenant, namespace, function)
	after, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.aliases.List(ctx, tenant, namespace, function, after, in.Limit)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 && after == "" {
		if _, err := s.functions.Get(ctx, tenant, namespace, function); err != nil {
			return nil, err
		}
	}
	return &aliasPageOutput{Body: page(items, list.seal(next))}, nil
}

// matchAlias turns a precondition into the version that the alias must point at
// when the write happens: nil for none, 0 for an alias that must not exist.
// Errors: CodePreconditionFailed, CodeValidation.
func (s *Server) matchAlias(ctx context.Context, p *AliasPath, c *Condition) (*int64, error) {
	switch {
	case c.IfMatch == "" && c.IfNoneMatch == "":
		return nil, nil //nolint:nilnil // documented: no precondition
	case c.IfMatch == "" && strings.TrimSpace(c.IfNoneMatch) == "*":
		return new(int64), nil
	case c.IfMatch == "":
		return nil, fieldError("If-None-Match", "must be *")
	case c.IfNoneMatch != "":
		return nil, fieldError("If-None-Match", "cannot stand beside If-Match")
	}
	// The header may name several tags, or any: which of them holds is read
	// first, and the write is guarded by that one.
	tenant, namespace, function := p.names()
	current, err := s.aliases.Get(ctx, tenant, namespace, function, string(p.Alias))
	if err != nil && api.ErrorCode(err) != api.CodeAliasNotFound {
		return nil, err
	}
	if err == nil && namesTag(c.IfMatch, answerAlias(current).ETag) {
		return &current.Version, nil
	}
	return nil, api.Errorf(api.CodePreconditionFailed, "the alias does not have the ETag that If-Match names")
}

// namesTag says whether an If-Match names tag; a weak tag never does.
func namesTag(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		if candidate = strings.TrimSpace(candidate); candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}
