package documents

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/maypok86/otter/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/codesous/sous/api"
)

// schema is a compiled JSON Schema that judges values at a bounded cost.
type schema struct {
	root    *jsonschema.Schema
	weights map[*jsonschema.Schema]weight
	size    int // bytes of its text
}

// schemas keeps compiled schemas by their digests.
type schemas struct {
	compiled *otter.Cache[string, *schema]
}

// What is compiled takes some times the room of its text: 20 is more than was measured.
const (
	schemaCacheBytes  = 64 << 20
	schemaSizeFactor  = 20
	schemaSizeAtLeast = 1 << 10
)

func newSchemas() *schemas {
	return &schemas{otter.Must(&otter.Options[string, *schema]{
		MaximumWeight: schemaCacheBytes,
		Weigher:       func(_ string, s *schema) uint32 { return uint32(schemaSizeAtLeast + schemaSizeFactor*s.size) },
	})}
}

// get gives the schema of a text whose digest is known.
func (s *schemas) get(digest string, raw []byte) (*schema, error) {
	if known, ok := s.compiled.GetIfPresent(digest); ok {
		return known, nil
	}
	compiled, err := compileSchema(raw)
	if err != nil {
		return nil, err
	}
	s.compiled.Set(digest, compiled)
	return compiled, nil
}

// nothingElse is the loader of schemas that name others: nothing is fetched or opened.
type nothingElse struct{}

func (nothingElse) Load(string) (any, error) {
	return nil, errors.New("nothing is loaded from elsewhere")
}

// compileSchema reads a schema. Errors: CodeValidationFailed.
func compileSchema(raw []byte) (*schema, error) {
	document, err := readSchema(raw)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nothingElse{})
	expressions := patterns{known: map[string]*pattern{}, room: maxPatternSize}
	c.UseRegexpEngine(expressions.compile)
	const name = "sous:schema"
	if err := c.AddResource(name, document); err != nil {
		return nil, schemaError("", "%v", err)
	}
	root, err := c.Compile(name)
	if err != nil {
		return nil, brokenSchema(document, err)
	}
	s := &schema{root: root, weights: map[*jsonschema.Schema]weight{}, size: len(raw)}
	if s.weigh(root); circular(s.weights) {
		return nil, schemaError("", "a subschema applies itself to the same value, without end")
	}
	return s, nil
}

// brokenSchema says what is wrong with a schema.
func brokenSchema(document any, err error) error {
	var invalid *jsonschema.SchemaValidationError
	var offences *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &offences) {
		return offencesError("schema", document, offences)
	}
	var expression *jsonschema.InvalidRegexError
	if errors.As(err, &expression) {
		_, at, _ := strings.Cut(expression.URL, "#")
		return schemaError(at, "%.80q is not a pattern: %v", expression.Regex, expression.Err)
	}
	return schemaError("", "%.300s", err.Error())
}

// valuePath is where the fields of a value stand.
const valuePath = "value"

// check refuses (CodeValidationFailed, with the offending fields below valuePath) a value
// that breaks the schema, or that would be costly to judge.
func (s *schema) check(raw json.RawMessage) error {
	value, err := readJSON(raw)
	if err != nil {
		return api.DocumentFieldError(valuePath, err.Error()+": it cannot be checked against the namespace's schema")
	}
	if s.tooCostly(value) {
		return api.DocumentFieldError(valuePath, "would take too long to check against the namespace's schema")
	}
	if err := s.root.Validate(value); err != nil {
		var offences *jsonschema.ValidationError
		if errors.As(err, &offences) {
			return offencesError(valuePath, value, offences)
		}
		return api.DocumentFieldError(valuePath, "breaks the namespace's schema")
	}
	return nil
}
