package manifest_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/manifest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := manifest.Parse([]byte(`{
		"schema": "cs.function.script.v1", "runtime": "cs-js", "entry": "main.ts", "handler": "handle",
		"limits": {"timeoutMs": 900000, "memoryMb": 16, "maxConcurrency": 1000},
		"capabilities": {
			"kv": {"prefixes": ["cart:", ""], "ops": ["get", "set"]},
			"http": {"allowHosts": ["api.example.com", "*.example.com:8443", "*", "[::1]:80"], "timeoutMs": 500},
			"secrets": ["stripe"]
		}}`))
	if err != nil {
		t.Fatalf("manifest.Parse: %v", err)
	}
	want := manifest.Manifest{
		Schema: manifest.SchemaV1, Runtime: "cs-js", Entry: "main.ts", Handler: "handle",
		Limits: manifest.Limits{TimeoutMS: 900000, MemoryMB: 16, MaxConcurrency: 1000},
		Capabilities: api.Capabilities{
			KV: &api.KVCapability{Prefixes: []string{"cart:", ""}, Ops: []string{"get", "set"}},
			HTTP: &api.HTTPCapability{
				AllowHosts: []string{"api.example.com", "*.example.com:8443", "*", "[::1]:80"}, TimeoutMS: 500,
			},
			Secrets: []string{"stripe"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}

func TestResolveNamesTheField(t *testing.T) {
	t.Parallel()
	const man, cfg = api.CodeValidationManifest, api.CodeInvalid
	long := strings.Repeat("x", api.MaxEnvBytes)
	for _, tc := range []struct {
		manifest, config string
		code             api.Code
		path             string
	}{
		{`{`, ``, man, "manifest.json"},
		{`{} {}`, ``, man, "manifest.json"},
		{`[]`, ``, man, ""},
		{`{"schema":"v2"}`, ``, man, "schema"},
		{`{"runtime":"node"}`, ``, man, "runtime"},
		{`{"handler":"a-b"}`, ``, man, "handler"},
		{`{"entry":""}`, ``, man, "entry"},
		{`{"entry":"other.js"}`, ``, man, "entry"},
		{`{"colour":"red"}`, ``, man, "colour"},
		{`{"limits":{"timeoutMs":0}}`, ``, man, "limits.timeoutMs"},
		{`{"limits":{"timeoutMs":900001}}`, ``, man, "limits.timeoutMs"},
		{`{"limits":{"timeoutMs":3e3}}`, ``, man, "limits.timeoutMs"},
		{`{"limits":{"timeoutMs":"3"}}`, ``, man, "limits.timeoutMs"},
		{`{"limits":{"memoryMb":15}}`, ``, man, "limits.memoryMb"},
		{`{"limits":{"maxConcurrency":1001}}`, ``, man, "limits.maxConcurrency"},
		{`{"limits":{"timeout_ms":5}}`, ``, man, "limits.timeout_ms"},
		{`{"capabilities":{"kv":{"ops":["get"]}}}`, ``, man, "capabilities.kv.prefixes"},
		{`{"capabilities":{"kv":{"prefixes":[],"ops":["scan"]}}}`, ``, man, "capabilities.kv.ops.0"},
		{`{"capabilities":{"http":{"allowHosts":["http://a"]}}}`, ``, man, "capabilities.http.allowHosts.0"},
		{`{"capabilities":{"disk":{}}}`, ``, man, "capabilities.disk"},
		{`{"capabilities":{"secrets":["ok","*"]}}`, ``, man, "capabilities.secrets.1"},
		{`{"capabilities":{"secrets":["a","a"]}}`, ``, man, "capabilities.secrets"},
		{`{"capabilities":{"secrets":["a/b"]}}`, ``, man, "capabilities.secrets.0"},
		{``, `[]`, cfg, "config"},
		{``, `{"timeout_ms":900001}`, cfg, "config.timeout_ms"},
		{``, `{"timeoutMs":1}`, cfg, "config.timeoutMs"},
		{``, `{"memory_mb":4097}`, cfg, "config.memory_mb"},
		{``, `{"max_concurrency":0}`, cfg, "config.max_concurrency"},
		{``, `{"env":{"A":1}}`, cfg, "config.env.A"},
		{``, `{"env":{"A B":"1"}}`, cfg, "config.env.A B"},
		{``, `{"env":{"A":"` + long + `"}}`, cfg, "config.env"},
		{``, `{"input_schema":true}`, cfg, "config.input_schema"},
		{``, `{"input_schema":{}}`, cfg, "config.input_schema.type"},
		{``, `{"input_schema":{"type":"array"}}`, cfg, "config.input_schema.type"},
		{``, `{"input_schema":{"type":"object","properties":{"a":{"type":"strin"}}}}`, cfg, "config.input_schema.properties.a.type"},
		{``, `{"output_schema":{"type":"object","$ref":"https://a.example/s.json"}}`, cfg, "config.output_schema.$ref"},
		{``, `{"output_schema":{"type":"object","title":"` + long + `"}}`, cfg, "config.output_schema"},
		{``, `{"description":"` + long[:1025] + `"}`, cfg, "config.description"},
		{``, `{"authz":{"roles":[]}}`, cfg, "config.authz.roles"},
		{``, `{"authz":{"invoke_http_roles":["*","role:billing","billing"]}}`, cfg, "config.authz.invoke_http_roles.2"},
		{``, `{"authz":{"invoke_schedule_roles":["role:"]}}`, cfg, "config.authz.invoke_schedule_roles.0"},
		{``, `{"authz":{"invoke_cadence_roles":["Admin"]}}`, cfg, "config.authz.invoke_cadence_roles.0"},
		{``, `{"cors":{}}`, cfg, "config.cors.allow_origins"},
		{``, `{"cors":{"allow_origins":["example.com"]}}`, cfg, "config.cors.allow_origins.0"},
		{``, `{"cors":{"allow_origins":["*"],"allow_credentials":true}}`, cfg, "config.cors.allow_origins"},
		{``, `{"cors":{"allow_origins":["*"],"allow_headers":["a\nb"]}}`, cfg, "config.cors.allow_headers.0"},
	} {
		t.Run(tc.manifest+tc.config[:min(60, len(tc.config))], func(t *testing.T) {
			t.Parallel()
			files := map[string][]byte{"function.js": nil}
			if tc.manifest != "" {
				files["manifest.json"] = []byte(tc.manifest)
			}
			_, err := manifest.Resolve(api.Function{}, files, json.RawMessage(tc.config))
			var coded *api.Error
			if !errors.As(err, &coded) || coded.Code != tc.code || len(coded.Fields) == 0 || coded.Fields[0].Path != tc.path {
				t.Errorf("got %+v, want %s at %q", err, tc.code, tc.path)
			}
		})
	}
}

func TestMessagesHaveNumbersAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for manifestText, want := range map[string]string{
		`{"limits":{"timeoutMs":5000000}}`:     "limits.timeoutMs: must be at most 900,000 ms (15 min), got 5,000,000 ms",
		`{"limits":{"timeoutMs":0}}`:           "limits.timeoutMs: must be at least 1 ms, got 0 ms",
		`{"limits":{"memoryMb":8192}}`:         "limits.memoryMb: must be at most 4,096 MiB (4 GiB), got 8,192 MiB (8 GiB)",
		`{"limits":{"maxConcurrency":100000}}`: "limits.maxConcurrency: must be at most 1,000, got 100,000",
		`{"entry":""}`:                         "entry: must have at least 1 character, got 0",
	} {
		_, err := manifest.Parse([]byte(manifestText))
		want = "CS_VALIDATION_MANIFEST: manifest.json: " + want
		if err == nil || err.Error() != want {
			t.Errorf("Parse(%s): got %v, want %s", manifestText, err, want)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	defaults := func(change func(*api.VersionConfig)) api.VersionConfig {
		c := api.VersionConfig{Entry: "function.js", Handler: "default", TimeoutMS: 3000, CPUMS: 10_000, MemoryMB: 128, MaxConcurrency: 10, Isolation: api.IsolationInstance}
		if change != nil {
			change(&c)
		}
		return c
	}
	kv := &api.KVCapability{Prefixes: []string{"a"}, Ops: []string{"get"}}
	for name, tc := range map[string]struct {
		fn     api.Function
		files  map[string]string
		config string
		want   api.VersionConfig
	}{
		"defaults":    {files: map[string]string{"function.js": ""}, want: defaults(nil)},
		"null config": {files: map[string]string{"function.js": ""}, config: "null", want: defaults(nil)},
		"typescript where there is no javascript": {
			fn:    api.Function{Entry: api.DefaultEntry},
			files: map[string]string{"function.ts": ""},
			want:  defaults(func(c *api.VersionConfig) { c.Entry = "function.ts" }),
		},
		"javascript before typescript": {
			files: map[string]string{"function.ts": "", "function.js": ""}, want: defaults(nil),
		},
		"the record's entry and handler": {
			fn:    api.Function{Entry: "main.js", Handler: "handle"},
			files: map[string]string{"main.js": "", "function.js": ""},
			want:  defaults(func(c *api.VersionConfig) { c.Entry, c.Handler = "main.js", "handle" }),
		},
		"the manifest over the record": {
			fn: api.Function{Entry: "main.js", Handler: "handle"},
			files: map[string]string{
				"main.js": "", "other.js": "",
				"manifest.json": `{"entry":"other.js","handler":"h","limits":{"timeoutMs":5},"capabilities":{"kv":{"prefixes":["a"],"ops":["get"]}}}`,
			},
			want: defaults(func(c *api.VersionConfig) {
				c.Entry, c.Handler, c.TimeoutMS, c.Capabilities.KV = "other.js", "h", 5, kv
			}),
		},
		"the config over the manifest, field by field": {
			files: map[string]string{
				"function.js":   "",
				"manifest.json": `{"limits":{"timeoutMs":5,"memoryMb":32},"capabilities":{"kv":{"prefixes":["a"],"ops":["get"]}}}`,
			},
			config: `{"timeout_ms":7,"max_concurrency":3,"env":{"A":"b"},"capabilities":{"secrets":["s"]},"cors":{"allow_origins":["https://a.example"]},"authz":{"invoke_http_roles":["*"]}}`,
			want: defaults(func(c *api.VersionConfig) {
				c.TimeoutMS, c.MemoryMB, c.MaxConcurrency = 7, 32, 3
				c.Env = map[string]string{"A": "b"}
				c.Capabilities = api.Capabilities{Secrets: []string{"s"}}
				c.CORS = &api.CORS{AllowOrigins: []string{"https://a.example"}}
				c.Authz = &api.Authz{InvokeHTTPRoles: []string{"*"}}
			}),
		},
		"an empty capabilities takes the manifest's away": {
			files: map[string]string{
				"function.js":   "",
				"manifest.json": `{"capabilities":{"kv":{"prefixes":["a"],"ops":["get"]}}}`,
			},
			config: `{"capabilities":{}}`,
			want:   defaults(nil),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string][]byte{}
			for name, content := range tc.files {
				files[name] = []byte(content)
			}
			got, err := manifest.Resolve(tc.fn, files, json.RawMessage(tc.config))
			if err != nil {
				t.Fatalf("manifest.Resolve: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveNeedsAnEntry(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", "function.js", "main.js"} {
		_, err := manifest.Resolve(api.Function{Entry: entry}, map[string][]byte{"lib.js": nil}, nil)
		if api.ErrorCode(err) != api.CodeValidationBundle {
			t.Errorf("Resolve with entry %q: got error %v, want code %s", entry, err, api.CodeValidationBundle)
		}
	}
}

// TestSchemaSaysTheSameLimits holds schema.json to the constants of api.
func TestSchemaSaysTheSameLimits(t *testing.T) {
	t.Parallel()
	var schema struct {
		Defs struct {
			Timeout, Memory, Concurrency struct{ Minimum, Maximum int }
			Manifest                     struct {
				Properties struct {
					Schema, Runtime struct{ Const string }
					Entry           struct{ MaxLength int }
				}
			}
			Config struct {
				Properties struct{ Env struct{ MaxProperties int } }
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(manifest.Schema, &schema); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	d := schema.Defs
	got := []any{
		d.Timeout.Maximum, d.Memory.Minimum, d.Memory.Maximum, d.Concurrency.Maximum,
		d.Manifest.Properties.Schema.Const, d.Manifest.Properties.Runtime.Const,
		d.Manifest.Properties.Entry.MaxLength, d.Config.Properties.Env.MaxProperties,
	}
	want := []any{
		api.MaxTimeoutMS, api.MinMemoryMB, api.MaxMemoryMB, api.MaxMaxConcurrency,
		manifest.SchemaV1, api.RuntimeJS, api.MaxBundlePath, api.MaxEnvEntries,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}

// TestFaultsAreBounded: a manifest with very many faults names some of them, and a very large one is
// refused by its length.
func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	parse := func(n int) *api.Error {
		_, err := manifest.Parse([]byte(`{"capabilities":{"secrets":[` + strings.TrimSuffix(strings.Repeat("0,", n), ",") + `]}}`))
		var coded *api.Error
		if !errors.As(err, &coded) || coded.Code != api.CodeValidationManifest {
			t.Fatalf("a manifest with %d faults: got error %v, want %s", n, err, api.CodeValidationManifest)
		}
		return coded
	}
	if got := len(parse(100_000).Fields); got == 0 || got > 200 {
		t.Errorf("100,000 faults: got %d fields, want some", got)
	}
	if got := parse(200_000).Message; !strings.Contains(got, "the limit is 256 KiB") {
		t.Errorf("a manifest of 400 KB: got %q, want the limit", got)
	}
}
