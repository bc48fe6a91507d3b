package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/traffic"
)

// NewFunction is the request that creates a function. Empty fields take the server's
// defaults.
type NewFunction struct {
	Name        string            `json:"name"`
	Runtime     string            `json:"runtime,omitempty"`
	Entry       string            `json:"entry,omitempty"`
	Handler     string            `json:"handler,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// CreateFunction creates a function. CodeFunctionExists.
func (n *Namespace) CreateFunction(ctx context.Context, f NewFunction) (api.Function, error) {
	var out api.Function
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodPost, path: n.path("functions")}, f, &out)
	return out, err
}

// Functions returns one page of the namespace's functions, by name.
func (n *Namespace) Functions(ctx context.Context, o PageOptions) (api.Page[api.Function], error) {
	var out api.Page[api.Function]
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodGet, path: n.path("functions"), query: o.query()}, nil, &out)
	return out, err
}

// FunctionCalls returns one page of the namespace's functions, by name, with their aliases,
// their calls of the last 24 hours and their last failures.
func (n *Namespace) FunctionCalls(ctx context.Context, o PageOptions) (api.Page[traffic.FunctionCalls], error) {
	var out api.Page[traffic.FunctionCalls]
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodGet, path: n.path("functions") + ":calls", query: o.query()}, nil, &out)
	return out, err
}

// Function returns the handle of a function of n. It sends no request.
func (n *Namespace) Function(name string) *Function { return &Function{namespace: n, name: name} }

// Function is one function: its drafts, versions, aliases and invocations.
type Function struct {
	namespace *Namespace
	name      string
}

func (f *Function) client() *Client { return f.namespace.tenant.c }

func (f *Function) path(rest ...string) string {
	return f.namespace.path(append([]string{"functions", f.name}, rest...)...)
}

// Get returns the record with its latest version and aliases. CodeFunctionNotFound.
func (f *Function) Get(ctx context.Context) (api.FunctionDetail, error) {
	var out api.FunctionDetail
	_, err := f.client().call(ctx, &request{method: http.MethodGet, path: f.path()}, nil, &out)
	return out, err
}

// Delete deletes the function. Its versions are kept, and creating it again restores
// them. CodeFunctionNotFound.
func (f *Function) Delete(ctx context.Context) error {
	_, err := f.client().call(ctx, &request{method: http.MethodDelete, path: f.path()}, nil, nil)
	return err
}

// WebURL returns the URL of the function's HTTP endpoint under ref.
func (f *Function) WebURL(ref api.Ref) string {
	return f.client().base + joinPath("v1", "web", f.namespace.tenant.name, f.namespace.name, f.name, ref.String())
}
