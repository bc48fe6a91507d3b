package rest

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Nullable is a field of a partial update. Value is nil where the field was left out,
// and points to the zero value of T where the field was null. For a Nullable[int64] with
// the tag `json:"every_seconds,omitzero"`:
//
//	{}                       Value == nil      the field keeps its value
//	{"every_seconds": null}  *Value == 0       the field is removed, or gets its default
//	{"every_seconds": 60}    *Value == 60
//
// A null and an explicit zero value are therefore the same.
type Nullable[T any] struct{ Value *T }

// UnmarshalJSON reads a value, or null.
func (n *Nullable[T]) UnmarshalJSON(raw []byte) error {
	n.Value = new(T)
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	return json.Unmarshal(raw, n.Value)
}

// IsZero reports whether the field was left out.
func (n Nullable[T]) IsZero() bool { return n.Value == nil }

// Schema returns the schema of T, or null.
func (Nullable[T]) Schema(r huma.Registry) *huma.Schema {
	schema := r.Schema(reflect.TypeFor[T](), true, "")
	if schema.Ref != "" { // a reference cannot be null, its target can
		schema = r.SchemaFromRef(schema.Ref)
	}
	also := *schema
	also.Nullable = also.Type != ""
	return &also
}

// AnyJSON is JSON as it was sent. Its schema admits any value.
type AnyJSON json.RawMessage

// UnmarshalJSON keeps the text.
func (a *AnyJSON) UnmarshalJSON(raw []byte) error {
	return (*json.RawMessage)(a).UnmarshalJSON(raw)
}

// Schema returns the schema of any value.
func (AnyJSON) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }
