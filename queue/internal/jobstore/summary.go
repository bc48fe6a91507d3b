package jobstore

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/codesous/sous/api"
)

// Summary is the part of a job that settling it needs: some of its spec, and its run. It holds for leases up
// to the one that follows epoch: moving a job, which makes its epoch grow, comes
// before any later one.
type Summary struct {
	epoch            int64
	Namespace, Queue string
	Unique           string
	Schema           json.RawMessage
	Run              string // as stored when epoch's lease began, or as read since
}

func NewSummary(s *api.JobSpec, r Run, text string) *Summary {
	// The names of a decoded spec are parts of the stored text, payload and all.
	return &Summary{r.Epoch, strings.Clone(s.Namespace), strings.Clone(s.Queue), s.UniqueKey, s.ResultSchema, text}
}

// Remember keeps what settling a job needs to know. A derived id may come back after
// its job was deleted, by another replica and in another queue, with epochs that
// begin again: of those nothing is kept.
func (s *Store) Remember(key Key, known *Summary) {
	if !api.IsDerivedJobID(key.Id) {
		s.summaries.Set(key, known)
	}
}

// Summaries knows the queues of jobs under leases of the given epochs, from memory
// or from the store. Jobs that do not exist are left out.
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
	found, err := s.Load(ctx, tenant, missing)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if r != nil {
			out[r.Id] = NewSummary(r.Spec, r.Run, r.Stored)
			s.Remember(Key{tenant, r.Id}, out[r.Id])
		}
	}
	return out, nil
}

// Which says which of a tenant's jobs exist and are such.
func (s *Store) Which(ctx context.Context, tenant string, ids []string, such func(*Summary) bool) (map[string]bool, error) {
	in := make(map[string]bool, len(ids))
	var missing []string
	for _, id := range ids {
		if known, ok := s.summaries.GetIfPresent(Key{tenant, id}); ok {
			in[id] = such(known)
		} else {
			missing = append(missing, id)
		}
	}
	found, err := s.Load(ctx, tenant, missing)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if r != nil {
			known := NewSummary(r.Spec, r.Run, r.Stored)
			in[r.Id] = such(known)
			s.Remember(Key{tenant, r.Id}, known)
		}
	}
	return in, nil
}

// ForgetSummary drops the remembered summary of a job whose spec has changed.
func (s *Store) ForgetSummary(tenant, id string) { s.summaries.Invalidate(Key{tenant, id}) }
