package rest

import (
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// RevisionTag returns the ETag of a record that counts its changes: its revision, in
// quotes. Conditional writes use it as follows:
//
//	GET   N/schedules/nightly                    200, ETag: "3"
//	PATCH N/schedules/nightly, If-Match: "3"     200, ETag: "4"
//	PATCH N/schedules/nightly, If-Match: "3"     412 CS_PRECONDITION_FAILED
//
// A handler does not compare and then write, since another write could come between. It
// reads the record, finds by NamesTag that its revision is one that If-Match lists, and
// passes that revision to the store, whose compare-and-set fails if the record has
// changed since. Without If-Match it passes none, and the last write wins.
func RevisionTag(revision int64) string { return strconv.Quote(strconv.FormatInt(revision, 10)) }

// CreateOnly checks the If-None-Match of a route that only creates records. Only * is
// valid there, and it changes nothing: such a route refuses an existing record anyway,
// with 409 instead of 412. Errors: CodeInvalid.
func CreateOnly(ifNoneMatch string) error {
	if ifNoneMatch != "" && strings.TrimSpace(ifNoneMatch) != "*" {
		return api.InvalidField("If-None-Match", "must be *")
	}
	return nil
}

// OnePrecondition checks the If-Match and If-None-Match of a route that creates and changes a record:
// a request may have one of them, and If-None-Match must be *. Errors: CodeInvalid.
func OnePrecondition(ifMatch, ifNoneMatch string) error {
	if ifMatch != "" && ifNoneMatch != "" {
		return api.InvalidField("If-None-Match", "cannot stand beside If-Match")
	}
	return CreateOnly(ifNoneMatch)
}

// NamesTag reports whether an If-Match, which lists tags or is *, names tag, the ETag of a
// record that exists. A weak tag (W/"3") never matches, as RFC 9110 demands of If-Match.
// A comma within a tag is not supported; none of our tags has one.
func NamesTag(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}
