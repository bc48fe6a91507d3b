package rest

import "github.com/codesous/sous/api"

// ValidateFunctionPath returns CodeValidationName for the path of a function that
// cannot exist.
func ValidateFunctionPath(tenant, namespace, function string) error {
	if err := api.ValidateTenant(tenant); err != nil {
		return err
	}
	if err := api.ValidateName("namespace", namespace); err != nil {
		return err
	}
	return api.ValidateName("function", function)
}
