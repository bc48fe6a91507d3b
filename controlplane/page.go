package controlplane

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"

	"github.com/codesous/sous/api"
)

// PageQuery is how every list is paged.
type PageQuery struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"how many items at most"`
	Cursor string `query:"cursor" maxLength:"1024" doc:"next_cursor of the page before"`
}

// scope identifies a list by its route, its path and its filters: a cursor is
// good for the list that it came from and for no other.
type scope [8]byte

// listScope hashes the parts with their lengths, so that no two lists share one.
func listScope(parts ...string) scope {
	h := sha256.New()
	for _, part := range parts {
		h.Write(strconv.AppendInt(nil, int64(len(part)), 10))
		h.Write([]byte{':'})
		h.Write([]byte(part))
	}
	return scope(h.Sum(nil)[:len(scope{})])
}

// seal makes the cursor that points at position in the list; "" means the end.
func (s scope) seal(position string) *string {
	if position == "" {
		return nil
	}
	cursor := base64.RawURLEncoding.EncodeToString(append(s[:], position...))
	return &cursor
}

// open gives the position that seal was told; "" for no cursor. Errors:
// CodeValidationCursor.
func (s scope) open(cursor string) (position string, err error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) <= len(s) || [len(s)]byte(raw) != s {
		return "", cursorError()
	}
	return string(raw[len(s):]), nil
}

func cursorError() error {
	return api.Errorf(api.CodeValidationCursor, "the cursor is not one that this list gave").
		WithFields(api.FieldError{Path: "cursor", Message: "must be next_cursor of a page of the same list"})
}

// page is a page of items, which is [] where there are none.
func page[T any](items []T, next *string) api.Page[T] {
	if items == nil {
		items = []T{}
	}
	return api.Page[T]{Items: items, NextCursor: next}
}
