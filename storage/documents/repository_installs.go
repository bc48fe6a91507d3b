package documents

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// RegisterInstall stores the registration of an install, in place of the earlier one,
// whose CreatedAt it keeps. It returns the stored registration. Of concurrent registrations
// the last one stays. CodeDocumentInvalid where the tenant has api.MaxDocumentInstalls
// installs.
func (r *Repository) RegisterInstall(ctx context.Context, tenant string, install api.Install) (*api.Install, error) {
	before, err := r.GetInstall(ctx, tenant, install.Install)
	switch {
	case err == nil:
		install.CreatedAt = before.CreatedAt
	case api.ErrorCode(err) != api.CodeDocumentNotFound:
		return nil, err
	}
	raw, err := storage.Encode(install)
	if err != nil {
		return nil, err
	}
	// The lists first, so that every stored install can be reached from their root.
	if err := storage.NewTenants(r.s).RegisterDocuments(ctx, tenant); err != nil {
		return nil, err
	}
	// Concurrent registrations may exceed the limit by their number.
	if n, err := r.s.Client().ZCard(ctx, r.s.Keys().DocumentInstalls(tenant)).Result(); err != nil {
		return nil, storage.Failure(ctx, "register install", err)
	} else if before == nil && n >= api.MaxDocumentInstalls {
		return nil, tooManyInstalls()
	}
	if err := r.s.Client().ZAdd(ctx, r.s.Keys().DocumentInstalls(tenant), redis.Z{Member: install.Install}).Err(); err != nil {
		return nil, storage.Failure(ctx, "register install", err)
	}
	return &install, storage.Failure(ctx, "register install", r.s.Client().Set(ctx, r.s.Keys().DocumentInstallMeta(tenant, install.Install), raw, 0).Err())
}

// GetInstall returns the registration of an install. CodeDocumentNotFound if it is not
// registered, although it may have documents.
func (r *Repository) GetInstall(ctx context.Context, tenant, install string) (*api.Install, error) {
	raw, err := r.s.Client().Get(ctx, r.s.Keys().DocumentInstallMeta(tenant, install)).Result()
	if errors.Is(err, redis.Nil) {
		return nil, installNotFound(install)
	}
	if err != nil {
		return nil, storage.Failure(ctx, "read install", err)
	}
	out, err := storage.Decode[api.Install](raw)
	return &out, err
}

func installNotFound(install string) error {
	return api.Errorf(api.CodeDocumentNotFound, "install %q does not exist", install)
}

// Installs returns a page of a tenant's installs by id, after the id after: registered
// installs, and installs that have had documents, of which only the id may be known. next
// is "" at the end, else the after of the next page.
func (r *Repository) Installs(ctx context.Context, tenant, after string, limit int) (items []api.Install, next string, err error) {
	limit = storage.PageLimit(limit)
	ids, err := r.s.LexRange(ctx, r.s.Keys().DocumentInstalls(tenant), after, limit+1)
	if err != nil {
		return nil, "", storage.Failure(ctx, "list installs", err)
	}
	ids, next = storage.FirstPage(ids, limit)
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = r.s.Keys().DocumentInstallMeta(tenant, id)
	}
	raws, err := r.s.GetMany(ctx, keys)
	if err != nil {
		return nil, "", storage.Failure(ctx, "list installs", err)
	}
	items = make([]api.Install, len(ids))
	for i, raw := range raws {
		if raw != "" {
			items[i], err = storage.Decode[api.Install](raw)
			if err != nil {
				return nil, "", err
			}
		}
		items[i].Install = ids[i]
	}
	return items, next, nil
}

// DeleteInstall deletes an install and its documents in steps: one call removes up to
// limit documents of each namespace. more reports whether another call is needed. The
// registration goes last, with the entry in the list, so that an interrupted deletion can be
// repeated. CodeDocumentNotFound where the tenant's list does not have the install.
func (r *Repository) DeleteInstall(ctx context.Context, tenant, install string, limit int) (removed int, more bool, err error) {
	k := r.s.Keys()
	switch err := r.s.Client().ZScore(ctx, k.DocumentInstalls(tenant), install).Err(); {
	case errors.Is(err, redis.Nil):
		return 0, false, installNotFound(install)
	case err != nil:
		return 0, true, storage.Failure(ctx, "delete install", err)
	}
	names, err := r.namespaces(ctx, tenant, install)
	if err != nil {
		return 0, true, err
	}
	for _, name := range names {
		n, left, err := r.Clear(ctx, storage.DocumentPath{Tenant: tenant, Install: install, Namespace: name}, limit)
		removed, more = removed+n, more || left
		if err != nil {
			return removed, true, err
		}
	}
	if more {
		return removed, true, nil
	}
	reply, err := r.s.Script(ctx, scriptUninstall,
		[]string{k.DocumentNamespaces(tenant, install), k.DocumentInstallMeta(tenant, install), k.DocumentInstalls(tenant)}, install)
	return removed, err != nil || reply != int64(1), err
}
