package jobstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/duework"
)

// expiry returns the Unix time in milliseconds at which a job expires, or its request for an approval,
// 0 for never.
func expiry(spec *api.JobSpec, run *Run) int64 {
	if run.State != api.JobHeld {
		return spec.ExpireAtMS
	}
	return duework.Sooner(spec.ExpireAtMS, spec.Approval.ExpiresMS(run.At))
}

// ApprovalExpires returns when the request for the approval of r expires, in Unix milliseconds, 0 for never.
func (r *Record) ApprovalExpires() int64 {
	if r.Run.State != api.JobHeld {
		return 0
	}
	return r.Spec.Approval.ExpiresMS(r.Run.At)
}

// ExpiresAfter returns when maintenance has to look at r next because of an expiry, in Unix milliseconds,
// 0 for never.
func (r *Record) ExpiresAfter() int64 { return expiry(r.Spec, &r.Run) }

// asksUntil returns when the request for an approval expires that m makes, 0 for never.
func (m *Move) asksUntil() int64 {
	if m.To.State != api.JobHeld || m.To.At == m.Record.Run.At && m.Record.Run.State == api.JobHeld {
		return 0
	}
	spec := m.Record.Spec
	if m.Spec != "" {
		changed, err := DecodeSpec(m.Spec)
		if err != nil {
			return 0 // Apply has encoded it
		}
		spec = changed
	}
	return spec.Approval.ExpiresMS(m.To.At)
}

// expectExpiries adds the entries by which the requests of moves expire. They come before the moves: one
// of a job that does not wait is dropped when it is read.
func (s *Store) expectExpiries(ctx context.Context, q Queue, moves []*Move) error {
	var entries []redis.Z
	for _, m := range moves {
		if at := m.asksUntil(); at > 0 {
			entries = append(entries, redis.Z{Score: float64(at), Member: m.Record.ID})
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return Failure(ctx, "add the expiries of approvals", s.rdb.ZAddLT(ctx, s.Keys(q).Expiry(), entries...).Err())
}
