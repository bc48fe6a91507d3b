package documents

import (
	"context"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// MaxChanges bounds the changes that are read at once.
const MaxChanges = 500

// Changes reads up to limit changes of a namespace behind the one with the id since, 0 for
// the start, in the order in which they were made. CodeValidationFailed.
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

// Follow gives a channel that gets a token whenever the namespace may have changed, until
// done is called. Notices can be lost: who waits looks by itself as well, with
// ChangesBehind, which counts against no rate.
func (s *Service) Follow(tenant, install, namespace string) (changed <-chan struct{}, done func()) {
	return s.store.Follow(storage.DocumentPath{Tenant: tenant, Install: install, Namespace: namespace})
}

// ChangesBehind is Changes for who has been let in and follows.
func (s *Service) ChangesBehind(ctx context.Context, tenant, install, namespace string, since int64) (Feed, error) {
	feed, err := s.store.Changes(ctx, storage.DocumentPath{Tenant: tenant, Install: install, Namespace: namespace}, since, MaxChanges)
	return feed, Failure(err)
}
