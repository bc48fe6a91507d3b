// Package webhooks serves the webhooks of tenants and the logs of their deliveries (deliveries.go).
// Package scheduler/webhooks delivers. The text of a signing secret is in the answers of the creation
// and of a rotation; no other route returns it.
package webhooks

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/webhooks"
)

const (
	pathWebhooks = rest.PathTenant + "/webhooks"
	pathWebhook  = pathWebhooks + "/{webhook}"
)

// API serves the webhooks of tenants. It is safe for concurrent use.
type API struct{ webhooks *webhooks.Repository }

// New returns the API of the webhooks in a store, whose secrets are sealed by keys.
func New(store *storage.Store, keys *secrets.Secrets) *API { return &API{webhooks.New(store, keys)} }

// WebhookPath holds the parameters of the path of a webhook.
type WebhookPath struct {
	rest.TenantPath
	Webhook rest.ResourceName `path:"webhook"`
}

// Resolve refuses a name that does not match its pattern.
func (p *WebhookPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("webhook", string(p.Webhook)))
}

// names returns the tenant and the webhook.
func (p *WebhookPath) names() (tenant, name string) { return string(p.Tenant), string(p.Webhook) }

// newWebhook is the body of a creation.
type newWebhook struct {
	Name string `json:"name"`
	webhook.HookSettings
}

type createWebhookInput struct {
	rest.TenantPath
	IfNoneMatch string `header:"If-None-Match" doc:"* says what holds anyway: the webhook must not exist"`
	Body        newWebhook
}

type listWebhooksInput struct {
	rest.TenantPath
	rest.PageQuery
}

type webhookInput struct{ WebhookPath }

type putWebhookInput struct {
	WebhookPath
	IfMatch     string `header:"If-Match" doc:"the ETag that the webhook must have now"`
	IfNoneMatch string `header:"If-None-Match" doc:"* if the webhook must not exist"`
	Body        webhook.HookSettings
}

type changeWebhookInput struct {
	WebhookPath
	IfMatch string `header:"If-Match" doc:"the ETag that the webhook must have now"`
	Body    webhook.HookChange
}

type guardedWebhookInput struct {
	WebhookPath
	IfMatch string `header:"If-Match" doc:"the ETag that the webhook must have now"`
}

type webhookOutput struct {
	Status       int
	ETag         string `header:"ETag"`
	CacheControl string `header:"Cache-Control"`
	Body         webhook.Webhook
}

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	return append([]rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathWebhooks, Action: access.WebhookCreate, Extent: rest.WholeTenant,
			ID: "create-webhook", Tag: "webhooks", Summary: "Create a webhook", Status: http.StatusCreated,
			Description: "Events of the tenant's log that follow and that the webhook selects are sent to its URL by POST, signed as Standard Webhooks asks. " +
				"The answer has the secret, which no later one has. 409 if the webhook exists, or if the server has no key for secrets.",
		}, a.createWebhook),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathWebhooks, Action: access.WebhookRead, Extent: rest.WholeTenant,
			ID: "list-webhooks", Tag: "webhooks", Summary: "List a tenant's webhooks by name, with their status",
		}, a.listWebhooks),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathWebhook, Action: access.WebhookRead, Extent: rest.WholeTenant,
			ID: "get-webhook", Tag: "webhooks", Summary: "Read a webhook and its status", Description: "The ETag is its revision. The secret is not shown.",
		}, a.getWebhook),
		rest.Operation(rest.Route{
			Method: http.MethodPut, Path: pathWebhook, Action: access.WebhookUpdate, Extent: rest.WholeTenant,
			ID: "put-webhook", Tag: "webhooks", Summary: "Create a webhook, or replace its configuration",
			Description: "201 with the secret for a new one. One that exists keeps its secret; fields that are left out take their defaults. " +
				"If-Match with the webhook's ETag guards the change; If-None-Match: * only creates.",
			Also: []rest.Answer{{Status: http.StatusCreated, Content: rest.JSON(webhook.Webhook{})}},
		}, a.putWebhook),
		rest.Operation(rest.Route{
			Method: http.MethodPatch, Path: pathWebhook, Action: access.WebhookUpdate, Extent: rest.WholeTenant,
			ID: "change-webhook", Tag: "webhooks", Summary: "Change a webhook, or enable or disable it",
			Description: "Fields that are left out keep their values. A disabled webhook drops its waiting deliveries; enabled again, it begins with the next event. If-Match guards the change.",
		}, a.changeWebhook),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathWebhook, Action: access.WebhookDelete, Extent: rest.WholeTenant,
			ID: "delete-webhook", Tag: "webhooks", Summary: "Delete a webhook with its deliveries and their log", Description: "If-Match guards the deletion.",
		}, a.deleteWebhook),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathWebhook + ":rotate", Action: access.WebhookUpdate, Extent: rest.WholeTenant,
			ID: "rotate-webhook-secret", Tag: "webhooks", Summary: "Make a new secret for a webhook",
			Description: "The answer has the new secret, which no later one has. For 24 hours deliveries have a signature by the new and one by the previous secret. If-Match guards the rotation.",
		}, a.rotateWebhook),
	}, a.deliveryEndpoints()...)
}

// answer answers with a webhook. Its ETag is its revision. An answer with a secret must not be cached.
func answer(status int, w webhook.Webhook) *webhookOutput {
	out := &webhookOutput{Status: status, ETag: rest.RevisionTag(w.Revision), Body: w}
	if w.Secret != "" {
		out.CacheControl = "no-store"
	}
	return out
}

// createWebhook creates a webhook. Errors: CodeWebhookExists, CodeWebhookLimit, CodeInvalid,
// CodeValidationName, CodeSecretKeyMissing.
func (a *API) createWebhook(ctx context.Context, in *createWebhookInput) (*webhookOutput, error) {
	if err := rest.CreateOnly(in.IfNoneMatch); err != nil {
		return nil, err
	}
	if err := api.ValidateName("name", in.Body.Name); err != nil {
		return nil, err
	}
	return a.put(ctx, string(in.Tenant), in.Body.Name, &in.Body.HookSettings, webhooks.Condition{IfNew: true})
}

// put creates or replaces a webhook.
func (a *API) put(ctx context.Context, tenant, name string, body *webhook.HookSettings, on webhooks.Condition) (*webhookOutput, error) {
	c := body.Config()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	w, created, err := a.webhooks.Put(ctx, tenant, name, c, on)
	if err != nil {
		return nil, err
	}
	if !created {
		return answer(http.StatusOK, w), nil
	}
	rest.NoteMade(ctx, name)
	return answer(http.StatusCreated, w), nil
}

// putWebhook creates or replaces a webhook. Errors: those of createWebhook, CodePreconditionFailed.
func (a *API) putWebhook(ctx context.Context, in *putWebhookInput) (*webhookOutput, error) {
	if err := rest.OnePrecondition(in.IfMatch, in.IfNoneMatch); err != nil {
		return nil, err
	}
	revision, err := a.match(ctx, &in.WebhookPath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	tenant, name := in.names()
	out, err := a.put(ctx, tenant, name, &in.Body, webhooks.Condition{IfMatch: revision, IfNew: in.IfNoneMatch != ""})
	if api.ErrorCode(err) == api.CodeWebhookExists {
		err = api.Errorf(api.CodePreconditionFailed, "webhook %q exists", name)
	}
	return out, err
}

// match returns the revision that the webhook must have by an If-Match, nil for any. Errors:
// CodePreconditionFailed, also for a webhook that does not exist.
func (a *API) match(ctx context.Context, p *WebhookPath, ifMatch string) (*int64, error) {
	if ifMatch == "" {
		return nil, nil //nolint:nilnil // documented: no precondition
	}
	tenant, name := p.names()
	found, err := a.webhooks.Get(ctx, tenant, name)
	if err != nil && api.ErrorCode(err) != api.CodeWebhookNotFound {
		return nil, err
	}
	if err == nil && rest.NamesTag(ifMatch, rest.RevisionTag(found.Revision)) {
		return &found.Revision, nil
	}
	return nil, api.Errorf(api.CodePreconditionFailed, "the webhook does not have the ETag that If-Match names")
}

func (a *API) listWebhooks(ctx context.Context, in *listWebhooksInput) (*rest.PageOutput[webhook.Webhook], error) {
	tenant := string(in.Tenant)
	return rest.ReadPage(rest.ListScope("webhooks", tenant), in.Cursor, func(after string) ([]webhook.Webhook, string, error) {
		return a.webhooks.List(ctx, tenant, after, in.Limit)
	})
}

// getWebhook answers with a webhook. Errors: CodeWebhookNotFound.
func (a *API) getWebhook(ctx context.Context, in *webhookInput) (*webhookOutput, error) {
	tenant, name := in.names()
	w, err := a.webhooks.Get(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	return answer(http.StatusOK, w), nil
}

// changeWebhook changes a webhook. Errors: CodeWebhookNotFound, CodePreconditionFailed, CodeInvalid,
// CodeValidationName.
func (a *API) changeWebhook(ctx context.Context, in *changeWebhookInput) (*webhookOutput, error) {
	revision, err := a.match(ctx, &in.WebhookPath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	tenant, name := in.names()
	w, err := a.webhooks.Update(ctx, tenant, name, revision, func(c *webhook.Config) error {
		in.Body.Apply(c)
		return c.Validate()
	})
	if err != nil {
		return nil, err
	}
	return answer(http.StatusOK, w), nil
}

// deleteWebhook removes a webhook. Errors: CodeWebhookNotFound, CodePreconditionFailed.
func (a *API) deleteWebhook(ctx context.Context, in *guardedWebhookInput) (*struct{}, error) {
	revision, err := a.match(ctx, &in.WebhookPath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	tenant, name := in.names()
	return nil, a.webhooks.Delete(ctx, tenant, name, revision)
}

// rotateWebhook makes a new secret. Errors: CodeWebhookNotFound, CodePreconditionFailed,
// CodeSecretKeyMissing.
func (a *API) rotateWebhook(ctx context.Context, in *guardedWebhookInput) (*webhookOutput, error) {
	revision, err := a.match(ctx, &in.WebhookPath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	tenant, name := in.names()
	w, err := a.webhooks.Rotate(ctx, tenant, name, revision)
	if err != nil {
		return nil, err
	}
	return answer(http.StatusOK, w), nil
}
