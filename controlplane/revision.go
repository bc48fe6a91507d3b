package controlplane

import (
	"strconv"
	"strings"
)

// revisionTag is the ETag of a record that counts its changes: its revision.
func revisionTag(revision int64) string { return strconv.Quote(strconv.FormatInt(revision, 10)) }

// createOnly takes the If-None-Match of a route that only ever makes new records: *
// says what holds anyway.
func createOnly(ifNoneMatch string) error {
	if ifNoneMatch != "" && strings.TrimSpace(ifNoneMatch) != "*" {
		return fieldError("If-None-Match", "must be *")
	}
	return nil
}
