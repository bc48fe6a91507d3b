package api

import (
	"slices"
	"strings"
)

// anyRole in a version's list admits anonymous callers over HTTP, and elsewhere every
// caller with the right to invoke.
const anyRole = "*"

// Permit checks inv against its version's lists of roles, nil for none. roles is the list
// for the trigger of inv; for triggers of queues, jobs and destinations it is that of calls:
//
//	access        admitted if                                        otherwise
//	unrestricted  always
//	public        the trigger is http and roles contains "*"         CodeAuthnRequired
//	granted       roles is empty, contains "*" or a role of inv      CodeAuthzDenied
//
// An empty list therefore admits every caller with the right to invoke, and no anonymous
// one. The zero Access is public, the weakest.
func (inv *Invocation) Permit(lists *Authz) error {
	roles := invokeRoles(lists, inv.Trigger.Type)
	switch inv.Access {
	case AccessUnrestricted:
		return nil
	case AccessPublic:
		if inv.Trigger.Type == TriggerHTTP && slices.Contains(roles, anyRole) {
			return nil
		}
		return Errorf(CodeAuthnRequired, "this needs an API key")
	case AccessGranted:
		has := func(role string) bool { return slices.Contains(roles, role) }
		if len(roles) == 0 || has(anyRole) || slices.ContainsFunc(inv.Principal.Roles, has) {
			return nil
		}
	}
	return Errorf(CodeAuthzDenied, "this version is for other roles than the caller's (%s)", strings.Join(inv.Principal.Roles, ", "))
}

// invokeRoles returns the list that applies to a trigger. A job keeps the caller that enqueued it,
// and a queue trigger its owner, so each attempt is checked again.
func invokeRoles(lists *Authz, trigger string) []string {
	if lists == nil {
		return nil
	}
	switch trigger {
	case TriggerHTTP, TriggerAPI, TriggerQueue:
		return lists.InvokeHTTPRoles
	case TriggerSchedule:
		return lists.InvokeScheduleRoles
	case TriggerCadence:
		return lists.InvokeCadenceRoles
	}
	return nil
}
