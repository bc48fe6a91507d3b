package controlplane_test

import (
	"testing"

	"github.com/codesous/sous/api"
)

func TestAsyncInvokeIsAccepted(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.call(t, "POST", h.fn(":invoke"), `{"ref":{"alias":"prod"},"mode":"async","event":{"n":1}}`, "Idempotency-Key", "k")
	got := ok[map[string]any](t, a, 202)
	if len(got) != 2 || got["activation_id"] != activationID || got["status"] != "queued" {
		t.Errorf("got body %s, want two fields: activation_id %v and status queued", a.body, activationID)
	}
	where := "/v1/tenants/" + h.tenant + "/activations/" + activationID
	if a.header.Get("X-Cs-Activation-Id") != activationID || a.header.Get("Location") != where || a.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("got %v, want X-Cs-Activation-Id %v, Location %v and no Idempotent-Replayed", a.header, activationID, where)
	}
	inv := h.engine.last(t)
	if inv.IdempotencyKey != "k" || string(inv.Event) != `{"n":1}` || inv.Trigger.Type != api.TriggerAPI || inv.Ref.Alias != "prod" || inv.Access != api.AccessUnrestricted {
		t.Errorf("got %+v, want idempotency key \"k\", event {\"n\":1}, type api, alias \"prod\" and access unrestricted", inv)
	}
	h.engine.enqueue = func(api.Invocation) (*api.Queued, error) {
		return &api.Queued{ActivationID: activationID, Status: api.StatusSuccess, Replayed: true}, nil
	}
	a = h.call(t, "POST", h.fn(":invoke"), `{"ref":{"alias":"prod"},"mode":"async"}`, "Idempotency-Key", "k")
	if q := ok[api.Queued](t, a, 202); q.Status != api.StatusSuccess || a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s %v, want status success and Idempotent-Replayed \"true\"", a.body, a.header)
	}
	h.engine.enqueue = func(api.Invocation) (*api.Queued, error) {
		return nil, api.Errorf(api.CodeIdempotencyMismatch, "another")
	}
	h.call(t, "POST", h.fn(":invoke"), `{"ref":{"alias":"prod"},"mode":"async"}`, "Idempotency-Key", "k").
		refused(t, 422, api.CodeIdempotencyMismatch)
}
