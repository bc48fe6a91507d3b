package rest

import "github.com/codesous/sous/api"

// ValidateFunctionPath returns CodeValidationName for the path of a function that
// cannot exist.
func ValidateFunctionPath(tenant, namespace, function string) error {
	if err := ValidateNamespacePath(tenant, namespace); err != nil {
		return err
	}
	return api.ValidateName("function", function)
}

// ValidateNamespacePath returns CodeValidationName for the path of a namespace that cannot
// exist.
func ValidateNamespacePath(tenant, namespace string) error {
	if err := api.ValidateTenant(tenant); err != nil {
		return err
	}
	return api.ValidateName("namespace", namespace)
}
