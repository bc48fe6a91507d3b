package queue

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/claim"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/floors"
)

// FunctionQueue identifies a queue whose jobs invoke functions: an fn queue, which only the
// platform's own workers serve, or a queue with a trigger.
type FunctionQueue struct{ Tenant, Namespace, Queue string }

// OfFunction reports whether f is an fn queue.
func (f FunctionQueue) OfFunction() bool { return jobstore.IsFunctionQueue(f.Queue) }

func (f FunctionQueue) key() jobstore.Queue {
	return jobstore.Queue{Tenant: f.Tenant, Namespace: f.Namespace, Name: f.Queue}
}

func functionQueue(q jobstore.Queue) FunctionQueue {
	return FunctionQueue{q.Tenant, q.Namespace, q.Name}
}

// The ready sets hold the fn queues that may have work, each with the time from which on, over 16
// shards for all tenants. An enqueue adds a queue, an end of a job adds it because a slot may be
// free, and Take removes it. A queue that is not in the sets has no job that may start, unless a
// crash came between an enqueue and its mark, which the sweeper finds (repair.KindReady).

// OnReady calls notified for every queue that gets work, in this process or another, until
// stop is called. Notices of other processes may be lost, so callers must also poll Ready and
// Pending. notified must not block.
func (b *Broker) OnReady(notified func(FunctionQueue)) (stop func()) {
	return b.notifier.Watch(func(q jobstore.Queue) { notified(functionQueue(q)) })
}

const (
	// readyPage is the maximum number of queues of a shard that one read returns.
	readyPage = 1000
	// readyFreshMS is the age at which the score of a member is set to the present. Older
	// scores could fall below the floor from which the set is read, see floors.Floors.
	readyFreshMS = floors.MarginMS / 2
)

// Ready returns the fn queues that may have work at now, and the moment at which the next one
// may, 0 if none is known. Both are Unix times in milliseconds. It reads the heads of all
// shards in one round trip, and is a hint: Take decides. Errors: CodeStoreUnavailable.
func (b *Broker) Ready(ctx context.Context, now int64) (queues []FunctionQueue, soonest int64, err error) {
	pipe := b.rdb.Pipeline()
	heads := make([]*redis.ZSliceCmd, storage.DueShards)
	for shard := range heads {
		key := storage.KeyReady(shard)
		heads[shard] = b.jobs.DueIn(ctx, pipe, key, b.jobs.Floors.From(key, now), readyPage)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, jobstore.Failure(ctx, "read the ready sets", err)
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
			if k == readyPage-1 { // the shard may hold more: read it again soon, from here on
				upTo, soonest = at, now
			}
			m, _ := z.Member.(string)
			q, ok := jobstore.QueueOfMember(m)
			if !ok {
				continue // written by a newer release
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

// Pending returns those of queues that have pending jobs. It costs a command for each tenant, and
// one more for each queue of a tenant with work. Errors: CodeStoreUnavailable.
func (b *Broker) Pending(ctx context.Context, queues []FunctionQueue) ([]FunctionQueue, error) {
	byTenant := map[string][]FunctionQueue{}
	for _, q := range queues {
		byTenant[q.Tenant] = append(byTenant[q.Tenant], q)
	}
	var out []FunctionQueue
	for _, list := range byTenant {
		for part := range slices.Chunk(list, readyPage) {
			var keys []string
			for _, q := range part {
				keys = append(keys, b.jobs.Sets(q.key(), api.JobPending)...)
			}
			n, err := b.rdb.Exists(ctx, keys...).Result() // an empty set does not exist
			if err != nil {
				return nil, jobstore.Failure(ctx, "read queues", err)
			}
			if n == 0 {
				continue
			}
			counts, err := b.PendingCounts(ctx, part)
			if err != nil {
				return nil, err
			}
			for i, q := range part {
				if counts[i] > 0 {
					out = append(out, q)
				}
			}
		}
	}
	return out, nil
}

// PendingCounts returns the number of pending jobs of each queue. Errors: CodeStoreUnavailable.
func (b *Broker) PendingCounts(ctx context.Context, queues []FunctionQueue) ([]int64, error) {
	pipe := b.rdb.Pipeline()
	sizes := make([][]*redis.IntCmd, len(queues))
	for i, q := range queues {
		for _, key := range b.jobs.Sets(q.key(), api.JobPending) {
			sizes[i] = append(sizes[i], pipe.ZCard(ctx, key))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, jobstore.Failure(ctx, "count pending jobs", err)
	}
	out := make([]int64, len(queues))
	for i := range sizes {
		for _, size := range sizes[i] {
			out[i] += size.Val()
		}
	}
	return out, nil
}

// Taken is the result of Take. Without jobs, the other fields tell the dispatcher when to look
// again: soon, after a while, or when it is notified.
type Taken struct {
	Jobs []api.FetchedJob
	// More reports whether the queue may have more jobs now.
	More bool
	// After is how long to wait until a rate limit allows more jobs, 0 if none applies.
	After time.Duration
	// Held reports whether jobs are pending that may not start, because the queue is
	// paused or at its concurrency limit.
	Held bool
}

// Take claims up to count jobs of a queue under leases. An fn queue without jobs that may
// start leaves the ready set and is then read once more, because a job that was enqueued in
// between would otherwise not be noticed. Errors: CodeStoreUnavailable, ctx's.
//
//	Take      finds no job
//	enqueue   adds job j1, and the mark to the ready set, which has one already
//	Take      removes the mark
//	Take      reads again, claims j1, and marks the queue again
//
// A queue at its rate limit keeps the mark, with the moment at which it may serve again. One
// that is paused or at its concurrency limit loses it; Configure and the end of a job add it.
func (b *Broker) Take(ctx context.Context, f FunctionQueue, workerID string, count int, lease time.Duration) (Taken, error) {
	q, m := f.key(), f.key().Member()
	request := claim.Request{WorkerID: workerID, Host: b.host, Lease: lease}
	got, err := b.take(ctx, request, q, count)
	if err != nil || len(got.Jobs) > 0 || got.More {
		return got, err
	}
	key := storage.KeyReady(storage.DueShard(m))
	score, err := b.rdb.ZScore(ctx, key, m).Result()
	if err != nil {
		return got, jobstore.Failure(ctx, "read a ready set", err) // nil if q is not in it
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
		err = nil // they are leased and must reach the worker; the next enqueue or ack marks the queue
	}
	return got, jobstore.Failure(ctx, "mark a queue", err)
}

// Screen holds those of jobs, which were just taken from f to invoke a function, that approval policies
// select by the function, and returns the others. After an error some are left out: their leases end.
func (b *Broker) Screen(ctx context.Context, f FunctionQueue, function string, jobs []api.FetchedJob) ([]api.FetchedJob, error) {
	return b.consent.Screen(ctx, f.key(), function, jobs, b.Change)
}

// take is Take without the update of the ready set. The pause that the claim asks for decides
// between three answers: none, that there may be more now; one of a rate limit or budget, After; and
// claim.LongPause, that the queue is empty or does not serve, of which Held is the latter.
func (b *Broker) take(ctx context.Context, r claim.Request, q jobstore.Queue, count int) (got Taken, err error) {
	jobs, after, err := b.guard.Take(ctx, q, r, count)
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
