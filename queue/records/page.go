package records

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/queue/internal/jobstore"
)

// maxTied is how many members of one score are paged by their offset. Servers walk over the members
// before an offset, so further ones are read by a scan of the set, which costs the same for each page.
const maxTied = 5_000

// errPage is the error of a position that Before did not return.
var errPage = errors.New("records: not a position of a page")

// Before returns a page of about limit members of a sorted set with the highest scores, from the
// position from on, "" for the begin. next is the position of the next page, "" at the end. Each
// call sends one command, whose work is bounded: members of one score continue at an offset, and
// where they are more than maxTied, the rest of the set is scanned in no order, which may repeat
// members and return pages without any. Members that are removed between two pages may hide as many
// others of the same score, but hide none of a scan. Errors: CodeStoreUnavailable.
func (r *Reader) Before(ctx context.Context, set, from string, limit int) (ids []string, next string, err error) {
	at, err := parsePage(from)
	if err != nil {
		return nil, "", err
	}
	if at.scan != nil {
		return r.scan(ctx, set, at, limit)
	}
	members, err := r.store.Client().ZRevRangeByScoreWithScores(ctx, set, &redis.ZRangeBy{Min: "-inf", Max: at.most(), Offset: int64(at.tied), Count: int64(limit)}).Result()
	if err != nil {
		return nil, "", jobstore.Failure(ctx, "list jobs", err)
	}
	ids = make([]string, len(members))
	for i, z := range members {
		ids[i], _ = z.Member.(string)
	}
	if len(members) < limit {
		return ids, "", nil
	}
	return ids, at.behind(members).String(), nil
}

// scan returns a page of a scan of a set: of those members that may follow the scores that were read.
func (r *Reader) scan(ctx context.Context, set string, at page, limit int) (ids []string, next string, err error) {
	pairs, cursor, err := r.store.Client().ZScan(ctx, set, *at.scan, "", int64(limit)).Result()
	if err != nil {
		return nil, "", jobstore.Failure(ctx, "scan jobs", err)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		score, err := strconv.ParseFloat(pairs[i+1], 64)
		if err != nil || score <= at.score {
			ids = append(ids, pairs[i])
		}
	}
	if cursor == 0 {
		return ids, "", nil
	}
	at.scan = &cursor
	return ids, at.String(), nil
}

// page is the position of a page: behind the first tied members of a score, or in a scan of those
// members that have at most that score.
type page struct {
	begin bool // of the set
	score float64
	tied  int
	scan  *uint64
}

// most returns the bound of the scores of a page.
func (p page) most() string {
	if p.begin {
		return "+inf"
	}
	return strconv.FormatFloat(p.score, 'f', -1, 64)
}

// behind returns the position behind members, which p leads to.
func (p page) behind(members []redis.Z) page {
	next := page{score: members[len(members)-1].Score}
	for i := len(members) - 1; i >= 0 && members[i].Score == next.score; i-- {
		next.tied++
	}
	if !p.begin && p.score == next.score {
		next.tied += p.tied
	}
	if next.tied >= maxTied {
		next.scan = new(uint64)
	}
	return next
}

// String returns p as the from of Before.
func (p page) String() string {
	if p.scan != nil {
		return p.most() + "/scan/" + strconv.FormatUint(*p.scan, 10)
	}
	return p.most() + "/" + strconv.Itoa(p.tied)
}

// parsePage parses the text of a position.
func parsePage(text string) (page, error) {
	if text == "" {
		return page{begin: true}, nil
	}
	first, rest, _ := strings.Cut(text, "/")
	score, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return page{}, errPage
	}
	p := page{score: score}
	if cursor, is := strings.CutPrefix(rest, "scan/"); is {
		at, err := strconv.ParseUint(cursor, 10, 64)
		if err != nil {
			return page{}, errPage
		}
		p.scan = &at
		return p, nil
	}
	p.tied, err = strconv.Atoi(rest)
	if err != nil {
		return page{}, errPage
	}
	return p, nil
}
