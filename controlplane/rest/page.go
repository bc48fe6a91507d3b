package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"

	"github.com/codesous/sous/api"
)

// PageQuery holds the parameters by which lists are paged. Inputs of Operations embed it.
// Limits are those of api.DefaultPageLimit and api.MaxPageLimit.
type PageQuery struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"the maximum number of items"`
	Cursor string `query:"cursor" maxLength:"1024" doc:"next_cursor of the previous page"`
}

// Scope identifies a list by its route, its path and its filters: a cursor is valid
// only for the list that returned it. It is the beginning of the SHA-256 of its parts. A
// cursor is the scope and a position in unpadded base64url. The functions of t_acme01's
// namespace default, continued after the function "greet":
//
//	ListScope("functions", "t_acme01", "default")
//	hashed    9:functions8:t_acme017:default
//	scope     8e 6e dd 25 68 70 48 1e
//	cursor    jm7dJWhwSB5ncmVldA              base64url(scope + "greet")
//
// A position is a key or a score, not an offset: a page costs the same anywhere in the
// list, and items that are created or deleted between two pages shift nothing. If greet is
// deleted before the next request, that continues after where greet stood.
//
// The scope catches mistakes, not attacks: a client could compute it. The reader of a
// position must validate it like any other input (CursorError), and must not rely on it
// for authorization. Only the document storage, whose cursors name other records,
// authenticates them.
type Scope [8]byte

// ListScope returns the scope of the list that parts describe: the name of the list, the
// names in its path, and its filters in a fixed order. It hashes the parts with their
// lengths, so that ("ab", "c") and ("a", "bc") differ.
func ListScope(parts ...string) Scope {
	h := sha256.New()
	for _, part := range parts {
		h.Write(strconv.AppendInt(nil, int64(len(part)), 10))
		h.Write([]byte{':'})
		h.Write([]byte(part))
	}
	return Scope(h.Sum(nil)[:len(Scope{})])
}

// Seal returns the cursor that points at position in the list, nil for "", its end.
func (s Scope) Seal(position string) *string {
	if position == "" {
		return nil
	}
	cursor := base64.RawURLEncoding.EncodeToString(append(s[:], position...))
	return &cursor
}

// Open returns the position that was passed to Seal, "" for no cursor. Errors:
// CodeValidationCursor.
func (s Scope) Open(cursor string) (position string, err error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	lines := base64.RawURLEncoding.EncodedLen(len(raw)) != len(cursor) // the decoder ignores line breaks
	if err != nil || lines || len(raw) <= len(s) || [len(s)]byte(raw) != s {
		return "", CursorError()
	}
	return string(raw[len(s):]), nil
}

// CursorError returns the error of a cursor that the list has not returned.
func CursorError() error {
	return api.Errorf(api.CodeValidationCursor, "the cursor is not one that this list gave").
		WithFields(api.FieldError{Path: "cursor", Message: "must be next_cursor of a page of the same list"})
}

// NewPage returns a page of items, which is [] in JSON where there are none.
func NewPage[T any](items []T, next *string) api.Page[T] {
	if items == nil {
		items = []T{}
	}
	return api.Page[T]{Items: items, NextCursor: next}
}

// PageOutput is the answer of a list.
type PageOutput[T any] struct{ Body api.Page[T] }

// ReadPage answers with the page of list that begins at cursor. read returns the items
// behind a position, which is "" for the first page, and the position of the next page,
// "" at the end. Errors: CodeValidationCursor, and those of read.
//
// read may return fewer items than the limit, even none, and still a next position: lists
// with filters examine a bounded number of records for one page. The list ends where
// next_cursor is null, not where a page is short.
func ReadPage[T any](list Scope, cursor string, read func(position string) ([]T, string, error)) (*PageOutput[T], error) {
	position, err := list.Open(cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := read(position)
	if err != nil {
		return nil, err
	}
	return &PageOutput[T]{Body: NewPage(items, list.Seal(next))}, nil
}
