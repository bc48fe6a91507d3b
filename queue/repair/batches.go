package repair

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// batchRepaired is the field of a batch that is set, to the time in milliseconds, when a repair
// made its callback. HSETNX decides which of several processes reports the repair.
const batchRepaired = "repaired"

// batchPage checks the batches of a page. A sealed batch without live jobs that does not expire
// was not finished: the process that counted its last job died before it had made the callback
// and set the expiry. Most batches of a page are open or expire, and cost one command or two.
func (r *Repairer) batchPage(ctx context.Context, page []jobstore.Key, now int64, findings *Findings) error {
	if len(page) == 0 {
		return nil
	}
	pipe := r.rdb.Pipeline()
	fields := make([]*redis.SliceCmd, len(page))
	for i, k := range page {
		fields[i] = pipe.HMGet(ctx, r.store.JobKeys(k.Tenant).Batch(k.ID)+":meta", jobstore.BatchSealed, jobstore.BatchChanged, jobstore.BatchNamespace)
	}
	findings.Reads += len(page)
	if _, err := pipe.Exec(ctx); err != nil {
		return jobstore.Failure(ctx, "look at batches", err)
	}
	var errs []error
	for i, k := range page {
		found := jobstore.Words(fields[i].Val())
		sealed, changed, namespace := found[0], found[1], found[2]
		var err error
		switch {
		case sealed == "" || namespace == "": // it was deleted a moment ago
		case sealed == "1":
			err = r.batch(ctx, k, now, findings)
		case changed == "":
			err = r.adoptBatch(ctx, k, namespace)
		case jobstore.BatchExpired(changed, now):
			err = r.expireBatch(ctx, k, namespace, changed, findings)
		}
		if storage.Fatal(ctx, err) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// adoptBatch lists an open batch of an older release, whose time starts now.
func (r *Repairer) adoptBatch(ctx context.Context, k jobstore.Key, namespace string) error {
	err := r.jobs.AdoptBatch(ctx, k.Tenant, namespace, k.ID)
	if api.ErrorCode(err) == api.CodeBatchNotFound {
		return nil
	}
	return err
}

// expireBatch deletes a batch that was open and unchanged for api.OpenBatchRetentionMS.
func (r *Repairer) expireBatch(ctx context.Context, k jobstore.Key, namespace, changed string, findings *Findings) error {
	deleted, err := r.jobs.DeleteBatch(ctx, k.Tenant, namespace, k.ID, changed)
	if err == nil && deleted {
		findings.addRepair(KindBatch, jobstore.Queue{Tenant: k.Tenant, Namespace: namespace}, k.ID, "it was open and unchanged for 7 days: it was deleted, without its callback")
	}
	return err
}

// batchesAgain checks the batches again that have been suspicious for repairGraceMS.
func (r *Repairer) batchesAgain(ctx context.Context, now int64, findings *Findings) error {
	var errs []error
	for _, k := range r.batches.overdue(now, repairGraceMS) {
		err := r.batch(ctx, k, now, findings)
		if storage.Fatal(ctx, err) {
			return err
		}
		errs = append(errs, err)
		r.batches.Clear(k)
	}
	return errors.Join(errs...)
}

// batch checks one sealed batch, and finishes it if it has been complete and unfinished for
// repairGraceMS.
func (r *Repairer) batch(ctx context.Context, k jobstore.Key, now int64, findings *Findings) error {
	key := r.store.JobKeys(k.Tenant).Batch(k.ID) + ":meta"
	ttl, err := r.rdb.PTTL(ctx, key).Result()
	findings.Reads++
	if err != nil || ttl != -1 { // -1: it has no expiry
		r.batches.Clear(k)
		return jobstore.Failure(ctx, "look at a batch", err)
	}
	batch, err := r.jobs.ReadBatch(ctx, k.Tenant, k.ID)
	findings.Reads += 4
	if err != nil || !batch.Sealed || batch.Pending > 0 {
		r.batches.Clear(k)
		return err
	}
	if !r.batches.Confirmed(k, "", now, repairGraceMS) { // its last job may have ended a moment ago
		findings.Busy = true
		return nil
	}
	r.batches.Clear(k)
	findings.Reads += 10
	if err := r.owner.FinishBatch(ctx, k.Tenant, k.ID); err != nil {
		return err
	}
	first, err := r.rdb.HSetNX(ctx, key, batchRepaired, now).Result()
	if err == nil && first {
		findings.addRepair(KindBatch, jobstore.Queue{Tenant: k.Tenant, Namespace: batch.Namespace}, k.ID, "it was complete, but its callback was not made")
	}
	return jobstore.Failure(ctx, "note a repair", err)
}
