package duework

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

// pageSize bounds the members of one shard that one reading returns.
const pageSize = 100

// Reader reads the due sets. It remembers how far they have been consumed, and is safe for
// concurrent use.
type Reader struct {
	store  *storage.Store
	floors storage.Floors
}

// NewReader returns a Reader of the due sets in store.
func NewReader(store *storage.Store) *Reader { return &Reader{store: store} }

// Due is the result of one reading of the due sets.
type Due struct {
	// Queues and Schedules are the members that are due.
	Queues, Schedules []storage.DueMember
	// NextMS is the moment at which the next member is due, 0 if none is known. It is the
	// moment of the reading where a shard holds more than one reading returns.
	NextMS int64
}

// Read returns the members that are due at now, at most 100 of each shard, in one round trip.
// It changes nothing: a due member is returned again until it is settled at a later moment.
// Members of a kind that this release does not know are left to newer ones.
// CodeStoreUnavailable.
func (r *Reader) Read(ctx context.Context, now int64) (due Due, err error) {
	pipe := r.store.Client().Pipeline()
	heads := make([]*redis.ZSliceCmd, storage.DueShards)
	for shard := range heads {
		key := storage.KeyDue(shard)
		heads[shard] = pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{
			Min: strconv.FormatInt(r.floors.From(key, now), 10), Max: "+inf", Count: pageSize,
		})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return due, storage.Failure(ctx, "read due members", err)
	}
	first := rand.N(storage.DueShards) // replicas begin at different shards, to claim different members
	for i := range heads {
		shard := (first + i) % storage.DueShards
		consumed := due.add(storage.KeyDue(shard), heads[shard].Val(), now)
		r.floors.Consumed(storage.KeyDue(shard), consumed, now)
	}
	return due, nil
}

// add adds the members of one shard that are due at now. It returns the moment before which
// the shard holds nothing.
func (d *Due) add(key string, members []redis.Z, now int64) (consumed int64) {
	consumed = now
	for i, z := range members {
		name, _ := z.Member.(string)
		at := int64(z.Score)
		if at > now {
			d.NextMS = Sooner(d.NextMS, at)
			break
		}
		if i == 0 {
			consumed = at // a due member stays in the set until it is claimed
		}
		if i == pageSize-1 {
			d.NextMS = now
		}
		m := storage.DueMember{Key: key, Member: name, Score: at}
		switch {
		case strings.HasPrefix(name, storage.DueQueuePrefix):
			d.Queues = append(d.Queues, m)
		case strings.HasPrefix(name, storage.DueSchedulePrefix):
			d.Schedules = append(d.Schedules, m)
		}
	}
	return consumed
}
