package queue

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

// member is how the due and ready sets call a queue.
func (q queueKey) member() string { return storage.DueQueuePrefix + q.tenant + "/" + q.name() }

// markDue brings the queue's next maintenance to at, if it is not nearer yet.
func (b *Broker) markDue(ctx context.Context, pipe redis.Pipeliner, q queueKey, at int64) {
	storage.MarkDue(ctx, pipe, q.member(), at)
	b.DueAt(at)
}

// DueAt tells whoever maintains, here or elsewhere, that something is due at at, if
// that is sooner than they would look anyway.
func (b *Broker) DueAt(at int64) {
	switch {
	case at > b.store.NowMS()+nearMS:
	case b.maintaining.Load():
		b.lookSoon()
	default:
		b.wakes.due()
	}
}

// lookSoon makes this process read the due sets soon, if it maintains.
func (b *Broker) lookSoon() {
	select {
	case b.dueSoon <- struct{}{}:
	default: // a token is there already
	}
}

// markReady says that a fetch of the queue may find work from at on.
func (b *Broker) markReady(ctx context.Context, pipe redis.Pipeliner, q queueKey, at int64) {
	m := q.member()
	pipe.ZAddLT(ctx, storage.KeyReady(storage.DueShard(m)), redis.Z{Score: float64(at), Member: m})
}

// dueIn reads the first members of a set from floor on, due or not.
func (b *Broker) dueIn(ctx context.Context, pipe redis.Pipeliner, key string, floor int64, limit int64) *redis.ZSliceCmd {
	return pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: strconv.FormatInt(floor, 10), Max: "+inf", Count: limit})
}

// queueOf is the queue that a member of the due and ready sets is.
func queueOf(member string) (queueKey, bool) {
	rest, ok := strings.CutPrefix(member, storage.DueQueuePrefix)
	if !ok {
		return queueKey{}, false
	}
	return parseQueue(rest)
}

// settleDue gives one member its next moment; see storage.Store.SettleDue.
func (b *Broker) settleDue(ctx context.Context, m storage.DueMember, next int64) (bool, error) {
	mine, err := b.store.SettleDue(ctx, []storage.DueMember{m}, []int64{next})
	return mine[0], err
}
