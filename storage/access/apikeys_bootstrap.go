package access

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// A Bootstrap has less time than its lock lives, so that two never run at the same time,
// and releases the lock within the remaining time: it works for 20 s at most, may release the
// lock until 25 s, and the lock expires after 30 s. If its process dies, the next Bootstrap
// has to wait for that.
const (
	bootstrapLockTTL = 30 * time.Second
	bootstrapTime    = 20 * time.Second
	bootstrapUnlock  = 5 * time.Second
)

// Bootstrap stores the key of an administrator of k.Tenant, if the tenant has none;
// k.Namespace must be "". With replace it does so in any case, and then revokes the
// earlier keys of administrators, whose ids it returns. The new key is stored before the old
// ones are revoked, so a crash in between leaves both. If an earlier key cannot be revoked,
// stored is true although there is an error. CodePreconditionFailed where the tenant has such
// a key, CodeStoreConflict while another Bootstrap runs, and the errors of Create.
func (r *APIKeys) Bootstrap(ctx context.Context, k api.Key, digest string, replace bool) (stored bool, replaced []string, err error) {
	unlocking, cancel := context.WithTimeout(context.WithoutCancel(ctx), bootstrapTime+bootstrapUnlock)
	defer cancel()
	ctx, cancelWork := context.WithTimeout(ctx, bootstrapTime)
	defer cancelWork()
	if err := r.lockBootstrap(ctx, k.ID); err != nil {
		return false, nil, err
	}
	// A lock that cannot be released expires.
	defer func() { _ = r.unlockBootstrap(unlocking, k.ID) }()

	before, err := r.administrators(ctx, k.Tenant)
	if err != nil {
		return false, nil, err
	}
	if len(before) > 0 && !replace {
		return false, nil, api.Errorf(api.CodePreconditionFailed, "an administrator's key exists: %s", before[0].ID)
	}
	if err := r.Create(ctx, k, digest); err != nil {
		return false, nil, err
	}
	for _, old := range before {
		// Another caller may have revoked it meanwhile.
		if err := r.Revoke(ctx, old.Tenant, old.ID); err != nil && api.ErrorCode(err) != api.CodeKeyNotFound {
			return true, replaced, fmt.Errorf("revoke %s: %w", old.ID, err)
		}
		replaced = append(replaced, old.ID)
	}
	return true, replaced, nil
}

// administrators returns a tenant's live keys that have the role admin in all its
// namespaces.
func (r *APIKeys) administrators(ctx context.Context, tenant string) ([]api.Key, error) {
	members, err := r.members(ctx, tenant)
	if err != nil {
		return nil, err
	}
	all, err := r.live(ctx, tenant, members, len(members))
	return slices.DeleteFunc(all, func(k api.Key) bool {
		return k.Namespace != "" || !slices.Contains(k.Roles, api.RoleAdmin)
	}), err
}

// lockBootstrap takes the lock under token. An existing lock may be this call's own: the
// client repeats a command whose answer was lost.
func (r *APIKeys) lockBootstrap(ctx context.Context, token string) error {
	taken, err := r.s.Client().SetNX(ctx, r.s.Keys().APIKeyBootstrap(), token, bootstrapLockTTL).Result()
	if err != nil || taken {
		return storage.Failure(ctx, "lock bootstrap", err)
	}
	holder, err := storage.Optional(r.s.Client().Get(ctx, r.s.Keys().APIKeyBootstrap()))
	if err != nil {
		return storage.Failure(ctx, "lock bootstrap", err)
	}
	if holder == token {
		return nil
	}
	return api.Errorf(api.CodeStoreConflict, "another bootstrap is running; try again in %s", bootstrapLockTTL)
}

// unlockBootstrap needs no script to compare and delete: while ctx lasts, a lock
// under token is the caller's and has time left.
func (r *APIKeys) unlockBootstrap(ctx context.Context, token string) error {
	holder, err := storage.Optional(r.s.Client().Get(ctx, r.s.Keys().APIKeyBootstrap()))
	if err != nil || holder != token {
		return storage.Failure(ctx, "unlock bootstrap", err)
	}
	return storage.Failure(ctx, "unlock bootstrap", r.s.Client().Del(ctx, r.s.Keys().APIKeyBootstrap()).Err())
}
