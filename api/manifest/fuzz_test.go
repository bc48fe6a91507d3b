package manifest_test

import (
	"encoding/json"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/manifest"
)

// FuzzParse feeds the parsers of function.json and sous.json what a tenant may upload: they
// return a value that can be written again, or an error with a code.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"schema":"cs.function.script.v1","runtime":"cs-js"}`,
		`{"schema":"cs.function.script.v1","runtime":"cs-js","entry":"a.js","limits":{"timeoutMs":1000},"env":{"A":"1"}}`,
		`{"name":"hello","timeout_ms":500,"triggers":{"queues":[{"queue":"q"}]}}`,
		`{"on_success":{"queue":"q"},"authz":{"invoke_http_roles":["*"]}}`,
		`{"a":` + "[[[[[[[[[[", `null`, `{"name":"\ud800"}`, `{"name":"x","name":"y"}`, "\xff\xfe", `{} {}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := manifest.Parse(raw)
		if err != nil && api.ErrorCode(err) == api.CodeInternal {
			t.Errorf("Parse(%q) = error %v, want one with a code", raw, err)
		}
		if err == nil {
			if _, err := json.Marshal(m); err != nil {
				t.Errorf("Parse(%q) returned a value that cannot be written: %v", raw, err)
			}
		}
		if _, err := manifest.ParseSettings(raw); err != nil && api.ErrorCode(err) == api.CodeInternal {
			t.Errorf("ParseSettings(%q) = error %v, want one with a code", raw, err)
		}
	})
}
