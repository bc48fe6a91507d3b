package invoker

import (
	"context"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
)

// anyRole in a version's list admits anonymous callers over HTTP, and elsewhere every
// caller with the right to invoke.
const anyRole = "*"

// Authorize returns nil if inv would be admitted; nothing runs. Errors: those of
// the resolution (Code…NotFound, CodeStoreUnavailable), CodeAuthnRequired for a
// version that is not public, CodeAuthzDenied for roles that it does not list.
func (i *Invoker) Authorize(ctx context.Context, inv *api.Invocation) error {
	if err := inv.Ref.Validate(); err != nil {
		return err
	}
	res, err := i.resolver.resolve(ctx, target{inv.Tenant, inv.Namespace, inv.Function, inv.Ref})
	if err != nil {
		return err
	}
	return permit(inv, res.Version.Config.Authz)
}

// permit checks inv against its version's lists of roles, nil for none.
func permit(inv *api.Invocation, lists *api.Authz) error {
	roles := invokeRoles(lists, inv.Trigger.Type)
	switch inv.Access {
	case api.AccessUnrestricted:
		return nil
	case api.AccessPublic:
		if inv.Trigger.Type == api.TriggerHTTP && slices.Contains(roles, anyRole) {
			return nil
		}
		return api.Errorf(api.CodeAuthnRequired, "this needs an API key")
	case api.AccessGranted:
		if len(roles) == 0 || slices.Contains(roles, anyRole) {
			return nil
		}
		for _, role := range inv.Principal.Roles {
			if slices.Contains(roles, role) {
				return nil
			}
		}
	}
	return api.Errorf(api.CodeAuthzDenied, "this version is for other roles than the caller's (%s)", strings.Join(inv.Principal.Roles, ", "))
}

// invokeRoles returns the list that applies to a trigger. A job has none: it was checked
// when it was enqueued.
func invokeRoles(lists *api.Authz, trigger string) []string {
	if lists == nil {
		return nil
	}
	switch trigger {
	case api.TriggerHTTP, api.TriggerAPI:
		return lists.InvokeHTTPRoles
	case api.TriggerSchedule:
		return lists.InvokeScheduleRoles
	case api.TriggerCadence:
		return lists.InvokeCadenceRoles
	}
	return nil
}
