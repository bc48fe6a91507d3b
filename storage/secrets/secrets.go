// Package secrets keeps the secrets of namespaces in the store, sealed with age. A
// value leaves it through Reveal alone.
//
// The key file (KeyFile) holds age identities: the first one seals, every one opens. A secret
// is a record that contains the sealed value:
//
//	cs:secret:t_acme01:default:stripe   {"name":"stripe","version":2,…,"sealed":"YWdl…","key":"6f1d…"}
//	cs:secrets:t_acme01:default         {stripe, …}, the names
//	cs:secrets:t_acme01:default:floor   7
//
// key is the fingerprint of the identity that sealed the value. floor is the highest version
// of any deleted secret of the namespace: a new secret begins above it, here with version 8.
// So a name and a version never mean two values, and a cached value that a replica holds
// under both is either current or recognizably old.
//
// A Put interrupted after the name was added leaves a name without a record, which readers
// skip. A Delete raises the floor, removes the record, and then the name: interrupted after
// the floor, the secret exists; after the record, only its name is left, which the next Put or
// Delete of the name uses or removes.
//
// To rotate a key: Rotate puts a new identity first in the file, every replica reads the file
// again within a second of its next use, and Rewrap seals all secrets with it. After that the
// old identity can be removed.
//
// Files: secrets.go has the records, reveal.go opens them, ring.go seals and opens, keyfile.go
// follows the file, keygen.go and owner.go write it, and rewrap.go seals again.
package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
)

// The scripts of secrets, by the names of their files in package lua.
const (
	scriptPut    = "secret_put.lua"
	scriptDelete = "secret_delete.lua"
)

// Place names a namespace of secrets.
type Place struct{ Tenant, Namespace string }

// Secrets seals, stores and opens secrets. It is safe for concurrent use.
type Secrets struct {
	store *storage.Store
	keys  *KeyFile
}

// New returns the secrets in store. With nil keys it lists and deletes secrets, but
// neither seals nor opens them.
func New(store *storage.Store, keys *KeyFile) *Secrets { return &Secrets{store, keys} }

// record is a secret in its stored form, JSON. Sealed is age's binary format, which JSON has in
// base64.
type record struct {
	api.Secret
	Sealed []byte `json:"sealed"`
	Key    string `json:"key"` // the fingerprint of the key that sealed it
}

// Condition guards a Put.
type Condition struct {
	IfMatch *int64 // the version that the secret must have; nil accepts any
	IfNew   bool   // the secret must not exist
}

// Put seals a value and stores it under name, as the secret's next version. by identifies
// the caller. created reports that the secret did not exist. A try whose answer was lost is
// repeated with the same record and succeeds. CodeValidationName and CodeInvalid for a name or
// a value that is not valid, CodeSecretKeyMissing without a key file, CodePreconditionFailed,
// CodeSecretNotFound for an IfMatch of a missing secret, CodeSecretLimit.
func (s *Secrets) Put(ctx context.Context, p Place, name, value, by string, on Condition) (out api.Secret, created bool, err error) {
	if err := errors.Join(api.ValidateSecretName(name), api.ValidateSecretValue(value)); err != nil {
		return api.Secret{}, false, err
	}
	sealer, err := s.ring(false)
	if err != nil {
		return api.Secret{}, false, err
	}
	if err := storage.NewTenants(s.store).RegisterNamespace(ctx, p.Tenant, p.Namespace); err != nil {
		return api.Secret{}, false, err
	}
	err = storage.RetryConflicts(ctx, func() error {
		before, raw, floor, err := s.read(ctx, p, name)
		if err != nil {
			return err
		}
		if err := on.check(name, before); err != nil {
			return err
		}
		rec, err := next(before, floor)
		if err != nil {
			return err
		}
		rec.Name, rec.UpdatedAtMS, rec.UpdatedBy, rec.Key = name, s.store.NowMS(), by, sealer.fingerprint
		created = before == nil
		if created {
			rec.CreatedAtMS = rec.UpdatedAtMS
		}
		rec.Sealed, err = sealer.seal(label(p, name, rec.Version), []byte(value))
		if err != nil {
			return err
		}
		out = rec.Secret
		store := func() error { return s.write(ctx, p, raw, &rec, floor) }
		if !created {
			return store()
		}
		return s.store.Taking(ctx, p.Tenant, store, storage.One(quota.Secrets))
	})
	if err != nil {
		return api.Secret{}, false, err
	}
	s.notify(ctx, p, name)
	return out, created, nil
}

// next returns the record that follows before, which is nil for a new secret. No version
// is used twice: a new secret continues after the floor.
func next(before *record, floor string) (record, error) {
	if before != nil {
		rec := *before
		rec.Version++
		return rec, nil
	}
	deleted := int64(0)
	if floor != "" {
		var err error
		deleted, err = strconv.ParseInt(floor, 10, 64)
		if err != nil {
			return record{}, fmt.Errorf("decode the floor of secrets: %w", err)
		}
	}
	return record{Secret: api.Secret{Version: deleted + 1}}, nil
}

// check returns CodePreconditionFailed or CodeSecretNotFound unless held, nil for a missing
// secret, meets the condition.
func (c Condition) check(name string, held *record) error {
	switch {
	case c.IfNew && held != nil:
		return api.Errorf(api.CodePreconditionFailed, "secret %q exists", name)
	case c.IfMatch != nil && held == nil:
		return notFound(name)
	case c.IfMatch != nil && held.Version != *c.IfMatch:
		return api.Errorf(api.CodePreconditionFailed, "secret %q is at version %d", name, held.Version)
	}
	return nil
}

// ring returns the current identities. With fresh it reads a changed key file without
// delay. CodeSecretKeyMissing.
func (s *Secrets) ring(fresh bool) (*ring, error) {
	if s.keys == nil {
		return nil, api.Errorf(api.CodeSecretKeyMissing,
			"this server has no key for secrets: make a key file (sous secret keygen FILE) and start it with --secrets-key-file FILE (SOUS_SECRETS_KEY_FILE)")
	}
	return s.keys.ring(fresh), nil
}

// read returns a secret's record, nil for none, with its stored text, and the floor of its
// namespace.
func (s *Secrets) read(ctx context.Context, p Place, name string) (rec *record, raw, floor string, err error) {
	k := s.store.SecretKeys(p.Tenant, p.Namespace)
	found, err := s.store.GetMany(ctx, []string{k.Record(name), k.Floor()})
	if err != nil {
		return nil, "", "", storage.Failure(ctx, "read secret", err)
	}
	raw, floor = found[0], found[1]
	if raw == "" {
		return nil, "", floor, nil
	}
	rec, err = decode(raw)
	return rec, raw, floor, err
}

// decode parses a record. Its error contains no part of the record.
func decode(raw string) (*record, error) {
	var rec record
	if err := json.Unmarshal([]byte(raw), &rec); err != nil {
		return nil, api.Errorf(api.CodeSecretUnreadable, "the secret's record is damaged")
	}
	return &rec, nil
}

// write stores rec if the stored text still is before ("" for none) and, for a new secret, if
// the floor still is floor. CodeStoreConflict if not; CodeSecretLimit.
func (s *Secrets) write(ctx context.Context, p Place, before string, rec *record, floor string) error {
	raw, err := api.EncodeJSON(rec)
	if err != nil {
		return err
	}
	k := s.store.SecretKeys(p.Tenant, p.Namespace)
	_, err = s.store.Script(ctx, scriptPut, []string{k.Record(rec.Name), k.Index(), k.Floor()},
		before, raw, rec.Name, floor, api.MaxSecrets)
	return err
}

// notify publishes a change to the replicas, which hold opened values of secrets in use. Best
// effort: they also look every half minute.
func (s *Secrets) notify(ctx context.Context, p Place, name string) {
	_ = s.store.PublishChange(ctx, storage.Change{Kind: storage.ChangeSecret, Tenant: p.Tenant, Namespace: p.Namespace, Secret: name})
}

func notFound(name string) error {
	return api.Errorf(api.CodeSecretNotFound, "secret %q does not exist", name)
}

// Get returns a secret without its value. CodeSecretNotFound.
func (s *Secrets) Get(ctx context.Context, p Place, name string) (api.Secret, error) {
	rec, _, _, err := s.read(ctx, p, name)
	if err == nil && rec == nil {
		err = notFound(name)
	}
	if err != nil {
		return api.Secret{}, err
	}
	return rec.Secret, nil
}

// List returns a page of a namespace's secrets by name, after the name after. next is ""
// at the end. A page may be short and still have a next.
func (s *Secrets) List(ctx context.Context, p Place, after string, limit int) (items []api.Secret, next string, err error) {
	found, next, err := s.page(ctx, p, after, storage.PageLimit(limit))
	for _, e := range found {
		rec, err := decode(e.raw)
		if err != nil {
			return nil, "", err
		}
		rec.Name = e.name
		items = append(items, rec.Secret)
	}
	return items, next, err
}

// entry is the stored text of a record, with its name.
type entry struct{ name, raw string }

// page reads up to limit records of the index, after the name after.
func (s *Secrets) page(ctx context.Context, p Place, after string, limit int) (found []entry, next string, err error) {
	k := s.store.SecretKeys(p.Tenant, p.Namespace)
	names, err := s.store.LexRange(ctx, k.Index(), after, limit+1)
	if err != nil {
		return nil, "", storage.Failure(ctx, "list secrets", err)
	}
	names, next = storage.FirstPage(names, limit)
	found, err = s.records(ctx, k, names)
	return found, next, err
}

// records reads the records of names. It leaves out names without a record.
func (s *Secrets) records(ctx context.Context, k storage.SecretKeys, names []string) (found []entry, err error) {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = k.Record(name)
	}
	raws, err := s.store.GetMany(ctx, keys)
	if err != nil {
		return nil, storage.Failure(ctx, "read secrets", err)
	}
	for i, raw := range raws {
		if raw != "" {
			found = append(found, entry{names[i], raw})
		}
	}
	return found, nil
}

// Delete removes a secret; with ifMatch, only if that is its version. It needs no key file.
// CodeSecretNotFound, CodePreconditionFailed. After CodeStoreUnavailable the secret may be
// deleted: the script is not sent twice, because a second run would not find it.
func (s *Secrets) Delete(ctx context.Context, p Place, name string, ifMatch *int64) error {
	if err := api.ValidateSecretName(name); err != nil {
		return err
	}
	err := storage.RetryConflicts(ctx, func() error {
		held, raw, _, err := s.read(ctx, p, name)
		if err != nil {
			return err
		}
		if err := (Condition{IfMatch: ifMatch}).check(name, held); err != nil {
			return err
		}
		version := int64(0)
		if held != nil {
			version = held.Version
		}
		k := s.store.SecretKeys(p.Tenant, p.Namespace)
		_, err = s.store.ScriptOnce(ctx, scriptDelete, []string{k.Record(name), k.Index(), k.Floor()}, raw, name, version)
		return err
	})
	if err == nil {
		s.store.Returned(ctx, p.Tenant, storage.One(quota.Secrets))
		s.notify(ctx, p, name)
	}
	return err
}
