package statestoretest

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/storage/statestore"
)

func by(op statestore.Op, value string) *statestore.Filter {
	return &statestore.Filter{Field: "n", Op: op, Value: []byte(value)}
}

// scanAll tests a scan without a filter.
func (f *fixture) scanAll() {
	f.wantsScan(nil)
	f.put(f.key("b"), time.Hour, "n", "1", "binary", "\x00\xff")
	f.put(f.key("a:c"), 0, "m", "")
	want := map[string]statestore.Fields{f.key("b"): fields("n", "1", "binary", "\x00\xff"), f.key("a:c"): fields("m", "")}
	got := map[string]statestore.Fields{}
	for e, err := range f.store.Scan(f.Context(), f.root+":", nil) {
		if err != nil {
			f.Fatalf("Scan: got error %v, want all records", err)
		}
		got[e.Key] = e.Fields
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("difference (-want +got):\n%s", diff)
	}
}

// scanFilters tests the order and the comparisons of a filter: numbers compare as numbers and
// come first, all else byte by byte.
func (f *fixture) scanFilters() {
	for k, n := range map[string]string{
		"minus": "-5", "zero": "0", "seven": "7", "nine": "9", "ten": "10", "ten-too": "10",
		"big": "9007199254740992", "big+1": "9007199254740993", "big+2": "9007199254740994", "big+3": "9007199254740995",
		"most": "9223372036854775807", "most-1": "9223372036854775806", "least": "-9223372036854775808", "least+1": "-9223372036854775807",
		"empty": "", "more": "9223372036854775808", "float": "1.5", "plus": "+5", "space": " 5", "text": "b", "texts": "bb", "upper": "B",
		"binary": "\xff\x00", "newline": "5\n", "hex": "0x10",
	} {
		f.put(f.key(k), 0, "n", n)
	}
	f.put(f.key("none"), 0, "m", "5")
	numbers := []string{
		"least", "least+1", "minus", "zero", "seven", "nine", "ten", "ten-too",
		"big", "big+1", "big+2", "big+3", "most-1", "most",
	}
	texts := []string{"empty", "space", "plus", "hex", "float", "newline", "more", "upper", "text", "texts", "binary"}
	all := slices.Concat(numbers, texts)
	upTo := func(last string) []string { return all[:slices.Index(all, last)+1] }
	from := func(first string) []string { return all[slices.Index(all, first):] }
	f.wantsScan(by(statestore.Less, "10"), upTo("nine")...)
	f.wantsScan(by(statestore.Less, "0010"), upTo("nine")...)
	f.wantsScan(by(statestore.Less, "0"), upTo("minus")...)
	f.wantsScan(by(statestore.Less, "-9223372036854775808"))
	f.wantsScan(by(statestore.Less, "-9223372036854775807"), "least")
	f.wantsScan(by(statestore.Less, "9007199254740993"), upTo("big")...)
	f.wantsScan(by(statestore.Less, "9223372036854775807"), upTo("most-1")...)
	f.wantsScan(by(statestore.Less, ""), numbers...)
	f.wantsScan(by(statestore.Less, "bb"), upTo("text")...)
	f.wantsScan(by(statestore.Greater, "9"), from("ten")...)
	f.wantsScan(by(statestore.Greater, "10"), from("big")...)
	f.wantsScan(by(statestore.Greater, "9007199254740993"), from("big+2")...)
	f.wantsScan(by(statestore.Greater, "9223372036854775806"), from("most")...)
	f.wantsScan(by(statestore.Greater, "9223372036854775807"), texts...)
	f.wantsScan(by(statestore.Greater, ""), from("space")...)
	f.wantsScan(by(statestore.Greater, "\xff\x00"))
	f.wantsScan(by(statestore.Equal, "10"), "ten", "ten-too")
	f.wantsScan(by(statestore.Equal, "9007199254740993"), "big+1")
	f.wantsScan(by(statestore.Equal, "9223372036854775808"), "more")
	f.wantsScan(by(statestore.Equal, ""), "empty")
	f.wantsScan(by(statestore.Equal, "8"))
	f.wantsScan(&statestore.Filter{Field: "absent", Op: statestore.Greater})
}

// scanExceptions tests filters with exceptions, before and after the fields of records change.
func (f *fixture) scanExceptions() {
	for i, state := range []string{"pending", "running", "completed", "failed", ""} {
		f.put(f.key(strconv.Itoa(i)+state), 0, "n", strconv.Itoa(10-i), "state", state)
	}
	f.put(f.key("stateless"), 0, "n", "1")
	filter := by(statestore.Less, "100")
	f.wantsScan(filter, "stateless", "4", "3failed", "2completed", "1running", "0pending")
	filter.Except = statestore.Exception{Field: "state", Values: []string{"completed", "failed"}}
	f.wantsScan(filter, "stateless", "4", "1running", "0pending")
	filter.Except.Values = []string{"failed", "completed", "failed"}
	f.wantsScan(filter, "stateless", "4", "1running", "0pending")
	filter.Except.Values = []string{""}
	f.wantsScan(filter, "stateless", "3failed", "2completed", "1running", "0pending")
	filter.Except = statestore.Exception{Field: "n", Values: []string{"10", "06"}}
	f.wantsScan(filter, "stateless", "4", "3failed", "2completed", "1running")

	filter.Except = statestore.Exception{Field: "state", Values: []string{"completed", "failed"}}
	f.set(f.key("1running"), fields("state", "completed"))
	f.set(f.key("3failed"), fields("state", "pending", "n", "11"))
	f.set(f.key("4"), statestore.Fields{"n": nil})
	f.set(f.key("2completed"), statestore.Fields{"state": nil})
	f.wantsScan(filter, "stateless", "2completed", "0pending", "3failed")
}

// scanBounds tests that MaxResults keeps the first records in order.
func (f *fixture) scanBounds() {
	for i := range 50 {
		f.put(f.key(fmt.Sprintf("k%02d", i)), 0, "n", strconv.Itoa(50-i), "same", "x")
	}
	filter := by(statestore.Greater, "0")
	filter.MaxResults = 3
	f.wantsScan(filter, "k49", "k48", "k47")
	same := &statestore.Filter{Field: "same", Op: statestore.Equal, Value: []byte("x"), MaxResults: 2}
	f.wantsScan(same, "k00", "k01")
	filter.MaxResults = 100
	if found := f.scan(f.root+":", filter); len(found) != 50 {
		f.Errorf("Scan with a bound of 100: got %d records, want all 50", len(found))
	}
}

// scanPrefixes tests that a prefix may end anywhere in a key, and is text, not a pattern.
func (f *fixture) scanPrefixes() {
	keys := []string{"t_a.email:1", "t_a.email:2", "t_a.email-send:1", "t_ab.email:1", "t_a", "t_a:1", "t*x:1", "t[a]:1", "t?:1", "tax:1", `t\:1`, "t>:1"}
	for _, k := range keys {
		f.put(f.key(k), 0, "n", "1")
	}
	for prefix, want := range map[string][]string{
		"t_a.email:":    {"t_a.email:1", "t_a.email:2"},
		"t_a.email":     {"t_a.email-send:1", "t_a.email:1", "t_a.email:2"},
		"t_a.":          {"t_a.email-send:1", "t_a.email:1", "t_a.email:2"},
		"t_a:":          {"t_a:1"},
		"t_a.email:1":   {"t_a.email:1"},
		"t_a.email:1:":  {},
		"t*":            {"t*x:1"},
		"t[a]":          {"t[a]:1"},
		"t?":            {"t?:1"},
		`t\`:            {`t\:1`},
		"t>":            {"t>:1"},
		"t_ab.email:12": {},
	} {
		for _, filter := range []*statestore.Filter{nil, by(statestore.Equal, "1")} {
			got := f.scan(f.key(prefix), filter)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				f.Errorf("Scan of the prefix %q by %s (-want +got):\n%s", prefix, describe(filter), diff)
			}
		}
	}
	if all := f.scan(f.root, nil); len(all) != len(keys) {
		f.Errorf("Scan of the root: got %d keys, want %d", len(all), len(keys))
	}
}

// scanEndsEarly tests that a caller may leave the loop, and that the same scan can be
// repeated.
func (f *fixture) scanEndsEarly() {
	for i := range 600 {
		f.put(f.key(strconv.Itoa(i)), 0, "n", strconv.Itoa(i))
	}
	for _, filter := range []*statestore.Filter{nil, by(statestore.Greater, "-1")} {
		scan := f.store.Scan(f.Context(), f.root+":", filter)
		for range 2 { // a scan can be made again
			seen := 0
			for _, err := range scan {
				if err != nil {
					f.Fatalf("Scan: got error %v after %d records, want 3 records", err, seen)
				}
				seen++
				if seen == 3 {
					break
				}
			}
			if seen != 3 {
				f.Errorf("Scan yielded %d records before the break, want 3", seen)
			}
		}
	}
	f.wantsScan(by(statestore.Less, "2"), "0", "1")
}

// scanWhileItChanges tests that a caller that changes each record of the scan still
// meets every record, and each of them once.
func (f *fixture) scanWhileItChanges() {
	const n = 700
	for i := range n {
		f.put(f.key(fmt.Sprintf("k%03d", i)), 0, "n", strconv.Itoa(i/300), "state", "open")
	}
	seen := map[string]int{}
	for e, err := range f.store.Scan(f.Context(), f.root+":", by(statestore.Less, "1000000")) {
		if err != nil {
			f.Fatalf("Scan while records change: got error %v after %d records, want %d records", err, len(seen), n)
		}
		seen[e.Key]++
		switch len(seen) % 3 {
		case 0:
			f.set(e.Key, fields("n", "500000"))
		case 1:
			f.set(e.Key, fields("state", "completed"))
		default:
			if err := f.store.Delete(f.Context(), e.Key); err != nil {
				f.Fatalf("Delete: %v", err)
			}
		}
	}
	for key, times := range seen {
		if times != 1 {
			f.Errorf("Scan yielded %s %d times, want once", key, times)
		}
	}
	if len(seen) != n {
		f.Errorf("Scan yielded %d records, want %d", len(seen), n)
	}
}

// scanOfThousands tests scans of more records than one page has, a third of which share a
// value.
func (f *fixture) scanOfThousands() {
	const n = 3000
	together(16, func(w int) {
		for i := w; i < n; i += 16 {
			// A third of them share one value; the rest come in pairs.
			value := strconv.Itoa(i / 2)
			if i%3 == 0 {
				value = "77"
			}
			if err := f.store.Put(f.Context(), f.key(fmt.Sprintf("k%05d", i)), statestore.Record{Fields: fields("n", value)}); err != nil {
				f.Errorf("Put: %v", err)
			}
		}
	})
	want := make([]statestore.Entry, n)
	for i := range want {
		value := strconv.Itoa(i / 2)
		if i%3 == 0 {
			value = "77"
		}
		want[i] = statestore.Entry{Key: f.key(fmt.Sprintf("k%05d", i)), Record: statestore.Record{Fields: fields("n", value)}}
	}
	got := f.scan(f.root+":", nil)
	slices.Sort(got)
	got = slices.Compact(got)
	if len(got) != n {
		f.Errorf("Scan yielded %d records, want %d", len(got), n)
	}
	filter := by(statestore.Greater, "10")
	f.wantsScan(filter, f.expected(want, filter)...)
	filter.MaxResults = 900
	f.wantsScan(filter, f.expected(want, filter)...)
	filter = by(statestore.Less, "78")
	f.wantsScan(filter, f.expected(want, filter)...)
}

// expected returns the keys, less the root, that a scan of records returns. It does not use
// Filter.Passes or Results, which the implementations use.
func (f *fixture) expected(records []statestore.Entry, filter *statestore.Filter) []string {
	type position struct {
		n    int64
		text string
		key  string
	}
	var sorted []position
	for _, e := range records {
		value, ok := e.Fields[filter.Field]
		if !ok || slices.Contains(filter.Except.Values, string(e.Fields[filter.Except.Field])) {
			continue
		}
		if c := statestore.Compare(value, filter.Value); c < 0 && filter.Op != statestore.Less ||
			c == 0 && filter.Op != statestore.Equal || c > 0 && filter.Op != statestore.Greater {
			continue
		}
		p := position{key: e.Key[len(f.root)+1:]}
		p.n, ok = statestore.Number(value)
		if !ok {
			p.text = "text " + string(value)
		}
		sorted = append(sorted, p)
	}
	slices.SortFunc(sorted, func(a, b position) int {
		switch {
		case (a.text == "") != (b.text == ""):
			if a.text == "" {
				return -1
			}
			return 1
		case a.n != b.n:
			if a.n < b.n {
				return -1
			}
			return 1
		case a.text != b.text:
			if a.text < b.text {
				return -1
			}
			return 1
		case a.key < b.key:
			return -1
		}
		return 1
	})
	keys := []string{}
	for _, p := range sorted {
		keys = append(keys, p.key)
	}
	if filter.MaxResults > 0 && len(keys) > filter.MaxResults {
		keys = keys[:filter.MaxResults]
	}
	return keys
}
