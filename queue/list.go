package queue

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// pageLimit keeps a page's size within bounds; zero means the default.
func pageLimit(limit int) int {
	if limit <= 0 {
		return api.DefaultPageLimit
	}
	return min(limit, api.MaxPageLimit)
}

// pageOf sorts names and gives the first limit behind after, and what to pass as
// after for the rest.
func pageOf(names []string, after string, limit int) (page []string, next string) {
	slices.Sort(names)
	from, found := slices.BinarySearch(names, after)
	if found {
		from++
	}
	if names = names[from:]; len(names) > limit {
		return names[:limit], names[limit-1]
	}
	return names, ""
}

// List is a page of a queue's jobs.
type List struct {
	Tenant, Namespace, Queue string
	State                    api.JobState
	Tag, TagValue            string // filters, "" for any
	Cursor                   string // of the page before
	Limit                    int
}

// listBudget bounds how many jobs one page looks at where a filter leaves some
// out: such a page may be short and still go on.
const listBudget = 2000

// List gives jobs of one state without their errors: the ended ones newest first,
// the others in the order in which their turn comes. next is "" at the end. A
// queue that does not exist is empty.
func (b *Broker) List(ctx context.Context, l List) (items []api.Job, next string, err error) {
	if !slices.Contains(api.JobStates(), l.State) {
		return nil, "", fieldError("state", "must be a job's state")
	}
	q := queueKey{l.Tenant, l.Namespace, l.Queue}
	limit := pageLimit(l.Limit)
	position, err := parsePosition(l.Cursor)
	if err != nil {
		return nil, "", err
	}
	for budget := listBudget; budget > 0; budget -= limit {
		step, end, err := b.step(ctx, q, l.State, position, limit)
		if err != nil {
			return nil, "", err
		}
		ids := make([]string, len(step))
		for i, at := range step {
			ids[i] = at.id
		}
		found, err := b.load(ctx, l.Tenant, ids, details...)
		if err != nil {
			return nil, "", err
		}
		for i, r := range found {
			position = &step[i]
			if r == nil || r.run.state != l.State || r.key(l.Tenant) != q || !l.matches(r) {
				continue
			}
			j, err := r.view(nil)
			if err != nil {
				return nil, "", err
			}
			if items = append(items, *j); len(items) == limit {
				if end && i == len(found)-1 {
					return items, "", nil
				}
				return items, position.String(), nil
			}
		}
		if end {
			return items, "", nil
		}
	}
	return items, position.String(), nil
}

func (l *List) matches(r *record) bool {
	if l.Tag == "" {
		return true
	}
	value, ok := r.spec.Tags[l.Tag]
	return ok && (l.TagValue == "" || l.TagValue == value)
}

// position is a place in a set: behind the member with this score.
type position struct {
	score int64
	id    string
	set   string // the key of the set; "" in a position that came from a cursor
}

func (p *position) String() string { return strconv.FormatInt(p.score, 10) + " " + p.id }

func parsePosition(s string) (*position, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // the beginning
	}
	text, id, ok := strings.Cut(s, " ")
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return nil, api.Errorf(api.CodeValidationCursor, "the cursor is none of this list's")
	}
	return &position{score: n, id: id}, nil
}

// step reads the next members behind from, at most limit; end reports that there
// are no more. Members of one score are in the order of their ids.
func (b *Broker) step(ctx context.Context, q queueKey, state api.JobState, from *position, limit int) (out []position, end bool, err error) {
	sets := b.setsOf(q, state)
	if from != nil {
		set := from.set
		if set == "" { // a score begins with the rank of its set
			set = b.setOf(q, state, from.score)
		}
		sets = sets[slices.Index(sets, set):]
	}
	for _, set := range sets {
		more, whole, err := b.stepIn(ctx, set, state.Terminal(), from, limit-len(out))
		if out = append(out, more...); err != nil || !whole {
			return out, false, err
		}
		from = nil
	}
	return out, true, nil
}

// stepIn is step in one set.
func (b *Broker) stepIn(ctx context.Context, key string, newest bool, from *position, limit int) (out []position, end bool, err error) {
	first := int64(limit) + 1
	if from != nil {
		first++ // it is read again
	}
	for window := first; ; window *= 4 {
		zs, err := b.window(ctx, key, newest, from, window)
		if err != nil {
			return nil, false, b.failure(ctx, "list jobs", err)
		}
		out = out[:0]
		for _, z := range zs {
			id, _ := z.Member.(string)
			at := position{int64(z.Score), id, key}
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

// behind says whether p comes after from.
func (p position) behind(from *position, newest bool) bool {
	if p.score != from.score {
		return (p.score > from.score) != newest
	}
	return p.id != from.id && (p.id > from.id) != newest
}

func (b *Broker) window(ctx context.Context, key string, newest bool, from *position, count int64) ([]redis.Z, error) {
	if newest {
		most := "+inf"
		if from != nil {
			most = strconv.FormatInt(from.score, 10)
		}
		return b.rdb.ZRevRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: "-inf", Max: most, Count: count}).Result()
	}
	least := "-inf"
	if from != nil {
		least = strconv.FormatInt(from.score, 10)
	}
	return b.rdb.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: least, Max: "+inf", Count: count}).Result()
}
