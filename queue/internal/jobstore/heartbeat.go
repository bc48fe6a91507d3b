package jobstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Extend extends the leases of jobs of q and stores their progress and checkpoints, each if
// its epoch holds the job. It returns, in the order of beats, the script's reply on each
// job (Moved, Missing, or the job's run) and the Unix time in milliseconds at which an
// extended lease ends. Errors: CodeStoreUnavailable.
//
// The new end counts from now, not from the old end: a heartbeat with a short LeaseMS brings
// the end of the lease nearer. The script writes the entry in active before the run. A crash
// in between leaves a score that differs from Run.At: one that is too early is corrected by
// maintenance, one that is too late delays the reclaim of the job until then.
func (s *Store) Extend(ctx context.Context, q Queue, beats []*api.JobHeartbeat) (words []string, ends []int64, err error) {
	now := s.store.NowMS()
	tenant := s.store.JobKeys(q.Tenant)
	keys := []string{s.Keys(q).Set(string(api.JobActive))}
	args := []any{len(beats)}
	soonest := int64(0)
	ends = make([]int64, len(beats))
	for i, h := range beats {
		lease := h.LeaseMS
		if lease == 0 {
			lease = api.DefaultLeaseMS
		}
		ends[i] = now + lease
		if soonest == 0 || ends[i] < soonest {
			soonest = ends[i]
		}
		progress := ""
		if h.Progress != nil {
			raw, err := api.EncodeJSON(h.Progress)
			if err != nil {
				return nil, nil, api.Wrap(api.CodeInternal, err, "encode progress")
			}
			progress = string(raw)
		}
		keys = append(keys, tenant.Run(h.ID))
		args = append(args, h.ID, h.LeaseEpoch, ends[i], progress, string(h.Checkpoint))
	}
	for _, h := range beats {
		keys = append(keys, tenant.Meta(h.ID))
	}
	reply, err := s.store.ScriptThen(ctx, storage.ScriptJobHeartbeat, keys, args, func(pipe redis.Pipeliner) {
		s.MarkDue(ctx, pipe, q, soonest)
	})
	if err != nil {
		return nil, nil, err
	}
	return Words(reply), ends, nil
}
