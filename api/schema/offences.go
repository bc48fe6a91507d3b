package schema

import (
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/codesous/sous/api"
)

// How much is told of what is wrong.
const (
	MaxOffences      = 20 // that an error names
	maxOffenceBytes  = 300
	maxOffencePieces = 10_000 // of the tree of failures that are looked at
)

// offencesError names the innermost failures, each under the path of its field.
func offencesError(path string, value any, failure *jsonschema.ValidationError) error {
	o := offences{path: path, value: value, printer: message.NewPrinter(language.English), pieces: maxOffencePieces}
	o.collect(failure)
	if len(o.fields) == 0 {
		o.add(path, "breaks the schema")
	}
	first := o.fields[0]
	return api.Errorf(api.CodeValidationFailed, "%s: %s", first.Path, first.Message).WithFields(o.fields...)
}

type offences struct {
	path    string
	value   any
	printer *message.Printer
	pieces  int
	fields  []api.FieldError
}

func (o *offences) collect(e *jsonschema.ValidationError) {
	if o.pieces--; o.pieces < 0 || len(o.fields) >= MaxOffences {
		return
	}
	name, badName := e.ErrorKind.(*kind.PropertyNames)
	if len(e.Causes) > 0 && !badName {
		for _, cause := range e.Causes {
			o.collect(cause)
		}
		return
	}
	if badName {
		o.badName(e, name.Property)
		return
	}
	at := o.at(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, property := range k.Properties {
			o.add(Below(at, property), "is not a known field")
		}
	case *kind.Required:
		for _, missing := range k.Missing {
			o.add(Below(at, missing), "is required")
		}
	case *kind.Enum, *kind.Const: // which can be any amount of JSON
		o.add(at, "is not an allowed value")
	case nil: // of a branch of which only the outcome was asked
		o.add(at, "breaks the schema")
	default:
		o.add(at, e.ErrorKind.LocalizedString(o.printer))
	}
}

func (o *offences) at(location []string) string {
	at := o.path
	for _, part := range location {
		at = Below(at, part)
	}
	return at
}

// badName notes a name that is not allowed, and what a pattern says of it. The validator
// may have overwritten the location of the object (it keeps no copy), but for its depth:
// the first object that has the name there is taken.
func (o *offences) badName(e *jsonschema.ValidationError, name string) {
	location := e.InstanceLocation
	if !holds(o.value, location, name) {
		location, _ = locate(o.value, len(location), name)
	}
	why := "is not an allowed name"
	for inner := e; len(inner.Causes) > 0; {
		if inner = inner.Causes[0]; len(inner.Causes) == 0 {
			if pattern, ok := inner.ErrorKind.(*kind.Format); ok {
				why += ": " + pattern.Err.Error()
			}
		}
	}
	o.add(Below(o.at(location), name), why)
}

// holds says whether there is an object with a member called name at location.
func holds(v any, location []string, name string) bool {
	for _, part := range location {
		switch at := v.(type) {
		case map[string]any:
			v = at[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) {
				return false
			}
			v = at[i]
		}
	}
	object, _ := v.(map[string]any)
	_, has := object[name]
	return has
}

// locate finds such an object at a depth.
func locate(v any, depth int, name string) ([]string, bool) {
	if depth == 0 {
		return nil, holds(v, nil, name)
	}
	search := func(part string, inner any) ([]string, bool) {
		location, ok := locate(inner, depth-1, name)
		return append([]string{part}, location...), ok
	}
	switch v := v.(type) {
	case map[string]any:
		for part, inner := range v {
			if location, ok := search(part, inner); ok {
				return location, true
			}
		}
	case []any:
		for i, inner := range v {
			if location, ok := search(strconv.Itoa(i), inner); ok {
				return location, true
			}
		}
	}
	return nil, false
}

// add notes an offence, cut to what can be shown.
func (o *offences) add(path, text string) {
	if len(o.fields) < MaxOffences {
		o.fields = append(o.fields, api.FieldError{Path: Shortened(path), Message: Shortened(text)})
	}
}

// Shortened is a text of a caller's, cut to what an error can show.
func Shortened(s string) string {
	if len(s) > maxOffenceBytes {
		s = s[:maxOffenceBytes] + "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// Below is the path of a member, as errors have it: a.b, a[3].
func Below(path, part string) string {
	if n, err := strconv.Atoi(part); err == nil && n >= 0 {
		return path + "[" + part + "]"
	}
	return path + "." + part
}
