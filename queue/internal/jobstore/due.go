package jobstore

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

// MarkDue queues a command on pipe that makes maintenance of q due at the given Unix time in
// milliseconds, unless it is due earlier. It also reports the moment to Notify.DueAt. The work
// must be stored before the mark; package duework explains why.
func (s *Store) MarkDue(ctx context.Context, pipe redis.Pipeliner, q Queue, at int64) {
	storage.MarkDue(ctx, pipe, q.Member(), at)
	s.notify.DueAt(at)
}

// MarkReady queues a command on pipe that makes q ready at the given Unix time in
// milliseconds, unless it is ready earlier: a fetch from then on may find work. Only fn queues
// are marked; queue.Broker's Take removes the mark when it finds nothing.
func (s *Store) MarkReady(ctx context.Context, pipe redis.Pipeliner, q Queue, at int64) {
	m := q.Member()
	pipe.ZAddLT(ctx, storage.KeyReady(storage.DueShard(m)), redis.Z{Score: float64(at), Member: m})
}

// DueIn queues a command on pipe that reads the first limit members of a set with a score
// of at least floor, due or not.
func (s *Store) DueIn(ctx context.Context, pipe redis.Pipeliner, key string, floor int64, limit int64) *redis.ZSliceCmd {
	return pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: strconv.FormatInt(floor, 10), Max: "+inf", Count: limit})
}

// NextDue returns the Unix time in milliseconds at which maintenance of q is due next, 0 if
// nothing is left to become due, and whether that is to purge a job. It is the least score in the sets of scheduled, retrying and
// active jobs, of expiries and of markers, or, for ended jobs, the score plus the retention.
// The moment is at least duework.RestMS after now, so that work that could not be done does
// not keep the loop busy. Errors: CodeStoreUnavailable.
func (s *Store) NextDue(ctx context.Context, q Queue, now int64) (next int64, purge bool, err error) {
	k := s.Keys(q)
	type head struct {
		key   string
		ended bool // its jobs are purged after the retention
		cmd   *redis.ZSliceCmd
	}
	heads := []*head{{key: k.After()}, {key: k.Expiry()}}
	for _, state := range []api.JobState{api.JobScheduled, api.JobRetrying, api.JobActive} {
		heads = append(heads, &head{key: k.Set(string(state))})
	}
	for _, state := range EndedStates {
		heads = append(heads, &head{key: k.Set(string(state)), ended: true})
	}
	pipe := s.rdb.Pipeline()
	own := pipe.HMGet(ctx, k.Config(), configRetention)
	for _, h := range heads {
		h.cmd = s.DueIn(ctx, pipe, h.key, s.Floors.From(h.key, now), 1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, false, Failure(ctx, "read a queue's heads", err)
	}
	keep := s.keepMS(q, own)
	for _, h := range heads {
		for _, z := range h.cmd.Val() {
			at := int64(z.Score)
			if h.ended {
				at += keep
			}
			if next == 0 || at < next {
				next, purge = at, h.ended
			}
		}
	}
	if next > 0 {
		next = max(next, now+duework.RestMS)
	}
	return next, purge, nil
}

// SettleDue moves one member of a due set to its next moment, or removes it if next is 0,
// unless the member has changed since it was read; see storage.Store.SettleDue. It reports
// whether it did. Errors: CodeStoreUnavailable.
func (s *Store) SettleDue(ctx context.Context, m storage.DueMember, next int64) (bool, error) {
	mine, err := s.store.SettleDue(ctx, []storage.DueMember{m}, []int64{next})
	return mine[0], err
}

// DropExpiries removes the entries of jobs, or moves them to the expiry of the job where that is later. Errors:
// CodeStoreUnavailable.
func (s *Store) DropExpiries(ctx context.Context, q Queue, gone []any, later map[string]int64) error {
	key, pipe := s.Keys(q).Expiry(), s.rdb.Pipeline()
	for _, id := range gone {
		text, _ := id.(string)
		if at := later[text]; at > 0 {
			pipe.ZAddXX(ctx, key, redis.Z{Score: float64(at), Member: id})
			s.MarkDue(ctx, pipe, q, at)
		} else {
			pipe.ZRem(ctx, key, id)
		}
	}
	_, err := pipe.Exec(ctx)
	return Failure(ctx, "drop expiries", err)
}
