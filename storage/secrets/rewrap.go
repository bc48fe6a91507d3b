package secrets

import (
	"context"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Limits of one call of Rewrap, which the caller repeats: secrets that it examines, and
// namespaces that it reads the names of.
const (
	rewrapSecrets    = 200
	rewrapNamespaces = 100
)

// Rewrap re-encrypts secrets of a tenant with the first identity, where another one sealed
// them. It takes some secrets after the position after; next is the position to continue
// at, "" at the end: a namespace and the last name of it, such as "default/stripe". Values,
// versions and dates stay. It may be repeated, and run while secrets change. A secret that no
// identity opens is counted in the report and is no error. CodeSecretKeyMissing.
func (s *Secrets) Rewrap(ctx context.Context, tenant, after string) (report api.RewrapReport, next string, err error) {
	sealer, err := s.ring(true)
	if err != nil {
		return report, "", err
	}
	namespace, name, within := strings.Cut(after, "/")
	places := []string{namespace} // the rest of the namespace in which the last call ended
	if !within {
		places = nil
	}
	more, last, err := storage.NewTenants(s.store).Namespaces(ctx, tenant, namespace, rewrapNamespaces)
	if err != nil {
		return report, "", err
	}
	for _, namespace := range append(places, more...) {
		for {
			room := rewrapSecrets - report.Examined
			if room <= 0 {
				return report, namespace + "/" + name, nil
			}
			found, following, err := s.page(ctx, Place{tenant, namespace}, name, room)
			if err != nil {
				return report, "", err
			}
			for _, e := range found {
				if err := s.rewrap(ctx, Place{tenant, namespace}, e, sealer, &report); err != nil {
					return report, "", err
				}
			}
			name = following
			if name == "" {
				break
			}
			if len(found) == 0 { // names without records: continue in the next call
				return report, namespace + "/" + name, nil
			}
		}
	}
	return report, last, nil
}

// rewrap re-encrypts one secret. Where it changes meanwhile, it is read again: either the
// change sealed it with the new key, or a replica that has not read the new key yet did
// not.
func (s *Secrets) rewrap(ctx context.Context, p Place, e entry, sealer *ring, report *api.RewrapReport) error {
	report.Examined++
	name, raw := e.name, e.raw
	rec, err := decode(raw)
	if err != nil {
		report.Unreadable++
		return nil //nolint:nilerr // counted: the other secrets are still sealed again
	}
	rec.Name = name
	err = storage.RetryConflicts(ctx, func() error {
		if rec == nil || rec.Key == sealer.fingerprint {
			return nil
		}
		value, err := sealer.open(label(p, name, rec.Version), rec.Sealed)
		if err != nil {
			return err
		}
		defer clear(value)
		resealed := *rec
		resealed.Key = sealer.fingerprint
		resealed.Sealed, err = sealer.seal(label(p, name, rec.Version), value)
		if err != nil {
			return err
		}
		err = s.write(ctx, p, raw, &resealed, "")
		if api.ErrorCode(err) == api.CodeStoreConflict {
			var failed error
			rec, raw, _, failed = s.read(ctx, p, name)
			if failed != nil {
				return failed
			}
		}
		if err == nil {
			report.Rewrapped++
		}
		return err
	})
	if api.ErrorCode(err) == api.CodeSecretUnreadable {
		report.Unreadable++
		return nil
	}
	return err
}
