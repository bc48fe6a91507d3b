package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
)

// Decoder decodes the JSON bodies of Handle routes strictly: one value, in UTF-8,
// without unknown fields. It refuses with the same codes and paths as huma does for
// Operations. The zero Decoder cannot be used. It is safe for concurrent use.
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
// CodeInvalid with the paths of the fields that break the schema of T, and the coded
// errors of a field's own UnmarshalJSON. The schema is consulted only to explain a
// refusal: encoding/json alone decides, so a valid body is parsed once.
func (d Decoder[T]) Decode(body []byte) (T, error) {
	var v T
	if !utf8.Valid(body) {
		return v, api.Errorf(api.CodeValidationJSON, "the body is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&v)
	if err == nil {
		if _, end := decoder.Token(); !errors.Is(end, io.EOF) {
			return v, api.Errorf(api.CodeValidationJSON, "the body holds more than one JSON value")
		}
		return v, nil
	}
	return v, d.explain(body, err)
}

// explain returns the coded error for a body that encoding/json refused with err, in this
// order: a field's own error, a syntax error, unknown fields, a broken schema, and at last
// the error of encoding/json itself.
func (d Decoder[T]) explain(body []byte, err error) error {
	var coded *api.Error
	if errors.As(err, &coded) {
		return coded // a field's own UnmarshalJSON has said it
	}
	var document any
	if jsonErr := json.Unmarshal(body, &document); jsonErr != nil {
		if len(bytes.TrimSpace(body)) == 0 {
			return api.Errorf(api.CodeValidationJSON, "a JSON body is required")
		}
		return api.Errorf(api.CodeValidationJSON, "the body is not JSON: %v", jsonErr)
	}
	if fields := d.unknown(document); len(fields) > 0 {
		return api.Errorf(api.CodeInvalid, "%s: %s", fields[0].Path, fields[0].Message).WithFields(fields...)
	}
	var found huma.ValidateResult
	huma.Validate(d.registry, d.schema, huma.NewPathBuffer([]byte{}, 0), huma.ModeWriteToServer, document, &found)
	if len(found.Errors) > 0 {
		return humaError(http.StatusUnprocessableEntity, "", found.Errors)
	}
	// The schema admits the body: report the error of encoding/json.
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return api.Errorf(api.CodeInvalid, "%s: must be of another type", mismatch.Field).
			WithFields(api.FieldError{Path: mismatch.Field, Message: "must be of another type"})
	}
	return api.Errorf(api.CodeInvalid, "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// unknown returns the unknown fields of the document itself. huma would find them, too,
// but reports wrong paths below keys with a dot, such as file names.
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
