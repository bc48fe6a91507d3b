package documents

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/jsonsize"
	"github.com/codesous/sous/api/schema"
)

// Decode parses the body of a request: one JSON object in UTF-8 without unknown fields.
// CodeDocumentInvalid.
func Decode(body []byte, v any) error {
	if !utf8.Valid(body) {
		return api.Errorf(api.CodeDocumentInvalid, "the body is not UTF-8")
	}
	if text := bytes.TrimSpace(body); len(text) == 0 || text[0] != '{' {
		return api.Errorf(api.CodeDocumentInvalid, "the body must be a JSON object")
	}
	if !jsonsize.Fits(body, reflect.TypeOf(v), jsonsize.Elements) {
		return api.Errorf(api.CodeDocumentInvalid, "the body has more elements than a request may have")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return decodeError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return api.Errorf(api.CodeDocumentInvalid, "the body has data after its JSON value")
	}
	return nil
}

// decodeError describes a decoding error without the names of Go types.
func decodeError(err error) error {
	var coded *api.Error
	if errors.As(err, &coded) {
		return coded
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		if mismatch.Field == "" {
			return api.Errorf(api.CodeDocumentInvalid, "the body has the wrong form")
		}
		// The fields of a document stand in its request, not in one of their own.
		return api.DocumentFieldError(strings.ReplaceAll(mismatch.Field, "DocumentItem.", ""), "cannot be a "+mismatch.Value)
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if name, unknown := strings.CutPrefix(text, "unknown field "); unknown {
		return api.DocumentFieldError(schema.Shortened(strings.Trim(name, `"`)), "is not a known field")
	}
	return api.Errorf(api.CodeDocumentInvalid, "the body is not JSON: %s", text)
}

// compact returns raw without the spaces between its tokens.
func compact(raw json.RawMessage) (json.RawMessage, error) {
	var b bytes.Buffer
	b.Grow(len(raw))
	if err := json.Compact(&b, raw); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// nesting returns the depth of the arrays and objects in raw, which must be valid JSON: 2 for
// {"a":[1]}. Lists of documents nest values some levels deeper, which their readers must
// accept.
func nesting(raw json.RawMessage) (most int) {
	depth, text := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[' || c == '{':
			depth++
			most = max(most, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return most
}
