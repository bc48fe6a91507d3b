package controlplane

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/activations"
)

const (
	pathActivations = pathTenant + "/activations"
	pathActivation  = pathActivations + "/{activation_id}"
)

type activationInput struct {
	TenantPath
	ActivationID string `path:"activation_id" doc:"a UUID"`
}

// Resolve refuses what cannot be an activation.
func (p *activationInput) Resolve(huma.Context) []error {
	return problems(api.ValidateTenant(string(p.Tenant)), api.ValidateActivationID(p.ActivationID))
}

type activationOutput struct{ Body api.Activation }

type listActivationsInput struct {
	TenantPath
	PageQuery
	Namespace resourceName `query:"namespace" required:"true"`
	Function  resourceName `query:"function" required:"true"`
	Status    string       `query:"status" enum:"queued,running,success,error,timeout,cancelled"`
	Trigger   string       `query:"trigger" enum:"http,api,schedule,cadence,queue"`
	FromMS    int64        `query:"from_ms" minimum:"0" doc:"start_ms at or after"`
	ToMS      int64        `query:"to_ms" minimum:"0" doc:"start_ms before"`
}

type activationPageOutput struct{ Body api.Page[api.Activation] }

func (s *Server) routeActivations(t typedAPI) {
	tags := []string{"activations"}
	register(t, huma.Operation{
		OperationID: "list-activations", Method: http.MethodGet, Path: pathActivations, Tags: tags,
		Summary:     "List a function's activations, newest first, without results",
		Description: "Filters are applied while scanning: a page may be short, even empty, and still have a next_cursor.",
	}, s.listActivations)
	register(t, huma.Operation{
		OperationID: "get-activation", Method: http.MethodGet, Path: pathActivation, Tags: tags,
		Summary: "Read an activation with its result",
	}, s.getActivation)
	register(t, huma.Operation{
		OperationID: "cancel-activation", Method: http.MethodPost, Path: pathActivation + ":cancel", Tags: tags,
		Summary: "Cancel a queued or running activation", DefaultStatus: http.StatusOK,
	}, s.cancelActivation)
}

func (s *Server) listActivations(ctx context.Context, in *listActivationsInput) (*activationPageOutput, error) {
	tenant, namespace, function := string(in.Tenant), string(in.Namespace), string(in.Function)
	if err := validateFunctionPath(tenant, namespace, function); err != nil {
		return nil, err
	}
	if err := callerOf(ctx).needNamespace(namespace); err != nil {
		return nil, err
	}
	list := listScope("activations", tenant, namespace, function, in.Status, in.Trigger,
		strconv.FormatInt(in.FromMS, 10), strconv.FormatInt(in.ToMS, 10))
	position, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.activations.List(ctx, activations.Filter{
		Tenant: tenant, Namespace: namespace, Function: function,
		Status: api.Status(in.Status), Trigger: in.Trigger,
		FromMS: in.FromMS, ToMS: in.ToMS,
		Cursor: position, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return &activationPageOutput{Body: page(items, list.seal(next))}, nil
}

func (s *Server) getActivation(ctx context.Context, in *activationInput) (*activationOutput, error) {
	a, err := s.activation(ctx, string(in.Tenant), in.ActivationID)
	if err != nil {
		return nil, err
	}
	return &activationOutput{Body: a.Activation}, nil
}

// activation reads one. An id says nothing of the namespace: what the caller does
// not enter does not exist. CodeActivationNotFound.
func (s *Server) activation(ctx context.Context, tenant, id string) (*activations.Record, error) {
	a, err := s.activations.Get(ctx, tenant, id)
	if err == nil && !callerOf(ctx).entersNamespace(a.Namespace) {
		err = api.Errorf(api.CodeActivationNotFound, "activation %s does not exist", id)
	}
	return a, err
}

func (s *Server) cancelActivation(ctx context.Context, in *activationInput) (*activationOutput, error) {
	if callerOf(ctx).namespace != "" {
		if _, err := s.activation(ctx, string(in.Tenant), in.ActivationID); err != nil {
			return nil, err
		}
	}
	a, err := s.engine.Cancel(ctx, string(in.Tenant), in.ActivationID)
	if err != nil {
		return nil, err
	}
	return &activationOutput{Body: *a}, nil
}
