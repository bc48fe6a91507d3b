package manifest

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/codesous/sous/api/nearest"
)

// unknownField returns the message for the field name of the object at a location of a
// document of schema s. It suggests the field that was probably meant, with a path from the
// object: one of the object, or one of an object in it.
//
//	"timoutMs"    is not a known field; did you mean timeoutMs?
//	"timeout_ms"  is not a known field; did you mean limits.timeout_ms?
func unknownField(s *jsonschema.Schema, location []string, name string) string {
	const message = "is not a known field"
	known := fieldsAt(s, location)
	names := slices.Sorted(maps.Keys(known))
	meant := similar(name, names)
	for i := 0; meant == "" && i < len(names); i++ {
		if below := sameLetters(name, slices.Sorted(maps.Keys(fieldsAt(known[names[i]], nil)))); below != "" {
			meant = join(names[i], below)
		}
	}
	if meant == "" {
		return message
	}
	return message + "; did you mean " + meant + "?"
}

// similar returns the one of known that is most like name, "" if none is.
func similar(name string, known []string) string {
	if same := sameLetters(name, known); same != "" {
		return same
	}
	if meant := nearest.Name(name, known); meant != "" {
		return meant
	}
	for _, k := range known { // every: every_seconds
		if name != "" && strings.HasPrefix(k, name+"_") {
			return k
		}
	}
	return ""
}

// sameLetters returns the one of known that differs from name at most in case and underscores:
// manifests have timeoutMs where settings have timeout_ms.
func sameLetters(name string, known []string) string {
	for _, k := range known {
		if strings.EqualFold(strings.ReplaceAll(k, "_", ""), strings.ReplaceAll(name, "_", "")) {
			return k
		}
	}
	return ""
}

// fieldsAt returns the fields that s declares for the object at a location of its documents.
func fieldsAt(s *jsonschema.Schema, location []string) map[string]*jsonschema.Schema {
	out := map[string]*jsonschema.Schema{}
	if s == nil {
		return out
	}
	if len(location) == 0 {
		maps.Copy(out, s.Properties)
	} else {
		maps.Copy(out, fieldsAt(s.Properties[location[0]], location[1:]))
		maps.Copy(out, fieldsAt(s.Items2020, location[1:]))
	}
	maps.Copy(out, fieldsAt(s.Ref, location))
	for _, branches := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, branch := range branches {
			maps.Copy(out, fieldsAt(branch, location))
		}
	}
	return out
}
