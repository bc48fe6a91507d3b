// Package api is the platform's vocabulary: the records, requests and errors
// that cross the wire or rest in the store, and the rules that names obey. It
// imports nothing else of the project; every other package speaks in its terms.
//
// Times are milliseconds since 1970 and end in _ms. Stored JSON and wire JSON
// are one type unless a record must hide something from its readers.
package api
