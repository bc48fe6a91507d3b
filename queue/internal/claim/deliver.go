package claim

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// deliver is the third step of a claim. It returns the granted offers as fetched jobs, and the share of
// each. Jobs that expired before they were claimed are ended instead. A job whose spec cannot be
// decoded is reported in err.
func (c *Claimer) deliver(ctx context.Context, a *attempt, offers []offer) (jobs []api.FetchedJob, owners []*share, err error) {
	jobs = make([]api.FetchedJob, 0, len(offers))
	for i := range offers {
		o := &offers[i]
		if !o.taken {
			continue
		}
		spec := o.spec
		if spec == nil {
			err = errors.Join(err, o.unreadable)
			continue
		}
		c.jobs.Remember(jobstore.Key{Tenant: a.q.Tenant, ID: o.id}, jobstore.NewSummary(spec, o.claim, o.leased))
		if spec.ExpireAtMS > 0 && spec.ExpireAtMS <= a.now {
			// The others are leased, whatever became of this one, and must reach their workers.
			err = errors.Join(err, c.hooks.Expire(ctx, a.q.Tenant, o.id))
			continue
		}
		options := spec.WithDefaults()
		parent, batch := jobstore.Origin(a.q.Tenant, o.id, spec)
		payload := spec.Payload
		if len(payload) == 0 {
			payload = []byte("null")
		}
		owners = append(owners, o.owner)
		jobs = append(jobs, api.FetchedJob{
			ID: o.id, Namespace: a.q.Namespace, Queue: a.q.Name, Payload: payload,
			Attempt: o.claim.Attempt, MaxAttempts: options.MaxAttempts, LeaseEpoch: o.claim.Epoch, LeaseExpiresMS: a.expires,
			Tags: spec.Tags, ParentID: parent, CallbackOf: batch, CreatedAtMS: spec.CreatedAtMS,
			Spec: spec,
		})
	}
	return jobs, owners, err
}

// readCheckpoints sets the checkpoints that earlier attempts of claimed jobs left. Only the
// holder of a lease can write one, so they do not change concurrently.
func (c *Claimer) readCheckpoints(ctx context.Context, tenant string, jobs []api.FetchedJob) error {
	pipe := c.rdb.Pipeline()
	keys := c.store.JobKeys(tenant)
	replies := map[int]*redis.StringCmd{}
	for i := range jobs {
		if jobs[i].LeaseEpoch > 1 { // a first attempt has no checkpoint
			replies[i] = pipe.HGet(ctx, keys.Meta(jobs[i].ID), jobstore.FieldCheckpoint)
		}
	}
	if len(replies) == 0 {
		return nil
	}
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		return jobstore.Failure(ctx, "read checkpoints", err)
	}
	for i, reply := range replies {
		jobs[i].Checkpoint = jobstore.RawOf(reply.Val())
	}
	return nil
}
