package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
)

// CreateBinding creates a Cadence worker binding. CodeBindingExists; CodeFunctionNotFound,
// CodeAliasNotFound and CodeVersionNotFound for its targets.
func (n *Namespace) CreateBinding(ctx context.Context, b api.NewBinding) (api.BindingStatus, error) {
	var out api.BindingStatus
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodPost, path: n.path("cadence", "workers")}, b, &out)
	return out, err
}

// Bindings returns one page of the namespace's Cadence worker bindings, by name, with
// their status.
func (n *Namespace) Bindings(ctx context.Context, o PageOptions) (api.Page[api.BindingStatus], error) {
	var out api.Page[api.BindingStatus]
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodGet, path: n.path("cadence", "workers"), query: o.query()}, nil, &out)
	return out, err
}

// Binding is the handle of a Cadence worker binding.
func (n *Namespace) Binding(name string) *Binding { return &Binding{n, name} }

// Binding is one Cadence worker binding of a namespace.
type Binding struct {
	namespace *Namespace
	name      string
}

// request returns a request for the binding. If revision is not 0, the binding must
// have that revision.
func (b *Binding) request(method string, revision int64) *request {
	return &request{method: method, path: b.namespace.path("cadence", "workers", b.name), header: ifRevision(revision)}
}

func (b *Binding) client() *Client { return b.namespace.tenant.c }

// BindingChange is a partial update of a binding. A nil field is left unchanged.
type BindingChange struct {
	Domain      *string                  `json:"domain,omitempty"`
	Tasklist    *string                  `json:"tasklist,omitempty"`
	WorkerID    *string                  `json:"worker_id,omitempty"`
	ActivityMap map[string]api.JobTarget `json:"activity_map,omitempty"` // replaces the whole map
	Pollers     *api.BindingPollers      `json:"pollers,omitempty"`
	Limits      *api.BindingLimits       `json:"limits,omitempty"`
	Enabled     *bool                    `json:"enabled,omitempty"`
	// Without lists the names of fields that are set to their default.
	Without []string `json:"-"`
	// IfMatch is the revision that the binding must have, 0 for any.
	IfMatch int64 `json:"-"`
}

// MarshalJSON encodes the fields that are set, and null for those of Without.
func (c BindingChange) MarshalJSON() ([]byte, error) {
	type fields BindingChange // without this method
	return encodePatch(fields(c), c.Without)
}

// Get returns the binding and the state of its workers. CodeBindingNotFound.
func (b *Binding) Get(ctx context.Context) (api.BindingStatus, error) {
	var out api.BindingStatus
	_, err := b.client().call(ctx, b.request(http.MethodGet, 0), nil, &out)
	return out, err
}

// Update changes the binding. CodeBindingNotFound, CodePreconditionFailed.
func (b *Binding) Update(ctx context.Context, c BindingChange) (api.BindingStatus, error) {
	var out api.BindingStatus
	_, err := b.client().call(ctx, b.request(http.MethodPatch, c.IfMatch), c, &out)
	return out, err
}

// Delete removes the binding. If ifMatch is not 0, the binding must have that revision.
// CodeBindingNotFound, CodePreconditionFailed.
func (b *Binding) Delete(ctx context.Context, ifMatch int64) error {
	_, err := b.client().call(ctx, b.request(http.MethodDelete, ifMatch), nil, nil)
	return err
}
