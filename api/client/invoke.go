package client

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/codesous/sous/api"
)

// InvokeOptions are the parameters of one invocation. A nil Event is null.
type InvokeOptions struct {
	Ref   api.Ref
	Event json.RawMessage
	// IdempotencyKey makes the call safe to repeat: the server runs it once and
	// returns the same outcome to every call with the same key, ref and event.
	IdempotencyKey string
}

// Invoked is a terminal activation as its caller sees it.
type Invoked struct {
	api.InvokeResponse
	Replayed bool // the outcome of an earlier call with the same key
}

// Invoke runs the function and waits for its end. A failure of the function is not an
// error; see Status. CodeFunctionNotFound, CodeVersionNotFound,
// CodeAliasNotFound, CodeConcurrencyLimit, CodeIdempotencyRunning,
// CodeIdempotencyMismatch.
func (f *Function) Invoke(ctx context.Context, o InvokeOptions) (Invoked, error) {
	r := f.invokeRequest(o)
	var out Invoked
	in := api.InvokeRequest{Ref: o.Ref, Mode: api.ModeSync, Event: o.Event}
	a, err := f.client().call(ctx, r, in, &out.InvokeResponse)
	if err != nil {
		return Invoked{}, err
	}
	out.Replayed = replayed(a)
	return out, nil
}

// Enqueue requests an asynchronous invocation, which is retried by the configuration of
// its version; Tenant.Activation returns its outcome. A repeat under an idempotency key
// returns the first call's activation with its current status. Its errors are those of
// Invoke without the limits, and CodeQueueDraining.
func (f *Function) Enqueue(ctx context.Context, o InvokeOptions) (api.Queued, error) {
	var out api.Queued
	a, err := f.client().call(ctx, f.invokeRequest(o), api.InvokeRequest{Ref: o.Ref, Mode: api.ModeAsync, Event: o.Event}, &out)
	if err != nil {
		return api.Queued{}, err
	}
	out.Replayed = replayed(a)
	return out, nil
}

func (f *Function) invokeRequest(o InvokeOptions) *request {
	r := &request{method: http.MethodPost, path: f.path() + ":invoke", header: http.Header{}}
	if o.IdempotencyKey != "" {
		r.header.Set("Idempotency-Key", o.IdempotencyKey)
	}
	return r
}

func replayed(a *answer) bool { return a.header.Get("Idempotent-Replayed") == "true" }
