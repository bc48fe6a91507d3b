package controlplane

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/codesous/sous/api"
)

func (s *Server) routeInvoke(r chi.Router, a huma.API) {
	const path = pathFunction + ":invoke"
	request := map[string]any{contentTypeJSON: api.InvokeRequest{}}
	document(a, documented{
		method: http.MethodPost, path: path, id: "invoke-function", tag: "invoke",
		summary: "Invoke a function, and wait for its end or not",
		description: "Mode sync answers 200 whenever the activation reached a terminal status, and says which. " +
			"Mode async answers 202 once the invocation is durable: it runs later, and again where it fails, as its version says. " +
			"event is any JSON value of at most 6 MiB (async: 1 MiB), null if left out. With Idempotency-Key it is safe to repeat.",
		parameters: functionParameters(headerParameter("Idempotency-Key", "at most 255 bytes; a repeat gets the first answer")),
		request:    request,
		status:     http.StatusOK, answer: map[string]any{contentTypeJSON: api.InvokeResponse{}},
		also: map[int]map[string]any{http.StatusAccepted: {contentTypeJSON: api.Queued{}}},
	})
	decoder := newStrictDecoder[api.InvokeRequest](a, request)
	r.Post(path, func(w http.ResponseWriter, r *http.Request) {
		inv, async, err := s.invocation(w, r, decoder)
		switch {
		case err != nil:
			s.fail(w, r, requestIDOf(r.Context()), err)
		case async:
			s.enqueue(w, r, inv)
		default:
			s.invoke(w, r, inv)
		}
	})
}

func (s *Server) invoke(w http.ResponseWriter, r *http.Request, inv api.Invocation) {
	outcome, err := s.engine.Invoke(r.Context(), inv)
	if err != nil {
		s.fail(w, r, requestIDOf(r.Context()), err)
		return
	}
	s.answerInvoke(w, r, outcome)
}

func (s *Server) enqueue(w http.ResponseWriter, r *http.Request, inv api.Invocation) {
	queued, err := s.engine.Enqueue(r.Context(), inv)
	if err != nil {
		s.fail(w, r, requestIDOf(r.Context()), err)
		return
	}
	h := w.Header()
	h[headerActivationID] = []string{queued.ActivationID}
	h["Location"] = []string{"/v1/tenants/" + inv.Tenant + "/activations/" + queued.ActivationID}
	if queued.Replayed {
		h[headerReplayed] = []string{"true"}
	}
	s.writeJSONStatus(w, r, http.StatusAccepted, queued)
}

// invocation reads the request.
func (s *Server) invocation(w http.ResponseWriter, r *http.Request, decoder strictDecoder[api.InvokeRequest]) (inv api.Invocation, async bool, err error) {
	tenant, namespace, function := pathParam(r, "tenant"), pathParam(r, "namespace"), pathParam(r, "function")
	if err := validateFunctionPath(tenant, namespace, function); err != nil {
		return inv, false, err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return inv, false, err
	}
	body, err := readBody(w, r, api.MaxEventBytes)
	if err != nil {
		return inv, false, err
	}
	request, err := decoder.decode(body)
	if err != nil {
		return inv, false, err
	}
	if err := validateInvoke(&request); err != nil {
		return inv, false, err
	}
	inv = api.Invocation{
		Tenant:         tenant,
		Namespace:      namespace,
		Function:       function,
		Ref:            request.Ref,
		Trigger:        api.Trigger{Type: api.TriggerAPI},
		Event:          request.Event,
		RequestID:      requestIDOf(r.Context()),
		IdempotencyKey: key,
	}
	callerOf(r.Context()).calls(&inv)
	return inv, request.Mode == api.ModeAsync, nil
}

// validateInvoke refuses what cannot be invoked and fills in what was left out.
func validateInvoke(request *api.InvokeRequest) error {
	switch request.Mode {
	case "", api.ModeSync, api.ModeAsync:
	default:
		return fieldError("mode", "must be sync or async")
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
