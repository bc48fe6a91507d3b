package events

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
)

// Span is the time from FromMS to ToMS, both Unix times in milliseconds that belong to it. Entries
// are found by the clock of the store, which appended them.
type Span struct{ FromMS, ToMS int64 }

// searchEntries and maxSearchEntries bound how many entries one command of a search reads.
const (
	searchEntries    = 32
	maxSearchEntries = 256
	// searchEvents is about how many events one command of a search reads.
	searchEvents = 2048
)

// Found is the result of a search.
type Found struct {
	Events []event.Event
	// Whole is set if the search read all of the span. Else ReachedMS is the time of the last entry
	// that it read.
	Whole     bool
	ReachedMS int64
	Damaged   []string // ids of entries with events of the subject that could not be decoded
}

// Search returns the events of one subject in a span of the log, oldest first. of is the subject
// without its last part, id the last part. budget is the number of events of any subject that may
// be read; Search takes off those that it read, and ends with the entry that uses it up. Errors:
// CodeStoreUnavailable.
func (l *Log) Search(ctx context.Context, tenant, of, id string, span Span, budget *int) (*Found, error) {
	found := &Found{Whole: span.ToMS < span.FromMS}
	start, end := strconv.FormatInt(max(0, span.FromMS), 10)+"-0", strconv.FormatInt(span.ToMS, 10)+sinceSuffix
	for count := searchEntries; !found.Whole && *budget > 0; {
		entries, err := storage.StreamEntries(l.s.Client().Do(ctx, "XRANGE", l.s.JobKeys(tenant).Events(), start, end, "COUNT", count))
		if err != nil {
			return nil, storage.Failure(ctx, "read events", err)
		}
		read := found.add(tenant, of, id, entries, budget)
		if len(entries) < count && read == len(entries) {
			found.Whole = true
			break
		}
		last := &entries[read-1]
		start = "(" + last.ID
		ms, _, _ := strings.Cut(last.ID, "-")
		found.ReachedMS, _ = strconv.ParseInt(ms, 10, 64) // the store made it
		count = min(maxSearchEntries, max(searchEntries, searchEvents/(1+strings.Count(last.Fields[fieldIDs], " "))))
	}
	return found, nil
}

// add adds the subject's events of entries, until the budget is used up. It returns how many entries
// it took.
func (f *Found) add(tenant, of, id string, entries []storage.StreamEntry, budget *int) (read int) {
	for i := range entries {
		entry := &entries[i]
		if *budget <= 0 {
			return i
		}
		ids := strings.Fields(entry.Fields[fieldIDs])
		*budget -= max(1, len(ids))
		owner, _ := ownerOf(entry)
		if owner != of || !slices.Contains(ids, id) {
			continue
		}
		decoded, err := decode(tenant, entry)
		if err != nil {
			f.Damaged = append(f.Damaged, entry.ID)
			continue
		}
		for k, other := range ids {
			if other == id {
				f.Events = append(f.Events, decoded[k])
			}
		}
	}
	return len(entries)
}

// FirstMS returns the time from which on the log of a tenant is known to have all of its entries:
// none was removed that was appended later. Errors: CodeStoreUnavailable.
func (l *Log) FirstMS(ctx context.Context, tenant string) (int64, error) {
	key := l.s.JobKeys(tenant).Events()
	pipe := l.s.Client().Pipeline()
	length := pipe.XLen(ctx, key)
	first := pipe.Do(ctx, "XRANGE", key, "-", "+", "COUNT", 1)
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		return 0, storage.Failure(ctx, "read events", err)
	}
	entries, err := storage.StreamEntries(first)
	if err != nil {
		return 0, storage.Failure(ctx, "read events", err)
	}
	kept := max(0, l.s.NowMS()-RetentionMS)
	if length.Val() >= MaxEntries && len(entries) > 0 {
		ms, _, _ := strings.Cut(entries[0].ID, "-")
		at, _ := strconv.ParseInt(ms, 10, 64) // the store made it
		kept = max(kept, at)
	}
	return kept, nil
}
