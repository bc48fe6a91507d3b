package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/codesous/sous/api"
)

// ActivationFilter narrows a list of activations. Zero values match everything; a Function
// needs its Namespace.
type ActivationFilter struct {
	Namespace string
	Function  string
	ID        string // the beginning or the end of the id, at least 4 characters
	Status    api.Status
	Trigger   string // one of the api.Trigger… types
	FromMS    int64  // start_ms at or after
	ToMS      int64  // start_ms before
}

// Activations returns one page of activations, newest first. A page
// may be shorter than its limit and still have a cursor.
func (t *Tenant) Activations(ctx context.Context, f ActivationFilter, o PageOptions) (api.Page[api.Activation], error) {
	q := o.query()
	for name, value := range map[string]string{
		"namespace": f.Namespace, "function": f.Function, "id": f.ID, "status": string(f.Status), "trigger": f.Trigger,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.FromMS != 0 {
		q.Set("from_ms", strconv.FormatInt(f.FromMS, 10))
	}
	if f.ToMS != 0 {
		q.Set("to_ms", strconv.FormatInt(f.ToMS, 10))
	}
	var out api.Page[api.Activation]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("activations"), query: q}, nil, &out)
	return out, err
}

// Activation returns one activation with its result. CodeActivationNotFound.
func (t *Tenant) Activation(ctx context.Context, id string) (api.Activation, error) {
	var out api.Activation
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("activations", id)}, nil, &out)
	return out, err
}

// CancelActivation ends a queued or running activation.
// CodeActivationNotFound, CodeActivationTerminal.
func (t *Tenant) CancelActivation(ctx context.Context, id string) (api.Activation, error) {
	var out api.Activation
	_, err := t.c.call(ctx, &request{method: http.MethodPost, path: t.path("activations", id) + ":cancel"}, nil, &out)
	return out, err
}
