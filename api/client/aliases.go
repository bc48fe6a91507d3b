package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/codesous/sous/api"
)

// AliasGuard makes a write of an alias conditional. The write succeeds only if the
// alias points at Version, or, with Absent, only if it does not exist. Otherwise it returns
// CodePreconditionFailed. Set one of them; the zero value sets no condition.
type AliasGuard struct {
	Version int64
	Absent  bool
}

func (g AliasGuard) header() http.Header {
	h := http.Header{}
	if g.Version != 0 {
		h.Set("If-Match", strconv.Quote(strconv.FormatInt(g.Version, 10)))
	}
	if g.Absent {
		h.Set("If-None-Match", "*")
	}
	return h
}

// SetAlias points alias at version. CodeVersionNotFound, CodePreconditionFailed.
func (f *Function) SetAlias(ctx context.Context, alias string, version int64, guard AliasGuard) (api.Alias, error) {
	in := struct {
		Version int64 `json:"version"`
	}{version}
	var out api.Alias
	r := &request{method: http.MethodPut, path: f.path("aliases", alias), header: guard.header()}
	_, err := f.client().call(ctx, r, in, &out)
	return out, err
}

// Alias returns one alias. CodeAliasNotFound.
func (f *Function) Alias(ctx context.Context, alias string) (api.Alias, error) {
	var out api.Alias
	_, err := f.client().call(ctx, &request{method: http.MethodGet, path: f.path("aliases", alias)}, nil, &out)
	return out, err
}

// Aliases returns one page of the function's aliases, by name.
func (f *Function) Aliases(ctx context.Context, o PageOptions) (api.Page[api.Alias], error) {
	var out api.Page[api.Alias]
	_, err := f.client().call(ctx, &request{method: http.MethodGet, path: f.path("aliases"), query: o.query()}, nil, &out)
	return out, err
}

// DeleteAlias removes alias. CodeAliasNotFound, CodePreconditionFailed.
func (f *Function) DeleteAlias(ctx context.Context, alias string, guard AliasGuard) error {
	r := &request{method: http.MethodDelete, path: f.path("aliases", alias), header: guard.header()}
	_, err := f.client().call(ctx, r, nil, nil)
	return err
}
