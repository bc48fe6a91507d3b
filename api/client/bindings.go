package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/codesous/sous/api"
)

// CreateBinding makes a Cadence worker binding. CodeBindingExists, CodeFunctionNotFound
// and the like for its functions.
func (n *Namespace) CreateBinding(ctx context.Context, b api.NewBinding) (api.BindingStatus, error) {
	var out api.BindingStatus
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodPost, path: n.path("cadence", "workers")}, b, &out)
	return out, err
}

// Bindings gives one page of the namespace's Cadence worker bindings, by name, with how
// they get on.
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

// request is one about the binding; with revision, where that is not 0, only if the
// binding has it.
func (b *Binding) request(method string, revision int64) *request {
	r := &request{method: method, path: b.namespace.path("cadence", "workers", b.name), header: http.Header{}}
	if revision != 0 {
		r.header.Set("If-Match", strconv.Quote(strconv.FormatInt(revision, 10)))
	}
	return r
}

func (b *Binding) client() *Client { return b.namespace.tenant.c }

// BindingChange is what of a binding is to be another; nil leaves it.
type BindingChange struct {
	Domain      *string                  `json:"domain,omitempty"`
	Tasklist    *string                  `json:"tasklist,omitempty"`
	WorkerID    *string                  `json:"worker_id,omitempty"`
	ActivityMap map[string]api.JobTarget `json:"activity_map,omitempty"` // the whole of it
	Pollers     *api.BindingPollers      `json:"pollers,omitempty"`
	Limits      *api.BindingLimits       `json:"limits,omitempty"`
	Enabled     *bool                    `json:"enabled,omitempty"`
	// Without are the names of fields that get their default.
	Without []string `json:"-"`
	// IfMatch, where not 0, is the revision that the binding must have now.
	IfMatch int64 `json:"-"`
}

// MarshalJSON gives the fields that are set, and null for those of Without.
func (c BindingChange) MarshalJSON() ([]byte, error) {
	type plain BindingChange // without this method
	raw, err := api.EncodeJSON(plain(c))
	if err != nil || len(c.Without) == 0 {
		return raw, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	for _, name := range c.Without {
		fields[name] = json.RawMessage("null")
	}
	return api.EncodeJSON(fields)
}

// Get gives the binding and how its workers get on. CodeBindingNotFound.
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

// Delete removes the binding; with ifMatch, where that is not 0, only if it has this
// revision. CodeBindingNotFound, CodePreconditionFailed.
func (b *Binding) Delete(ctx context.Context, ifMatch int64) error {
	_, err := b.client().call(ctx, b.request(http.MethodDelete, ifMatch), nil, nil)
	return err
}
