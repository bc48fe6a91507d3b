package followup

import (
	"context"
	"errors"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// A batch is counted by sets, so that each step can be repeated:
//
//	CreateBatch           sealed 0
//	enqueue j1, j2        sealed 0, jobs {j1 j2}
//	j1 completes          sealed 0, jobs {j1 j2}, succeeded {j1}
//	SealBatch             sealed 1                                   not complete
//	j2 dies               sealed 1, failed {j2}                      complete: 2 = 1 + 1
//	                      the callback's job is made, the batch expires after the retention
//
// A crash before the last line leaves the marker of j2 in its queue's after set, or, if the seal
// completed the batch, a sealed batch that does not expire, which the sweeper finishes.

// batchEnds are the jobs of one batch that have ended.
type batchEnds struct{ succeeded, failed []string }

// countInBatches counts the ends of those of found that have ended, in their batches, and joins
// errors to those of errs. A batch that does not exist any more counts nothing.
func (f *Follower) countInBatches(ctx context.Context, tenant string, found []*jobstore.Record, errs []error) {
	batches, members := map[string]*batchEnds{}, map[string][]int{}
	for i, r := range found {
		if r == nil || r.Spec.BatchID == "" || !r.Run.State.Terminal() {
			continue
		}
		id := r.Spec.BatchID
		if batches[id] == nil {
			batches[id] = &batchEnds{}
		}
		members[id] = append(members[id], i)
		if r.Run.State == api.JobCompleted {
			batches[id].succeeded = append(batches[id].succeeded, r.ID)
		} else {
			batches[id].failed = append(batches[id].failed, r.ID)
		}
	}
	for id, ends := range batches {
		err := f.countInBatch(ctx, tenant, "", id, "", *ends)
		if err == nil || api.ErrorCode(err) == api.CodeBatchNotFound {
			continue
		}
		for _, i := range members[id] {
			errs[i] = errors.Join(errs[i], err)
		}
	}
}

// SealBatch closes a batch of namespace to further jobs, and makes its callback if it is complete. A repeat
// succeeds. Errors: CodeBatchNotFound, CodeStoreUnavailable.
func (f *Follower) SealBatch(ctx context.Context, tenant, namespace, id string) error {
	return f.countInBatch(ctx, tenant, namespace, id, "seal", batchEnds{})
}

// FinishBatch makes the callback of a batch if it is complete, as a repeat of the step that
// completed it. Errors: CodeBatchNotFound, CodeStoreUnavailable.
func (f *Follower) FinishBatch(ctx context.Context, tenant, id string) error {
	return f.countInBatch(ctx, tenant, "", id, "", batchEnds{})
}

// countInBatch counts ended jobs, seals the batch, of namespace, if seal is "seal", and makes the
// callback when the batch is complete. The callback precedes the expiry of the batch: a batch that
// expires has its callback.
func (f *Follower) countInBatch(ctx context.Context, tenant, namespace, id, seal string, ends batchEnds) error {
	done, err := f.Jobs.CountBatch(ctx, tenant, namespace, id, seal, ends.succeeded, ends.failed)
	if err != nil || !done {
		return err
	}
	batch, err := f.Jobs.ReadBatch(ctx, tenant, id)
	if err != nil {
		return err
	}
	if callback := batch.Callback; callback != nil {
		spec := &api.JobSpec{Payload: callback.Payload, JobOptions: callback.JobOptions, CallbackOf: id}
		spec.By = jobstore.AuthorOf(spec, callback.By)
		if err := f.Enqueue(ctx, jobstore.Queue{Tenant: tenant, Namespace: batch.Namespace, Name: callback.Queue}, jobstore.CallbackID(tenant, id), spec); err != nil {
			return err
		}
	}
	return f.Jobs.ExpireBatch(ctx, tenant, batch)
}
