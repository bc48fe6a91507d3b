package queue

import (
	"bytes"
	"encoding/json"

	"github.com/maypok86/otter/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/codesous/sous/api"
)

// schemas checks results against the JSON Schemas (draft 2020-12) that their jobs
// were given, and keeps the compiled ones.
type schemas struct {
	compiled *otter.Cache[string, *jsonschema.Schema]
}

const schemaEntries = 256

func newSchemas() *schemas {
	return &schemas{otter.Must(&otter.Options[string, *jsonschema.Schema]{MaximumSize: schemaEntries})}
}

// noReferences refuses schemas that name others: nothing is fetched for a tenant.
type noReferences struct{}

func (noReferences) Load(url string) (any, error) {
	return nil, api.Errorf(api.CodeValidation, "a schema cannot refer to %s", url)
}

// compile reads a schema. CodeValidation.
func (s *schemas) compile(raw json.RawMessage) (*jsonschema.Schema, error) {
	if known, ok := s.compiled.GetIfPresent(string(raw)); ok {
		return known, nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fieldError("result_schema", "must be JSON")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noReferences{})
	const name = "result.json"
	if err := c.AddResource(name, document); err != nil {
		return nil, fieldError("result_schema", "is no JSON Schema: "+err.Error())
	}
	schema, err := c.Compile(name)
	if err != nil {
		return nil, fieldError("result_schema", "is no JSON Schema: "+err.Error())
	}
	s.compiled.Set(string(raw), schema)
	return schema, nil
}

// check refuses (CodeJobResult) a result that breaks its job's schema.
func (s *schemas) check(raw, result json.RawMessage) error {
	schema, err := s.compile(raw)
	if err != nil {
		return err
	}
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(result))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return api.Errorf(api.CodeJobResult, "the result breaks the job's schema: %v", err)
	}
	return nil
}
