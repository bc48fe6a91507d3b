// Package schema validates JSON values against JSON Schemas (draft 2020-12). Both come from
// tenants and may be hostile, so the size of schemas and the cost of a validation are
// bounded.
//
// Compile reads the text (read.go), compiles it with the jsonschema library under limits on
// its patterns (pattern.go), and weighs the subschemas (cost.go). Check estimates the cost of
// a value, validates it, and turns the failures into field errors (offences.go). Callers are
// the document storage, for the schema of a namespace, and the queue, for a result_schema.
//
// The subset is draft 2020-12 without what leaves the document or changes its base:
//
//	{"type": "object", "required": ["name"], "properties": {"name": {"$ref": "#/$defs/text"}},
//	 "$defs": {"text": {"type": "string", "maxLength": 80}}}       compiles
//
//	{"$ref": "https://a.example/s.json"}    must begin with #: nothing is loaded from elsewhere
//	{"$ref": "#/$defs/none"}                does not lead to a subschema
//	{"$dynamicRef": …}, a nested "$id"      cannot stand here
//	{"items": [{}, {}]}                     is a list, which is prefixItems now
//	{"dependencies": …}                     is of an older draft
//	{"$schema": ".../draft-07/schema#"}     must be https://json-schema.org/draft/2020-12/schema
//
// $schema and $id of the root are accepted and ignored. Formats are annotations, as in the
// draft: {"format": "email"} refuses nothing.
package schema

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/maypok86/otter/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/codesous/sous/api"
)

// Schema is a compiled JSON Schema that validates values at a bounded cost. It is
// immutable and safe for concurrent use.
type Schema struct {
	root    *jsonschema.Schema
	weights map[*jsonschema.Schema]weight
	size    int // bytes of its text
}

// Cache caches compiled schemas by a name, such as the digest of the text. It is safe for
// concurrent use.
type Cache struct {
	compiled *otter.Cache[string, *Schema]
}

// A compiled schema takes a multiple of the memory of its text; 20 is above all measured ones.
const (
	cacheBytes  = 64 << 20
	sizeFactor  = 20
	sizeAtLeast = 1 << 10
)

// NewCache returns a cache of about 64 MiB.
func NewCache() *Cache {
	return &Cache{otter.Must(&otter.Options[string, *Schema]{
		MaximumWeight: cacheBytes,
		Weigher:       func(_ string, s *Schema) uint32 { return uint32(sizeAtLeast + sizeFactor*s.size) },
	})}
}

// Known returns the cached schema of that name, if there is one.
func (c *Cache) Known(name string) (*Schema, bool) { return c.compiled.GetIfPresent(name) }

// Keep caches a schema. A name must always stand for the same text. The cache drops the
// schemas that are used least when it is full.
func (c *Cache) Keep(name string, s *Schema) { c.compiled.Set(name, s) }

// Get returns the cached schema of that name, or compiles the text and caches it. Its errors
// are those of Compile, and CodeBodyLimit if budget has been used up; a cached schema costs
// nothing.
func (c *Cache) Get(name string, raw []byte, budget *Budget) (*Schema, error) {
	if known, ok := c.Known(name); ok {
		return known, nil
	}
	if err := budget.spend(costByte * int64(len(raw))); err != nil {
		return nil, err
	}
	s, err := Compile(raw)
	if err != nil {
		return nil, err
	}
	c.Keep(name, s)
	return s, nil
}

// nothingElse is the loader of referenced schemas. It fetches and opens nothing: a schema
// must not make the server read a file or call an address.
type nothingElse struct{}

func (nothingElse) Load(string) (any, error) {
	return nil, errors.New("nothing is loaded from elsewhere")
}

// Compile compiles a schema. It returns CodeDocumentInvalid, with fields below "schema", for
// an invalid or too complex one: a text over api.MaxSchemaBytes, one that the metaschema
// refuses, one outside the subset, and one that applies itself to the same value without
// end, such as {"$ref": "#"}.
func Compile(raw []byte) (*Schema, error) {
	document, err := readText(raw)
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
		return nil, refuse("", "%v", err)
	}
	root, err := c.Compile(name)
	if err != nil {
		return nil, broken(document, err)
	}
	s := &Schema{root: root, weights: map[*jsonschema.Schema]weight{}, size: len(raw)}
	s.weigh(root)
	if circular(s.weights) {
		return nil, refuse("", "a subschema applies itself to the same value, without end")
	}
	return s, nil
}

// broken returns the error for a schema that the library has refused.
func broken(document any, err error) error {
	var invalid *jsonschema.SchemaValidationError
	var offences *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &offences) {
		return offencesError("schema", document, offences)
	}
	var expression *jsonschema.InvalidRegexError
	if errors.As(err, &expression) {
		_, at, _ := strings.Cut(expression.URL, "#")
		return refuse(at, "%.80q is not a pattern: %v", expression.Regex, expression.Err)
	}
	return refuse("", "%.300s", err.Error())
}

// valuePath is the path of the value in the fields of errors.
const valuePath = "value"

// Check returns CodeDocumentInvalid, with the offending fields below valuePath, for a value
// that does not match the schema, or whose validation would exceed the cost limit. The
// schema above refuses {"size": [1]} with the field "value.name": is required.
func (s *Schema) Check(raw json.RawMessage) error { return s.CheckWithin(raw, nil) }

// CheckWithin is Check at the expense of a budget. It also returns CodeBodyLimit if the budget
// has been used up.
func (s *Schema) CheckWithin(raw json.RawMessage, budget *Budget) error {
	if err := budget.spend(int64(len(raw))); err != nil {
		return err
	}
	value, err := readJSON(raw)
	if err != nil {
		return api.DocumentFieldError(valuePath, err.Error()+": it cannot be checked against the schema")
	}
	most := costBudget * max(1, int64(len(raw)>>16))
	cost := s.cost(value, most)
	if err := budget.spend(min(cost, most)); err != nil {
		return err
	}
	if cost > most {
		return api.DocumentFieldError(valuePath, "would take too long to check against the schema")
	}
	if err := s.root.Validate(value); err != nil {
		var offences *jsonschema.ValidationError
		if errors.As(err, &offences) {
			return offencesError(valuePath, value, offences)
		}
		return api.DocumentFieldError(valuePath, "breaks the schema")
	}
	return nil
}
