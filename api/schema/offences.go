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

// Limits of the offences in an error.
const (
	MaxOffences      = 20 // that an error names
	maxOffenceBytes  = 300
	maxOffencePieces = 10_000 // nodes of the tree of failures that are visited
)

// offencesError returns an error with the innermost failures, each with the path of its
// field: path is "schema" for a broken schema, valuePath for a value. It names at most
// MaxOffences of them; the message repeats the first.
func offencesError(path string, value any, failure *jsonschema.ValidationError) error {
	o := offences{path: path, value: value, printer: message.NewPrinter(language.English), pieces: maxOffencePieces}
	o.collect(failure)
	if len(o.fields) == 0 {
		o.add(path, "breaks the schema")
	}
	first := o.fields[0]
	return api.Errorf(api.CodeDocumentInvalid, "%s: %s", first.Path, first.Message).WithFields(o.fields...)
}

// offences collects the field errors of one failed validation. pieces is the number of
// nodes that may still be visited.
type offences struct {
	path    string
	value   any
	printer *message.Printer
	pieces  int
	fields  []api.FieldError
}

// collect adds the innermost failures below e. Outer ones, such as "allOf failed", say
// nothing that their causes do not.
func (o *offences) collect(e *jsonschema.ValidationError) {
	o.pieces--
	if o.pieces < 0 || len(o.fields) >= MaxOffences {
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
	case *kind.Enum, *kind.Const: // their text can be long
		o.add(at, "is not an allowed value")
	case nil: // of a branch that only had to fail
		o.add(at, "breaks the schema")
	default:
		o.add(at, Rule("", k, o.printer))
	}
}

// at returns the path of a location: ["a", "3"] is value.a[3].
func (o *offences) at(location []string) string {
	at := o.path
	for _, part := range location {
		at = Below(at, part)
	}
	return at
}

// badName adds the offence of a member's name. The validator may have overwritten the
// location of the object, of which it keeps no copy, except its depth: the first object at
// that depth that has the name is used.
func (o *offences) badName(e *jsonschema.ValidationError, name string) {
	location := e.InstanceLocation
	if !holds(o.value, location, name) {
		location, _ = locate(o.value, len(location), name)
	}
	why := "is not an allowed name"
	for inner := e; len(inner.Causes) > 0; {
		inner = inner.Causes[0]
		if len(inner.Causes) == 0 {
			if pattern, ok := inner.ErrorKind.(*kind.Format); ok {
				why += ": " + pattern.Err.Error()
			}
		}
	}
	o.add(Below(o.at(location), name), why)
}

// holds reports whether the object at location has a member called name. Parts of location
// are names of members and indexes of items.
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

// locate returns the location of the first object at a depth that holds name. The order of
// members is random, so several candidates make the result random.
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

// add adds an offence, with shortened texts.
func (o *offences) add(path, text string) {
	if len(o.fields) < MaxOffences {
		o.fields = append(o.fields, api.FieldError{Path: Shortened(path), Message: Shortened(text)})
	}
}

// Shortened returns a caller's text for an error, with at most 300 bytes of it, in UTF-8.
func Shortened(s string) string {
	if len(s) > maxOffenceBytes {
		s = s[:maxOffenceBytes] + "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// Below returns the path of a member as in errors: a.b, a[3]. A member of an object whose
// name is a number looks like an item of a list.
func Below(path, part string) string {
	if n, err := strconv.Atoi(part); err == nil && n >= 0 {
		return path + "[" + part + "]"
	}
	return path + "." + part
}
