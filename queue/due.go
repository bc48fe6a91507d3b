package queue

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

// member is how the due and ready sets call a queue.
func (q queueKey) member() string { return storage.DueQueuePrefix + q.tenant + "/" + q.name() }

// markDue brings the queue's next maintenance to at, if it is not nearer yet.
func (b *Broker) markDue(ctx context.Context, pipe redis.Pipeliner, q queueKey, at int64) {
	storage.MarkDue(ctx, pipe, q.member(), at)
	if at <= b.store.NowMS()+nearMS {
		select {
		case b.dueSoon <- struct{}{}:
		default:
		}
	}
}

// markReady says that a fetch of the queue may find work from at on.
func (b *Broker) markReady(ctx context.Context, pipe redis.Pipeliner, q queueKey, at int64) {
	m := q.member()
	pipe.ZAddLT(ctx, storage.KeyReady(storage.DueShard(m)), redis.Z{Score: float64(at), Member: m})
}

// settleDue gives a member that was claimed with score its next moment, 0 for
// none. It says whether nobody had touched the member since.
func (b *Broker) settleDue(ctx context.Context, key, member string, score, next int64) (bool, error) {
	text := ""
	if next > 0 {
		text = strconv.FormatInt(next, 10)
	}
	reply, err := b.store.Script(ctx, storage.ScriptDueSettle, []string{key}, member, score, text)
	if err != nil {
		return false, err
	}
	n, _ := reply.(int64)
	return n == 1, nil
}

// dueMember is one entry of a due or ready set.
type dueMember struct {
	key, member string
	queue       queueKey
	score       int64
}

// dueIn reads the first members of a set from floor on, due or not.
func (b *Broker) dueIn(ctx context.Context, pipe redis.Pipeliner, key string, floor int64, limit int64) *redis.ZSliceCmd {
	return pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: strconv.FormatInt(floor, 10), Max: "+inf", Count: limit})
}

func parseMember(key string, z redis.Z) (dueMember, bool) {
	m, _ := z.Member.(string)
	rest, ok := strings.CutPrefix(m, storage.DueQueuePrefix)
	if !ok {
		return dueMember{}, false
	}
	q, ok := parseQueue(rest)
	return dueMember{key, m, q, int64(z.Score)}, ok
}

// floors remember from where sets that are consumed at their head are read: on
// KVRocks a read from the very start walks over all that was ever deleted there.
// They go back by a margin, for entries that came late, and now and then to the
// start.
type floors struct {
	mu  sync.Mutex
	all map[string]*floor
}

type floor struct{ at, restart int64 }

const (
	floorMarginMS  = 60_000
	floorRestartMS = 10 * 60_000
	floorEntries   = 50_000
)

// from gives the least score at which key is to be read at now.
func (f *floors) from(key string, now int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.all[key]
	if known == nil || now >= known.restart {
		return 0
	}
	return max(0, known.at-floorMarginMS)
}

// consumed remembers that key holds nothing below at that is not late.
func (f *floors) consumed(key string, at, now int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil || len(f.all) >= floorEntries {
		f.all = map[string]*floor{}
	}
	known := f.all[key]
	if known == nil || now >= known.restart {
		known = &floor{restart: now + floorRestartMS}
		f.all[key] = known
	}
	known.at = max(known.at, at)
}
