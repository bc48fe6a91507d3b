package queue

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// GetQueue returns a queue's configuration and depths. Errors: CodeInvalid, CodeQueueNotFound,
// CodeStoreUnavailable.
func (b *Broker) GetQueue(ctx context.Context, tenant, namespace, queue string) (*api.Queue, error) {
	if err := api.ValidateQueue(queue); err != nil {
		return nil, err
	}
	q := jobstore.Queue{Tenant: tenant, Namespace: namespace, Name: queue}
	exists, err := b.rdb.SIsMember(ctx, b.store.JobKeys(tenant).Queues(), q.Path()).Result()
	if err != nil {
		return nil, jobstore.Failure(ctx, "read a queue", err)
	}
	if !exists {
		return nil, queueNotFound(queue)
	}
	found, err := b.readQueues(ctx, []jobstore.Queue{q})
	if err != nil {
		return nil, err
	}
	return &found[0], nil
}

// queueNotFound returns the error with CodeQueueNotFound.
func queueNotFound(queue string) error {
	return api.Errorf(api.CodeQueueNotFound, "queue %q does not exist", queue)
}

// readQueues returns the configurations and depths of queues, in their order, by one round trip.
// The age of the oldest pending job follows from the least score of each priority. The read
// begins at the cursors that this process knows, because entries below them were deleted.
func (b *Broker) readQueues(ctx context.Context, queues []jobstore.Queue) ([]api.Queue, error) {
	type replies struct {
		config *redis.SliceCmd
		depths map[api.JobState]func() int64
		oldest []*redis.ZSliceCmd
	}
	pipe := b.rdb.Pipeline()
	all := make([]replies, len(queues))
	for i, q := range queues {
		k := b.jobs.Keys(q)
		all[i] = replies{config: pipe.HMGet(ctx, k.Config(), jobstore.ConfigFields...), depths: map[api.JobState]func() int64{}}
		for _, state := range api.JobStates() {
			all[i].depths[state] = b.jobs.Depth(ctx, pipe, q, state)
		}
		cursors := b.claimer.Cursors(q)
		for rank, set := range b.jobs.Sets(q, api.JobPending) {
			all[i].oldest = append(all[i].oldest, pipe.ZRangeByScoreWithScores(ctx, set,
				&redis.ZRangeBy{Min: jobstore.ScoreText(cursors[rank]), Max: "(" + jobstore.ScoreText(jobstore.BandStart(rank+1)), Count: 1}))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, jobstore.Failure(ctx, "read queues", err)
	}
	now := b.store.NowMS()
	out := make([]api.Queue, len(queues))
	for i, q := range queues {
		out[i] = api.Queue{Namespace: q.Namespace, Queue: q.Name, QueueConfig: jobstore.ParseConfig(all[i].config.Val()), Depths: map[api.JobState]int64{}}
		for state, depth := range all[i].depths {
			out[i].Depths[state] = depth()
		}
		for rank, head := range all[i].oldest {
			for _, z := range head.Val() {
				made := (int64(z.Score) - jobstore.BandStart(rank)) >> jobstore.SequenceBits
				out[i].OldestPendingMS = max(out[i].OldestPendingMS, now-made)
			}
		}
	}
	return out, nil
}

// Queues returns a page of a namespace's queues in the order of their names, after the name
// after. next is the value of after for the next page, "" at the end. limit is as in List.
// Errors: CodeStoreUnavailable.
func (b *Broker) Queues(ctx context.Context, tenant, namespace, after string, limit int) (items []api.Queue, next string, err error) {
	var names []string
	for cursor := uint64(0); ; {
		step, following, err := b.rdb.SScan(ctx, b.store.JobKeys(tenant).Queues(), cursor, "", 1000).Result()
		if err != nil {
			return nil, "", jobstore.Failure(ctx, "list queues", err)
		}
		for _, member := range step {
			if name, ok := strings.CutPrefix(member, namespace+"/"); ok {
				names = append(names, name)
			}
		}
		cursor = following
		if cursor == 0 {
			break
		}
	}
	names, next = pageOf(names, after, storage.PageLimit(limit))
	queues := make([]jobstore.Queue, len(names))
	for i, name := range names {
		queues[i] = jobstore.Queue{Tenant: tenant, Namespace: namespace, Name: name}
	}
	items, err = b.readQueues(ctx, queues)
	return items, next, err
}

// clearPage is how many jobs one step of Clear, Redrive or DeleteQueue reads.
const clearPage = 200

// Clear deletes the jobs of a queue that have not started, page by page, and returns how many
// it deleted, also with an error. Jobs that are enqueued meanwhile may remain. Active and ended
// jobs remain. For jobs that depend on a deleted one it counts
// as cancelled. Errors: CodeStoreUnavailable.
func (b *Broker) Clear(ctx context.Context, tenant, namespace, queue string) (int, error) {
	q := jobstore.Queue{Tenant: tenant, Namespace: namespace, Name: queue}
	cleared := 0
	for _, state := range []api.JobState{api.JobPending, api.JobScheduled, api.JobRetrying, api.JobHeld, api.JobWaiting} {
		n, err := b.empty(ctx, q, state)
		cleared += n
		if err != nil {
			return cleared, err
		}
	}
	return cleared, nil
}

// empty cancels and deletes all jobs of one state. It walks behind the jobs that it deleted, so
// that jobs that it has to leave do not stop it.
func (b *Broker) empty(ctx context.Context, q jobstore.Queue, state api.JobState) (int, error) {
	cleared := 0
	var from *jobstore.Position
	for {
		step, end, err := b.jobs.Page(ctx, q, state, from, clearPage)
		if err != nil || len(step) == 0 {
			return cleared, err
		}
		from = &step[len(step)-1]
		for part, err := range b.jobs.Parts(ctx, q.Tenant, idsOf(step), jobstore.DetailFields...) {
			if err != nil {
				return cleared, err
			}
			n, err := b.discard(ctx, q, state, step[:len(part)], part)
			step = step[len(part):]
			cleared += n
			if err != nil {
				return cleared, err
			}
		}
		if end {
			return cleared, nil
		}
	}
}

// idsOf returns the ids of a page of jobs.
func idsOf(step []jobstore.Position) []string {
	ids := make([]string, len(step))
	for i, p := range step {
		ids[i] = p.ID
	}
	return ids
}

// discard cancels and deletes the jobs at step, which were read as found, and returns how many
// it deleted. Cancelling first makes the consequences of their ends happen. Jobs that change
// meanwhile, for example because a worker claims them, are left, and so are cancelled ones whose
// consequences are still to be handled.
func (b *Broker) discard(ctx context.Context, q jobstore.Queue, state api.JobState, step []jobstore.Position, found []*jobstore.Record) (int, error) {
	now := b.store.NowMS()
	var moves []*jobstore.Move
	members, strays := jobstore.Partition(q, idsOf(step), found, state)
	if _, err := b.jobs.DropFrom(ctx, q, step, strays); err != nil {
		return 0, err
	}
	for _, r := range members {
		m := jobstore.Move{Record: r, To: r.Run.To(api.JobCancelled, now)}.End()
		moves = append(moves, &m)
	}
	follow, err := b.apply(ctx, q, moves)
	if err != nil {
		return 0, err
	}
	b.follower.Follow(ctx, q, follow)
	var ended, marked []*jobstore.Record
	for _, m := range moves {
		if m.Outcome != jobstore.Moved {
			continue
		}
		r := &jobstore.Record{ID: m.Record.ID, Stored: m.To.String(), Run: m.To, Spec: m.Record.Spec}
		if slices.Contains(follow, r.ID) {
			marked = append(marked, r)
		} else {
			ended = append(ended, r)
		}
	}
	// The record holds the chain and the batch: one whose end was not followed yet is left to
	// maintenance.
	marked, err = b.jobs.Followed(ctx, q, marked)
	if err != nil {
		return 0, err
	}
	return b.jobs.Purge(ctx, q, api.JobCancelled, append(ended, marked...))
}

// Redrive is a call that retries dead jobs of a queue. A job must match all filters. The zero
// filters match all.
type Redrive struct {
	Tenant, Namespace, Queue string
	IDs                      []string // only these; empty for all
	Reason                   string   // the reason of their death, "" for any
	Tag, TagValue            string   // "" for any
	FromMS, ToMS             int64    // they ended in [FromMS, ToMS), in Unix milliseconds; 0 is open
	Limit                    int      // maximum number of jobs; 0 for all
}

// Redrive makes the dead jobs of a queue that match f pending for one more attempt, page by
// page, and returns how many, also with an error. An outcome that the first end still has to
// send is sent before. Errors: CodeStoreUnavailable.
func (b *Broker) Redrive(ctx context.Context, f Redrive) (int, error) {
	q := jobstore.Queue{Tenant: f.Tenant, Namespace: f.Namespace, Name: f.Queue}
	match := jobstore.Filter{Tag: f.Tag, TagValue: f.TagValue}
	revived := 0
	var from *jobstore.Position
	for {
		step, end, err := b.jobs.Page(ctx, q, api.JobDead, from, clearPage)
		if err != nil || len(step) == 0 {
			return revived, err
		}
		from = &step[len(step)-1]
		ids := make([]string, 0, len(step))
		for _, p := range step {
			if (f.FromMS == 0 || p.Score >= f.FromMS) && (f.ToMS == 0 || p.Score < f.ToMS) &&
				(len(f.IDs) == 0 || slices.Contains(f.IDs, p.ID)) {
				ids = append(ids, p.ID)
			}
		}
		for part, err := range b.jobs.Parts(ctx, q.Tenant, ids, jobstore.DetailFields...) {
			if err != nil {
				return revived, err
			}
			var moves []*jobstore.Move
			for _, r := range part {
				full := f.Limit > 0 && revived+len(moves) >= f.Limit
				if full || r == nil || r.Run.State != api.JobDead || r.Queue(q.Tenant) != q || !match.Matches(r) ||
					f.Reason != "" && r.Details[jobstore.FieldDeadReason] != f.Reason {
					continue
				}
				if err := b.follower.SendOutcome(ctx, q.Tenant, r); err != nil {
					return revived, err
				}
				m, err := b.revive(r)
				if err != nil {
					return revived, err
				}
				moves = append(moves, m)
			}
			if err := b.moveAll(ctx, q, moves); err != nil {
				return revived, err
			}
			if err := b.recordRetries(ctx, q.Tenant, moves); err != nil {
				return revived, err
			}
			revived += jobstore.CountMoved(moves)
			if f.Limit > 0 && revived >= f.Limit {
				return revived, nil
			}
		}
		if end {
			return revived, nil
		}
	}
}

// DeleteQueue deletes a queue with all its jobs, page by page. Errors: CodeInvalid,
// CodeQueueNotFound, CodeQueueBusy while jobs are active or keep changing,
// CodeStoreUnavailable.
//
// It is not atomic: after an error some jobs are deleted, and a repeat continues. A queue that
// gets jobs meanwhile exists again afterwards, without its configuration.
func (b *Broker) DeleteQueue(ctx context.Context, tenant, namespace, queue string) error {
	found, err := b.GetQueue(ctx, tenant, namespace, queue)
	if err != nil {
		return err
	}
	if n := found.Depths[api.JobActive]; n > 0 {
		return api.Errorf(api.CodeQueueBusy, "%d jobs of queue %q are active: pause it and wait until they end, or cancel them", n, queue)
	}
	q := jobstore.Queue{Tenant: tenant, Namespace: namespace, Name: queue}
	if _, err := b.Clear(ctx, tenant, namespace, queue); err != nil {
		return err
	}
	for _, state := range jobstore.EndedStates {
		if err := b.purgeAll(ctx, q, state); err != nil {
			return err
		}
	}
	// The index is last, so that an interrupted delete can be repeated.
	k := b.jobs.Keys(q)
	if err := b.rdb.Del(ctx, k.Config(), k.Rate(), k.Expiry(), k.After()).Err(); err != nil {
		return jobstore.Failure(ctx, "delete a queue", err)
	}
	m := q.Member()
	pipe := b.rdb.Pipeline()
	pipe.ZRem(ctx, storage.KeyDue(storage.DueShard(m)), m)
	pipe.ZRem(ctx, storage.KeyReady(storage.DueShard(m)), m)
	pipe.SRem(ctx, b.store.JobKeys(tenant).Queues(), q.Path())
	_, err = pipe.Exec(ctx)
	if err != nil {
		return jobstore.Failure(ctx, "delete a queue", err)
	}
	return b.relist(ctx, q)
}

// relist adds a queue to the list of queues and to the due and ready sets again if it got jobs
// while it was deleted. An enqueue after the check writes these entries itself.
func (b *Broker) relist(ctx context.Context, q jobstore.Queue) error {
	var sets []string
	for _, state := range api.JobStates() {
		sets = append(sets, b.jobs.Sets(q, state)...)
	}
	n, err := b.rdb.Exists(ctx, sets...).Result()
	if err != nil || n == 0 {
		return jobstore.Failure(ctx, "look at a queue", err)
	}
	if err := b.jobs.AddQueue(ctx, q); err != nil {
		return err
	}
	now := b.store.NowMS()
	next, _, err := b.jobs.NextDue(ctx, q, now)
	if err != nil {
		return err
	}
	pipe := b.rdb.Pipeline()
	if next > 0 {
		b.jobs.MarkDue(ctx, pipe, q, next)
	}
	if jobstore.IsFunctionQueue(q.Name) {
		b.jobs.MarkReady(ctx, pipe, q, now)
	}
	if pipe.Len() > 0 {
		_, err = pipe.Exec(ctx)
	}
	return jobstore.Failure(ctx, "mark a queue", err)
}

// purgeAll deletes all ended jobs of one state. It reads the first page again and again, since
// the members of each are removed, and fails with CodeQueueBusy if a page stays.
func (b *Broker) purgeAll(ctx context.Context, q jobstore.Queue, state api.JobState) error {
	for {
		step, _, err := b.jobs.Page(ctx, q, state, nil, clearPage)
		if err != nil || len(step) == 0 {
			return err
		}
		removed, left := 0, 0
		for part, err := range b.jobs.Parts(ctx, q.Tenant, idsOf(step)) {
			if err != nil {
				return err
			}
			records, strays := jobstore.Partition(q, idsOf(step[:len(part)]), part, state)
			dropped, err := b.jobs.DropFrom(ctx, q, step[:len(part)], strays)
			if err != nil {
				return err
			}
			n, err := b.jobs.Purge(ctx, q, state, records)
			if err != nil {
				return err
			}
			removed, left = removed+n+len(dropped), left+len(records)-n
			step = step[len(part):]
		}
		if removed == 0 && left > 0 {
			return api.Errorf(api.CodeQueueBusy, "jobs of queue %q keep changing: try again", q.Name)
		}
	}
}
