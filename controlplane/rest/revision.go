package rest

import (
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// RevisionTag returns the ETag of a record that counts its changes: its revision.
func RevisionTag(revision int64) string { return strconv.Quote(strconv.FormatInt(revision, 10)) }

// CreateOnly checks the If-None-Match of a route that only creates records. Only * is
// valid there, and it changes nothing. Errors: CodeInvalid.
func CreateOnly(ifNoneMatch string) error {
	if ifNoneMatch != "" && strings.TrimSpace(ifNoneMatch) != "*" {
		return api.InvalidField("If-None-Match", "must be *")
	}
	return nil
}

// NamesTag reports whether an If-Match names tag. A weak tag never matches.
func NamesTag(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}
