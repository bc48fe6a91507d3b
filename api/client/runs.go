package client

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/codesous/sous/api/step"
)

// Run returns a run with its steps: a job whose function calls cs.step. CodeJobNotFound.
func (t *Tenant) Run(ctx context.Context, id string) (step.Run, error) {
	var out step.Run
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("runs", id)}, nil, &out)
	return out, err
}

// SendRunEvent sends an event to a run, which has it until it waits for one of that name.
// CodeJobNotFound, CodeJobState for a run that has ended, CodeCapacityLimit.
func (t *Tenant) SendRunEvent(ctx context.Context, id, name string, payload json.RawMessage) error {
	_, err := t.c.call(ctx, &request{method: http.MethodPost, path: t.path("runs", id, "events")}, step.NewEvent{Name: name, Payload: payload}, nil)
	return err
}

// SendEvent sends an event to all runs of the namespace that wait for it.
func (n *Namespace) SendEvent(ctx context.Context, name string, payload json.RawMessage) (step.Sent, error) {
	var out step.Sent
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodPost, path: n.path("events")}, step.NewEvent{Name: name, Payload: payload}, &out)
	return out, err
}
