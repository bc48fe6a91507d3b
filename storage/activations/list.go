package activations

import (
	"context"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// The bounds of a list in bytes: errors make a record as large as 80 KiB.
const (
	// firstRead bounds the records of the first command of a list, whose size is unknown.
	firstRead = 32
	// readBytes is about how many bytes each further command reads.
	readBytes = 1 << 20
	// listBytes is how many bytes of records a list reads until its page ends.
	listBytes = 8 << 20
)

// Filter selects activations of a tenant. A zero field accepts all.
type Filter struct {
	Tenant    string
	Namespace string
	Function  string // of Namespace, which must be set then
	ID        string // the beginning or the end of the id
	Status    api.Status
	Trigger   string // a trigger type
	FromMS    int64  // start_ms, inclusive; 0 or less is no bound
	ToMS      int64  // start_ms, exclusive; 0 or less is no bound
	Cursor    string // where an earlier page ended; "" is the newest
	Limit     int    // 0 means api.DefaultPageLimit
}

// indexPosition is the position of an activation in the index of its function. As a cursor it
// is the text of String, such as 1767225600000:0b1e…; entries of one millisecond are ordered
// by id.
type indexPosition struct {
	startMS int64
	id      string
}

func (p indexPosition) String() string { return strconv.FormatInt(p.startMS, 10) + ":" + p.id }

func parseIndexPosition(s string) (indexPosition, error) {
	start, id, ok := strings.Cut(s, ":")
	ms, err := strconv.ParseInt(start, 10, 64)
	if !ok || err != nil {
		return indexPosition{}, api.Errorf(api.CodeValidationCursor, "not an activation cursor: %q", s)
	}
	return indexPosition{ms, id}, nil
}

// List returns a page of activations, newest first, without results. It ends lost ones first.
// The filter is applied while it scans, and the scan is limited in records and in bytes: a page may be
// short and still have a next cursor, which is "" at the end. CodeValidationCursor, CodeValidationName for more
// than MaxListed functions or namespaces.
func (r *Repository) List(ctx context.Context, f Filter) (items []api.Activation, next string, err error) {
	limit := storage.PageLimit(f.Limit)
	var behind *indexPosition
	if f.Cursor != "" {
		position, err := parseIndexPosition(f.Cursor)
		if err != nil {
			return nil, "", err
		}
		behind = &position
	}
	scan, err := r.merge(ctx, f, behind)
	if err != nil {
		return nil, "", err
	}
	items = make([]api.Activation, 0, limit)
	window, bytes := firstRead, 0
	for budget := storage.ScanBudget; budget > 0 && bytes < listBytes; {
		positions, err := scan.next(ctx, min(budget, window, r.ahead(f, limit-len(items))))
		if err != nil {
			return nil, "", err
		}
		budget -= len(positions)
		shown, read, err := r.shown(ctx, positions, f)
		if err != nil {
			return nil, "", err
		}
		bytes += read
		window = max(1, readBytes*len(positions)/max(1, read))
		for i, a := range shown {
			if a != nil {
				items = append(items, *a)
			}
			if len(items) == limit {
				if scan.done && i == len(positions)-1 {
					return items, "", nil
				}
				return items, positions[i].String(), nil
			}
		}
		if scan.done {
			return items, "", nil
		}
	}
	return items, scan.last.String(), nil
}

// ahead returns the number of index entries to read for wanted more items: no more than these
// where all of them are shown.
func (r *Repository) ahead(f Filter, wanted int) int {
	if f.Status == "" && f.Trigger == "" && f.ID == "" {
		return min(wanted, indexWindow)
	}
	return indexWindow
}

// shown returns the activations at positions as a list shows them, nil for those that the filter
// excludes and for those that have expired or whose start was interrupted, and how many bytes
// it has read.
func (r *Repository) shown(ctx context.Context, positions []indexPosition, f Filter) (out []*api.Activation, read int, err error) {
	wanted := make([]indexPosition, 0, len(positions))
	at := make([]int, 0, len(positions))
	for i, p := range positions {
		if f.ID == "" || strings.HasPrefix(p.id, f.ID) || strings.HasSuffix(p.id, f.ID) {
			wanted, at = append(wanted, p), append(at, i)
		}
	}
	records, read, err := r.readMany(ctx, f.Tenant, wanted)
	if err != nil {
		return nil, 0, err
	}
	out = make([]*api.Activation, len(positions))
	for i, a := range records {
		if a == nil {
			continue
		}
		out[at[i]], err = r.admit(ctx, a, f)
		if err != nil {
			return nil, 0, err
		}
	}
	return out, read, nil
}

// admit returns the record as a list shows it, nil if the filter excludes it. The filter
// applies after the repair: a lost activation has the status error.
func (r *Repository) admit(ctx context.Context, a *Record, f Filter) (*api.Activation, error) {
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

// readMany reads records, without results that have keys of their own, and returns their bytes. A
// missing record is nil.
func (r *Repository) readMany(ctx context.Context, tenant string, positions []indexPosition) (records []*Record, read int, err error) {
	if len(positions) == 0 {
		return nil, 0, nil
	}
	keys := make([]string, len(positions))
	for i, p := range positions {
		keys[i] = r.s.Keys().ActivationMeta(tenant, p.id)
	}
	raws, err := r.s.GetMany(ctx, keys)
	if err != nil {
		return nil, 0, storage.Failure(ctx, "read activations", err)
	}
	records = make([]*Record, len(raws))
	for i, raw := range raws {
		if raw == "" {
			continue
		}
		read += len(raw)
		a, err := storage.Decode[Record](raw)
		if err != nil {
			return nil, 0, err
		}
		records[i] = &a
	}
	return records, read, nil
}
