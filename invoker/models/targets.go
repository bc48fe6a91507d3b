package models

import (
	"context"
	"errors"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/providers/routes"
)

// targets returns the targets of a call in the order in which they are tried. Errors:
// CodeHostAIProviderNotFound, CodeHostInvalidArgument, CodeStoreUnavailable.
func (c *Client) targets(ctx context.Context, tenant, name, model string, of size) ([]routes.Target, error) {
	found, err := c.routes.Targets(ctx, tenant, name, model, routes.Size{Input: of.input, Output: of.output})
	var problem *routes.Problem
	switch {
	case errors.As(err, &problem) && problem.Missing:
		return nil, api.Errorf(api.CodeHostAIProviderNotFound, "%s", problem)
	case errors.As(err, &problem):
		return nil, invalid("%s", problem)
	case err != nil:
		return nil, err
	}
	for _, t := range found {
		if t.Model == "" {
			return nil, invalid("the model is missing: the provider %s has no default", t.Provider.Name)
		}
	}
	return found, nil
}
