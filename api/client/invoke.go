package client

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/codesous/sous/api"
)

// InvokeOptions is one synchronous invocation. A nil Event is null.
type InvokeOptions struct {
	Ref   api.Ref
	Event json.RawMessage
	// IdempotencyKey makes the call safe to repeat: the server runs it once and
	// gives the same outcome to every call with the same key, ref and event.
	IdempotencyKey string
}

// Invoked is a terminal activation as its caller sees it.
type Invoked struct {
	api.InvokeResponse
	Replayed bool // the outcome of an earlier call with the same key
}

const modeSync = "sync"

// Invoke runs the function and waits for its end. That the function failed is
// not an error: Status says it. CodeFunctionNotFound, CodeVersionNotFound,
// CodeAliasNotFound, CodeConcurrencyLimit, CodeIdempotencyRunning,
// CodeIdempotencyMismatch.
func (f *Function) Invoke(ctx context.Context, o InvokeOptions) (Invoked, error) {
	r := &request{method: http.MethodPost, path: f.path() + ":invoke", header: http.Header{}}
	if o.IdempotencyKey != "" {
		r.header.Set("Idempotency-Key", o.IdempotencyKey)
	}
	var out Invoked
	in := api.InvokeRequest{Ref: o.Ref, Mode: modeSync, Event: o.Event}
	a, err := f.client().call(ctx, r, in, &out.InvokeResponse)
	if err != nil {
		return Invoked{}, err
	}
	out.Replayed = a.header.Get("Idempotent-Replayed") == "true"
	return out, nil
}
