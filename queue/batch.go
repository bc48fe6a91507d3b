package queue

import (
	"context"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// CreateBatch creates an empty batch. callback is the job to be made when all jobs of the
// batch have ended, nil for none. That job counts from now on, since the batch may end at a time at
// which it cannot be refused. Errors: CodeInvalid…, CodeQueueReserved, CodeTenantQuota,
// CodeTenantRate, CodeStoreUnavailable.
func (b *Broker) CreateBatch(ctx context.Context, tenant, namespace string, callback *api.BatchCallback) (*api.Batch, error) {
	now := b.store.NowMS()
	text := ""
	var by *api.JobAuthor
	if callback != nil {
		if err := api.ValidateQueue(callback.Queue); err != nil {
			return nil, err
		}
		if err := callback.NewJob.Validate(now); err != nil {
			return nil, err
		}
		if err := b.checkOptions(callback.Queue, &callback.JobOptions, schema.NewBudget()); err != nil {
			return nil, err
		}
		if callback.BatchID != "" || len(callback.DependsOn) > 0 {
			return nil, api.InvalidField("callback", "must not have batch_id or depends_on")
		}
		raw, err := api.EncodeJSON(callback)
		if err != nil {
			return nil, fmt.Errorf("queue: encode a callback: %w", err)
		}
		text, by = string(raw), callback.By
	}
	if err := b.admission.Register(ctx, tenant, namespace); err != nil {
		return nil, err
	}
	taken := []quota.Amount{storage.One(quota.Batches)}
	if callback != nil { // its job is not refused later
		taken = append(taken, storage.One(quota.Jobs))
		if err := b.admission.Bytes(ctx, tenant, len(text)); err != nil {
			return nil, err
		}
	}
	id := api.NewJobID()
	err := b.store.Taking(ctx, tenant, func() error { return b.jobs.AddBatch(ctx, tenant, namespace, id, text, by) }, taken...)
	if err != nil {
		return nil, err
	}
	return b.GetBatch(ctx, tenant, namespace, id)
}

// GetBatch returns a batch with its counts. Errors: CodeBatchNotFound, CodeStoreUnavailable.
func (b *Broker) GetBatch(ctx context.Context, tenant, namespace, id string) (*api.Batch, error) {
	return b.jobs.BatchIn(ctx, tenant, namespace, id)
}

// ListBatches returns a page of a namespace's batches, newest first, after the id after. next is
// the value of after for the next page, "" at the end. limit is as in List. Errors:
// CodeValidationCursor, CodeStoreUnavailable.
func (b *Broker) ListBatches(ctx context.Context, tenant, namespace, after string, limit int) (items []api.Batch, next string, err error) {
	if after != "" && api.ValidateBatchID(after) != nil {
		return nil, "", api.Errorf(api.CodeValidationCursor, "the cursor is not one of a list of batches")
	}
	return b.jobs.ListBatches(ctx, tenant, namespace, after, storage.PageLimit(limit))
}

// DeleteBatch deletes a batch. Its jobs stay, and its callback is not enqueued unless it was
// before. Errors: CodeBatchNotFound, CodeStoreUnavailable.
func (b *Broker) DeleteBatch(ctx context.Context, tenant, namespace, id string) error {
	if _, err := b.GetBatch(ctx, tenant, namespace, id); err != nil {
		return err
	}
	deleted, err := b.jobs.DeleteBatch(ctx, tenant, namespace, id, "")
	if err == nil && !deleted {
		return jobstore.BatchNotFound(id)
	}
	if err == nil {
		b.store.Returned(ctx, tenant, storage.One(quota.Batches))
	}
	return err
}

// SealBatch closes a batch to further jobs. When all of its jobs have ended, the callback is
// made, once. A repeat succeeds. Errors: CodeBatchNotFound, CodeStoreUnavailable.
func (b *Broker) SealBatch(ctx context.Context, tenant, namespace, id string) (*api.Batch, error) {
	if _, err := b.GetBatch(ctx, tenant, namespace, id); err != nil {
		return nil, err
	}
	if err := b.follower.SealBatch(ctx, tenant, namespace, id); err != nil {
		return nil, err
	}
	return b.GetBatch(ctx, tenant, namespace, id)
}
