package statestore

import (
	"errors"
	"iter"
)

// errStop ends a scan whose caller stops.
var errStop = errors.New("statestore: the scan was left")

// Entries turns scan into the result of Store.Scan, with at most MaxResults entries: an
// implementation writes a function that calls give with each record, and returns the first
// error of give unchanged. That error is how Entries stops scan when the caller of the
// iterator has left its loop; it is not passed on. A malformed prefix or filter is returned
// as the only element, an error, and scan is not called.
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

// Filtered passes on the records of scan that pass f. The order of a filter requires
// reading all of them first.
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
