package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/jsonfault"
	"github.com/codesous/sous/api/jsonsize"
)

// Decoder decodes the JSON bodies of Handle routes strictly: one value, in UTF-8,
// without unknown fields. Its errors have the codes and paths of those that Operations
// answer with. The zero Decoder cannot be used. It is safe for concurrent use.
type Decoder[T any] struct {
	registry huma.Registry
	schema   *huma.Schema
}

// NewDecoder returns a decoder of bodies of type T.
func NewDecoder[T any]() Decoder[T] {
	var body T
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return Decoder[T]{registry: registry, schema: content(registry, JSON(body))[ContentTypeJSON].Schema}
}

// Decode decodes body. Errors: CodeValidationJSON if it is not one JSON value in UTF-8,
// CodeInvalid with the paths of the fields that are unknown or of another type than in T,
// and the coded errors of a field's own UnmarshalJSON.
//
// Decode does not validate body against the schema of T: encoding/json alone decides, so a
// valid body is parsed once. A required field may be missing, and a value may be out of its
// range; the method that the handler calls checks them. The schema only explains why
// encoding/json refused a body.
func (d Decoder[T]) Decode(body []byte) (T, error) {
	var v T
	err := d.DecodeInto(body, &v)
	return v, err
}

// DecodeInto is Decode into a value that has defaults. Fields that body does not have keep
// them; a null clears pointers, slices and maps.
func (d Decoder[T]) DecodeInto(body []byte, v *T) error {
	if !utf8.Valid(body) {
		return api.Errorf(api.CodeValidationJSON, "the body is not UTF-8")
	}
	if !jsonsize.Fits(body, reflect.TypeFor[T](), jsonsize.Elements) {
		return api.Errorf(api.CodeBodyLimit, "the body has more elements than a request may have")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return d.explain(body, err)
	}
	if _, end := decoder.Token(); !errors.Is(end, io.EOF) {
		return api.Errorf(api.CodeValidationJSON, "the body has data after its JSON value")
	}
	return nil
}

// explain returns the coded error for a body that encoding/json refused with err: the first
// of a field's own error, a syntax error, unknown fields, the violations of the schema, and
// the error of encoding/json.
func (d Decoder[T]) explain(body []byte, err error) error {
	var coded *api.Error
	if errors.As(err, &coded) {
		return coded // of a field's own UnmarshalJSON
	}
	if fault := jsonfault.Of(body); fault != "" {
		if len(bytes.TrimSpace(body)) == 0 {
			return api.Errorf(api.CodeValidationJSON, "a JSON body is required")
		}
		return api.Errorf(api.CodeValidationJSON, "the body is not JSON: %s", fault)
	}
	if len(body) <= maxExplained {
		if violations := d.violations(body); violations != nil {
			return violations
		}
	}
	// The schema admits the body, or the body is large: report the error of encoding/json.
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		field := api.FieldError{Path: mismatch.Field, Message: "must be " + typeInWords(mismatch.Type)}
		return api.Errorf(api.CodeInvalid, "%s", strings.TrimPrefix(field.Path+": "+field.Message, ": ")).WithFields(field)
	}
	return api.Errorf(api.CodeInvalid, "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// maxExplained is the length of the largest body, in bytes, that explain compares with the schema.
// The comparison takes many times the memory of the body.
const maxExplained = 64 << 10

// violations returns the CodeInvalid of the fields of a body, which is JSON, that the schema does not
// admit; nil for none.
func (d Decoder[T]) violations(body []byte) error {
	var document any
	if err := json.Unmarshal(body, &document); err != nil {
		return nil //nolint:nilerr // a number that no float holds: encoding/json has reported it
	}
	if fields := d.unknown(document); len(fields) > 0 {
		return api.Errorf(api.CodeInvalid, "%s: %s", fields[0].Path, fields[0].Message).WithFields(fields...)
	}
	var found huma.ValidateResult
	huma.Validate(d.registry, d.schema, huma.NewPathBuffer([]byte{}, 0), huma.ModeWriteToServer, document, &found)
	if len(found.Errors) > 0 {
		return humaError(http.StatusUnprocessableEntity, "", found.Errors)
	}
	return nil
}

// typeInWords returns the JSON type that encoding/json decodes to t, with its article.
func typeInWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("an integer of %d bits", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("an integer of %d bits, not negative", t.Bits())
	case reflect.Float32, reflect.Float64:
		return fmt.Sprintf("a number of %d bits", t.Bits())
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	}
	return "an object"
}

// unknown returns the unknown fields at the top level of document. huma finds them, too, but
// reports wrong paths below names with a dot, such as those of files.
func (d Decoder[T]) unknown(document any) []api.FieldError {
	schema := d.schema
	if schema.Ref != "" {
		schema = d.registry.SchemaFromRef(schema.Ref)
	}
	object, _ := document.(map[string]any)
	var fields []api.FieldError
	for _, name := range slices.Sorted(maps.Keys(object)) {
		isField := func(known string) bool { return strings.EqualFold(known, name) } // as encoding/json matches names
		if !slices.ContainsFunc(slices.Collect(maps.Keys(schema.Properties)), isField) {
			fields = append(fields, api.FieldError{Path: name, Message: "is not a known field"})
		}
	}
	return fields
}
