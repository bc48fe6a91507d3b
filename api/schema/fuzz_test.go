package schema

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/codesous/sous/api"
)

// FuzzSchema compiles what a tenant may send as a schema, and checks what he may send as a
// value: both end soon, with no error but the refusal.
func FuzzSchema(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","required":["a"],"properties":{"a":{"pattern":"^[a-z]+$"}}}`, `{"a":"x"}`},
		{`{"items":{"$ref":"#"},"contains":{"$ref":"#"},"uniqueItems":true}`, `[[[1],[2]]]`},
		{`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"enum":[1,"x",null]}}}`, `1e400`},
		{`{"patternProperties":{"(a{1,9}){1,9}":{"multipleOf":0.1}}}`, `{"aaaa":3}`},
		{`{"if":{"const":1},"then":false,"else":{"dependentSchemas":{"a":true}}}`, `{"a":1,"a":2}`},
		{`{"unevaluatedProperties":false,"propertyNames":{"maxLength":3}}`, `{"":null}`},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","$anchor":"a","$ref":"#a"}`, `null`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, text, value []byte) {
		begin := time.Now()
		s, err := Compile(text)
		if err == nil {
			err = s.Check(json.RawMessage(value))
		}
		if err != nil && api.ErrorCode(err) != api.CodeDocumentInvalid {
			t.Errorf("schema %q, value %q: got error %v, want code %s", text, value, err, api.CodeDocumentInvalid)
		}
		// A hang, rather than a slow machine.
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("schema %q, value %q: took %v, want less than 10s", text, value, took)
		}
	})
}
