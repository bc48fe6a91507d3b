package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api/budget"
)

// Budgets returns the budgets of the tenant by name, with what was spent on the present day.
func (t *Tenant) Budgets(ctx context.Context) ([]budget.Budget, error) {
	var out struct {
		Budgets []budget.Budget `json:"budgets"`
	}
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("budgets")}, nil, &out)
	return out.Budgets, err
}

// Budget returns a budget. CodeBudgetNotFound.
func (t *Tenant) Budget(ctx context.Context, name string) (budget.Budget, error) {
	var out budget.Budget
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("budgets", name)}, nil, &out)
	return out, err
}

// PutBudget creates a budget or replaces its settings. revision is the one that it must have, 0 for any.
// CodeInvalid, CodeValidationName, CodePreconditionFailed, CodeCapacityLimit.
func (t *Tenant) PutBudget(ctx context.Context, name string, s budget.Settings, revision int64) (budget.Budget, error) {
	var out budget.Budget
	_, err := t.c.call(ctx, &request{method: http.MethodPut, path: t.path("budgets", name), header: ifRevision(revision)}, s, &out)
	return out, err
}

// DeleteBudget deletes a budget. revision is as in PutBudget. CodeBudgetNotFound, CodePreconditionFailed.
func (t *Tenant) DeleteBudget(ctx context.Context, name string, revision int64) error {
	_, err := t.c.call(ctx, &request{method: http.MethodDelete, path: t.path("budgets", name), header: ifRevision(revision)}, nil, nil)
	return err
}
