package statestore

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// Compare orders values. Decimal integers of 64 bits, with an optional minus, compare as
// numbers and come before all others, which compare byte by byte.
func Compare(a, b []byte) int {
	x, aNumber := Number(a)
	y, bNumber := Number(b)
	switch {
	case aNumber && bNumber:
		return cmp.Compare(x, y)
	case aNumber:
		return -1
	case bNumber:
		return 1
	}
	return bytes.Compare(a, b)
}

// Number returns the number of a value; ok is false if Compare does not treat it as one.
func Number(v []byte) (n int64, ok bool) {
	if len(v) == 0 || v[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, false // ParseInt returns the bound for a number out of range
	}
	return n, true
}

// Validate refuses (CodeInvalid) a filter that no scan can answer; nil is one
// that passes all.
func (f *Filter) Validate() error {
	switch {
	case f == nil:
		return nil
	case f.Field == "":
		return api.Errorf(api.CodeInvalid, "a filter names a field")
	case f.Op != Equal && f.Op != Less && f.Op != Greater:
		return api.Errorf(api.CodeInvalid, "a filter compares by eq, lt or gt, not by %q", f.Op)
	case f.MaxResults < 0:
		return api.Errorf(api.CodeInvalid, "a filter's bound of results is not negative")
	case f.Except.Field == "" && len(f.Except.Values) > 0:
		return api.Errorf(api.CodeInvalid, "a filter's exception names a field")
	}
	return nil
}

// Passes reports whether a record passes the filter. Every record passes a nil filter.
func (f *Filter) Passes(fields Fields) bool {
	if f == nil {
		return true
	}
	value, ok := fields[f.Field]
	if !ok || f.Except.Holds(fields) {
		return false
	}
	c := Compare(value, f.Value)
	return f.Op == Equal && c == 0 || f.Op == Less && c < 0 || f.Op == Greater && c > 0
}

// Holds reports whether a record is excepted.
func (e Exception) Holds(fields Fields) bool {
	value, ok := fields[e.Field]
	return ok && slices.Contains(e.Values, string(value))
}

// Same reports whether two exceptions exclude the same records.
func (e Exception) Same(o Exception) bool {
	a, b := e.sorted(), o.sorted()
	return slices.Equal(a, b) && (len(a) == 0 || e.Field == o.Field)
}

func (e Exception) sorted() []string {
	values := slices.Clone(e.Values)
	slices.Sort(values)
	return slices.Compact(values)
}

// Results collects the entries of a scan with a filter and sorts them. It holds at most
// 2 × MaxResults entries.
type Results struct {
	filter  *Filter
	entries []Entry
}

// NewResults returns empty Results for the filter f.
func NewResults(f *Filter) *Results { return &Results{filter: f} }

// Add adds an entry that passes the filter. No key may be added twice.
func (r *Results) Add(e Entry) {
	r.entries = append(r.entries, e)
	if bound := r.filter.MaxResults; bound > 0 && len(r.entries) >= 2*bound {
		r.Sorted()
	}
}

// Sorted returns the entries in order, at most MaxResults of them.
func (r *Results) Sorted() []Entry {
	slices.SortFunc(r.entries, func(a, b Entry) int {
		return cmp.Or(Compare(a.Fields[r.filter.Field], b.Fields[r.filter.Field]), strings.Compare(a.Key, b.Key))
	})
	if bound := r.filter.MaxResults; bound > 0 && len(r.entries) > bound {
		clear(r.entries[bound:])
		r.entries = r.entries[:bound]
	}
	return r.entries
}
