// Package providers keeps a tenant's providers of models: their records, the circuits that keep calls
// away from providers that fail, and their limits a minute, which hold for all replicas together.
//
//	repository.go  records
//	registry.go    the view of them by which a replica calls providers, and circuits
//	limiter.go     limits a minute
//
// All keys of a tenant are in one slot:
//
//	cs:ai:t:providers     name → record; # → the number of changes
//	cs:ai:t:circuits      name → until opened failures, of providers that fail
//	cs:ai:t:limit:name    limit → left:time
package providers

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/storage"
)

// The scripts of providers, by the names of their files in package lua.
const (
	scriptPut     = "provider_put.lua"
	scriptCircuit = "provider_circuit.lua"
	scriptTake    = "provider_take.lua"
)

// The parts of keys.
const (
	partRecords  = "providers"
	partCircuits = "circuits"
	partLimit    = "limit:"
)

// changesField is the field of the number of changes. No provider has the name.
const changesField = "#"

// record is a provider in its stored form. Write is the random name of the write that made it: the
// script takes an equal record for a repeat of the same write.
type record struct {
	ai.Provider
	Write string `json:"write"`
}

// Repository keeps providers. It is safe for concurrent use, by any number of processes.
type Repository struct{ s *storage.Store }

// New returns the providers in s.
func New(s *storage.Store) *Repository { return &Repository{s} }

// Condition guards a Put.
type Condition struct {
	IfMatch *int64 // the revision that the provider must have; nil accepts any
	IfNew   bool   // the provider must not exist
}

// check returns CodePreconditionFailed or CodeProviderNotFound unless held, nil for a missing provider,
// meets the condition.
func (c Condition) check(name string, held *ai.Provider) error {
	switch {
	case c.IfNew && held != nil:
		return api.Errorf(api.CodePreconditionFailed, "the provider %s exists", name)
	case c.IfMatch != nil && held == nil:
		return notFound(name)
	case c.IfMatch != nil && held.Revision != *c.IfMatch:
		return api.Errorf(api.CodePreconditionFailed, "the provider %s is at revision %d", name, held.Revision)
	}
	return nil
}

func notFound(name string) error {
	return api.Errorf(api.CodeProviderNotFound, "the provider %s does not exist", name)
}

// all returns a tenant's providers by name, and the number of changes as it is stored.
func (r *Repository) all(ctx context.Context, tenant string) (found map[string]*ai.Provider, changes string, err error) {
	stored, err := r.s.Client().HGetAll(ctx, r.s.Keys().Providers(tenant, partRecords)).Result()
	if err != nil {
		return nil, "", storage.Failure(ctx, "read providers", err)
	}
	return decode(stored)
}

func decode(stored map[string]string) (found map[string]*ai.Provider, changes string, err error) {
	found = make(map[string]*ai.Provider, len(stored))
	for name, raw := range stored {
		if name == changesField {
			changes = raw
			continue
		}
		p, err := storage.Decode[record](raw)
		if err != nil {
			return nil, "", err
		}
		found[name] = &p.Provider
	}
	return found, changes, nil
}

// List returns all providers of a tenant, at most ai.MaxProviders, by name. Errors:
// CodeStoreUnavailable.
func (r *Repository) List(ctx context.Context, tenant string) ([]ai.Provider, error) {
	found, _, err := r.all(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out := make([]ai.Provider, 0, len(found))
	for _, p := range slices.SortedFunc(maps.Values(found), func(a, b *ai.Provider) int { return cmp.Compare(a.Name, b.Name) }) {
		out = append(out, *p)
	}
	return out, nil
}

// Get returns a provider. Errors: CodeProviderNotFound, CodeStoreUnavailable.
func (r *Repository) Get(ctx context.Context, tenant, name string) (*ai.Provider, error) {
	found, _, err := r.all(ctx, tenant)
	if err == nil && found[name] == nil {
		err = notFound(name)
	}
	if err != nil {
		return nil, err
	}
	return found[name], nil
}

// Put creates or changes a provider, whose settings are normalized and valid. Equal settings change
// nothing. Errors: CodePreconditionFailed, CodeProviderNotFound for an IfMatch and for a target that
// does not exist, CodeProviderCycle, CodeProviderLimit, CodeStoreUnavailable.
func (r *Repository) Put(ctx context.Context, tenant, name string, settings ai.ProviderSettings, on Condition, nowMS int64) (out *ai.Provider, created bool, err error) {
	changed := false
	err = storage.RetryConflicts(ctx, func() error {
		found, changes, err := r.all(ctx, tenant)
		if err != nil {
			return err
		}
		held := found[name]
		if err := on.check(name, held); err != nil {
			return err
		}
		next := ai.Provider{Name: name, ProviderSettings: settings, Revision: 1, CreatedAtMS: nowMS, UpdatedAtMS: nowMS}
		created, changed = held == nil, true
		switch {
		case created && len(found) >= ai.MaxProviders:
			return api.Errorf(api.CodeProviderLimit, "limit of %d providers reached: delete one first", ai.MaxProviders)
		case !created:
			next.Revision, next.CreatedAtMS = held.Revision+1, held.CreatedAtMS
			changed, err = differs(held.ProviderSettings, settings)
			if err != nil || !changed {
				out = held
				return err
			}
		}
		found[name] = &next
		if err := ai.CheckRoutes(found); err != nil {
			return err
		}
		out = &next
		raw, err := storage.Encode(record{next, uuid.NewString()})
		if err != nil {
			return err
		}
		return r.write(ctx, tenant, name, changes, raw)
	})
	if err == nil && changed {
		r.notify(ctx, tenant)
	}
	return out, created, err
}

// differs reports whether two settings differ.
func differs(a, b ai.ProviderSettings) (bool, error) {
	one, err := storage.Encode(a)
	if err != nil {
		return false, err
	}
	other, err := storage.Encode(b)
	return one != other, err
}

// write stores a record, "" to delete it, if the number of changes still is before.
func (r *Repository) write(ctx context.Context, tenant, name, before, raw string) error {
	k := r.s.Keys()
	_, err := r.s.Script(ctx, scriptPut, []string{k.Providers(tenant, partRecords), k.Providers(tenant, partCircuits), k.Providers(tenant, partLimit+name)}, before, name, raw)
	return err
}

// Delete deletes a provider. Errors: CodeProviderNotFound, CodePreconditionFailed, CodeProviderUsed for a
// target of a route, CodeStoreUnavailable.
func (r *Repository) Delete(ctx context.Context, tenant, name string, ifMatch *int64) error {
	err := storage.RetryConflicts(ctx, func() error {
		found, changes, err := r.all(ctx, tenant)
		if err != nil {
			return err
		}
		held := found[name]
		if held == nil {
			return notFound(name)
		}
		if err := (Condition{IfMatch: ifMatch}).check(name, held); err != nil {
			return err
		}
		for _, p := range found {
			if slices.ContainsFunc(p.Targets, func(t ai.RouteTarget) bool { return t.Provider == name }) {
				return api.Errorf(api.CodeProviderUsed, "the provider %s is a target of the route %s: change or delete that first", name, p.Name)
			}
		}
		return r.write(ctx, tenant, name, changes, "")
	})
	if err == nil {
		r.notify(ctx, tenant)
	}
	return err
}

// notify publishes a change to the replicas. Best effort: they also read the providers that they use
// every few seconds.
func (r *Repository) notify(ctx context.Context, tenant string) {
	_ = r.s.PublishChange(ctx, storage.Change{Kind: storage.ChangeProvider, Tenant: tenant})
}
