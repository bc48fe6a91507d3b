package storage

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// RegisterInstall stores what a tenant says of an install, in place of what it said before;
// the time at which it came into being stays. It gives the install as it is then.
func (r *Documents) RegisterInstall(ctx context.Context, tenant string, install api.Install) (*api.Install, error) {
	before, err := r.GetInstall(ctx, tenant, install.Install)
	switch {
	case err == nil:
		install.CreatedAt = before.CreatedAt
	case api.ErrorCode(err) != api.CodeDocumentNotFound:
		return nil, err
	}
	raw, err := encode(install)
	if err != nil {
		return nil, err
	}
	// The lists first: what is stored can be reached from their root.
	if err := NewTenants(r.s).registerDocuments(ctx, tenant); err != nil {
		return nil, err
	}
	// Administrators who race may go beyond the bound by their number.
	if n, err := r.s.rdb.ZCard(ctx, r.s.keys.documentInstalls(tenant)).Result(); err != nil {
		return nil, failure(ctx, "register install", err)
	} else if before == nil && n >= api.MaxDocumentInstalls {
		return nil, tooManyInstalls()
	}
	if err := r.s.rdb.ZAdd(ctx, r.s.keys.documentInstalls(tenant), redis.Z{Member: install.Install}).Err(); err != nil {
		return nil, failure(ctx, "register install", err)
	}
	return &install, failure(ctx, "register install", r.s.rdb.Set(ctx, r.s.keys.documentMeta(tenant, install.Install), raw, 0).Err())
}

// GetInstall gives what was registered of an install. CodeDocumentNotFound where nothing
// was, though it may have documents.
func (r *Documents) GetInstall(ctx context.Context, tenant, install string) (*api.Install, error) {
	raw, err := r.s.rdb.Get(ctx, r.s.keys.documentMeta(tenant, install)).Result()
	if errors.Is(err, redis.Nil) {
		return nil, installNotFound(install)
	}
	if err != nil {
		return nil, failure(ctx, "read install", err)
	}
	out, err := decode[api.Install](raw)
	return &out, err
}

func installNotFound(install string) error {
	return api.Errorf(api.CodeDocumentNotFound, "there is no install %q", install)
}

// Installs is a page of a tenant's installs by id, beginning behind after: those that are
// registered, and those that have had documents, of which nothing but the id may be known.
// next is "" at the end, else what to pass as after.
func (r *Documents) Installs(ctx context.Context, tenant, after string, limit int) (items []api.Install, next string, err error) {
	limit = pageLimit(limit)
	ids, err := r.s.lexRange(ctx, r.s.keys.documentInstalls(tenant), after, limit+1)
	if err != nil {
		return nil, "", failure(ctx, "list installs", err)
	}
	if len(ids) > limit {
		ids = ids[:limit]
		next = ids[limit-1]
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = r.s.keys.documentMeta(tenant, id)
	}
	raws, err := r.s.getMany(ctx, keys)
	if err != nil {
		return nil, "", failure(ctx, "list installs", err)
	}
	items = make([]api.Install, len(ids))
	for i, raw := range raws {
		if raw != "" {
			if items[i], err = decode[api.Install](raw); err != nil {
				return nil, "", err
			}
		}
		items[i].Install = ids[i]
	}
	return items, next, nil
}

// DeleteInstall deletes an install with all its documents step by step, up to limit
// documents of each namespace. more says that it is not done. CodeDocumentNotFound.
func (r *Documents) DeleteInstall(ctx context.Context, tenant, install string, limit int) (removed int, more bool, err error) {
	k := r.s.keys
	switch err := r.s.rdb.ZScore(ctx, k.documentInstalls(tenant), install).Err(); {
	case errors.Is(err, redis.Nil):
		return 0, false, installNotFound(install)
	case err != nil:
		return 0, true, failure(ctx, "delete install", err)
	}
	names, err := r.namespaces(ctx, tenant, install)
	if err != nil {
		return 0, true, err
	}
	for _, name := range names {
		n, left, err := r.Clear(ctx, DocumentPath{tenant, install, name}, limit)
		removed, more = removed+n, more || left
		if err != nil {
			return removed, true, err
		}
	}
	if more {
		return removed, true, nil
	}
	reply, err := r.s.eval(ctx, scriptDocumentUninstall,
		[]string{k.documentNamespaces(tenant, install), k.documentMeta(tenant, install), k.documentInstalls(tenant)}, install)
	return removed, err != nil || reply != int64(1), err
}
