package kvrocks

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage/statestore"
)

const (
	// textScore is where what is no number stands, behind all numbers; see
	// state_write.lua.
	textScore = 1e19
	// exactScore bounds the integers of which each has a score of its own.
	exactScore = 1 << 53
	// indexPage and indexPageMin are how many entries are read at once.
	indexPage, indexPageMin = 256, 16
)

// place is where a record stands, if it does.
func (x Index) place(fields statestore.Fields) (score float64, ok bool) {
	value, ok := fields[x.Field]
	if !ok || x.Except.Holds(fields) {
		return 0, false
	}
	return valueScore(value), true
}

func valueScore(value []byte) float64 {
	if n, ok := statestore.Number(value); ok {
		return float64(n)
	}
	return textScore
}

// serves says whether an index has every record below prefix that can pass f.
func (s *Store) serves(prefix string, f *statestore.Filter) (x Index, set string, ok bool) {
	if f == nil {
		return Index{}, "", false
	}
	x, set = s.indexOf(prefix)
	return x, set, set != "" && f.Field == x.Field && f.Except.Same(x.Except)
}

// scoreText is how a command takes a score.
func scoreText(score float64) string { return strconv.FormatFloat(score, 'f', -1, 64) }

// scoreRange bounds the scores of what can pass, both ends included: beyond
// exactScore other values share them.
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

// indexWalk is one scan that an index serves.
type indexWalk struct {
	s           *Store
	x           Index
	set, prefix string
	f           *statestore.Filter
	give        func(statestore.Entry) error

	given   map[string]bool // keys: one that moves is met again
	results int
	// tied holds records that share a score, though not all have the same value.
	tied      []statestore.Entry
	tiedScore float64
}

// walkIndex gives the records of an index in order. It reads from the last score
// that it has seen: ranks move while entries come and go.
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
		if err := w.page(ctx, page); err != nil {
			return err
		}
		if !more {
			return w.untie()
		}
		// Records of one score that fill a page make the next one larger.
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

func behind(z, last redis.Z) bool {
	return z.Score > last.Score || z.Score == last.Score && member(z) > member(last)
}

func member(z redis.Z) string {
	text, _ := z.Member.(string) // the client gives nothing else
	return text
}

// page gives what passes of a page of entries, and repairs those that are wrong. One
// whose record stands further on by now is met there.
func (w *indexWalk) page(ctx context.Context, page []redis.Z) error {
	var keys, foreign []string
	var scores []float64
	for _, z := range page {
		switch key := member(z); {
		case !strings.HasPrefix(key, w.x.Prefix) || w.x.Key(key) != w.set:
			foreign = append(foreign, key)
		case strings.HasPrefix(key, w.prefix):
			keys, scores = append(keys, key), append(scores, z.Score)
		}
	}
	if err := w.drop(ctx, foreign); err != nil {
		return err
	}
	for len(keys) > 0 {
		n := min(readBatch, len(keys))
		if err := w.read(ctx, keys[:n], scores[:n]); err != nil {
			return err
		}
		keys, scores = keys[n:], scores[n:]
	}
	return nil
}

func (w *indexWalk) read(ctx context.Context, keys []string, scores []float64) error {
	records, err := w.s.readMany(ctx, keys)
	if err != nil {
		return err
	}
	var wrong []string
	var right []int
	for i, r := range records {
		if r != nil {
			if score, ok := w.x.place(r.Fields); ok && score == scores[i] {
				right = append(right, i)
				continue
			}
		}
		wrong = append(wrong, keys[i])
	}
	if err := w.repair(ctx, wrong); err != nil {
		return err
	}
	for _, i := range right {
		if err := w.take(statestore.Entry{Key: keys[i], Record: *records[i]}, scores[i]); err != nil {
			return err
		}
	}
	return nil
}

// take gives e, or keeps it until all that share its score are there.
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
		return w.count(e)
	}
	w.tied, w.tiedScore = append(w.tied, e), score
	return nil
}

func (w *indexWalk) untie() error {
	results := statestore.NewResults(w.f)
	for _, e := range w.tied {
		results.Add(e)
	}
	w.tied = nil
	for _, e := range results.Sorted() {
		if err := w.count(e); err != nil {
			return err
		}
	}
	return nil
}

// count gives e, up to the filter's bound.
func (w *indexWalk) count(e statestore.Entry) error {
	if err := w.give(e); err != nil {
		return err
	}
	if w.f.MaxResults > 0 {
		w.results++
		if w.results == w.f.MaxResults {
			return errStop
		}
	}
	return nil
}

// repair lets the script look at the records again: they may have changed since.
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
	changed, _ := reply.(int64) // it replies nothing else
	w.s.repaired.Add(changed)
	return nil
}

// drop removes entries that name no record of this index.
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
