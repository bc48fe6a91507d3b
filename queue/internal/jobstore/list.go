package jobstore

import (
	"context"
	"strings"

	"github.com/codesous/sous/api"
)

// The bounds of one page of List.
const (
	listEntries = 2000     // entries of sets
	listBytes   = 8 << 20  // bytes of the jobs that it returns
	listScan    = 32 << 20 // bytes of the jobs that it reads, those that the filter excludes included
)

// Filter selects jobs. The zero value selects all.
type Filter struct {
	Tag, TagValue string // a tag, and its value; "" for any
	ID            string // the beginning or the end of the id
}

// Matches reports whether r passes the filter.
func (f *Filter) Matches(r *Record) bool {
	if f.Tag == "" || !f.matchesID(r.ID) {
		return f.matchesID(r.ID)
	}
	value, ok := r.Spec.Tags[f.Tag]
	return ok && (f.TagValue == "" || f.TagValue == value)
}

func (f *Filter) matchesID(id string) bool {
	return strings.HasPrefix(id, f.ID) || strings.HasSuffix(id, f.ID)
}

// list is a page that List reads.
type list struct {
	q      Queue
	state  api.JobState
	filter Filter
	limit  int
	found  []*Record
	held   int // bytes of found
	read   int // bytes of the jobs that were read
}

// full reports whether the page has reached one of its bounds.
func (l *list) full() bool {
	return len(l.found) == l.limit || l.held >= listBytes || l.read >= listScan
}

// List returns up to limit jobs of q in one state that pass the filter, with all their details,
// in the order of Page, after from. next is the position after which the next page begins, nil
// at the end. A page also ends with the job with which it has 8 MiB, or with which 32 MiB were
// read, and after 2,000 entries: it may be short, or empty, and still have a next. Errors:
// CodeStoreUnavailable.
func (s *Store) List(ctx context.Context, q Queue, state api.JobState, filter Filter, from *Position, limit int) (found []*Record, next *Position, err error) {
	l := &list{q: q, state: state, filter: filter, limit: limit}
	for entries := 0; entries < listEntries && !l.full(); entries += limit {
		step, end, err := s.Page(ctx, q, state, from, limit)
		if err != nil {
			return nil, nil, err
		}
		n, err := s.gather(ctx, l, step)
		if err != nil {
			return nil, nil, err
		}
		if end && n == len(step) {
			return l.found, nil, nil
		}
		from = &step[n-1]
	}
	return l.found, from, nil
}

// gather adds the jobs at step to a page until it is full. It returns the number of entries that
// it has handled, at least one. It does not read jobs whose ids the filter excludes.
func (s *Store) gather(ctx context.Context, l *list, step []Position) (int, error) {
	var ids []string
	var at []int // the entry of each of ids
	for i := range step {
		if l.filter.matchesID(step[i].ID) {
			ids, at = append(ids, step[i].ID), append(at, i)
		}
	}
	for part, err := range s.Parts(ctx, l.q.Tenant, ids, DetailFields...) {
		if err != nil {
			return 0, err
		}
		for _, r := range part {
			if r != nil {
				l.add(r)
			}
			if l.full() {
				return at[0] + 1, nil
			}
			at = at[1:]
		}
	}
	return len(step), nil
}

// add counts a job that was read, and adds it to the page if it belongs there.
func (l *list) add(r *Record) {
	l.read += r.Size
	if r.Run.State == l.state && r.Queue(l.q.Tenant) == l.q && l.filter.Matches(r) {
		l.found = append(l.found, r)
		l.held += r.Size
	}
}
