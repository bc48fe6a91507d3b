package documents

import (
	"context"

	"github.com/codesous/sous/api"
)

// enterInstall validates the names of an install, and counts an operation against the rate
// of the tenant.
func (s *Service) enterInstall(tenant, install string) error {
	if err := api.ValidateTenant(tenant); err != nil {
		return Failure(err)
	}
	if err := api.ValidateInstall(install); err != nil {
		return err
	}
	return s.rates.take(tenant)
}

// MayUse fails with CodeStorageDenied where the install neither belongs to the function
// nor is registered for it. A function's own install, fn.<namespace>.<function>, needs no
// registration, and no other function can be registered for it. MayUse reads the store for
// any other install.
func (s *Service) MayUse(ctx context.Context, tenant, install, namespace, function string) error {
	if install == api.FunctionInstall(namespace, function) {
		return nil
	}
	denied := api.Errorf(api.CodeStorageDenied, "the install %q is not registered for the function %s/%s", install, namespace, function)
	if err := api.ValidateInstall(install); err != nil {
		return err
	}
	if _, _, own := api.InstallOf(install); own {
		return denied
	}
	found, err := s.store.GetInstall(ctx, tenant, install)
	if api.ErrorCode(err) == api.CodeDocumentNotFound {
		return denied
	}
	if err != nil {
		return Failure(err)
	}
	if !found.Allows(namespace, function) {
		return denied
	}
	return nil
}

// Installs returns a page of a tenant's installs by name, after the name after; next is ""
// at the end.
func (s *Service) Installs(ctx context.Context, tenant, after string, limit int) (items []api.Install, next string, err error) {
	if err := api.ValidateTenant(tenant); err != nil {
		return nil, "", Failure(err)
	}
	items, next, err = s.store.Installs(ctx, tenant, after, limit)
	return items, next, Failure(err)
}

// Install returns the registration of an install. CodeDocumentNotFound.
func (s *Service) Install(ctx context.Context, tenant, install string) (*api.Install, error) {
	if err := s.enterInstall(tenant, install); err != nil {
		return nil, err
	}
	found, err := s.store.GetInstall(ctx, tenant, install)
	if err != nil {
		return nil, Failure(err)
	}
	return found, nil
}

// RegisterInstall registers an install, or changes which functions may use it. The list in
// install replaces the earlier one. CodeDocumentInvalid.
func (s *Service) RegisterInstall(ctx context.Context, tenant string, install api.Install) (*api.Install, error) {
	if err := s.enterInstall(tenant, install.Install); err != nil {
		return nil, err
	}
	if err := install.Validate(); err != nil {
		return nil, err
	}
	install.CreatedAt = api.NewMoment(s.now())
	kept, err := s.store.RegisterInstall(ctx, tenant, install)
	if err != nil {
		return nil, Failure(err)
	}
	return kept, nil
}

// DeleteInstall removes an install and all its documents. CodeDocumentNotFound.
func (s *Service) DeleteInstall(ctx context.Context, tenant, install string) error {
	if err := s.enterInstall(tenant, install); err != nil {
		return err
	}
	return remove(func() (int, bool, error) { return s.store.DeleteInstall(ctx, tenant, install, clearRecords) })
}
