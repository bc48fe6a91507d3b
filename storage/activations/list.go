package activations

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Filter selects activations of a function. A zero field accepts all.
type Filter struct {
	Tenant    string
	Namespace string
	Function  string
	Status    api.Status
	Trigger   string // a trigger type
	FromMS    int64  // start_ms, inclusive; 0 or less is no bound
	ToMS      int64  // start_ms, exclusive; 0 or less is no bound
	Cursor    string // where an earlier page ended; "" is the newest
	Limit     int    // 0 means api.DefaultPageLimit
}

// indexPlace is the position of an activation in the index of its function. As a cursor it
// is the text of String, such as 1767225600000:0b1e…; entries of one millisecond are ordered
// by id.
type indexPlace struct {
	startMS int64
	id      string
}

func (p indexPlace) String() string { return strconv.FormatInt(p.startMS, 10) + ":" + p.id }

func parseIndexPlace(s string) (indexPlace, error) {
	start, id, ok := strings.Cut(s, ":")
	ms, err := strconv.ParseInt(start, 10, 64)
	if !ok || err != nil {
		return indexPlace{}, api.Errorf(api.CodeValidationCursor, "not an activation cursor: %q", s)
	}
	return indexPlace{ms, id}, nil
}

// indexWindow is the number of index entries that one command reads.
const indexWindow = 200

// List returns a page of a function's activations, newest first, without results. It ends
// lost ones first. The filter is applied while it scans, and the scan is limited: a page
// may be short and still have a next cursor, which is "" at the end. CodeValidationCursor.
func (r *Repository) List(ctx context.Context, f Filter) (items []api.Activation, next string, err error) {
	limit := storage.PageLimit(f.Limit)
	scan := indexScan{r: r, filter: f}
	if f.Cursor != "" {
		place, err := parseIndexPlace(f.Cursor)
		if err != nil {
			return nil, "", err
		}
		scan.behind = &place
	}
	items = make([]api.Activation, 0, limit)
	for budget := storage.ScanBudget; ; {
		places, err := scan.window(ctx)
		if err != nil {
			return nil, "", err
		}
		records, err := r.readMany(ctx, f.Tenant, places)
		if err != nil {
			return nil, "", err
		}
		for i, a := range records {
			if a == nil {
				continue // it has expired, or its start was interrupted
			}
			shown, err := r.shown(ctx, a, f)
			if err != nil {
				return nil, "", err
			}
			if shown != nil {
				items = append(items, *shown)
			}
			if len(items) == limit {
				if scan.done && i == len(records)-1 {
					return items, "", nil
				}
				return items, places[i].String(), nil
			}
		}
		if scan.done {
			return items, "", nil
		}
		budget -= indexWindow
		if budget <= 0 {
			return items, scan.behind.String(), nil
		}
	}
}

// shown returns the record as a list shows it, nil if the filter excludes it. The filter
// applies after the repair: a lost activation has the status error.
func (r *Repository) shown(ctx context.Context, a *Record, f Filter) (*api.Activation, error) {
	if a.Lost(r.s.NowMS()) {
		var err error
		a, _, err = r.repair(ctx, a, r.s.NowMS())
		if err != nil {
			return nil, err
		}
	}
	if f.Status != "" && a.Status != f.Status || f.Trigger != "" && a.Trigger.Type != f.Trigger {
		return nil, nil
	}
	a.Result = nil
	return &a.Activation, nil
}

// readMany reads records, without results that have keys of their own. A missing record is
// nil.
func (r *Repository) readMany(ctx context.Context, tenant string, places []indexPlace) ([]*Record, error) {
	keys := make([]string, len(places))
	for i, p := range places {
		keys[i] = r.s.Keys().ActivationMeta(tenant, p.id)
	}
	raws, err := r.s.GetMany(ctx, keys)
	if err != nil {
		return nil, storage.Failure(ctx, "read activations", err)
	}
	records := make([]*Record, len(raws))
	for i, raw := range raws {
		if raw == "" {
			continue
		}
		a, err := storage.Decode[Record](raw)
		if err != nil {
			return nil, err
		}
		records[i] = &a
	}
	return records, nil
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
	behind *indexPlace // the last entry read
	ties   int64       // the number of entries read that have the score of behind
	done   bool
}

// window returns the next entries. It returns none only at the end of the scan.
func (s *indexScan) window(ctx context.Context) ([]indexPlace, error) {
	f := s.filter
	for {
		by := redis.ZRangeBy{Min: "-inf", Max: "+inf", Offset: s.ties, Count: indexWindow}
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
		s.done = len(found) < indexWindow
		places, err := s.unseen(found)
		if err != nil || len(places) > 0 || s.done {
			return places, err
		}
		s.ties += indexWindow // every entry of this window was read before
	}
}

// unseen removes the entries up to the position of the scan, and advances the scan.
func (s *indexScan) unseen(found []redis.Z) ([]indexPlace, error) {
	places := make([]indexPlace, 0, len(found))
	for _, z := range found {
		id, ok := z.Member.(string)
		if !ok {
			return nil, fmt.Errorf("activation index holds a %T", z.Member)
		}
		p := indexPlace{int64(z.Score), id}
		if b := s.behind; b != nil && p.startMS == b.startMS && p.id >= b.id {
			continue
		}
		places = append(places, p)
	}
	if len(places) > 0 {
		s.behind, s.ties = &places[len(places)-1], 0
	}
	return places, nil
}
