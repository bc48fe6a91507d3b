package functions

import (
	"encoding/json"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// invokeEndpoints declares :invoke. It is a Handle route, since an event may be larger
// than the body of an Operation.
func (a *API) invokeEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodPost, Path: pathFunction + ":invoke", Action: access.FunctionInvoke, Extent: rest.PathNamespaceOnly,
			ID: "invoke-function", Tag: "invoke", Summary: "Invoke a function synchronously or asynchronously",
			Description: "Mode sync answers 200 whenever the activation reached a terminal status, and says which. " +
				"Mode async answers 202 once the invocation is durable: it runs later, and again where it fails, as its version says. " +
				"event is any JSON value of at most 6 MiB (async: 1 MiB), null if left out. With Idempotency-Key it is safe to repeat.",
			Parameters: functionParameters(rest.HeaderParameter("Idempotency-Key", "at most 255 bytes; a repeat gets the first answer")),
			Request:    rest.JSON(api.InvokeRequest{}),
			Answer:     rest.JSON(api.InvokeResponse{}),
			Also:       []rest.Answer{{Status: http.StatusAccepted, Content: rest.JSON(api.Queued{})}},
		}, a.invokeFunction),
	}
}

// invokeFunction runs a function and waits for its end, or accepts the invocation for
// later in mode async. Both modes share one route, one action and one decoding:
//
//	POST F:invoke {"ref": {"alias": "prod"}, "event": {"n": 1}}
//	200 {"activation_id": A, "status": "success", "result": 2, "duration_ms": 3}
//
//	POST F:invoke {"ref": {"alias": "prod"}, "event": {"n": 1}, "mode": "async"}
//	202 {"activation_id": A, "status": "queued"}, Location: /v1/tenants/…/activations/A
func (a *API) invokeFunction(w http.ResponseWriter, r *http.Request) error {
	inv, async, err := a.invocation(w, r)
	if err != nil {
		return err
	}
	if async {
		if err := rest.Background(w); err != nil {
			return err
		}
		return a.enqueue(w, r, inv)
	}
	inv.Started, inv.OwnWait = rest.Started(w), rest.OwnWait(w)
	return a.invoke(w, r, inv)
}

// invoke answers 200 with the terminal activation, whatever its status: the request to
// run the function has succeeded, even if the function has not. A problem means that it
// did not run, or that its end is unknown. If the client goes away, its context ends and
// the engine ends the run.
func (a *API) invoke(w http.ResponseWriter, r *http.Request, inv api.Invocation) error {
	outcome, err := a.engine.Invoke(r.Context(), inv)
	if err != nil {
		return err
	}
	activation := &outcome.Activation
	h := w.Header()
	h[rest.HeaderActivationID] = []string{activation.ActivationID}
	if err := rest.HoldAnswer(w, len(activation.Result)); err != nil {
		return err // the caller finds the result in the activation
	}
	if outcome.Replayed {
		h[rest.HeaderReplayed] = []string{"true"}
	}
	return rest.WriteJSON(w, r, http.StatusOK, api.InvokeResponse{
		ActivationID:    activation.ActivationID,
		Status:          activation.Status,
		Result:          activation.Result,
		ResultTruncated: activation.ResultTruncated,
		Error:           activation.Error,
		DurationMS:      activation.DurationMS,
	})
}

// enqueue answers 202 once the invocation is durable. Location names the activation.
func (a *API) enqueue(w http.ResponseWriter, r *http.Request, inv api.Invocation) error {
	queued, err := a.engine.Enqueue(r.Context(), inv)
	if err != nil {
		return err
	}
	h := w.Header()
	h[rest.HeaderActivationID] = []string{queued.ActivationID}
	h["Location"] = []string{"/v1/tenants/" + inv.Tenant + "/activations/" + queued.ActivationID}
	if queued.Replayed {
		h[rest.HeaderReplayed] = []string{"true"}
	}
	return rest.WriteJSON(w, r, http.StatusAccepted, queued)
}

// invocation decodes the request. The route has checked the caller's right to invoke;
// the engine checks the version's own roles.
func (a *API) invocation(w http.ResponseWriter, r *http.Request) (inv api.Invocation, async bool, err error) {
	tenant, namespace, function := rest.PathParam(r, "tenant"), rest.PathParam(r, "namespace"), rest.PathParam(r, "function")
	if err := rest.ValidateFunctionPath(tenant, namespace, function); err != nil {
		return inv, false, err
	}
	key, err := rest.IdempotencyKey(r)
	if err != nil {
		return inv, false, err
	}
	body, err := rest.ReadBody(w, r, api.MaxEventBytes)
	if err != nil {
		return inv, false, err
	}
	request, err := a.invokeBodies.Decode(body)
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
		RequestID:      rest.RequestID(r.Context()),
		IdempotencyKey: key,
		Early:          true,
	}
	rest.CallerOf(r.Context()).Calls(&inv)
	return inv, request.Mode == api.ModeAsync, nil
}

// validateInvoke checks an invoke request and sets the default of its event, null. The
// default mode is sync. Errors: CodeInvalid, CodeValidationName.
func validateInvoke(request *api.InvokeRequest) error {
	switch request.Mode {
	case "", api.ModeSync, api.ModeAsync:
	default:
		return api.InvalidField("mode", "must be sync or async")
	}
	if len(request.Event) == 0 {
		request.Event = json.RawMessage("null")
	}
	return request.Ref.Validate()
}
