package approvals

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval/policy"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// DelegationPath holds the parameters of the path of a delegation.
type DelegationPath struct {
	rest.TenantPath
	Delegation string `path:"delegation" maxLength:"64"`
}

// Resolve refuses a tenant that does not match its pattern.
func (p *DelegationPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)))
}

type delegationsOutput struct {
	Body struct {
		Delegations []policy.Delegation `json:"delegations"`
	}
}

type delegateInput struct {
	rest.TenantPath
	Body struct {
		From    string `json:"from,omitempty" maxLength:"64" doc:"the id of a key, or a role; the caller's key unless set"`
		To      string `json:"to" maxLength:"64" doc:"the id of a key"`
		UntilMS int64  `json:"until_ms" doc:"at most 90 days ahead"`
	}
}

type delegationOutput struct{ Body policy.Delegation }

type endDelegationInput struct{ DelegationPath }

func (a *API) delegationEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathDelegations, Action: access.ApprovalRead,
			ID: "list-approval-delegations", Tag: "tenants", Summary: "List the delegations of votes that have not ended",
		}, a.listDelegations),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathDelegations, Action: access.ApprovalDecide, Status: http.StatusCreated,
			ID: "delegate-approvals", Tag: "tenants", Summary: "Let another key vote in the place of a key or a role",
			Description: "A key delegates its own vote, or that of a role that it has. Others need the action cs:approval:write. It is void when the key that made it, or the one that it is from, is revoked.",
		}, a.delegate),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathDelegation, Action: access.ApprovalDecide,
			ID: "end-approval-delegation", Tag: "tenants", Summary: "End a delegation", Description: "The key that made it, that it is from or that it is to may end it, and those with the action cs:approval:write.",
		}, a.endDelegation),
	}
}

func (a *API) listDelegations(ctx context.Context, in *policiesInput) (*delegationsOutput, error) {
	found, err := a.policies.Delegations(ctx, string(in.Tenant), a.store.NowMS())
	if err != nil {
		return nil, err
	}
	out := &delegationsOutput{}
	out.Body.Delegations = found
	return out, nil
}

// delegate makes a delegation. Errors: CodeInvalid, CodeAuthzDenied, CodeCapacityLimit.
func (a *API) delegate(ctx context.Context, in *delegateInput) (*delegationOutput, error) {
	c := rest.CallerOf(ctx)
	from := in.Body.From
	if from == "" {
		from = c.Sub
	}
	if from != c.Sub && !slices.Contains(c.Identity().Roles, from) {
		if err := c.Need(access.ApprovalWrite); err != nil {
			return nil, err
		}
	}
	made, err := a.policies.Delegate(ctx, string(in.Tenant), policy.Delegation{From: from, To: in.Body.To, UntilMS: in.Body.UntilMS, CreatedBy: c.Sub})
	if err != nil {
		return nil, err
	}
	rest.NoteMade(ctx, made.ID+" from "+from+" to "+made.To)
	return &delegationOutput{Body: made}, nil
}

// endDelegation ends a delegation. Errors: CodeApprovalNotFound, CodeAuthzDenied.
func (a *API) endDelegation(ctx context.Context, in *endDelegationInput) (*struct{}, error) {
	c, tenant := rest.CallerOf(ctx), string(in.Tenant)
	found, err := a.policies.Delegations(ctx, tenant, a.store.NowMS())
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(found, func(d policy.Delegation) bool { return d.ID == in.Delegation })
	if at >= 0 && found[at].CreatedBy != c.Sub && found[at].From != c.Sub && found[at].To != c.Sub {
		if err := c.Need(access.ApprovalWrite); err != nil {
			return nil, err
		}
	}
	return nil, a.policies.EndDelegation(ctx, tenant, in.Delegation)
}
