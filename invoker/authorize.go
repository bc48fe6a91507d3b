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
	return permit(inv, res.Version.Config.Authz)
}

// permit checks inv against its version's lists of roles, nil for none. roles is the list
// for the trigger of inv:
//
//	access        admitted if                                        otherwise
//	unrestricted  always
//	public        the trigger is http and roles contains "*"         CodeAuthnRequired
//	granted       roles is empty, contains "*" or a role of inv      CodeAuthzDenied
//
// An empty list therefore admits every caller with the right to invoke, and no anonymous
// one. The zero Access is public, the weakest.
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

// invokeRoles returns the list that applies to a trigger. A job has none, because it was
// checked when it was enqueued; an asynchronous invocation keeps the trigger of its caller,
// so each of its attempts is checked again.
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
