package webhooks

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathDeliveries = pathWebhook + "/deliveries"
	pathDelivery   = pathDeliveries + "/{delivery}"
)

type deliveryID string

// Schema returns the schema of the id of a delivery.
func (deliveryID) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: "the id of a delivery such as 1760000001200-0"}
}

type listDeliveriesInput struct {
	WebhookPath
	rest.PageQuery
}

type deliveryInput struct {
	WebhookPath
	Delivery deliveryID `path:"delivery"`
}

type queuedOutput struct{ Body webhook.QueuedDelivery }

// deliveryEndpoints declares the routes of deliveries.
func (a *API) deliveryEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathWebhook + ":test", Action: access.WebhookTest, Extent: rest.WholeTenant,
			ID: "test-webhook", Tag: "webhooks", Summary: "Send an event webhook.test to a webhook", Status: http.StatusAccepted,
			Description: "It is sent once, in the way of all events. The delivery log has its result.",
		}, a.testWebhook),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathDeliveries, Action: access.WebhookRead, Extent: rest.WholeTenant,
			ID: "list-deliveries", Tag: "webhooks", Summary: "List the attempts to deliver events to a webhook, the latest first",
			Description: "The last 1,000 attempts of the last 7 days are kept.",
		}, a.listDeliveries),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathDelivery + ":redeliver", Action: access.WebhookTest, Extent: rest.WholeTenant,
			ID: "redeliver", Tag: "webhooks", Summary: "Deliver the event of an attempt again", Status: http.StatusAccepted,
			Description: "With the same webhook-id, and as many attempts as a new event.",
		}, a.redeliver),
	}
}

// testWebhook adds a delivery of an event webhook.test. Errors: CodeWebhookNotFound,
// CodeWebhookDisabled, CodeCapacityLimit.
func (a *API) testWebhook(ctx context.Context, in *webhookInput) (*queuedOutput, error) {
	tenant, name := in.names()
	queued, err := a.webhooks.Test(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	return &queuedOutput{queued}, nil
}

// listDeliveries answers with a page of the delivery log. Errors: CodeWebhookNotFound,
// CodeValidationCursor.
func (a *API) listDeliveries(ctx context.Context, in *listDeliveriesInput) (*rest.PageOutput[webhook.Delivery], error) {
	tenant, name := in.names()
	return rest.ReadPage(rest.ListScope("deliveries", tenant, name), in.Cursor, func(after string) ([]webhook.Delivery, string, error) {
		return a.webhooks.Deliveries(ctx, tenant, name, after, in.Limit)
	})
}

// redeliver adds a delivery of the event of an attempt. Errors: CodeWebhookNotFound,
// CodeDeliveryNotFound, CodeWebhookDisabled, CodeCapacityLimit.
func (a *API) redeliver(ctx context.Context, in *deliveryInput) (*queuedOutput, error) {
	tenant, name := in.names()
	queued, err := a.webhooks.Redeliver(ctx, tenant, name, string(in.Delivery))
	if err != nil {
		return nil, err
	}
	return &queuedOutput{queued}, nil
}

// Resolve refuses names that do not match their patterns.
func (in *deliveryInput) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(in.Tenant)), api.ValidateName("webhook", string(in.Webhook)))
}
