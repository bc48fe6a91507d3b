package manifest

import (
	"bytes"
	"cmp"
	_ "embed" // schema.json
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/jsonfault"
	"github.com/codesous/sous/api/schema"
)

// Schema is the JSON Schema (2020-12) of a manifest. Its $defs/config is the schema of the
// config of a publish request.
//
//go:embed schema.json
var Schema []byte

// schemaURL is the $id of Schema. Nothing is fetched from it.
const schemaURL = "https://github.com/codesous/sous/api/manifest/schema.json"

// schemas are the compiled forms of Schema and of its $defs/config.
type schemas struct{ manifest, config *jsonschema.Schema }

// compiled is lazy: a sandbox child links this package and must start fast.
var compiled = sync.OnceValues(func() (schemas, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		return schemas{}, fmt.Errorf("manifest schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaURL, document); err != nil {
		return schemas{}, fmt.Errorf("manifest schema: %w", err)
	}
	var s schemas
	s.manifest, err = c.Compile(schemaURL)
	if err != nil {
		return schemas{}, fmt.Errorf("manifest schema: %w", err)
	}
	s.config, err = c.Compile(schemaURL + "#/$defs/config")
	if err != nil {
		return schemas{}, fmt.Errorf("manifest schema: %w", err)
	}
	return s, nil
})

// kindOf describes a document that is validated: its name in messages, the prefix of the paths
// of its fields, and the code of failures.
type kindOf struct {
	name, prefix string
	code         api.Code
}

var (
	manifestKind = kindOf{bundle.ManifestFile, "", api.CodeValidationManifest}
	configKind   = kindOf{"config", "config", api.CodeInvalid}
	settingsKind = kindOf{SettingsFile, "", api.CodeValidationManifest}
)

// decode validates raw against a schema and reads it into v.
func (d kindOf) decode(raw []byte, of *jsonschema.Schema, v any) error {
	what, prefix, code := d.name, d.prefix, d.code
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		why := "is not JSON: " + cmp.Or(jsonfault.Of(raw), err.Error())
		return api.Errorf(code, "%s %s", what, why).WithFields(api.FieldError{Path: what, Message: why})
	}
	if err := of.Validate(document); err != nil {
		var invalid *jsonschema.ValidationError
		if !errors.As(err, &invalid) {
			return api.Wrap(api.CodeInternal, err, "validate "+what)
		}
		fields := leaves(of, invalid, prefix, message.NewPrinter(language.English), nil)
		return api.Errorf(code, "%s", d.describe(fields[0])).WithFields(fields...)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		// The schema calls 3e3 an integer; Go does not.
		field := api.FieldError{Path: prefix, Message: err.Error()}
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) {
			field = api.FieldError{Path: join(prefix, mismatch.Field), Message: "must be a plain " + mismatch.Type.String()}
		}
		return api.Errorf(code, "%s", d.describe(field)).WithFields(field)
	}
	return nil
}

// describe returns a failure as a sentence. The paths of a file's fields do not name the file,
// so it begins with it; those of a config begin with config already.
func (d kindOf) describe(f api.FieldError) string {
	text := strings.TrimPrefix(f.Path+": "+f.Message, ": ")
	if d.prefix == "" {
		return d.name + ": " + text
	}
	return text
}

// maxFaults is the number of failures after which leaves stops.
const maxFaults = 100

// leaves returns the innermost failures below e, a failure of schema s, each with the path of its
// field: an outer one, such as "allOf failed", says nothing that its causes do not.
func leaves(s *jsonschema.Schema, e *jsonschema.ValidationError, prefix string, p *message.Printer, fields []api.FieldError) []api.FieldError {
	names, badName := e.ErrorKind.(*kind.PropertyNames)
	if len(e.Causes) > 0 && !badName {
		for _, cause := range e.Causes {
			if len(fields) >= maxFaults {
				break
			}
			fields = leaves(s, cause, prefix, p, fields)
		}
		return fields
	}
	at := join(prefix, strings.Join(e.InstanceLocation, "."))
	if badName {
		return append(fields, api.FieldError{Path: join(at, names.Property), Message: "is not an allowed name"})
	}
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties[:min(len(k.Properties), maxFaults)] {
			fields = append(fields, api.FieldError{Path: join(at, name), Message: unknownField(s, e.InstanceLocation, name)})
		}
	case *kind.Required:
		for _, name := range k.Missing {
			fields = append(fields, api.FieldError{Path: join(at, name), Message: "is required"})
		}
	case *kind.Pattern:
		fields = append(fields, api.FieldError{Path: at, Message: cmp.Or(patternRule(k.Want), schema.Rule(at, k, p))})
	default:
		fields = append(fields, api.FieldError{Path: at, Message: schema.Rule(at, k, p)})
	}
	return fields
}

// join returns the path of a field below prefix; either may be "".
func join(prefix, path string) string {
	switch {
	case prefix == "":
		return path
	case path == "":
		return prefix
	}
	return prefix + "." + path
}
