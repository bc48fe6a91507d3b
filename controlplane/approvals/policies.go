package approvals

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval/policy"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	storeapprovals "github.com/codesous/sous/storage/approvals"
)

// PolicyPath holds the parameters of the path of a policy.
type PolicyPath struct {
	rest.TenantPath
	Policy rest.ResourceName `path:"policy"`
}

// Resolve refuses a name that does not match its pattern.
func (p *PolicyPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("policy", string(p.Policy)))
}

type policiesInput struct{ rest.TenantPath }

type policyInput struct{ PolicyPath }

type deletePolicyInput struct {
	PolicyPath
	IfMatch string `header:"If-Match" doc:"the ETag that the policy must have now"`
}

type policiesOutput struct {
	Body struct {
		Policies []policy.Policy `json:"policies"`
	}
}

type policyOutput struct {
	ETag string `header:"ETag"`
	Body policy.Policy
}

func (a *API) policyEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathPolicies, Action: access.ApprovalRead,
			ID: "list-approval-policies", Tag: "tenants", Summary: "List a tenant's approval policies by name",
		}, a.listPolicies),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathPolicy, Action: access.ApprovalRead,
			ID: "get-approval-policy", Tag: "tenants", Summary: "Read an approval policy", Description: "The ETag is its revision.",
		}, a.getPolicy),
		rest.Handle(rest.Route{
			Method: http.MethodPut, Path: pathPolicy, Action: access.ApprovalWrite,
			ID: "put-approval-policy", Tag: "tenants", Summary: "Create an approval policy, or replace its settings",
			Description: "201 for a new one. It holds jobs that are enqueued, or report usage, from then on, on other replicas after at most 5 s. " +
				"Approvals that are pending keep the settings by which they were asked for. At most 50 policies. If-Match with the policy's ETag guards the change; If-None-Match: * only creates.",
			Parameters: []*huma.Param{
				rest.PathParameter("tenant", rest.TenantName("").Schema(nil)), rest.PathParameter("policy", rest.ResourceName("").Schema(nil)),
				rest.HeaderParameter("If-Match", "the ETag that the policy must have now"), rest.HeaderParameter("If-None-Match", "* if the policy must not exist"),
			},
			Request: rest.JSON(policy.Rules{}), Answer: rest.JSON(policy.Policy{}),
			Also: []rest.Answer{{Status: http.StatusCreated, Content: rest.JSON(policy.Policy{})}},
		}, a.putPolicy),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathPolicy, Action: access.ApprovalWrite,
			ID: "delete-approval-policy", Tag: "tenants", Summary: "Delete an approval policy", Description: "The jobs that it holds stay held. If-Match guards the deletion.",
		}, a.deletePolicy),
	}
}

func (a *API) listPolicies(ctx context.Context, in *policiesInput) (*policiesOutput, error) {
	found, err := a.policies.Policies(ctx, string(in.Tenant))
	if err != nil {
		return nil, err
	}
	out := &policiesOutput{}
	out.Body.Policies = make([]policy.Policy, len(found))
	for i := range found {
		out.Body.Policies[i] = found[i].View()
	}
	return out, nil
}

// getPolicy answers with a policy. Errors: CodeApprovalNotFound.
func (a *API) getPolicy(ctx context.Context, in *policyInput) (*policyOutput, error) {
	found, err := a.policies.Policy(ctx, string(in.Tenant), string(in.Policy))
	if err != nil {
		return nil, err
	}
	return &policyOutput{ETag: rest.RevisionTag(found.Revision), Body: found}, nil
}

// match returns the revision that a policy must have by an If-Match, nil for any. Errors:
// CodePreconditionFailed, also for a policy that does not exist.
func (a *API) match(ctx context.Context, tenant, name, ifMatch string) (*int64, error) {
	if ifMatch == "" {
		return nil, nil //nolint:nilnil // documented: no precondition
	}
	found, err := a.policies.Policy(ctx, tenant, name)
	if err != nil && api.ErrorCode(err) != api.CodeApprovalNotFound {
		return nil, err
	}
	if err == nil && rest.NamesTag(ifMatch, rest.RevisionTag(found.Revision)) {
		return &found.Revision, nil
	}
	return nil, api.Errorf(api.CodePreconditionFailed, "the policy does not have the ETag that If-Match names")
}

// putPolicy creates or replaces a policy. Errors: CodeInvalid, CodePreconditionFailed, CodeCapacityLimit.
func (a *API) putPolicy(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant, name := r.Context(), rest.PathParam(r, "tenant"), rest.PathParam(r, "policy")
	if err := api.ValidateTenant(tenant); err != nil {
		return err
	}
	if err := api.ValidateName("policy", name); err != nil {
		return err
	}
	ifMatch, ifNoneMatch := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	if err := rest.OnePrecondition(ifMatch, ifNoneMatch); err != nil {
		return err
	}
	raw, err := rest.ReadBody(w, r, api.MaxRequestBytes)
	if err != nil {
		return err
	}
	settings, err := a.bodies.Decode(raw)
	if err != nil {
		return err
	}
	revision, err := a.match(ctx, tenant, name, ifMatch)
	if err != nil {
		return err
	}
	p, created, err := a.policies.PutPolicy(ctx, tenant, name, settings, storeapprovals.Condition{IfMatch: revision, IfNew: ifNoneMatch != ""})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		rest.NoteMade(ctx, name)
		status = http.StatusCreated
	}
	w.Header().Set("ETag", rest.RevisionTag(p.Revision))
	return rest.WriteJSON(w, r, status, p)
}

// deletePolicy deletes a policy. Errors: CodeApprovalNotFound, CodePreconditionFailed.
func (a *API) deletePolicy(ctx context.Context, in *deletePolicyInput) (*struct{}, error) {
	tenant, name := string(in.Tenant), string(in.Policy)
	revision, err := a.match(ctx, tenant, name, in.IfMatch)
	if err != nil {
		return nil, err
	}
	return nil, a.policies.DeletePolicy(ctx, tenant, name, revision)
}
