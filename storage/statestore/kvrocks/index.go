package kvrocks

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage/statestore"
)

const (
	// textScore is the score of values that are not numbers, above all numbers; see
	// lua/include/field_score.lua.
	textScore = 1e19
	// exactScore bounds the integers that have distinct scores: a score is a float64.
	exactScore = 1 << 53
	// indexPage is the number of entries of one read, indexPageMin that of a scan with few
	// results. A read of entries with one score may have more.
	indexPage, indexPageMin = 256, 16
)

// place returns the score that the entry of a record should have. ok is false for a record that
// belongs out of the index, and for none (nil).
func (x Index) place(r *statestore.Record) (score float64, ok bool) {
	if r == nil {
		return 0, false
	}
	value, ok := r.Fields[x.Field]
	if !ok || x.Except.Holds(r.Fields) {
		return 0, false
	}
	return valueScore(value), true
}

// valueScore returns the score of a value; lua/include/field_score.lua is the same function.
func valueScore(value []byte) float64 {
	if n, ok := statestore.Number(value); ok {
		return float64(n)
	}
	return textScore
}

// serves reports whether an index has every record below prefix that can pass f.
func (s *Store) serves(prefix string, f *statestore.Filter) (x Index, set string, ok bool) {
	if f == nil {
		return Index{}, "", false
	}
	x, set = s.indexOf(prefix)
	return x, set, set != "" && f.Field == x.Field && f.Except.Same(x.Except)
}

// scoreText returns a score as an argument of a command.
func scoreText(score float64) string { return strconv.FormatFloat(score, 'f', -1, 64) }

// scoreRange returns the range of scores of values that can pass. It is inclusive for Less and
// Greater, too: beyond exactScore several values share a score. The filter decides on each
// record.
//
// An interrupted write can leave an entry below the value of its record, but never above it. A
// scan for Less therefore finds every entry that it needs. A scan for Greater or Equal misses a
// record whose raise was interrupted, if its entry is below the range, until the write is
// repeated or another scan finds and repairs the entry. See docs/storage.md.
func scoreRange(f *statestore.Filter) (from, to string) {
	at := scoreText(valueScore(f.Value))
	switch f.Op {
	case statestore.Less:
		return "-inf", at
	case statestore.Greater:
		return at, "+inf"
	default:
		return at, at
	}
}

// indexWalk is one scan by an index.
type indexWalk struct {
	s           *Store
	x           Index
	set, prefix string
	f           *statestore.Filter
	give        func(statestore.Entry) error

	given map[string]bool // keys passed to give: a record whose score changes is found again
	// tied holds records that share tiedScore but may have different values, which the scores
	// do not order. They are sorted by value once the scan has read all of them.
	tied      []statestore.Entry
	tiedScore float64
}

// walkIndex iterates over the records of an index in order. It continues from the last score,
// since ranks change while entries are added and removed: after a page that ends at
// (score 100, key b), the next command begins at score 100, and the entries up to b are
// dropped. The scan ends with a page that is not full.
func (s *Store) walkIndex(ctx context.Context, x Index, set, prefix string, f *statestore.Filter, give func(statestore.Entry) error) error {
	w := &indexWalk{s: s, x: x, set: set, prefix: prefix, f: f, give: give, given: map[string]bool{}}
	least := indexPage
	if f.MaxResults > 0 {
		least = min(indexPage, max(indexPageMin, f.MaxResults))
	}
	by := redis.ZRangeBy{Count: int64(least)}
	by.Min, by.Max = scoreRange(f)
	var last *redis.Z
	for {
		page, err := s.backend.Client().ZRangeByScoreWithScores(ctx, set, &by).Result()
		if err != nil {
			return s.backend.Failure(ctx, "read an index", err)
		}
		more := int64(len(page)) == by.Count
		page = slices.DeleteFunc(page, func(z redis.Z) bool { return last != nil && !behind(z, *last) })
		if err := w.page(ctx, page, last, more); err != nil {
			return err
		}
		if !more {
			return w.untie()
		}
		// If records of one score fill a page, the next page is larger.
		if len(page) == 0 || page[0].Score == page[len(page)-1].Score {
			by.Count *= 2
		} else {
			by.Count = int64(least)
		}
		if len(page) > 0 {
			last = &page[len(page)-1]
			by.Min = scoreText(last.Score)
		}
	}
}

// behind reports whether z comes after last in the order of a sorted set.
func behind(z, last redis.Z) bool {
	return z.Score > last.Score || z.Score == last.Score && member(z) > member(last)
}

func member(z redis.Z) string {
	text, _ := z.Member.(string) // members are always strings
	return text
}

// page handles a page of entries after last and repairs wrong entries. The record of a wrong
// entry is passed on at its right position if that is within the page. If it is after the
// page, a later page finds the corrected entry; if it is before the page, the scan misses the
// record. more reports that a later page follows.
func (w *indexWalk) page(ctx context.Context, page []redis.Z, last *redis.Z, more bool) error {
	var keys, foreign, wrong []string
	scores := map[string]float64{}
	for _, z := range page {
		switch key := member(z); {
		case !strings.HasPrefix(key, w.x.Prefix) || w.x.Key(key) != w.set:
			foreign = append(foreign, key)
		case strings.HasPrefix(key, w.prefix):
			keys, scores[key] = append(keys, key), z.Score
		}
	}
	var found []placed
	for batch := range slices.Chunk(keys, readBatch) {
		records, err := w.s.readMany(ctx, batch)
		if err != nil {
			return err
		}
		for i, r := range records {
			at, ok := w.x.place(r)
			if !ok || at != scores[batch[i]] {
				wrong = append(wrong, batch[i])
			}
			z := redis.Z{Score: at, Member: batch[i]}
			if ok && (last == nil || behind(z, *last)) && (!more || !behind(z, page[len(page)-1])) {
				found = append(found, placed{at, statestore.Entry{Key: batch[i], Record: *r}})
			}
		}
	}
	if err := w.drop(ctx, foreign); err != nil {
		return err
	}
	if err := w.repair(ctx, wrong); err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.entry.Key, b.entry.Key))
	})
	for _, p := range found {
		if err := w.take(p.entry, p.at); err != nil {
			return err
		}
	}
	return nil
}

// placed is a record with its score.
type placed struct {
	at    float64
	entry statestore.Entry
}

// take passes e on, or keeps it until all records with its score have been read.
func (w *indexWalk) take(e statestore.Entry, score float64) error {
	if len(w.tied) > 0 && w.tiedScore != score {
		if err := w.untie(); err != nil {
			return err
		}
	}
	if !w.f.Passes(e.Fields) || w.given[e.Key] {
		return nil
	}
	w.given[e.Key] = true
	if math.Abs(score) < exactScore {
		return w.give(e)
	}
	w.tied, w.tiedScore = append(w.tied, e), score
	return nil
}

// untie passes on the records that were kept.
func (w *indexWalk) untie() error {
	results := statestore.NewResults(w.f)
	for _, e := range w.tied {
		results.Add(e)
	}
	w.tied = nil
	for _, e := range results.Sorted() {
		if err := w.give(e); err != nil {
			return err
		}
	}
	return nil
}

// repair runs the script that corrects the entries, which reads the records again.
func (w *indexWalk) repair(ctx context.Context, records []string) error {
	if len(records) == 0 {
		return nil
	}
	args := []any{w.x.Field, w.x.Except.Field}
	for _, v := range w.x.Except.Values {
		args = append(args, v)
	}
	reply, err := w.s.backend.Script(ctx, scriptRepair, append([]string{w.set}, records...), args...)
	if err != nil {
		return err
	}
	changed, _ := reply.(int64) // the reply is always an integer
	w.s.repaired.Add(changed)
	return nil
}

// drop removes entries without a record of this index.
func (w *indexWalk) drop(ctx context.Context, entries []string) error {
	if len(entries) == 0 {
		return nil
	}
	members := make([]any, len(entries))
	for i, e := range entries {
		members[i] = e
	}
	removed, err := w.s.backend.Client().ZRem(ctx, w.set, members...).Result()
	w.s.repaired.Add(removed)
	return w.s.backend.Failure(ctx, "repair an index", err)
}
