package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/webhook"
)

// Webhooks returns one page of the tenant's webhooks, by name.
func (t *Tenant) Webhooks(ctx context.Context, o PageOptions) (api.Page[webhook.Webhook], error) {
	var out api.Page[webhook.Webhook]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("webhooks"), query: o.query()}, nil, &out)
	return out, err
}

// Webhook returns the handle of a webhook. It sends no request.
func (t *Tenant) Webhook(name string) *Webhook { return &Webhook{t, name} }

// Webhook is one webhook of a tenant.
type Webhook struct {
	tenant *Tenant
	name   string
}

// call calls an operation of the webhook. If revision is not 0, the webhook must have it.
func (w *Webhook) call(ctx context.Context, method, path string, revision int64, body any) (webhook.Webhook, error) {
	var out webhook.Webhook
	_, err := w.tenant.c.call(ctx, &request{method: method, path: path, header: ifRevision(revision)}, body, &out)
	return out, err
}

func (w *Webhook) path(rest ...string) string {
	return w.tenant.path(append([]string{"webhooks", w.name}, rest...)...)
}

// Create creates the webhook. Its secret is in the result, and in no later one. CodeWebhookExists,
// CodeWebhookLimit, CodeInvalid, CodeValidationName, CodeSecretKeyMissing.
func (w *Webhook) Create(ctx context.Context, s webhook.HookSettings) (webhook.Webhook, error) {
	body := struct {
		Name string `json:"name"`
		webhook.HookSettings
	}{w.name, s}
	return w.call(ctx, http.MethodPost, w.tenant.path("webhooks"), 0, body)
}

// Put creates the webhook, or replaces its configuration. If ifMatch is not 0, the webhook must have
// that revision. Errors: those of Create but CodeWebhookExists, CodePreconditionFailed.
func (w *Webhook) Put(ctx context.Context, s webhook.HookSettings, ifMatch int64) (webhook.Webhook, error) {
	return w.call(ctx, http.MethodPut, w.path(), ifMatch, s)
}

// Get returns the webhook with its status. CodeWebhookNotFound.
func (w *Webhook) Get(ctx context.Context) (webhook.Webhook, error) {
	return w.call(ctx, http.MethodGet, w.path(), 0, nil)
}

// Update changes the webhook. If ifMatch is not 0, the webhook must have that revision.
// CodeWebhookNotFound, CodePreconditionFailed, CodeInvalid, CodeValidationName.
func (w *Webhook) Update(ctx context.Context, c webhook.HookChange, ifMatch int64) (webhook.Webhook, error) {
	return w.call(ctx, http.MethodPatch, w.path(), ifMatch, c)
}

// Rotate makes a new secret, which is in the result. Deliveries are also signed with the one before
// for webhook.PreviousSecretMS. If ifMatch is not 0, the webhook must have that revision.
// CodeWebhookNotFound, CodePreconditionFailed, CodeSecretKeyMissing.
func (w *Webhook) Rotate(ctx context.Context, ifMatch int64) (webhook.Webhook, error) {
	return w.call(ctx, http.MethodPost, w.path()+":rotate", ifMatch, nil)
}

// Delete removes the webhook. If ifMatch is not 0, the webhook must have that revision.
// CodeWebhookNotFound, CodePreconditionFailed.
func (w *Webhook) Delete(ctx context.Context, ifMatch int64) error {
	_, err := w.tenant.c.call(ctx, &request{method: http.MethodDelete, path: w.path(), header: ifRevision(ifMatch)}, nil, nil)
	return err
}

// Test sends an event webhook.test to the webhook. CodeWebhookNotFound, CodeWebhookDisabled,
// CodeCapacityLimit.
func (w *Webhook) Test(ctx context.Context) (webhook.QueuedDelivery, error) {
	var out webhook.QueuedDelivery
	_, err := w.tenant.c.call(ctx, &request{method: http.MethodPost, path: w.path() + ":test"}, nil, &out)
	return out, err
}

// Deliveries returns one page of the webhook's delivery log, the latest attempt first.
// CodeWebhookNotFound.
func (w *Webhook) Deliveries(ctx context.Context, o PageOptions) (api.Page[webhook.Delivery], error) {
	var out api.Page[webhook.Delivery]
	_, err := w.tenant.c.call(ctx, &request{method: http.MethodGet, path: w.path("deliveries"), query: o.query()}, nil, &out)
	return out, err
}

// Redeliver delivers the event of an attempt in the log again. CodeWebhookNotFound,
// CodeDeliveryNotFound, CodeWebhookDisabled, CodeCapacityLimit.
func (w *Webhook) Redeliver(ctx context.Context, id string) (webhook.QueuedDelivery, error) {
	var out webhook.QueuedDelivery
	_, err := w.tenant.c.call(ctx, &request{method: http.MethodPost, path: w.path("deliveries", id) + ":redeliver"}, nil, &out)
	return out, err
}
