// Package api defines the records, requests and errors that cross the wire or are
// kept in the store, and the rules for names. It imports no other package of the
// project.
//
// Times are milliseconds since 1970; their names end in MS, or _ms in JSON. Documents
// are the exception: their times are RFC 3339. Stored JSON and wire JSON are one
// type, unless a record has parts that its readers must not see.
//
// Each Validate method and function returns an *Error. Its comment names the codes;
// Fields names the offending fields.
package api
