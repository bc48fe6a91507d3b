// Package schema judges JSON values by JSON Schemas (draft 2020-12), both of which come
// from tenants and may be hostile: what a schema may ask for, and what a judgement may
// cost, is bounded.
package schema

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/maypok86/otter/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/codesous/sous/api"
)

// Schema is a compiled JSON Schema that judges values at a bounded cost.
type Schema struct {
	root    *jsonschema.Schema
	weights map[*jsonschema.Schema]weight
	size    int // bytes of its text
}

// Cache keeps compiled schemas by names of their texts.
type Cache struct {
	compiled *otter.Cache[string, *Schema]
}

// What is compiled takes some times the room of its text: 20 is more than was measured.
const (
	cacheBytes  = 64 << 20
	sizeFactor  = 20
	sizeAtLeast = 1 << 10
)

// NewCache makes a cache of some 64 MiB.
func NewCache() *Cache {
	return &Cache{otter.Must(&otter.Options[string, *Schema]{
		MaximumWeight: cacheBytes,
		Weigher:       func(_ string, s *Schema) uint32 { return uint32(sizeAtLeast + sizeFactor*s.size) },
	})}
}

// Known gives the schema of that name, if it is kept.
func (c *Cache) Known(name string) (*Schema, bool) { return c.compiled.GetIfPresent(name) }

// Keep keeps a schema under a name, which is of one text alone.
func (c *Cache) Keep(name string, s *Schema) { c.compiled.Set(name, s) }

// Get gives the schema of a text, by its name. Errors: those of Compile.
func (c *Cache) Get(name string, raw []byte) (*Schema, error) {
	if known, ok := c.Known(name); ok {
		return known, nil
	}
	s, err := Compile(raw)
	if err != nil {
		return nil, err
	}
	c.Keep(name, s)
	return s, nil
}

// nothingElse is the loader of schemas that name others: nothing is fetched or opened.
type nothingElse struct{}

func (nothingElse) Load(string) (any, error) {
	return nil, errors.New("nothing is loaded from elsewhere")
}

// Compile reads a schema. Errors: CodeValidationFailed, with fields below "schema".
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
	if s.weigh(root); circular(s.weights) {
		return nil, refuse("", "a subschema applies itself to the same value, without end")
	}
	return s, nil
}

// broken says what is wrong with a schema.
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

// valuePath is where the fields of a value stand.
const valuePath = "value"

// Check refuses (CodeValidationFailed, with the offending fields below valuePath) a value
// that breaks the schema, or that would be costly to judge.
func (s *Schema) Check(raw json.RawMessage) error {
	value, err := readJSON(raw)
	if err != nil {
		return api.DocumentFieldError(valuePath, err.Error()+": it cannot be checked against the schema")
	}
	if s.tooCostly(value, costBudget*max(1, int64(len(raw)>>16))) {
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
