package jobstore

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// Position is a position in the sets of one state: after the member with this score and id.
// It stays valid when the member is removed, and when others are added.
type Position struct {
	Score int64
	ID    string
	Set   string // the key of the set; "" in a position parsed from a cursor
}

// String returns p as a cursor for clients: the score, a blank, and the id.
func (p *Position) String() string { return strconv.FormatInt(p.Score, 10) + " " + p.ID }

// ParsePosition parses a cursor that String returned. The empty cursor is nil, the
// beginning. Errors: CodeValidationCursor.
func ParsePosition(s string) (*Position, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // the beginning
	}
	text, id, ok := strings.Cut(s, " ")
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return nil, api.Errorf(api.CodeValidationCursor, "the cursor was not returned by this list")
	}
	return &Position{Score: n, ID: id}, nil
}

// Page returns the next members of q's sets of one state after from, at most limit. Ended
// jobs come newest first, others in the order in which they are served; members with one
// score are ordered by id. end reports whether there are no more. Errors:
// CodeStoreUnavailable.
func (s *Store) Page(ctx context.Context, q Queue, state api.JobState, from *Position, limit int) (out []Position, end bool, err error) {
	sets := s.Sets(q, state)
	if from != nil {
		set := from.Set
		if set == "" { // a score begins with the rank of its set
			set = s.SetOf(q, state, from.Score)
		}
		sets = sets[slices.Index(sets, set):]
	}
	for _, set := range sets {
		more, whole, err := s.pageOf(ctx, set, state.Terminal(), from, limit-len(out))
		out = append(out, more...)
		if err != nil || !whole {
			return out, false, err
		}
		from = nil
	}
	return out, true, nil
}

// pageOf is Page for one set. The store can skip members by score, not by score and id, so
// the page is read from the score of from on, and the members up to from are left out here. If
// many share that score, the window grows until the page is full.
func (s *Store) pageOf(ctx context.Context, key string, newest bool, from *Position, limit int) (out []Position, end bool, err error) {
	first := int64(limit) + 1
	if from != nil {
		first++ // the member at from is read again
	}
	for window := first; ; window *= 4 {
		zs, err := s.window(ctx, key, newest, from, window)
		if err != nil {
			return nil, false, Failure(ctx, "list jobs", err)
		}
		out = out[:0]
		for _, z := range zs {
			id, _ := z.Member.(string)
			at := Position{int64(z.Score), id, key}
			if from == nil || at.behind(from, newest) {
				out = append(out, at)
			}
		}
		end = int64(len(zs)) < window
		if len(out) > limit {
			return out[:limit], false, nil
		}
		if len(out) == limit || end || window > math.MaxInt32 {
			return out, end, nil
		}
	}
}

// behind reports whether p comes after from in the direction of the walk: newest is the
// descending one.
func (p Position) behind(from *Position, newest bool) bool {
	if p.Score != from.Score {
		return (p.Score > from.Score) != newest
	}
	return p.ID != from.ID && (p.ID > from.ID) != newest
}

// window reads count members of a set from the score of from on, or from the beginning if it is
// nil.
func (s *Store) window(ctx context.Context, key string, newest bool, from *Position, count int64) ([]redis.Z, error) {
	if newest {
		most := "+inf"
		if from != nil {
			most = strconv.FormatInt(from.Score, 10)
		}
		return s.rdb.ZRevRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: "-inf", Max: most, Count: count}).Result()
	}
	least := "-inf"
	if from != nil {
		least = strconv.FormatInt(from.Score, 10)
	}
	return s.rdb.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: least, Max: "+inf", Count: count}).Result()
}
