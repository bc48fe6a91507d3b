package duework

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/floors"
)

const (
	// pageSize bounds the members of one tenant in one shard that one reading returns.
	pageSize = 100
	// deepPage and deepPages bound how far a reading looks behind the first page of a shard.
	// In 16 shards this is three tenants that have reached the default limit of queues.
	deepPage  = 1000
	deepPages = 10
)

// Reader reads the due sets. It remembers how far they have been consumed, and is safe for
// concurrent use.
type Reader struct {
	store  *storage.Store
	floors floors.Floors
}

// NewReader returns a Reader of the due sets in store.
func NewReader(store *storage.Store) *Reader { return &Reader{store: store} }

// Due is the result of one reading of the due sets.
type Due struct {
	// Queues, Schedules and Budgets are the members that are due.
	Queues, Schedules, Budgets []storage.DueMember
	// NextMS is the moment at which the next member is due, 0 if none is known. It is the
	// moment of the reading where a shard holds more than one reading returns.
	NextMS int64
}

// Read returns the members that are due at now, at most 100 of each tenant and shard. It
// reads the first 100 of each shard in one round trip. If deep is set, it reads on in those
// shards that hold more, 10,000 at most, so that one tenant's many old members do not hide
// those of the others. It changes nothing: a due member is returned again until it is settled
// at a later moment. Members of a kind that this release does not know are left to newer
// ones. CodeStoreUnavailable.
func (r *Reader) Read(ctx context.Context, now int64, deep bool) (due Due, err error) {
	pipe := r.store.Client().Pipeline()
	heads := make([]*shard, storage.DueShards)
	for i := range heads {
		key := storage.KeyDue(i)
		heads[i] = &shard{key: key, from: strconv.FormatInt(r.floors.From(key, now), 10), held: map[string]int{}}
		heads[i].read(ctx, pipe, "+inf", 0, pageSize)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return due, storage.Failure(ctx, "read due members", err)
	}
	first := rand.N(storage.DueShards) // replicas begin at different shards, to claim different members
	var full []*shard
	for i := range heads {
		s := heads[(first+i)%storage.DueShards]
		members := s.page.Val()
		r.floors.Consumed(s.key, due.add(s, members, now), now)
		if n := len(members); n == pageSize && int64(members[n-1].Score) <= now {
			due.NextMS = now
			full = append(full, s)
		}
	}
	for page := 0; deep && page < deepPages && len(full) > 0; page++ {
		full, err = due.addMore(ctx, pipe, full, page, now)
		if err != nil {
			return due, err
		}
	}
	return due, nil
}

// shard is one shard of the due sets in a reading.
type shard struct {
	key, from string // from is the least score that is read
	page      *redis.ZSliceCmd
	held      map[string]int // members returned, by kind and tenant
}

// read queues the reading of a page of s on pipe.
func (s *shard) read(ctx context.Context, pipe redis.Pipeliner, upTo string, offset, count int64) {
	s.page = pipe.ZRangeByScoreWithScores(ctx, s.key, &redis.ZRangeBy{Min: s.from, Max: upTo, Offset: offset, Count: count})
}

// addMore adds the deep page of that number of each of shards, and returns those that may hold
// more due members. A claim between two pages moves the members behind it ahead; the next reading
// finds those that this one misses.
func (d *Due) addMore(ctx context.Context, pipe redis.Pipeliner, shards []*shard, page int, now int64) (full []*shard, err error) {
	for _, s := range shards {
		s.read(ctx, pipe, strconv.FormatInt(now, 10), int64(pageSize+page*deepPage), deepPage)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, storage.Failure(ctx, "read more due members", err)
	}
	for _, s := range shards {
		d.add(s, s.page.Val(), now)
		if len(s.page.Val()) == deepPage {
			full = append(full, s)
		}
	}
	return full, nil
}

// add adds the members of s that are due at now. It returns the moment before which s holds
// nothing, if these are its first members.
func (d *Due) add(s *shard, members []redis.Z, now int64) (consumed int64) {
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
		kind, rest, _ := strings.Cut(name, "/")
		tenant, _, _ := strings.Cut(rest, "/")
		owner := name[:min(len(name), len(kind)+1+len(tenant))]
		if s.held[owner] == pageSize {
			continue
		}
		s.held[owner]++
		m := storage.DueMember{Key: s.key, Member: name, Score: at}
		switch {
		case strings.HasPrefix(name, storage.DueQueuePrefix):
			d.Queues = append(d.Queues, m)
		case strings.HasPrefix(name, storage.DueSchedulePrefix):
			d.Schedules = append(d.Schedules, m)
		case strings.HasPrefix(name, storage.DueBudgetPrefix):
			d.Budgets = append(d.Budgets, m)
		}
	}
	return consumed
}
