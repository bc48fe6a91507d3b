package jobstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
)

// The fields of a batch's hash, cs:batch:t:id:meta. Its counts are the sizes of sets, because a
// crash between two steps would make a counter wrong, and adding to a set is safe to repeat:
//
//	cs:batch:t:id:jobs       all jobs, written by job_enqueue.lua and, if it was interrupted,
//	                         by batch_count.lua when they end
//	cs:batch:t:id:succeeded  those that completed
//	cs:batch:t:id:failed     those that are dead or cancelled; a retry that completes moves one
//
// sealed is "0" or "1"; callback is an api.BatchCallback in JSON, "" for none. by is the
// callback's api.JobAuthor in JSON; batches of release 0.1.0 lack it. changed_ms is the time of
// the last change of an open batch; batches of older releases lack it until then. finished is "1"
// once the callback was made.
const (
	BatchNamespace = "namespace"
	BatchCallback  = "callback"
	BatchSealed    = "sealed"
	BatchCreated   = "created_ms"
	BatchChanged   = "changed_ms"
	batchFinished  = "finished"
	batchBy        = "by"
)

// BatchNotFound returns the error with CodeBatchNotFound for batch id.
func BatchNotFound(id string) error {
	return api.Errorf(api.CodeBatchNotFound, "batch %s does not exist", id)
}

// ReadBatch returns a batch with its counts and its callback. The commands that
// read it are not atomic: a job that ends meanwhile may be missing in the counts. Errors:
// CodeBatchNotFound, CodeStoreUnavailable.
func (s *Store) ReadBatch(ctx context.Context, tenant, id string) (*api.Batch, error) {
	if api.ValidateJobID(id) != nil {
		return nil, BatchNotFound(id)
	}
	found, err := s.ReadBatches(ctx, tenant, []string{id})
	if err != nil {
		return nil, err
	}
	if found[0] == nil {
		return nil, BatchNotFound(id)
	}
	return found[0], nil
}

// ReadBatches is ReadBatch of several batches in one round trip, in the order of ids. One that
// does not exist is nil.
func (s *Store) ReadBatches(ctx context.Context, tenant string, ids []string) ([]*api.Batch, error) {
	out := make([]*api.Batch, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	pipe := s.rdb.Pipeline()
	metas, counts := make([]*redis.SliceCmd, len(ids)), make([][3]*redis.IntCmd, len(ids))
	for i, id := range ids {
		key := s.store.JobKeys(tenant).Batch(id)
		metas[i] = pipe.HMGet(ctx, key+":meta", BatchNamespace, BatchCallback, BatchSealed, BatchCreated, BatchChanged, batchBy)
		counts[i] = [3]*redis.IntCmd{pipe.SCard(ctx, key+":jobs"), pipe.SCard(ctx, key+":succeeded"), pipe.SCard(ctx, key+":failed")}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, Failure(ctx, "read batches", err)
	}
	for i, id := range ids {
		var err error
		out[i], err = decodeBatch(tenant, id, Words(metas[i].Val()))
		if err != nil {
			return nil, err
		}
		if b := out[i]; b != nil {
			b.Total, b.Succeeded, b.Failed = counts[i][0].Val(), counts[i][1].Val(), counts[i][2].Val()
			b.Pending = max(0, b.Total-b.Succeeded-b.Failed)
		}
	}
	return out, nil
}

// decodeBatch decodes the fields of a batch without its counts, nil if it does not exist.
func decodeBatch(tenant, id string, fields []string) (*api.Batch, error) {
	if fields[0] == "" {
		return nil, nil //nolint:nilnil // documented
	}
	created, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("queue: created_ms of batch %s is %q: %w", id, fields[3], err)
	}
	out := &api.Batch{ID: id, Namespace: fields[0], Sealed: fields[2] == "1", CreatedAtMS: created}
	if fields[1] != "" {
		out.Callback = &api.BatchCallback{}
		if err := json.Unmarshal([]byte(fields[1]), out.Callback); err != nil {
			return nil, fmt.Errorf("queue: decode the callback of batch %s: %w", id, err)
		}
		if fields[5] != "" {
			out.Callback.By = &api.JobAuthor{}
			if err := json.Unmarshal([]byte(fields[5]), out.Callback.By); err != nil {
				return nil, fmt.Errorf("queue: decode the author of the callback of batch %s: %w", id, err)
			}
		}
		out.CallbackID = CallbackID(tenant, id)
	}
	if changed, err := strconv.ParseInt(fields[4], 10, 64); err == nil && !out.Sealed {
		out.ExpiresAtMS = changed + api.OpenBatchRetentionMS
	}
	return out, nil
}

// BatchIn is ReadBatch for callers confined to a namespace: a batch of another one does not
// exist for them. Errors: CodeBatchNotFound, CodeStoreUnavailable.
func (s *Store) BatchIn(ctx context.Context, tenant, namespace, id string) (*api.Batch, error) {
	batch, err := s.ReadBatch(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if batch.Namespace != namespace {
		return nil, BatchNotFound(id)
	}
	return batch, nil
}

// CallbackID returns the id of the job that a batch's callback makes. It is derived from
// the batch, so that making the callback twice creates one job.
func CallbackID(tenant, batch string) string { return api.DerivedJobID("callback", tenant, batch) }

// Origin returns the job that made job id, and the batch whose callback it is, "" for none.
// Release 0.1.0 stored the batch of a callback as its parent.
func Origin(tenant, id string, spec *api.JobSpec) (parent, batch string) {
	if spec.CallbackOf == "" && spec.ParentID != "" && id == CallbackID(tenant, spec.ParentID) {
		return "", spec.ParentID
	}
	return spec.ParentID, spec.CallbackOf
}

// ExpireBatch makes the records of a finished batch expire after the retention of the tenant's
// jobs, or that of the callback's queue if that is shorter. The callback's job ends later and is
// therefore kept longer, so that it is not made twice. The hash comes last: repairs take a
// sealed batch whose hash does not expire for unfinished. The event of its end precedes both.
// Errors: CodeStoreUnavailable.
func (s *Store) ExpireBatch(ctx context.Context, tenant string, batch *api.Batch) error {
	id, keep := batch.ID, s.RetentionMS(tenant)
	if batch.Callback != nil {
		own, err := s.KeepMS(ctx, Queue{Tenant: tenant, Namespace: batch.Namespace, Name: batch.Callback.Queue})
		if err != nil {
			return err
		}
		keep = min(keep, own)
	}
	keys := s.store.JobKeys(tenant)
	key := keys.Batch(id)
	pipe := s.rdb.Pipeline()
	s.events.Append(ctx, pipe, tenant, s.batchEnd(batch))
	ends := float64(s.store.NowMS() + keep + time.Minute.Milliseconds())
	pipe.ZAdd(ctx, keys.BatchEnds(batch.Namespace), redis.Z{Score: ends, Member: id})
	pipe.HSet(ctx, key+":meta", batchFinished, "1")
	for _, part := range []string{":jobs", ":succeeded", ":failed", ":meta"} {
		pipe.PExpire(ctx, key+part, time.Duration(keep)*time.Millisecond)
	}
	_, err := pipe.Exec(ctx)
	return Failure(ctx, "expire a batch", err)
}

// batchEnd returns the event of the end of a batch.
func (s *Store) batchEnd(b *api.Batch) event.Change {
	return event.Change{Type: event.BatchEnded, Of: event.KindBatches, ID: b.ID, AtMS: s.store.NowMS(), Data: event.Data{
		Namespace: b.Namespace, JobID: b.CallbackID, Batch: &event.BatchCounts{Total: b.Total, Succeeded: b.Succeeded, Failed: b.Failed},
	}}
}

// CountBatch counts ended jobs in their batch of namespace, and seals it if seal is "seal". done
// reports whether the batch is sealed, all of its jobs have ended, and ExpireBatch has not
// followed yet. Counting a job twice
// changes nothing. Errors: CodeBatchNotFound, CodeStoreUnavailable.
func (s *Store) CountBatch(ctx context.Context, tenant, namespace, id, seal string, succeeded, failed []string) (done bool, err error) {
	key := s.store.JobKeys(tenant).Batch(id)
	sealed := event.Change{Type: event.BatchSealed, Of: event.KindBatches, ID: id, AtMS: s.store.NowMS(), Actor: event.ActorOf(ctx), Data: event.Data{Namespace: namespace}}
	args := []any{seal, s.store.NowMS(), sealed.Text(), len(succeeded)}
	for _, ids := range [][]string{succeeded, failed} {
		for _, id := range ids {
			args = append(args, id)
		}
	}
	reply, err := s.store.Script(ctx, storage.ScriptBatchCount, []string{key + ":meta", key + ":jobs", key + ":succeeded", key + ":failed", s.store.JobKeys(tenant).Events()}, args...)
	if err != nil {
		return false, err
	}
	words := Words(reply)
	if words[0] != "1" || words[4] == "1" {
		return false, nil
	}
	var counts [3]int64
	for i := range counts {
		counts[i], err = strconv.ParseInt(words[i+1], 10, 64)
		if err != nil {
			return false, fmt.Errorf("queue: %s replied %q: %w", storage.ScriptBatchCount, words, err)
		}
	}
	return counts[0] <= counts[1]+counts[2], nil
}
