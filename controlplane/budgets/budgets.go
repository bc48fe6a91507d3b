// Package budgets serves the budgets of tenants: what their jobs may spend on models. storage/budgets
// keeps them, package queue enforces them.
package budgets

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage/budgets"
)

const (
	pathBudgets = rest.PathTenant + "/budgets"
	pathBudget  = pathBudgets + "/{budget}"
)

// API serves budgets. It is safe for concurrent use.
type API struct {
	budgets *budgets.Repository
	bodies  rest.Decoder[budget.Settings]
}

// New returns the API of the budgets of repository.
func New(repository *budgets.Repository) *API {
	return &API{budgets: repository, bodies: rest.NewDecoder[budget.Settings]()}
}

// BudgetPath holds the parameters of the path of a budget.
type BudgetPath struct {
	rest.TenantPath
	Budget rest.ResourceName `path:"budget"`
}

// Resolve refuses a name that does not match its pattern.
func (p *BudgetPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("budget", string(p.Budget)))
}

// names returns the tenant and the budget.
func (p *BudgetPath) names() (tenant, name string) { return string(p.Tenant), string(p.Budget) }

type tenantInput struct{ rest.TenantPath }

type budgetInput struct{ BudgetPath }

type deleteBudgetInput struct {
	BudgetPath
	IfMatch string `header:"If-Match" doc:"the ETag that the budget must have now"`
}

type budgetsOutput struct {
	Body struct {
		Budgets []budget.Budget `json:"budgets"`
	}
}

type budgetOutput struct {
	ETag string `header:"ETag"`
	Body budget.Budget
}

// Endpoints returns the declarations of all routes of the API.
func (a *API) Endpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathBudgets, Action: access.BudgetRead,
			ID: "list-budgets", Tag: "tenants", Summary: "List a tenant's budgets by name, with what was spent on the present day",
		}, a.list),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathBudget, Action: access.BudgetRead,
			ID: "get-budget", Tag: "tenants", Summary: "Read a budget, with what was spent on the present day", Description: "The ETag is its revision.",
		}, a.get),
		rest.Handle(rest.Route{
			Method: http.MethodPut, Path: pathBudget, Action: access.BudgetWrite,
			ID: "put-budget", Tag: "tenants", Summary: "Create a budget, or replace its settings",
			Description: "201 for a new one. It counts what jobs report from then on. A change of the scope or the target begins at 0; others keep what was spent. " +
				"Jobs that it holds are released if it would not hold them any more. At most 100 budgets. If-Match with the budget's ETag guards the change; If-None-Match: * only creates.",
			Parameters: []*huma.Param{
				rest.PathParameter("tenant", rest.TenantName("").Schema(nil)), rest.PathParameter("budget", rest.ResourceName("").Schema(nil)),
				rest.HeaderParameter("If-Match", "the ETag that the budget must have now"), rest.HeaderParameter("If-None-Match", "* if the budget must not exist"),
			},
			Request: rest.JSON(budget.Settings{}), Answer: rest.JSON(budget.Budget{}),
			Also: []rest.Answer{{Status: http.StatusCreated, Content: rest.JSON(budget.Budget{})}},
		}, a.put),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathBudget, Action: access.BudgetWrite,
			ID: "delete-budget", Tag: "tenants", Summary: "Delete a budget", Description: "The jobs that it holds are released. If-Match guards the deletion.",
		}, a.delete),
	}
}

// list answers with the budgets of a tenant.
func (a *API) list(ctx context.Context, in *tenantInput) (*budgetsOutput, error) {
	found, err := a.budgets.List(ctx, string(in.Tenant))
	if err != nil {
		return nil, err
	}
	out := &budgetsOutput{}
	out.Body.Budgets = found
	return out, nil
}

// get answers with a budget. Errors: CodeBudgetNotFound.
func (a *API) get(ctx context.Context, in *budgetInput) (*budgetOutput, error) {
	tenant, name := in.names()
	b, err := a.budgets.Get(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	return &budgetOutput{ETag: rest.RevisionTag(b.Revision), Body: b}, nil
}

// match returns the revision that a budget must have by an If-Match, nil for any. Errors:
// CodePreconditionFailed, also for a budget that does not exist.
func (a *API) match(ctx context.Context, tenant, name, ifMatch string) (*int64, error) {
	if ifMatch == "" {
		return nil, nil //nolint:nilnil // documented: no precondition
	}
	found, err := a.budgets.Get(ctx, tenant, name)
	if err != nil && api.ErrorCode(err) != api.CodeBudgetNotFound {
		return nil, err
	}
	if err == nil && rest.NamesTag(ifMatch, rest.RevisionTag(found.Revision)) {
		return &found.Revision, nil
	}
	return nil, api.Errorf(api.CodePreconditionFailed, "the budget does not have the ETag that If-Match names")
}

// put creates or replaces a budget. Errors: CodeInvalid, CodePreconditionFailed, CodeCapacityLimit.
func (a *API) put(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant, name := r.Context(), rest.PathParam(r, "tenant"), rest.PathParam(r, "budget")
	if err := api.ValidateTenant(tenant); err != nil {
		return err
	}
	if err := api.ValidateName("budget", name); err != nil {
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
	b, created, err := a.budgets.Put(ctx, tenant, name, settings, budgets.Condition{IfMatch: revision, IfNew: ifNoneMatch != ""})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		rest.NoteMade(ctx, name)
		status = http.StatusCreated
	}
	w.Header().Set("ETag", rest.RevisionTag(b.Revision))
	return rest.WriteJSON(w, r, status, b)
}

// delete deletes a budget. Errors: CodeBudgetNotFound, CodePreconditionFailed.
func (a *API) delete(ctx context.Context, in *deleteBudgetInput) (*struct{}, error) {
	tenant, name := in.names()
	revision, err := a.match(ctx, tenant, name, in.IfMatch)
	if err != nil {
		return nil, err
	}
	return nil, a.budgets.Delete(ctx, tenant, name, revision)
}
