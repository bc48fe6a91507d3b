package controlplane

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// nullable is a field of a change that null removes: given is nil where the field was
// left out, and its zero value where it was null.
type nullable[T any] struct{ given *T }

// UnmarshalJSON takes a value, or null.
func (n *nullable[T]) UnmarshalJSON(raw []byte) error {
	n.given = new(T)
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	return json.Unmarshal(raw, n.given)
}

// IsZero says whether the field was left out.
func (n nullable[T]) IsZero() bool { return n.given == nil }

// Schema is that of T, or null.
func (nullable[T]) Schema(r huma.Registry) *huma.Schema {
	schema := r.Schema(reflect.TypeFor[T](), true, "")
	if schema.Ref != "" { // a reference cannot be null, what it refers to can
		schema = r.SchemaFromRef(schema.Ref)
	}
	also := *schema
	also.Nullable = also.Type != ""
	return &also
}

// rawJSON is JSON as it was sent; anyJSON is the same as a nullable's type, whose
// schema is that of any value.
type (
	rawJSON = json.RawMessage
	anyJSON json.RawMessage
)

// UnmarshalJSON keeps the text.
func (a *anyJSON) UnmarshalJSON(raw []byte) error { return (*rawJSON)(a).UnmarshalJSON(raw) }

// Schema is that of any value.
func (anyJSON) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }
