package statestore

import (
	"errors"
	"iter"
)

// errStop ends a scan whose caller has enough.
var errStop = errors.New("statestore: the scan was left")

// Entries makes of scan, which gives what it finds until give fails, what Store.Scan
// answers: up to the filter's MaxResults. A malformed prefix or filter is its only entry.
func Entries(prefix string, f *Filter, scan func(give func(Entry) error) error) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		err := errors.Join(ValidatePrefix(prefix), f.Validate())
		if err == nil {
			given := 0
			err = scan(func(e Entry) error {
				given++
				if !yield(e, nil) || f != nil && given == f.MaxResults {
					return errStop
				}
				return nil
			})
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Entry{}, err)
		}
	}
}

// Filtered gives what scan finds and f passes. A filter's order needs all of it first.
func Filtered(f *Filter, scan func(give func(Entry) error) error, give func(Entry) error) error {
	if f == nil {
		return scan(give)
	}
	results := NewResults(f)
	err := scan(func(e Entry) error {
		if f.Passes(e.Fields) {
			results.Add(e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range results.Sorted() {
		if err := give(e); err != nil {
			return err
		}
	}
	return nil
}
