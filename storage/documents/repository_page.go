package documents

import (
	"context"
	"errors"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Limits of one call of Page.
const (
	// maxRecordsScanned is the number of records that one call reads in search of matches.
	maxRecordsScanned = 2_000
	// scanWindow is the number of records that one command reads.
	scanWindow = 100
	// scanBytes is about how many bytes of records one command reads, and pageBytes one call. The
	// values count where they are not asked for, too, because the store reads them.
	scanBytes = 1 << 20
	pageBytes = 8 << 20
)

// Query selects documents by key.
type Query struct {
	Prefix string // of the keys
	After  string // the key after which to begin, "" for the start
	Limit  int    // 0: api.DefaultDocumentPage; api.MaxDocumentPage at most
	Values bool   // read the values as well
	// Match reports whether to list a document; nil lists all.
	Match func(*Record) bool
}

// Page lists documents in the byte order of their keys. next is "" at the end, else the
// After of the next page; a page may be short and still have a next. A page that one read
// suffices for, such as one without Match and without expired documents, shows a single
// moment.
func (r *Repository) Page(ctx context.Context, p storage.DocumentPath, q Query, nowMS int64) (items []Record, next string, err error) {
	limit := q.Limit
	if limit <= 0 {
		limit = api.DefaultDocumentPage
	}
	limit = min(limit, api.MaxDocumentPage)
	after := q.After
	for scanned, bytes := 0, 0; scanned < maxRecordsScanned && bytes < pageBytes; {
		want := limit + 1 // one more than the page holds: it decides whether a next page exists
		if scanned > 0 || q.Match != nil && !q.Values {
			want = scanWindow // few matches would otherwise cost many small reads
		}
		found, stopped, err := r.scan(ctx, p, q, after, want)
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
		if stopped {
			bytes += scanBytes
		} else if len(found) < want {
			return items, "", nil
		}
		scanned += len(found)
	}
	return items, after, nil
}

// scan reads up to limit documents that follow after, in one command and so at one moment. It
// reports whether it stopped before because of their bytes. An entry of the index without a
// record has Revision 0. For the prefix "inv" and after "invoice" the range of keys is from
// "(invoice" to "(inw", as ZRANGEBYLEX writes exclusive bounds.
func (r *Repository) scan(ctx context.Context, p storage.DocumentPath, q Query, after string, limit int) (found []Record, stopped bool, err error) {
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
	reply, err := r.s.Script(ctx, scriptPage, []string{k.Records(), k.Index()}, from, to, limit, values, scanBytes)
	if err != nil {
		return nil, false, err
	}
	pairs, _ := reply.([]any)
	if len(pairs) == 0 {
		return nil, false, errors.New("the script of a page of documents replied with nothing")
	}
	found = make([]Record, 0, len(pairs)/2)
	for i := 1; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		raw, _ := pairs[i+1].(string)
		d := &Record{Key: key}
		if raw != "" {
			d, err = parseRecord(key, raw)
			if err != nil {
				return nil, false, err
			}
		}
		found = append(found, *d)
	}
	return found, pairs[0] == "1", nil
}

// behindPrefix returns the least text that is greater than every text with the prefix.
// Keys are UTF-8, in which no byte is 255.
func behindPrefix(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string([]byte{prefix[last] + 1})
}
