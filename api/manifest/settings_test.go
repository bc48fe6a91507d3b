package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/manifest"
)

func TestParseSettings(t *testing.T) {
	t.Parallel()
	s, err := manifest.ParseSettings([]byte(`{
		"$schema": "x", "name": "shop", "entry": "src/index.ts", "aliases": ["prod", "beta"],
		"limits": {"timeout_ms": 500}, "env": {"MODE": "test"}, "cors": null,
		"schedules": [{"name": "report", "cron": "0 6 * * *", "payload": {"deep": true}}]
	}`))
	if err != nil {
		t.Fatalf("ParseSettings: %v", err)
	}
	got := map[string]string{}
	for name, value := range s.Config {
		got[name] = string(value)
	}
	if want := map[string]string{"timeout_ms": "500", "env": `{"MODE": "test"}`, "cors": "null"}; !cmp.Equal(got, want) {
		t.Errorf("Config: got %v, want %v", got, want)
	}
	if s.Name != "shop" || s.Entry != "src/index.ts" || !cmp.Equal(s.Aliases, []string{"prod", "beta"}) ||
		len(s.Schedules) != 1 || s.Schedules[0].Cron != "0 6 * * *" || string(s.Schedules[0].Payload) != `{"deep":true}` {
		t.Errorf("got %+v, want the file's name, entry, aliases and schedule", s)
	}
}

func TestParseSettingsRefuses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{`:                                  "sous.json is not JSON",
		`[]`:                                 "sous.json",
		`{"envv": {}}`:                       "sous.json: envv: is not a known field; did you mean env?",
		`{"limits": {"timeoutMs": 5}}`:       "sous.json: limits.timeoutMs: is not a known field; did you mean timeout_ms?",
		`{"limits": {"timeout_ms": "soon"}}`: "sous.json: limits.timeout_ms: got string, want integer",
		`{"limits": null}`:                   "sous.json: limits: got null, want object",
		`{"timeout_ms": 5}`:                  "sous.json: timeout_ms: is not a known field; did you mean limits.timeout_ms?",
		`{"schedules": [{"name": "a", "every": 5}]}`: "sous.json: schedules.0.every: is not a known field; did you mean every_seconds?",
		`{"wildly_different": 1}`:                    "sous.json: wildly_different: is not a known field",
		`{"env": {"A": 1}}`:                          "sous.json: env.A: got number, want string",
		`{"schedules": [{"cron": "x"}]}`:             "sous.json: schedules.0.name: is required",
	} {
		_, err := manifest.ParseSettings([]byte(raw))
		if api.ErrorCode(err) != api.CodeValidationManifest || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSettings(%s): got %v, want %s with %q", raw, err, api.CodeValidationManifest, want)
		}
	}
}
