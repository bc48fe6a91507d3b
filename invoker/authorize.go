package invoker

import (
	"context"

	"github.com/codesous/sous/api"
)

// Authorize returns nil if inv would be admitted; nothing runs. The answer holds for the
// version that the alias names now: Invoke and each attempt of a job check again. Errors:
// those of the resolution (Code…NotFound, CodeStoreUnavailable), CodeAuthnRequired for a
// version that is not public, CodeAuthzDenied for roles that it does not list.
func (i *Invoker) Authorize(ctx context.Context, inv *api.Invocation) error {
	if err := inv.Ref.Validate(); err != nil {
		return err
	}
	res, err := i.resolver.resolve(ctx, target{inv.Tenant, inv.Namespace, inv.Function, inv.Ref})
	if err != nil {
		return err
	}
	return inv.Permit(res.Version.Config.Authz)
}
