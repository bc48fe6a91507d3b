package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

// TestPatternsHaveRules: every pattern of a value in schema.json is stated in words.
func TestPatternsHaveRules(t *testing.T) {
	t.Parallel()
	var document any
	if err := json.Unmarshal(Schema, &document); err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
	found := 0
	var walk func(field string, v any)
	walk = func(field string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if pattern, ok := v["pattern"].(string); ok && field != "propertyNames" { // those have a message of their own
				found++
				if patternRule(pattern) == "" {
					t.Errorf("patternRule(%s): got no rule, want one for the field %s", pattern, field)
				}
			}
			for name, inner := range v {
				walk(name, inner)
			}
		case []any:
			for _, inner := range v {
				walk(field, inner)
			}
		}
	}
	walk("", document)
	if found < 9 {
		t.Errorf("got %d patterns in schema.json, want at least 9", found)
	}
}

func TestPatternsFailInWords(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"on_success": {"queue": "Mail"}}`:                   "config.on_success.queue: " + api.NameRule,
		`{"cors": {"allow_origins": ["example.com"]}}`:        "config.cors.allow_origins.0: must be *, or an origin",
		`{"capabilities": {"secrets": ["a/b"]}}`:              "config.capabilities.secrets.0: " + api.SecretRule,
		`{"capabilities": {"http": {"allowHosts": ["a/b"]}}}`: "config.capabilities.http.allowHosts.0: must be *, a host",
	} {
		if _, err := parseConfig(json.RawMessage(raw)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "A-Z") {
			t.Errorf("parseConfig(%s): got error %v, want %q without a pattern", raw, err, want)
		}
	}
}
