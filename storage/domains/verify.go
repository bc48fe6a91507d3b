package domains

import (
	"context"
	"slices"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/domain"
	"github.com/codesous/sous/storage"
)

// Lookup returns the values of the TXT records with a name, none if there is no such record.
type Lookup func(ctx context.Context, name string) ([]string, error)

// Verify makes a tenant the owner of a domain if lookup finds the record of its claim. It takes a
// domain over from another tenant only if the same answer has no record of that tenant any more.
// So of two tenants whose records are both there, the first owner stays, and one whose record is
// missing never becomes the owner. A domain that the tenant owns is not looked up again.
//
// lookup is called after the owner was read, and the owner is written only if it still is the same
// one: a record that was found before another tenant was verified decides nothing afterwards.
//
// CodeDomainNotFound; CodeDomainUnverified if the record was not found, with what was found;
// CodeDomainTaken; the errors of lookup.
func (r *Repository) Verify(ctx context.Context, tenant, name string, lookup Lookup, nowMS int64) (out domain.Domain, err error) {
	changed := false
	err = storage.RetryConflicts(ctx, func() error {
		held, _, err := r.claim(ctx, tenant, name)
		if err == nil && held == nil {
			err = notFound(name)
		}
		if err != nil {
			return err
		}
		by, before, err := r.owner(ctx, name)
		if err != nil {
			return err
		}
		if by.proves(tenant, held) {
			out = held.status(tenant, &by)
			return nil
		}
		record := domain.Challenge(name, held.Token)
		found, err := lookup(ctx, record.Name)
		if err != nil {
			return err
		}
		if !slices.Contains(found, record.Value) {
			return unverified(record, found)
		}
		if err := r.mayTake(ctx, name, &by, found); err != nil {
			return err
		}
		next := owner{Tenant: tenant, Token: held.Token, VerifiedAtMS: nowMS}
		after, err := storage.Encode(&next)
		if err != nil {
			return err
		}
		out, changed = held.status(tenant, &next), true
		return r.own(ctx, name, before, after)
	})
	if err != nil {
		return domain.Domain{}, err
	}
	if changed {
		r.notify(ctx, tenant, name)
	}
	return out, nil
}

// mayTake returns CodeDomainTaken if the domain has an owner whose claim exists and whose record is
// among those found.
func (r *Repository) mayTake(ctx context.Context, name string, by *owner, found []string) error {
	if by.Tenant == "" {
		return nil
	}
	theirs := domain.Challenge(name, by.Token)
	if !slices.Contains(found, theirs.Value) {
		return nil
	}
	held, _, err := r.claim(ctx, by.Tenant, name)
	if err != nil || !by.proves(by.Tenant, held) {
		return err
	}
	return api.Errorf(api.CodeDomainTaken,
		"another tenant has verified %s, and its record is still in the zone: remove the TXT record of %s with the value %q to take the domain over, then verify again",
		name, theirs.Name, theirs.Value)
}

// The values that an error names, and the bytes of each.
const (
	shownValues = 5
	shownBytes  = 100
)

// unverified returns the CodeDomainUnverified of a record that was not among those found.
func unverified(want domain.DNSRecord, found []string) *api.Error {
	e := api.Errorf(api.CodeDomainUnverified, "no TXT record of %s has the value %q: found %s; set it and verify again, a change may take as long as the TTL of the earlier answer", want.Name, want.Value, shown(found))
	return e.WithFields(api.FieldError{Path: "record", Message: "want " + want.Type + " " + want.Name + " " + want.Value})
}

// shown returns values for an error: quoted, since anyone may have written them.
func shown(values []string) string {
	if len(values) == 0 {
		return "no TXT record"
	}
	text := ""
	for i, v := range values {
		if i == shownValues {
			return text + " and " + api.CountText(int64(len(values)-shownValues)) + " more"
		}
		if i > 0 {
			text += ", "
		}
		if len(v) > shownBytes {
			v = v[:shownBytes] + "…"
		}
		text += strconv.QuoteToASCII(v)
	}
	return text
}
