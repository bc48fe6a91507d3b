package approvals

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval/policy"
	"github.com/codesous/sous/api/whoami"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue/approvals"
)

// ballot returns a vote of the caller of ctx, with its standings: its own first, and then those of the
// keys and roles that have delegated their votes to it. A delegation passes on what its maker has by its
// own key, so there are no chains; one whose maker or delegator was revoked is void. Errors:
// CodeStoreUnavailable.
func (a *API) ballot(ctx context.Context, tenant string) (approvals.Ballot, error) {
	c := rest.CallerOf(ctx)
	identity := c.Identity()
	b := approvals.Ballot{
		Key: c.Sub, Name: identity.Name, Steers: c.Need(access.JobSteer) == nil, Unrestricted: identity.Auth == whoami.AuthOff,
		Standings: []approvals.Standing{{Key: c.Sub, Roles: identity.Roles, Namespace: c.Namespace}},
	}
	delegations, err := a.policies.Delegations(ctx, tenant, a.store.NowMS())
	if err != nil {
		return b, err
	}
	for i := range delegations {
		if d := &delegations[i]; d.To == c.Sub {
			s, ok, err := a.standing(ctx, tenant, d)
			if err != nil {
				return b, err
			}
			if ok {
				b.Standings = append(b.Standings, s)
			}
		}
	}
	return b, nil
}

// standing returns the standing that a delegation passes on, and whether it is valid.
func (a *API) standing(ctx context.Context, tenant string, d *policy.Delegation) (s approvals.Standing, ok bool, err error) {
	maker, ok, err := a.key(ctx, tenant, d.CreatedBy)
	if err != nil || !ok {
		return s, false, err
	}
	s = approvals.Standing{Of: d.From, Roles: []string{d.From}, Namespace: maker.Namespace}
	if !policy.IsKey(d.From) {
		return s, true, nil
	}
	from, ok, err := a.key(ctx, tenant, d.From)
	s.Key, s.Roles, s.Namespace = from.ID, from.Roles, from.Namespace
	return s, ok, err
}

// key returns a key of the tenant, or an administrator of the platform, and whether it is valid.
func (a *API) key(ctx context.Context, tenant, id string) (key api.Key, ok bool, err error) {
	for _, scope := range []string{tenant, api.AllTenants} {
		key, err = a.keys.Get(ctx, scope, id)
		if api.ErrorCode(err) != api.CodeKeyNotFound {
			return key, err == nil, err
		}
	}
	return api.Key{}, false, nil
}
