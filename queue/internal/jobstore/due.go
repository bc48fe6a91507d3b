package jobstore

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

// MarkDue brings the queue's next maintenance to at, if it is not nearer yet.
func (s *Store) MarkDue(ctx context.Context, pipe redis.Pipeliner, q Queue, at int64) {
	storage.MarkDue(ctx, pipe, q.Member(), at)
	s.notify.DueAt(at)
}

// MarkReady says that a fetch of the queue may find work from at on.
func (s *Store) MarkReady(ctx context.Context, pipe redis.Pipeliner, q Queue, at int64) {
	m := q.Member()
	pipe.ZAddLT(ctx, storage.KeyReady(storage.DueShard(m)), redis.Z{Score: float64(at), Member: m})
}

// DueIn reads the first members of a set from floor on, due or not.
func (s *Store) DueIn(ctx context.Context, pipe redis.Pipeliner, key string, floor int64, limit int64) *redis.ZSliceCmd {
	return pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: strconv.FormatInt(floor, 10), Max: "+inf", Count: limit})
}

// NextDue is the moment at which something is due in q next, 0 for never.
func (s *Store) NextDue(ctx context.Context, q Queue, now int64) (int64, error) {
	k := s.Keys(q)
	type head struct {
		key   string
		delay int64
		cmd   *redis.ZSliceCmd
	}
	heads := []*head{{key: k.After()}, {key: k.Expiry()}}
	for _, state := range []api.JobState{api.JobScheduled, api.JobRetrying, api.JobActive} {
		heads = append(heads, &head{key: k.Set(string(state))})
	}
	for _, state := range EndedStates {
		heads = append(heads, &head{key: k.Set(string(state)), delay: s.RetentionMS})
	}
	pipe := s.rdb.Pipeline()
	for _, h := range heads {
		h.cmd = s.DueIn(ctx, pipe, h.key, s.Floors.From(h.key, now), 1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, Failure(ctx, "read a queue's heads", err)
	}
	next := int64(0)
	for _, h := range heads {
		for _, z := range h.cmd.Val() {
			if at := int64(z.Score) + h.delay; next == 0 || at < next {
				next = at
			}
		}
	}
	if next > 0 {
		next = max(next, now+duework.RestMS)
	}
	return next, nil
}

// SettleDue moves one member of a due set to its next moment, unless the member has
// changed since it was read; see storage.Store.SettleDue. It reports whether it did.
func (s *Store) SettleDue(ctx context.Context, m storage.DueMember, next int64) (bool, error) {
	mine, err := s.store.SettleDue(ctx, []storage.DueMember{m}, []int64{next})
	return mine[0], err
}
