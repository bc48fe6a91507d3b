package activations

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/storage"
)

const (
	// indexWindow is the number of index entries that one command reads of a function.
	indexWindow = 200
	// mergeWindow is that number where many functions are read as one.
	mergeWindow = 20
	// mergeReaders is the number of commands that read indexes at the same time.
	mergeReaders = 16
)

// MaxListed is the largest number of functions whose activations are listed together, and that of
// namespaces in which they are looked for.
const MaxListed = 2000

// indexMerge reads the indexes of several functions as one, newest first.
type indexMerge struct {
	sources []*indexSource
	last    indexPosition // the last entry returned
	done    bool
}

// indexSource is the index of one function, with the entries that were read ahead.
type indexSource struct {
	scan  indexScan
	ready []indexPosition
}

// merge returns the scan of all functions that f selects, behind a position. Errors:
// CodeValidationName for more than MaxListed functions or namespaces.
func (r *Repository) merge(ctx context.Context, f Filter, behind *indexPosition) (*indexMerge, error) {
	m := &indexMerge{}
	if behind != nil {
		m.last = *behind
	}
	add := func(namespace, function string, window int) {
		of := f
		of.Namespace, of.Function = namespace, function
		m.sources = append(m.sources, &indexSource{scan: indexScan{r: r, filter: of, window: window, behind: behind}})
	}
	if f.Function != "" {
		add(f.Namespace, f.Function, indexWindow)
		return m, nil
	}
	functions, err := r.functions(ctx, f.Tenant, f.Namespace)
	if err != nil {
		return nil, err
	}
	for _, fn := range functions {
		add(fn.Namespace, fn.Function, mergeWindow)
	}
	return m, nil
}

// next returns the next n entries, or fewer at the end of the scan.
func (m *indexMerge) next(ctx context.Context, n int) ([]indexPosition, error) {
	positions := make([]indexPosition, 0, n)
	for len(positions) < n {
		if err := m.fill(ctx); err != nil {
			return nil, err
		}
		newest := m.newest()
		if newest == nil {
			break
		}
		positions = append(positions, newest.ready[0])
		newest.ready = newest.ready[1:]
		m.last = positions[len(positions)-1]
	}
	if err := m.fill(ctx); err != nil {
		return nil, err
	}
	m.done = m.newest() == nil
	return positions, nil
}

// fill reads ahead for each source that has no entry ready.
func (m *indexMerge) fill(ctx context.Context) error {
	readers, inner := errgroup.WithContext(ctx)
	readers.SetLimit(mergeReaders)
	for _, s := range m.sources {
		if len(s.ready) > 0 || s.scan.done {
			continue
		}
		readers.Go(func() (err error) {
			s.ready, err = s.scan.read(inner)
			return err
		})
	}
	return readers.Wait()
}

// newest returns the source with the newest entry, nil if no entry is left.
func (m *indexMerge) newest() *indexSource {
	var newest *indexSource
	for _, s := range m.sources {
		if len(s.ready) > 0 && (newest == nil || s.ready[0].newer(newest.ready[0])) {
			newest = s
		}
	}
	return newest
}

// newer reports whether p comes before other in a list.
func (p indexPosition) newer(other indexPosition) bool {
	return cmp.Or(cmp.Compare(p.startMS, other.startMS), cmp.Compare(p.id, other.id)) > 0
}

// indexScan reads an index from the newest entry to the oldest, by score: a position by
// rank would shift while entries are added.
//
// A score can be shared by more entries than one window has. The scan then reads from the
// last score again, with an offset: behind is (1000, b), and the next command begins at score
// 1000. It finds (1000, c) and (1000, b), which unseen removes, and then new entries. If a
// whole window was read before, ties is the offset of the next one.
type indexScan struct {
	r      *Repository
	filter Filter
	window int            // the number of entries that one command reads
	behind *indexPosition // the last entry read
	ties   int64          // the number of entries read that have the score of behind
	done   bool
}

// read returns the next entries. It returns none only at the end of the scan.
func (s *indexScan) read(ctx context.Context) ([]indexPosition, error) {
	f := s.filter
	for {
		by := redis.ZRangeBy{Min: "-inf", Max: "+inf", Offset: s.ties, Count: int64(s.window)}
		if f.FromMS > 0 {
			by.Min = strconv.FormatInt(f.FromMS, 10)
		}
		if f.ToMS > 0 {
			by.Max = "(" + strconv.FormatInt(f.ToMS, 10)
		}
		if s.behind != nil && (f.ToMS <= 0 || s.behind.startMS < f.ToMS) {
			by.Max = strconv.FormatInt(s.behind.startMS, 10)
		}
		found, err := s.r.s.Client().ZRevRangeByScoreWithScores(ctx,
			s.r.s.Keys().ActivationIndex(f.Tenant, f.Namespace, f.Function), &by).Result()
		if err != nil {
			return nil, storage.Failure(ctx, "list activations", err)
		}
		s.done = len(found) < s.window
		positions, err := s.unseen(found)
		if err != nil || len(positions) > 0 || s.done {
			return positions, err
		}
		s.ties += int64(s.window) // every entry of this window was read before
	}
}

// unseen removes the entries up to the position of the scan, and advances the scan.
func (s *indexScan) unseen(found []redis.Z) ([]indexPosition, error) {
	positions := make([]indexPosition, 0, len(found))
	for _, z := range found {
		id, ok := z.Member.(string)
		if !ok {
			return nil, fmt.Errorf("activation index holds a %T", z.Member)
		}
		p := indexPosition{int64(z.Score), id}
		if b := s.behind; b != nil && p.startMS == b.startMS && p.id >= b.id {
			continue
		}
		positions = append(positions, p)
	}
	if len(positions) > 0 {
		s.behind, s.ties = &positions[len(positions)-1], 0
	}
	return positions, nil
}
