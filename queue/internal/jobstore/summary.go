package jobstore

import (
	"context"
	"encoding/json"

	"github.com/maypok86/otter/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
)

// Summary is the part of a job that is needed to settle it. A cached summary is valid for
// leases up to the one after epoch: moving the job to another queue increments its epoch
// and precedes any later lease. For a summary that was cached under the lease with epoch 3,
//
//	the job fails and is claimed again     a call presents 4: the queue is the same
//	it fails, is moved, and claimed again  the move makes 4, the claim 5: read the job again
//
// so a call with an epoch of at most 4 needs no read. Run may be older than the job; only
// CompleteKnown uses it, which compares it with the stored one.
type Summary struct {
	epoch            int64
	Namespace, Queue string          // of the job
	Unique           string          // its unique key, "" for none
	Schema           json.RawMessage // of its result, empty for none
	Run              string          // as stored when the lease of epoch began, or as read later
	Agent            *agent.Options  // nil for none
}

// NewSummary returns the summary of a job with spec s and run r, which is stored as text.
func NewSummary(s *api.JobSpec, r Run, text string) *Summary {
	return &Summary{r.Epoch, s.Namespace, s.Queue, s.UniqueKey, s.ResultSchema, text, s.Agent}
}

// newSummaries returns an empty cache of summaries.
func newSummaries() (*otter.Cache[Key, *Summary], error) {
	return otter.New(&otter.Options[Key, *Summary]{MaximumWeight: summaryBytes, Weigher: weight})
}

// weight returns about how many bytes a cached summary takes.
func weight(key Key, s *Summary) uint32 {
	const entry = 256 // of the cache, and the values without their texts
	n := entry + len(key.Tenant) + len(key.ID) + len(s.Namespace) + len(s.Queue) + len(s.Unique) + len(s.Schema) + len(s.Run)
	return uint32(n) //nolint:gosec // a schema has at most 64 KiB
}

// Remember caches the summary of a job. It ignores jobs with derived ids: another replica
// may delete such a job and create it again in another queue, with epochs from 1.
func (s *Store) Remember(key Key, known *Summary) {
	if !api.IsDerivedJobID(key.ID) {
		s.summaries.Set(key, known)
	}
}

// Summaries returns the summaries of a tenant's jobs by id, from the cache or the store.
// epochs[i] is the lease epoch that the caller holds of ids[i]. Jobs that do not exist are
// left out. Errors: CodeStoreUnavailable.
func (s *Store) Summaries(ctx context.Context, tenant string, ids []string, epochs []int64) (map[string]*Summary, error) {
	out := make(map[string]*Summary, len(ids))
	var missing []string
	for i, id := range ids {
		if known, ok := s.summaries.GetIfPresent(Key{tenant, id}); ok && epochs[i] <= known.epoch+1 {
			out[id] = known
		} else {
			missing = append(missing, id)
		}
	}
	return out, s.readSummaries(ctx, tenant, missing, func(id string, known *Summary) { out[id] = known })
}

// readSummaries reads and caches the summaries of those of a tenant's jobs that exist, and
// passes each to found.
func (s *Store) readSummaries(ctx context.Context, tenant string, ids []string, found func(id string, known *Summary)) error {
	for part, err := range s.Parts(ctx, tenant, ids) {
		if err != nil {
			return err
		}
		for _, r := range part {
			if r != nil {
				known := NewSummary(r.Spec, r.Run, r.Stored)
				s.Remember(Key{tenant, r.ID}, known)
				found(r.ID, known)
			}
		}
	}
	return nil
}

// Which reports, by id, which of a tenant's jobs match. Jobs that do not exist are left out.
// match may use only parts that never change while a summary is cached, because epochs are
// not checked: the namespace, and whether the queue is an fn queue. Errors:
// CodeStoreUnavailable.
func (s *Store) Which(ctx context.Context, tenant string, ids []string, match func(*Summary) bool) (map[string]bool, error) {
	in := make(map[string]bool, len(ids))
	var missing []string
	for _, id := range ids {
		if known, ok := s.summaries.GetIfPresent(Key{tenant, id}); ok {
			in[id] = match(known)
		} else {
			missing = append(missing, id)
		}
	}
	return in, s.readSummaries(ctx, tenant, missing, func(id string, known *Summary) { in[id] = match(known) })
}

// ForgetSummary removes the cached summary of a job whose spec has changed. Caches of other
// processes keep theirs, which the epoch invalidates.
func (s *Store) ForgetSummary(tenant, id string) { s.summaries.Invalidate(Key{tenant, id}) }
