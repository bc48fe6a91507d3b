package jobstore

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

// enqueueDetail returns the detail of the event of the enqueue of r, "" unless it has not started
// since: such a job is missing in its index only if its enqueue was interrupted, before or after
// its event.
func (r *Record) enqueueDetail() string {
	if r.Run.State.Terminal() || r.Run.Epoch > 0 || r.Run.Attempt > 0 {
		return ""
	}
	return r.Run.EventDetail("", "", "")
}

// Reindex adds a job to the index of its state if it is missing there: its enqueue was
// interrupted after it had written the record. It reports whether it added the job. It does
// nothing if the job has changed since r was read. Errors: CodeStoreUnavailable.
//
// The script writes what the enqueue would have written, the entry of the state last, so that
// a Reindex that is interrupted is found and repeated. The marks in the due and ready sets
// follow. A crash before them leaves an indexed job in a queue without a mark, which
// repair.Repairer's Queues finds.
func (s *Store) Reindex(ctx context.Context, tenant string, r *Record) (bool, error) {
	q := r.Queue(tenant)
	k, rank, at, expire, waits := s.Keys(q), -1, r.Run.At, int64(0), ""
	due := int64(0)
	switch state := r.Run.State; {
	case state.Terminal():
		keep, err := s.KeepMS(ctx, q)
		if err != nil {
			return false, err
		}
		due = at + keep
	case state == api.JobPending:
		rank, at = RankOf(r.Spec.Score), r.Spec.Score
	case state == api.JobWaiting: // the jobs that it waits for may have ended
		waits, due = "1", at
	case state != api.JobHeld:
		due = at
	}
	if !r.Run.State.Terminal() {
		expire = expiry(r.Spec, &r.Run)
		due = duework.Sooner(due, expire)
	}
	reply, err := s.store.Script(ctx, storage.ScriptJobReindex, []string{
		s.store.JobKeys(tenant).Run(r.ID), s.SetOf(q, r.Run.State, r.Spec.Score), k.Cursor(), k.After(), k.Expiry(), s.store.JobKeys(tenant).Queues(), k.Config(), s.store.JobKeys(tenant).Events(), s.store.JobKeys(tenant).Approvals(),
	}, r.ID, r.Stored, q.Path(), ScoreText(at), rank, expire, waits, r.enqueueDetail(), s.store.NowMS())
	if err != nil || reply != Moved {
		return false, err
	}
	pipe := s.rdb.Pipeline()
	if due > 0 {
		s.MarkDue(ctx, pipe, q, due)
	}
	if r.Run.State == api.JobPending {
		if IsFunctionQueue(q.Name) {
			s.MarkReady(ctx, pipe, q, s.store.NowMS())
		}
		defer s.notify.Wake(q)
	}
	if pipe.Len() == 0 {
		return true, nil
	}
	_, err = pipe.Exec(ctx)
	return true, Failure(ctx, "mark a queue", err)
}
