// Package api defines the records, requests and errors that cross the wire or are
// kept in the store, and the rules for names. It imports no other package of the
// project.
//
// A record has a file: function.go, version.go, activation.go, invocation.go, job.go,
// queue.go, task.go, schedule.go, binding.go, document.go, key.go, secret.go. Rules that
// need more than a few lines are beside it, in <record>_validate.go. names.go has the names
// and ids, errors.go the codes, json.go the encoder for the hot path.
//
// Times are milliseconds since 1970; their names end in MS, or _ms in JSON. Documents
// are the exception: their times are RFC 3339. Stored JSON and wire JSON are one
// type, unless a record has parts that its readers must not see. Fields of stored records
// can be added; none may change its name or its meaning, since a record outlives the server
// that wrote it.
//
// Each Validate method and function returns an *Error. Its comment names the codes;
// Fields names the offending fields. Partial updates (…Change) have pointers: nil keeps the
// value, a pointer to the zero value removes it or restores the default.
package api
