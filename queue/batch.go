package queue

import (
	"context"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
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
			return nil, api.InvalidField("callback", "must be in no batch and depend on no job")
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
		jobstore.BatchNamespace, namespace, jobstore.BatchCallback, text, jobstore.BatchCreated, now, jobstore.BatchSealed, "0").Err()
	if err != nil {
		return nil, jobstore.Failure(ctx, "create a batch", err)
	}
	return b.GetBatch(ctx, tenant, namespace, id)
}

// GetBatch gives a batch with its counts. CodeBatchNotFound.
func (b *Broker) GetBatch(ctx context.Context, tenant, namespace, id string) (*api.Batch, error) {
	batch, _, err := b.jobs.ReadBatch(ctx, tenant, id)
	if err == nil && batch.Namespace != namespace {
		err = jobstore.BatchNotFound(id)
	}
	if err != nil {
		return nil, err
	}
	return batch, nil
}

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
func (b *Broker) countInBatch(ctx context.Context, tenant string, r *jobstore.Record) error {
	if r.Spec.BatchID == "" {
		return nil
	}
	var succeeded, failed []string
	if r.Run.State == api.JobCompleted {
		succeeded = []string{r.Id}
	} else {
		failed = []string{r.Id}
	}
	err := b.noteInBatch(ctx, tenant, r.Spec.BatchID, "", succeeded, failed)
	if api.ErrorCode(err) == api.CodeBatchNotFound {
		return nil
	}
	return err
}

// noteInBatch counts ended jobs, seals if asked, and makes the callback when the
// batch is done.
func (b *Broker) noteInBatch(ctx context.Context, tenant, id, seal string, succeeded, failed []string) error {
	done, err := b.jobs.CountBatch(ctx, tenant, id, seal, succeeded, failed)
	if err != nil || !done {
		return err
	}
	batch, callback, err := b.jobs.ReadBatch(ctx, tenant, id)
	if err != nil {
		return err
	}
	if callback != nil {
		spec := &api.JobSpec{Payload: callback.Payload, JobOptions: callback.JobOptions, ParentID: id}
		if err := b.enqueueInternal(ctx, jobstore.Queue{Tenant: tenant, Namespace: batch.Namespace, Name: callback.Queue}, jobstore.CallbackID(tenant, id), spec); err != nil {
			return err
		}
	}
	return b.jobs.ExpireBatch(ctx, tenant, id)
}
