package controlplane

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/codesous/sous/api"
)

// The modes of an invoke.
const (
	modeSync  = "sync"
	modeAsync = "async"
)

func (s *Server) routeInvoke(r chi.Router, a huma.API) {
	const path = pathFunction + ":invoke"
	request := map[string]any{contentTypeJSON: api.InvokeRequest{}}
	document(a, documented{
		method: http.MethodPost, path: path, id: "invoke-function", tag: "invoke",
		summary: "Invoke a function and wait for its end",
		description: "Answers 200 whenever the activation reached a terminal status, and says which. " +
			"event is any JSON value of at most 6 MiB, null if left out. With Idempotency-Key it is safe to repeat.",
		parameters: functionParameters(headerParameter("Idempotency-Key", "at most 255 bytes; a repeat gets the first answer")),
		request:    request,
		status:     http.StatusOK, answer: map[string]any{contentTypeJSON: api.InvokeResponse{}},
	})
	decoder := newStrictDecoder[api.InvokeRequest](a, request)
	r.Post(path, func(w http.ResponseWriter, r *http.Request) {
		outcome, err := s.invoke(w, r, decoder)
		if err != nil {
			s.fail(w, r, requestIDOf(r.Context()), err)
			return
		}
		s.answerInvoke(w, r, outcome)
	})
}

// invoke reads the request and runs the function.
func (s *Server) invoke(w http.ResponseWriter, r *http.Request, decoder strictDecoder[api.InvokeRequest]) (*api.Outcome, error) {
	tenant, namespace, function := pathParam(r, "tenant"), pathParam(r, "namespace"), pathParam(r, "function")
	if err := validateFunctionPath(tenant, namespace, function); err != nil {
		return nil, err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return nil, err
	}
	body, err := readBody(w, r, api.MaxEventBytes)
	if err != nil {
		return nil, err
	}
	request, err := decoder.decode(body)
	if err != nil {
		return nil, err
	}
	if err := validateInvoke(&request); err != nil {
		return nil, err
	}
	c := callerOf(r.Context())
	return s.engine.Invoke(r.Context(), api.Invocation{
		Tenant:         tenant,
		Namespace:      namespace,
		Function:       function,
		Ref:            request.Ref,
		Trigger:        api.Trigger{Type: api.TriggerAPI},
		Principal:      c.principal(),
		Access:         c.access(),
		Event:          request.Event,
		RequestID:      requestIDOf(r.Context()),
		IdempotencyKey: key,
	})
}

// validateInvoke refuses what cannot be invoked and fills in what was left out.
func validateInvoke(request *api.InvokeRequest) error {
	switch request.Mode {
	case "", modeSync:
	case modeAsync:
		return fieldError("mode", "is async, and asynchronous invocation is not available in this release; leave it out or say sync")
	default:
		return fieldError("mode", "must be sync")
	}
	if len(request.Event) == 0 {
		request.Event = json.RawMessage("null")
	}
	return request.Ref.Validate()
}

func (s *Server) answerInvoke(w http.ResponseWriter, r *http.Request, outcome *api.Outcome) {
	a := &outcome.Activation
	h := w.Header()
	h[headerActivationID] = []string{a.ActivationID}
	if outcome.Replayed {
		h[headerReplayed] = []string{"true"}
	}
	s.writeJSON(w, r, api.InvokeResponse{
		ActivationID:    a.ActivationID,
		Status:          a.Status,
		Result:          a.Result,
		ResultTruncated: a.ResultTruncated,
		Error:           a.Error,
		DurationMS:      a.DurationMS,
	})
}
