package documents

import (
	"encoding/json"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// FuzzCursor: a list opens the cursors that it has sealed, and no others.
func FuzzCursor(f *testing.F) {
	c := cursors{key: []byte("a key that no client knows")}
	path := storage.DocumentPath{Tenant: "t_abcdef", Install: "i", Namespace: "n"}
	query := func(prefix, cursor string) *api.DocumentList {
		return &api.DocumentList{KeyPrefix: prefix, Cursor: cursor, Metadata: map[string]json.RawMessage{"a": []byte("1")}}
	}
	f.Add("", "", "last")
	f.Add("p", *c.seal(path, query("p", ""), "pa"), "pa")
	f.Add("", "AAAAAAAAAAAAAAAAAAAAAAAA", "\xff")
	f.Add("", "%", "")
	f.Fuzz(func(t *testing.T, prefix, cursor, last string) {
		if got, err := c.open(path, query(prefix, cursor)); err == nil && cursor != "" {
			if sealed := c.seal(path, query(prefix, ""), got); sealed == nil || *sealed != cursor {
				t.Errorf("open(%q) = %q, want a key that is sealed to the same cursor", cursor, got)
			}
		} else if err != nil && api.ErrorCode(err) != api.CodeDocumentInvalid {
			t.Errorf("open(%q) = %v, want code %s", cursor, err, api.CodeDocumentInvalid)
		}
		sealed := c.seal(path, query(prefix, ""), last)
		if sealed == nil {
			return
		}
		if got, err := c.open(path, query(prefix, *sealed)); err != nil || got != last {
			t.Errorf("open of the cursor of %q = %q, %v, want that key", last, got, err)
		}
		if got, err := c.open(path, query(prefix+"x", *sealed)); err == nil {
			t.Errorf("the cursor of %q opens to %q for another prefix, want an error", last, got)
		}
	})
}
