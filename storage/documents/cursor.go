package documents

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/storage"
)

// cursors seals the position where a page of a listing ended. A client cannot forge a
// cursor, and each is valid for its own query only: the same namespace, prefix and filter.
// Limit and the choice of values may differ. A cursor is, in unpadded base64url,
//
//	the first 16 bytes of an HMAC-SHA256 | the last key of the page
//
// Cursors do not expire, and any replica opens them (see Repository.CursorKey).
type cursors struct{ key []byte }

// sealBytes is the length of the authentication code in a cursor.
const sealBytes = 16

// seal returns the cursor of the position after the key last; nil where last is "".
func (c cursors) seal(p storage.DocumentPath, q *api.DocumentList, last string) *string {
	if last == "" {
		return nil
	}
	text := base64.RawURLEncoding.EncodeToString(append(c.code(p, q, last), last...))
	return &text
}

// open returns the document key after which the page starts, "" for a query without a cursor.
// newFilter must have made q.Metadata compact. CodeDocumentInvalid.
func (c cursors) open(p storage.DocumentPath, q *api.DocumentList) (string, error) {
	if q.Cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(q.Cursor)
	if err == nil && len(raw) > sealBytes {
		last := string(raw[sealBytes:])
		if hmac.Equal(raw[:sealBytes], c.code(p, q, last)) {
			return last, nil
		}
	}
	return "", api.DocumentFieldError("cursor", "is not a cursor of this list")
}

// code authenticates a position in a query. Each part is preceded by its length, so that
// no two queries have the same text.
func (c cursors) code(p storage.DocumentPath, q *api.DocumentList, last string) []byte {
	mac := hmac.New(sha256.New, c.key)
	write := func(part string) {
		mac.Write(append(strconv.AppendInt(nil, int64(len(part)), 10), ':')) // it never fails
		mac.Write([]byte(part))
	}
	for _, part := range []string{p.Tenant, p.Install, p.Namespace, q.KeyPrefix, last} {
		write(part)
	}
	for _, name := range slices.Sorted(maps.Keys(q.Metadata)) {
		write(name)
		write(string(q.Metadata[name]))
	}
	return mac.Sum(nil)[:sealBytes]
}

// filter holds the values that members of a document's metadata must have.
type filter map[string]any

// Limits of a filter.
const (
	maxFilterMembers = 16
	maxFilterBytes   = 4 << 10
)

// newFilter parses the filter of a query. It makes the values of the query compact, since
// they are part of its cursor.
func newFilter(q *api.DocumentList) (filter, error) {
	if len(q.Metadata) > maxFilterMembers {
		return nil, api.DocumentFieldError("metadata", "has more than "+strconv.Itoa(maxFilterMembers)+" members")
	}
	size, f := 0, filter{}
	for name, raw := range q.Metadata {
		short, err := compact(raw)
		if err != nil {
			return nil, api.DocumentFieldError(schema.Below("metadata", name), "is not JSON")
		}
		size += len(name) + len(short)
		if size > maxFilterBytes {
			return nil, api.DocumentFieldError("metadata", "exceeds "+strconv.Itoa(maxFilterBytes)+" bytes")
		}
		q.Metadata[name] = short
		var v any
		if err := json.Unmarshal(short, &v); err != nil {
			return nil, api.DocumentFieldError(schema.Below("metadata", name), "is not JSON that can be compared")
		}
		f[name] = v
	}
	return f, nil
}

// matches reports whether metadata has every member of f.
func (f filter) matches(metadata json.RawMessage) bool {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(metadata, &members); err != nil {
		return false
	}
	for name, want := range f {
		raw, has := members[name]
		var got any
		if !has || json.Unmarshal(raw, &got) != nil || !equal(got, want) {
			return false
		}
	}
	return true
}

// equal reports whether two decoded JSON values are the same. Numbers are compared as
// float64: 1 and 1.0 are equal.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	return a == b // texts, numbers, true, false and null
}
