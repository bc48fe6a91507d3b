package jobstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// The fields of a batch's hash. Its counts are the sizes of sets: a counter that
// two steps keep drifts when a crash cuts one short.
const (
	BatchNamespace = "namespace"
	BatchCallback  = "callback"
	BatchSealed    = "sealed"
	BatchCreated   = "created_ms"
)

func BatchNotFound(id string) error {
	return api.Errorf(api.CodeBatchNotFound, "batch %s does not exist", id)
}

func (s *Store) ReadBatch(ctx context.Context, tenant, id string) (*api.Batch, *api.BatchCallback, error) {
	if api.ValidateJobID(id) != nil {
		return nil, nil, BatchNotFound(id)
	}
	key := s.store.JobKeys(tenant).Batch(id)
	pipe := s.rdb.Pipeline()
	meta := pipe.HMGet(ctx, key+":meta", BatchNamespace, BatchCallback, BatchSealed, BatchCreated)
	counts := []*redis.IntCmd{pipe.SCard(ctx, key+":jobs"), pipe.SCard(ctx, key+":succeeded"), pipe.SCard(ctx, key+":failed")}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, Failure(ctx, "read a batch", err)
	}
	fields := Words(meta.Val())
	if fields[0] == "" {
		return nil, nil, BatchNotFound(id)
	}
	created, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("queue: a batch's time is %q: %w", fields[3], err)
	}
	out := &api.Batch{
		ID: id, Namespace: fields[0], Sealed: fields[2] == "1", CreatedAtMS: created,
		Total: counts[0].Val(), Succeeded: counts[1].Val(), Failed: counts[2].Val(),
	}
	out.Pending = max(0, out.Total-out.Succeeded-out.Failed)
	if fields[1] != "" {
		out.Callback = &api.BatchCallback{}
		if err := json.Unmarshal([]byte(fields[1]), out.Callback); err != nil {
			return nil, nil, fmt.Errorf("queue: a stored callback cannot be read: %w", err)
		}
		out.CallbackID = CallbackID(tenant, id)
	}
	return out, out.Callback, nil
}

func CallbackID(tenant, batch string) string { return api.DerivedJobID("callback", tenant, batch) }

// ExpireBatch lets a batch that is done go when its jobs do. The callback's job is
// kept longer, so that none is made a second time.
func (s *Store) ExpireBatch(ctx context.Context, tenant, id string) error {
	key := s.store.JobKeys(tenant).Batch(id)
	pipe := s.rdb.Pipeline()
	for _, part := range []string{":jobs", ":succeeded", ":failed", ":meta"} {
		pipe.PExpire(ctx, key+part, time.Duration(s.RetentionMS)*time.Millisecond)
	}
	_, err := pipe.Exec(ctx)
	return Failure(ctx, "expire a batch", err)
}

// CountBatch counts ended jobs in their batch, and seals it if seal is "seal". done
// reports that the batch is sealed and all of its jobs have ended.
func (s *Store) CountBatch(ctx context.Context, tenant, id, seal string, succeeded, failed []string) (done bool, err error) {
	key := s.store.JobKeys(tenant).Batch(id)
	args := []any{seal, len(succeeded)}
	for _, ids := range [][]string{succeeded, failed} {
		for _, id := range ids {
			args = append(args, id)
		}
	}
	reply, err := s.store.Script(ctx, storage.ScriptBatchCount, []string{key + ":meta", key + ":jobs", key + ":succeeded", key + ":failed"}, args...)
	if err != nil {
		return false, err
	}
	words := Words(reply)
	if words[0] != "1" {
		return false, nil
	}
	var counts [3]int64
	for i := range counts {
		counts[i], err = strconv.ParseInt(words[i+1], 10, 64)
		if err != nil {
			return false, fmt.Errorf("queue: a batch answered %q: %w", words, err)
		}
	}
	return counts[0] <= counts[1]+counts[2], nil
}
