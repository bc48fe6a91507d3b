package invoker

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/resolve"
)

// Authorize returns nil if inv would be admitted; nothing runs. The answer holds for the
// version that the alias names now: Invoke and each attempt of a job check again. Errors:
// those of the resolution (Code…NotFound, CodeStoreUnavailable), CodeAuthnRequired for a
// version that is not public, CodeAuthzDenied for roles that it does not list.
func (i *Invoker) Authorize(ctx context.Context, inv *api.Invocation) error {
	_, err := authorize(ctx, inv, i.resolver.Resolve)
	return err
}

// AuthorizeTrigger is Authorize for what invokes a function later: a schedule, a queue trigger or
// a worker binding. It also returns CodeInvalid if the version has no handler for inv.Trigger,
// so that a mistake shows when the trigger is made, and not with its first event. It reads the
// version from the store: a deployment moves the alias and makes the trigger at once, perhaps on
// two replicas.
func (i *Invoker) AuthorizeTrigger(ctx context.Context, inv *api.Invocation) error {
	res, err := authorize(ctx, inv, i.resolver.Load)
	if err != nil {
		return err
	}
	return res.Version.Handles(inv.Trigger.Type)
}

// authorize implements Authorize with the version that find returns, and returns it.
func authorize(ctx context.Context, inv *api.Invocation, find func(context.Context, resolve.Target) (*resolve.Resolution, error)) (*resolve.Resolution, error) {
	if err := inv.Ref.Validate(); err != nil {
		return nil, err
	}
	res, err := find(ctx, resolve.Target{Tenant: inv.Tenant, Namespace: inv.Namespace, Function: inv.Function, Ref: inv.Ref})
	if err != nil {
		return nil, err
	}
	return res, inv.Permit(res.Version.Config.Authz)
}
