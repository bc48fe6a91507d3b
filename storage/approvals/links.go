package approvals

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/storage"
)

// Link is a link by which somebody without a key votes, in its stored form. The secret that the link has
// is not stored.
type Link struct {
	approval.VoteLink

	Namespace string `json:"namespace"` // of the job
	Round     int    `json:"round"`     // of the approval: a link ends with it
	Key       string `json:"key"`       // SHA-256 of the maker's key in hexadecimal
	Secret    string `json:"secret"`    // SHA-256 of the secret in hexadecimal
}

// AddLink adds a link, and removes those that have ended. Errors: CodeCapacityLimit for more than
// approval.MaxLinks, CodeStoreUnavailable.
func (r *Repository) AddLink(ctx context.Context, tenant string, l *Link) error {
	raw, err := storage.Encode(l)
	if err != nil {
		return err
	}
	key := r.store.JobKeys(tenant).ApprovalLinks()
	if err := r.dropEnded(ctx, key, l.CreatedAtMS); err != nil {
		return err
	}
	return r.put(ctx, key, "", raw, l.ID, approval.MaxLinks, "link", "links")
}

// Link returns a link that has not ended at now. Errors: CodeApprovalNotFound, CodeStoreUnavailable.
func (r *Repository) Link(ctx context.Context, tenant, id string, now int64) (*Link, error) {
	raw, err := r.store.Client().HGet(ctx, r.store.JobKeys(tenant).ApprovalLinks(), id).Result()
	if errors.Is(err, redis.Nil) || err == nil && id == fieldRevision {
		return nil, noLink(id)
	}
	if err != nil {
		return nil, storage.Failure(ctx, "read a link", err)
	}
	l, err := storage.Decode[Link](raw)
	if err == nil && l.UntilMS <= now {
		return nil, noLink(id)
	}
	return &l, err
}

func noLink(id string) error {
	return api.Errorf(api.CodeApprovalNotFound, "link %q does not exist", id)
}

// Links returns the links of a tenant that have not ended at now, oldest first. Errors:
// CodeStoreUnavailable.
func (r *Repository) Links(ctx context.Context, tenant string, now int64) ([]Link, error) {
	stored, err := r.store.Client().HGetAll(ctx, r.store.JobKeys(tenant).ApprovalLinks()).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "read links", err)
	}
	out := make([]Link, 0, len(stored))
	for id, raw := range stored {
		if id == fieldRevision {
			continue
		}
		l, err := storage.Decode[Link](raw)
		if err != nil {
			return nil, err
		}
		if l.UntilMS > now {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.CreatedAtMS, b.CreatedAtMS), strings.Compare(a.ID, b.ID))
	})
	return out, nil
}

// EndLink removes a link. Errors: CodeApprovalNotFound, CodeStoreUnavailable.
func (r *Repository) EndLink(ctx context.Context, tenant, id string) error {
	if id == fieldRevision {
		return noLink(id)
	}
	n, err := r.store.Client().HDel(ctx, r.store.JobKeys(tenant).ApprovalLinks(), id).Result()
	if err != nil {
		return storage.Failure(ctx, "remove a link", err)
	}
	if n == 0 {
		return noLink(id)
	}
	return nil
}
