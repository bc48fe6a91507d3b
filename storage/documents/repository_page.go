package documents

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Bounds of a listing's work.
const (
	// maxRecordsScanned is how many records one call looks at for those that match.
	maxRecordsScanned = 2_000
	// scanWindow is how many of those are read at once.
	scanWindow = 100
)

// Query asks for documents by key.
type Query struct {
	Prefix string // of the keys
	After  string // the key behind which to begin, "" for the start
	Limit  int    // 0: api.DefaultDocumentPage; api.MaxDocumentPage at most
	Values bool   // read the values as well
	// Match says whether a document is to be listed; nil takes all.
	Match func(*Record) bool
}

// Page lists documents by key, in the order of its bytes. next is "" at the end, else
// what to pass as After; a page may be short and still have one. A page that needs no more
// than one look, as one without Match and without expired documents does, shows a single
// moment.
func (r *Repository) Page(ctx context.Context, p storage.DocumentPath, q Query, nowMS int64) (items []Record, next string, err error) {
	limit := q.Limit
	if limit <= 0 {
		limit = api.DefaultDocumentPage
	}
	limit = min(limit, api.MaxDocumentPage)
	after := q.After
	for looked := 0; looked < maxRecordsScanned; {
		want := limit + 1 // one more shows whether there is a next page
		if looked > 0 || q.Match != nil && !q.Values {
			want = scanWindow // else a short page of few matches would be many small looks
		}
		found, err := r.look(ctx, p, q, after, want)
		if err != nil {
			return nil, "", err
		}
		for i := range found {
			d := &found[i]
			after = d.Key
			if d.Revision == 0 || d.Expired(nowMS) || q.Match != nil && !q.Match(d) {
				continue
			}
			if len(items) == limit {
				return items, items[limit-1].Key, nil
			}
			items = append(items, *d)
		}
		if len(found) < want {
			return items, "", nil
		}
		looked += len(found)
	}
	return items, after, nil
}

// look reads the next documents behind after; an entry of the index that has no record
// has Revision 0.
func (r *Repository) look(ctx context.Context, p storage.DocumentPath, q Query, after string, limit int) ([]Record, error) {
	from, to := "["+q.Prefix, "+"
	if q.Prefix == "" {
		from = "-"
	} else {
		to = "(" + behindPrefix(q.Prefix)
	}
	if after != "" && after >= q.Prefix {
		from = "(" + after
	}
	values := ""
	if q.Values {
		values = "1"
	}
	k := r.s.Keys().Documents(p)
	reply, err := r.s.Script(ctx, scriptPage, []string{k.Records(), k.Index()}, from, to, limit, values)
	if err != nil {
		return nil, err
	}
	pairs, _ := reply.([]any)
	out := make([]Record, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		raw, _ := pairs[i+1].(string)
		d := &Record{Key: key}
		if raw != "" {
			if d, err = parseRecord(key, raw); err != nil {
				return nil, err
			}
		}
		out = append(out, *d)
	}
	return out, nil
}

// behindPrefix is the least text behind all that begin with prefix. Keys are UTF-8, in
// which no byte is 255.
func behindPrefix(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string([]byte{prefix[last] + 1})
}
