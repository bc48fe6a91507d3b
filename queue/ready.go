package queue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/claim"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// FunctionQueue names an fn queue, which the platform's own workers serve.
type FunctionQueue struct{ Tenant, Namespace, Queue string }

func (f FunctionQueue) key() jobstore.Queue {
	return jobstore.Queue{Tenant: f.Tenant, Namespace: f.Namespace, Name: f.Queue}
}

func functionQueue(q jobstore.Queue) FunctionQueue {
	return FunctionQueue{q.Tenant, q.Namespace, q.Name}
}

// OnReady tells of every fn queue that gets work, here or elsewhere, until stop is
// called. Notices from elsewhere may be lost: Ready is the truth. told must not
// block.
func (b *Broker) OnReady(notified func(FunctionQueue)) (stop func()) {
	return b.notifier.Watch(func(q jobstore.Queue) { notified(functionQueue(q)) })
}

const (
	// readyPage bounds the queues of a shard that one reading gives.
	readyPage = 1000
	// readyFreshMS is at what age a member of a ready set is dated anew: see floors,
	// whose margin it has to stay within.
	readyFreshMS = storage.FloorMarginMS / 2
)

// Ready gives the fn queues that may have work at now, and at what moment the next
// one may, 0 if none is known.
func (b *Broker) Ready(ctx context.Context, now int64) (queues []FunctionQueue, soonest int64, err error) {
	pipe := b.rdb.Pipeline()
	heads := make([]*redis.ZSliceCmd, storage.DueShards)
	for shard := range heads {
		key := storage.KeyReady(shard)
		heads[shard] = b.jobs.DueIn(ctx, pipe, key, b.jobs.Floors.From(key, now), readyPage)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, jobstore.Failure(ctx, "read what is ready", err)
	}
	for shard, head := range heads {
		key, upTo := storage.KeyReady(shard), now
		for k, z := range head.Val() {
			at := int64(z.Score)
			if at > now {
				if soonest == 0 || at < soonest {
					soonest = at
				}
				break
			}
			if k == readyPage-1 {
				upTo, soonest = at, now
			}
			m, _ := z.Member.(string)
			q, ok := jobstore.QueueOfMember(m)
			if !ok {
				continue // a newer release's
			}
			queues = append(queues, functionQueue(q))
			if at < now-readyFreshMS {
				if _, err := b.jobs.SettleDue(ctx, storage.DueMember{Key: key, Member: m, Score: at}, now); err != nil {
					return nil, 0, err
				}
			}
		}
		b.jobs.Floors.Consumed(key, upTo, now)
	}
	return queues, soonest, nil
}

// Taken is what a worker of the platform got out of a queue.
type Taken struct {
	Jobs []api.FetchedJob
	// More: there may be more at once. Else After, where it is not 0, is after how
	// long a rate limit may let more through.
	More  bool
	After time.Duration
	// Held: jobs are pending that the queue does not let begin: it is paused, or as
	// many run as may.
	Held bool
}

// Take hands out up to count jobs of an fn queue under leases. A queue that turns
// out to have none, or to serve none, leaves the ready set, and is looked at once
// more then: a job enqueued in between would sleep.
func (b *Broker) Take(ctx context.Context, f FunctionQueue, workerID string, count int, lease time.Duration) (Taken, error) {
	q, m := f.key(), f.key().Member()
	request := claim.Request{WorkerID: workerID, Lease: lease}
	got, err := b.take(ctx, request, q, count)
	if err != nil || len(got.Jobs) > 0 || got.More {
		return got, err
	}
	key := storage.KeyReady(storage.DueShard(m))
	score, err := b.rdb.ZScore(ctx, key, m).Result()
	if err != nil {
		return got, jobstore.Failure(ctx, "read what is ready", err) // nil where it is not there
	}
	next := int64(0)
	if got.After > 0 {
		next = b.store.NowMS() + got.After.Milliseconds()
	}
	mine, err := b.jobs.SettleDue(ctx, storage.DueMember{Key: key, Member: m, Score: int64(score)}, next)
	if err != nil || !mine || next > 0 {
		return got, err
	}
	got, err = b.take(ctx, request, q, count)
	if err != nil || len(got.Jobs) == 0 && !got.More {
		return got, err
	}
	pipe := b.rdb.Pipeline()
	b.jobs.MarkReady(ctx, pipe, q, b.store.NowMS())
	_, err = pipe.Exec(ctx)
	if len(got.Jobs) > 0 {
		err = nil // they are leased: hand them out; the next enqueue or ack marks the queue
	}
	return got, jobstore.Failure(ctx, "mark a queue", err)
}

func (b *Broker) take(ctx context.Context, r claim.Request, q jobstore.Queue, count int) (got Taken, err error) {
	jobs, after, err := b.claimer.Take(ctx, q, r, count)
	if err != nil && len(jobs) == 0 {
		return got, err
	}
	got.Jobs = jobs
	switch {
	case err != nil || len(jobs) == count || after == 0:
		got.More = true
	case after < claim.LongPause:
		got.After = after
	default:
		n, err := b.rdb.Exists(ctx, b.jobs.Sets(q, api.JobPending)...).Result()
		if err != nil && len(jobs) == 0 {
			return got, jobstore.Failure(ctx, "read a queue", err)
		}
		got.Held = n > 0
	}
	return got, nil
}
