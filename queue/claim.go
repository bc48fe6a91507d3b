package queue

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// claimOK is the claim script's word for a queue that serves.
const claimOK = "ok"

// offer is a candidate as it was read, and what a claim makes of it.
type offer struct {
	id       string
	rank     int // of its priority
	score    int64
	found    string // its run as it was read, "" for none
	spec     string // as stored
	claimed  run    // under the lease
	claimedS string // claimed as it is stored, "" for a job that is not pending in the queue
}

// claim hands out candidates whose run stays as it is read here. after is -1 where the
// queue serves, else how long it will not (0: unknown).
func (b *Broker) claim(ctx context.Context, f *Fetch, q queueKey, l *lane, found []candidate, want int) (jobs []api.FetchedJob, after time.Duration, err error) {
	now := b.store.NowMS()
	expires := now + f.Lease.Milliseconds()
	offers, err := b.readOffers(ctx, f, q, found, expires)
	if err != nil {
		return nil, 0, err
	}
	keys, args := b.claimArguments(q, offers, now, expires, want)
	reply, err := b.store.ScriptThen(ctx, storage.ScriptJobClaim, keys, args, func(pipe redis.Pipeliner) {
		b.markDue(ctx, pipe, q, expires)
	})
	if err != nil {
		return nil, 0, err
	}
	words := texts(reply)
	if words[0] != claimOK {
		b.metrics.claimed(q, words[0], nil, now)
		ms, _ := strconv.ParseInt(words[1], 10, 64)
		return nil, time.Duration(ms) * time.Millisecond, nil
	}
	l.advance(words[2:6])
	jobs, err = b.claimed(ctx, q, offers, words[6:], now, expires)
	if err == nil {
		err = b.readCheckpoints(ctx, q.tenant, jobs)
	}
	b.metrics.claimed(q, claimOK, jobs, now)
	return jobs, -1, err
}

// readOffers reads the runs and specs of candidates, in their order. A job's run and
// spec belong together: one command reads both.
func (b *Broker) readOffers(ctx context.Context, f *Fetch, q queueKey, found []candidate, expires int64) ([]offer, error) {
	tenant, home := b.store.JobKeys(q.tenant), specBegin(q)
	keys := make([]string, 0, 2*len(found))
	for _, c := range found {
		keys = append(keys, tenant.Run(c.id), tenant.Spec(c.id))
	}
	stored, err := b.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, b.failure(ctx, "read jobs", err)
	}
	texts, offers := texts(stored), make([]offer, len(found))
	for i, c := range found {
		o := &offers[i]
		*o = offer{id: c.id, rank: rankOf(c.score), score: c.score, found: texts[2*i], spec: texts[2*i+1]}
		if !strings.HasPrefix(o.found, string(api.JobPending)+" ") || !strings.HasPrefix(o.spec, home) {
			continue
		}
		r, err := parseRun(o.found)
		if err != nil {
			return nil, err
		}
		o.claimed = r.to(api.JobActive, expires)
		o.claimed.attempt++
		o.claimed.epoch++
		o.claimed.worker = f.WorkerID
		o.claimedS = o.claimed.String()
	}
	return offers, nil
}

// claimArguments lays offers out as job_claim.lua reads them.
func (b *Broker) claimArguments(q queueKey, offers []offer, now, expires int64, want int) (keys []string, args []any) {
	k, tenant := b.keys(q), b.store.JobKeys(q.tenant)
	keys = append(make([]string, 0, 8+len(offers)), k.Config(), k.Cursor(), k.Rate(), k.Set(string(api.JobActive)))
	keys = append(keys, b.setsOf(q, api.JobPending)...)
	args = append(make([]any, 0, 12+3*len(offers)), now, expires, want, len(offers))
	var count [4]int
	var last [4]int64
	for i := range offers {
		count[offers[i].rank]++
		last[offers[i].rank] = offers[i].score
		keys = append(keys, tenant.Run(offers[i].id))
	}
	for rank := range count {
		args = append(args, count[rank])
	}
	for rank := range last {
		args = append(args, last[rank])
	}
	for i := range offers {
		args = append(args, offers[i].id, offers[i].found, offers[i].claimedS)
	}
	return keys, args
}

// claimed makes jobs of the offers at places, which count from 1. Those that have expired
// meanwhile are ended instead of being handed out.
func (b *Broker) claimed(ctx context.Context, q queueKey, offers []offer, places []string, now, expires int64) ([]api.FetchedJob, error) {
	jobs := make([]api.FetchedJob, 0, len(places))
	for _, place := range places {
		at, err := strconv.Atoi(place)
		if err != nil || at < 1 || at > len(offers) {
			return jobs, api.Errorf(api.CodeInternal, "the claim script answered with place %q", place)
		}
		o := &offers[at-1]
		spec, err := decodeSpec(o.spec)
		if err != nil {
			return jobs, err
		}
		b.remember(jobKey{q.tenant, o.id}, briefOf(spec, o.claimed, o.claimedS))
		if spec.ExpireAtMS > 0 && spec.ExpireAtMS <= now {
			if err := b.expireClaimed(ctx, q.tenant, o.id); err != nil {
				return jobs, err
			}
			continue
		}
		options := spec.WithDefaults()
		payload := spec.Payload
		if len(payload) == 0 {
			payload = []byte("null")
		}
		jobs = append(jobs, api.FetchedJob{
			ID: o.id, Namespace: q.namespace, Queue: q.queue, Payload: payload,
			Attempt: o.claimed.attempt, MaxAttempts: options.MaxAttempts, LeaseEpoch: o.claimed.epoch, LeaseExpiresMS: expires,
			Tags: spec.Tags, ParentID: spec.ParentID, CreatedAtMS: spec.CreatedAtMS,
			Spec: spec,
		})
	}
	return jobs, nil
}

// readCheckpoints completes claimed jobs by the checkpoints of earlier attempts. Only
// the holder of a lease can write one, so they do not change meanwhile.
func (b *Broker) readCheckpoints(ctx context.Context, tenant string, jobs []api.FetchedJob) error {
	pipe := b.rdb.Pipeline()
	keys := b.store.JobKeys(tenant)
	replies := map[int]*redis.StringCmd{}
	for i := range jobs {
		if jobs[i].LeaseEpoch > 1 { // only a worker leaves a checkpoint
			replies[i] = pipe.HGet(ctx, keys.Meta(jobs[i].ID), fieldCheckpoint)
		}
	}
	if len(replies) == 0 {
		return nil
	}
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		return b.failure(ctx, "read checkpoints", err)
	}
	for i, reply := range replies {
		jobs[i].Checkpoint = rawOf(reply.Val())
	}
	return nil
}
