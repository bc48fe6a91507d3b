package functions

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage/activations"
)

const (
	pathActivations = rest.PathTenant + "/activations"
	pathActivation  = pathActivations + "/{activation_id}"
)

type activationInput struct {
	rest.TenantPath
	ActivationID string `path:"activation_id" doc:"a UUID"`
}

// Resolve refuses an id that cannot be an activation's.
func (p *activationInput) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateActivationID(p.ActivationID))
}

type activationOutput struct{ Body api.Activation }

type activationPageOutput struct {
	Body search.Results[api.Activation]
}

// listActivationsInput selects activations. Without a function, the indexes of all functions
// are read as one. The times select by start_ms, in [from_ms, to_ms); 0 leaves an end open. The fields
// of ActivationSearch, and a function without its namespace, need the mirror.
type listActivationsInput struct {
	rest.TenantPath
	rest.PageQuery
	Namespace rest.ResourceName `query:"namespace" doc:"default: all that the caller may enter"`
	Function  rest.ResourceName `query:"function" doc:"without a namespace: those of this name in all; default: all"`
	ID        string            `query:"id" minLength:"4" maxLength:"36" doc:"the beginning or the end of the id"`
	Status    string            `query:"status" enum:"queued,running,success,error,timeout,cancelled"`
	Trigger   string            `query:"trigger" enum:"http,api,schedule,cadence,queue"`
	FromMS    int64             `query:"from_ms" minimum:"0" doc:"start_ms at or after"`
	ToMS      int64             `query:"to_ms" minimum:"0" doc:"start_ms before"`
	ActivationSearch
}

// activationEndpoints declares the routes of activations. They lie below the tenant, since an
// id alone identifies an activation; the list names the function in its query.
func (a *API) activationEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathActivations, Action: access.ActivationRead, Extent: rest.HandlerNamespace,
			ID: "list-activations", Tag: "activations", Summary: "List activations of a function, a namespace or the tenant, newest first, without results",
			Description: "Filters are applied while scanning: a page may be short, even empty, and still have a next_cursor. Without a function, at most 2,000 functions are listed together. " +
				"The parameters from version on, and a function without a namespace, are answered by the mirror of the replica: the answer then has mirror. A search takes at most 2 s.",
		}, a.listActivations),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathActivation, Action: access.ActivationRead, Extent: rest.HandlerNamespace,
			ID: "get-activation", Tag: "activations", Summary: "Read an activation with its result",
		}, a.getActivation),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathActivation + ":cancel", Action: access.ActivationCancel, Extent: rest.HandlerNamespace,
			ID: "cancel-activation", Tag: "activations", Summary: "Cancel a queued or running activation",
		}, a.cancelActivation),
	}
}

// listActivations answers with a page of activations, newest first unless the mirror sorts them. The
// filters are part of the cursor's scope: a cursor does not continue another selection.
func (a *API) listActivations(ctx context.Context, in *listActivationsInput) (*activationPageOutput, error) {
	tenant, namespace, function := string(in.Tenant), string(in.Namespace), string(in.Function)
	if namespace == "" {
		namespace = rest.CallerOf(ctx).Namespace
	}
	searched := in.ActivationSearch != (ActivationSearch{}) || namespace == "" && function != ""
	if err := validateSelection(tenant, namespace, function, searched); err != nil {
		return nil, err
	}
	if err := rest.CallerOf(ctx).NeedNamespace(namespace); err != nil {
		return nil, err
	}
	if searched {
		return a.searchActivations(ctx, in, namespace)
	}
	page, err := rest.ReadPage(rest.ListScope("activations", tenant, namespace, function, in.ID, in.Status, in.Trigger,
		strconv.FormatInt(in.FromMS, 10), strconv.FormatInt(in.ToMS, 10)), in.Cursor, func(position string) ([]api.Activation, string, error) {
		return a.activations.List(ctx, activations.Filter{
			Tenant: tenant, Namespace: namespace, Function: function, ID: in.ID,
			Status: api.Status(in.Status), Trigger: in.Trigger,
			FromMS: in.FromMS, ToMS: in.ToMS,
			Cursor: position, Limit: in.Limit,
		})
	})
	if err != nil {
		return nil, err
	}
	return &activationPageOutput{search.Results[api.Activation]{Items: page.Body.Items, NextCursor: page.Body.NextCursor}}, nil
}

// validateSelection refuses a function without its namespace, unless it is searched, and names that do
// not match their patterns.
func validateSelection(tenant, namespace, function string, searched bool) error {
	switch {
	case searched && namespace == "" && function != "":
		return api.ValidateName("function", function)
	case function != "":
		return rest.ValidateFunctionPath(tenant, namespace, function)
	case namespace != "":
		return rest.ValidateNamespacePath(tenant, namespace)
	}
	return nil // the path's Resolve has validated the tenant
}

// getActivation answers with an activation and its result. One whose replica died is ended
// as Lost by the read that finds it.
func (a *API) getActivation(ctx context.Context, in *activationInput) (*activationOutput, error) {
	found, err := a.activation(ctx, string(in.Tenant), in.ActivationID)
	if err != nil {
		return nil, err
	}
	return &activationOutput{Body: found.Activation}, nil
}

// activation returns an activation of a namespace that the caller may enter; its path
// does not contain the namespace. Errors: CodeActivationNotFound, for a missing one and
// for one of another namespace, in the same words.
func (a *API) activation(ctx context.Context, tenant, id string) (*activations.Record, error) {
	found, err := a.activations.Get(ctx, tenant, id)
	if err == nil && !rest.CallerOf(ctx).EntersNamespace(found.Namespace) {
		err = api.Errorf(api.CodeActivationNotFound, "activation %s does not exist", id)
	}
	return found, err
}

// cancelActivation ends an activation that is queued or running. The read that checks
// its namespace is spared for callers of the whole tenant. Errors: CodeActivationNotFound,
// CodeActivationTerminal.
func (a *API) cancelActivation(ctx context.Context, in *activationInput) (*activationOutput, error) {
	if rest.CallerOf(ctx).Namespace != "" {
		if _, err := a.activation(ctx, string(in.Tenant), in.ActivationID); err != nil {
			return nil, err
		}
	}
	cancelled, err := a.engine.Cancel(ctx, string(in.Tenant), in.ActivationID)
	if err != nil {
		return nil, err
	}
	return &activationOutput{Body: *cancelled}, nil
}
