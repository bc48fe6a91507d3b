package queue

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
	batchNamespace = "namespace"
	batchCallback  = "callback"
	batchSealed    = "sealed"
	batchCreated   = "created_ms"
)

// CreateBatch makes an empty batch. callback may be nil.
func (b *Broker) CreateBatch(ctx context.Context, tenant, namespace string, callback *api.BatchCallback) (*api.Batch, error) {
	now := b.store.NowMS()
	text := ""
	if callback != nil {
		if err := api.ValidateQueue(callback.Queue); err != nil {
			return nil, err
		}
		if err := callback.NewJob.Validate(now); err != nil {
			return nil, err
		}
		if err := b.checkOptions(callback.Queue, &callback.JobOptions); err != nil {
			return nil, err
		}
		if callback.BatchID != "" || len(callback.DependsOn) > 0 {
			return nil, fieldError("callback", "must be in no batch and depend on no job")
		}
		raw, err := api.EncodeJSON(callback)
		if err != nil {
			return nil, fmt.Errorf("queue: encode a callback: %w", err)
		}
		text = string(raw)
	}
	if err := b.register(ctx, tenant, namespace); err != nil {
		return nil, err
	}
	id := api.NewJobID()
	err := b.rdb.HSet(ctx, b.store.JobKeys(tenant).Batch(id)+":meta",
		batchNamespace, namespace, batchCallback, text, batchCreated, now, batchSealed, "0").Err()
	if err != nil {
		return nil, b.failure(ctx, "create a batch", err)
	}
	return b.GetBatch(ctx, tenant, namespace, id)
}

// GetBatch gives a batch with its counts. CodeBatchNotFound.
func (b *Broker) GetBatch(ctx context.Context, tenant, namespace, id string) (*api.Batch, error) {
	batch, _, err := b.readBatch(ctx, tenant, id)
	if err == nil && batch.Namespace != namespace {
		err = batchNotFound(id)
	}
	if err != nil {
		return nil, err
	}
	return batch, nil
}

func batchNotFound(id string) error {
	return api.Errorf(api.CodeBatchNotFound, "batch %s does not exist", id)
}

func (b *Broker) readBatch(ctx context.Context, tenant, id string) (*api.Batch, *api.BatchCallback, error) {
	if api.ValidateJobID(id) != nil {
		return nil, nil, batchNotFound(id)
	}
	key := b.store.JobKeys(tenant).Batch(id)
	pipe := b.rdb.Pipeline()
	meta := pipe.HMGet(ctx, key+":meta", batchNamespace, batchCallback, batchSealed, batchCreated)
	counts := []*redis.IntCmd{pipe.SCard(ctx, key+":jobs"), pipe.SCard(ctx, key+":succeeded"), pipe.SCard(ctx, key+":failed")}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, b.failure(ctx, "read a batch", err)
	}
	fields := texts(meta.Val())
	if fields[0] == "" {
		return nil, nil, batchNotFound(id)
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
		out.CallbackID = callbackID(tenant, id)
	}
	return out, out.Callback, nil
}

func callbackID(tenant, batch string) string { return api.DerivedJobID("callback", tenant, batch) }

// SealBatch closes a batch to further jobs. When none of its jobs is left, the
// callback is made, once. A repeat succeeds. CodeBatchNotFound.
func (b *Broker) SealBatch(ctx context.Context, tenant, namespace, id string) (*api.Batch, error) {
	if _, err := b.GetBatch(ctx, tenant, namespace, id); err != nil {
		return nil, err
	}
	if err := b.noteInBatch(ctx, tenant, id, "seal", nil, nil); err != nil {
		return nil, err
	}
	return b.GetBatch(ctx, tenant, namespace, id)
}

// countInBatch notes r's end in its batch.
func (b *Broker) countInBatch(ctx context.Context, tenant string, r *record) error {
	if r.spec.BatchID == "" {
		return nil
	}
	var succeeded, failed []string
	if r.run.state == api.JobCompleted {
		succeeded = []string{r.id}
	} else {
		failed = []string{r.id}
	}
	err := b.noteInBatch(ctx, tenant, r.spec.BatchID, "", succeeded, failed)
	if api.ErrorCode(err) == api.CodeBatchNotFound {
		return nil
	}
	return err
}

// noteInBatch counts ended jobs, seals if asked, and makes the callback when the
// batch is done.
func (b *Broker) noteInBatch(ctx context.Context, tenant, id, seal string, succeeded, failed []string) error {
	key := b.store.JobKeys(tenant).Batch(id)
	args := []any{seal, len(succeeded)}
	for _, ids := range [][]string{succeeded, failed} {
		for _, id := range ids {
			args = append(args, id)
		}
	}
	reply, err := b.store.Script(ctx, storage.ScriptBatchCount, []string{key + ":meta", key + ":jobs", key + ":succeeded", key + ":failed"}, args...)
	if err != nil {
		return err
	}
	words := texts(reply)
	if words[0] != "1" {
		return nil
	}
	var counts [3]int64
	for i := range counts {
		if counts[i], err = strconv.ParseInt(words[i+1], 10, 64); err != nil {
			return fmt.Errorf("queue: a batch answered %q: %w", words, err)
		}
	}
	if counts[0] > counts[1]+counts[2] {
		return nil
	}
	batch, callback, err := b.readBatch(ctx, tenant, id)
	if err != nil {
		return err
	}
	if callback != nil {
		spec := &api.JobSpec{Payload: callback.Payload, JobOptions: callback.JobOptions, ParentID: id}
		if err := b.enqueueInternal(ctx, queueKey{tenant, batch.Namespace, callback.Queue}, callbackID(tenant, id), spec); err != nil {
			return err
		}
	}
	return b.expireBatch(ctx, key)
}

// expireBatch lets a batch that is done go when its jobs do. The callback's job is
// kept longer, so that none is made a second time.
func (b *Broker) expireBatch(ctx context.Context, key string) error {
	pipe := b.rdb.Pipeline()
	for _, part := range []string{":jobs", ":succeeded", ":failed", ":meta"} {
		pipe.PExpire(ctx, key+part, time.Duration(b.keepMS)*time.Millisecond)
	}
	_, err := pipe.Exec(ctx)
	return b.failure(ctx, "expire a batch", err)
}
