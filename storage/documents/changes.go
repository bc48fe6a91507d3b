package documents

import (
	"context"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// MaxChanges is the largest number of changes that one call of Changes reads.
const MaxChanges = 500

// Changes reads up to limit changes of a namespace, after the change with the id since (0
// for the start), in the order in which they were made. CodeDocumentInvalid.
func (s *Service) Changes(ctx context.Context, tenant, install, namespace string, since int64, limit int) (feed Feed, err error) {
	defer s.metrics.done("changes", &err)
	p, err := s.enter(tenant, install, namespace)
	if err != nil {
		return feed, err
	}
	if since < 0 || since > api.MaxVersion {
		return feed, api.DocumentFieldError("since", "must be the id of a change, or 0")
	}
	if limit < 1 || limit > MaxChanges {
		return feed, api.DocumentFieldError("limit", fmt.Sprintf("must be from 1 to %d", MaxChanges))
	}
	feed, err = s.store.Changes(ctx, p, since, limit)
	return feed, Failure(err)
}

// Follow returns a channel that receives a token whenever the namespace may have changed,
// until done is called. Notices can be lost: a follower must also call ChangesBehind from
// time to time. The caller has validated the names.
func (s *Service) Follow(tenant, install, namespace string) (changed <-chan struct{}, done func()) {
	return s.store.Follow(storage.DocumentPath{Tenant: tenant, Install: install, Namespace: namespace})
}

// ChangesBehind is Changes for a caller that follows the namespace. It does not count
// against the rate of the tenant.
func (s *Service) ChangesBehind(ctx context.Context, tenant, install, namespace string, since int64) (Feed, error) {
	feed, err := s.store.Changes(ctx, storage.DocumentPath{Tenant: tenant, Install: install, Namespace: namespace}, since, MaxChanges)
	return feed, Failure(err)
}
