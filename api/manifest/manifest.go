// Package manifest parses manifest.json and the config of a publish request, validates both
// against schema.json and merges them into an api.VersionConfig.
//
// A version's configuration has three sources, of which later ones win, field by field: the
// defaults of api, the manifest in the bundle, the config of the publish request. Resolve
// merges once, at the publication, and the version stores the result: a later change of
// these defaults does not reach it.
//
//	manifest.json   {"schema": "cs.function.script.v1", "limits": {"timeoutMs": 5000}}
//	config          {"memory_mb": 128}
//	version         {"timeout_ms": 5000, "memory_mb": 128, "max_concurrency": 10, …}
//
// Lists and objects are fields as a whole: a config with capabilities replaces all of the
// manifest's.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/schema"
)

// SchemaV1 is the required value of a manifest's schema field.
const SchemaV1 = "cs.function.script.v1"

// Manifest is the content of manifest.json. A zero field means its default; the default of
// capabilities is none. Its names are in camel case, unlike those of Config.
type Manifest struct {
	Schema       string           `json:"schema,omitempty"`
	Runtime      string           `json:"runtime,omitempty"`
	Entry        string           `json:"entry,omitempty"`
	Handler      string           `json:"handler,omitempty"`
	Isolation    api.Isolation    `json:"isolation,omitempty"`
	Limits       Limits           `json:"limits,omitzero"`
	Capabilities api.Capabilities `json:"capabilities,omitzero"`
}

// Limits are the limits of a manifest. Zero means the default.
type Limits struct {
	TimeoutMS      int64 `json:"timeoutMs,omitempty"`
	CPUMS          int64 `json:"cpuMs,omitempty"`
	MemoryMB       int   `json:"memoryMb,omitempty"`
	MaxConcurrency int   `json:"maxConcurrency,omitempty"`
}

// Config is the config of a publish request. Each field that is set replaces the manifest's.
// The fields from Env on, except Capabilities, have no counterpart in the manifest.
type Config struct {
	TimeoutMS      int64             `json:"timeout_ms,omitempty"`
	CPUMS          int64             `json:"cpu_ms,omitempty"`
	MemoryMB       int               `json:"memory_mb,omitempty"`
	MaxConcurrency int               `json:"max_concurrency,omitempty"`
	Isolation      api.Isolation     `json:"isolation,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	Capabilities   *api.Capabilities `json:"capabilities,omitempty"`
	Authz          *api.Authz        `json:"authz,omitempty"`
	CORS           *api.CORS         `json:"cors,omitempty"`
	Retry          *api.Retry        `json:"retry,omitempty"`
	MaxEventAgeMS  int64             `json:"max_event_age_ms,omitempty"`
	OnSuccess      *api.Destination  `json:"on_success,omitempty"`
	OnFailure      *api.Destination  `json:"on_failure,omitempty"`
	Record         *api.Recording    `json:"record,omitempty"`
	Description    string            `json:"description,omitempty"`
	InputSchema    json.RawMessage   `json:"input_schema,omitempty"`
	OutputSchema   json.RawMessage   `json:"output_schema,omitempty"`
}

// maxBytes is the length of the largest manifest. All its parts are checked on the server.
const maxBytes = 256 << 10

// Parse parses a manifest. It returns CodeValidationManifest for one that is larger than maxBytes,
// or does not match the schema, with a field for each offence whose path is as in
// "limits.timeoutMs"; after maxFaults of them it stops. Fields that the schema does not know are offences.
func Parse(raw []byte) (Manifest, error) {
	if len(raw) > maxBytes {
		return Manifest{}, api.Errorf(api.CodeValidationManifest, "%s: has %s, the limit is %s", bundle.ManifestFile, api.SizeText(int64(len(raw))), api.SizeText(maxBytes))
	}
	s, err := compiled()
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := manifestKind.decode(raw, s.manifest, &m); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// parseConfig parses the config of a publish request; nil and null are an empty one. It
// returns CodeInvalid with paths below "config" for an invalid one.
func parseConfig(raw json.RawMessage) (Config, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return Config{}, nil
	}
	s, err := compiled()
	if err != nil {
		return Config{}, err
	}
	var c Config
	if err := configKind.decode(raw, s.config, &c); err != nil {
		return Config{}, err
	}
	return c, c.validate()
}

// validate checks the rules that the schema cannot express.
func (c *Config) validate() error {
	size := 0
	for name, value := range c.Env {
		size += len(name) + len(value)
	}
	if size > api.MaxEnvBytes {
		return configError("config.env", "names and values together exceed 32 KiB")
	}
	// Browsers ignore "*" with credentials, and echoing every origin would expose the
	// visitor's session to any page.
	if c.CORS != nil && c.CORS.AllowCredentials && slices.Contains(c.CORS.AllowOrigins, "*") {
		return configError("config.cors.allow_origins", `"*" cannot stand with allow_credentials`)
	}
	for name, text := range map[string]json.RawMessage{"input_schema": c.InputSchema, "output_schema": c.OutputSchema} {
		if err := validateToolSchema("config."+name, text); err != nil {
			return err
		}
	}
	return validateAuthz(c.Authz)
}

// validateToolSchema returns an error for a schema of a tool that is too large, or none. Its errors have
// paths below path.
func validateToolSchema(path string, text json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	if len(text) > api.MaxToolSchemaBytes {
		return configError(path, "exceeds "+api.SizeText(api.MaxToolSchemaBytes))
	}
	_, err := schema.Compile(text)
	var coded *api.Error
	if !errors.As(err, &coded) {
		return err
	}
	for _, f := range coded.Fields {
		return configError(path+strings.TrimPrefix(f.Path, "schema"), f.Message)
	}
	return configError(path, coded.Message)
}

// Overrides returns those settings of a version of fn that the manifest in its files and the defaults do
// not explain: the config that publishes its files with the same settings.
func Overrides(fn api.Function, version api.VersionConfig, files map[string][]byte) (map[string]json.RawMessage, error) {
	plain, err := Resolve(fn, files, nil)
	if err != nil {
		return nil, err
	}
	now, err := Fields(version)
	if err != nil {
		return nil, err
	}
	before, err := Fields(plain)
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for _, name := range ConfigFields() {
		if value, ok := now[name]; ok && string(value) != string(before[name]) {
			out[name] = value
		}
	}
	return out, nil
}

// Fields returns the JSON of each field of a version's configuration.
func Fields(config api.VersionConfig) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	var out map[string]json.RawMessage
	return out, json.Unmarshal(raw, &out)
}

// validateAuthz returns an error for roles that no key can have: a list of only such roles,
// for example "billing" instead of "role:billing", would deny every caller.
func validateAuthz(lists *api.Authz) error {
	if lists == nil {
		return nil
	}
	for _, list := range []struct {
		name  string
		roles []string
	}{
		{"invoke_http_roles", lists.InvokeHTTPRoles},
		{"invoke_schedule_roles", lists.InvokeScheduleRoles},
		{"invoke_cadence_roles", lists.InvokeCadenceRoles},
	} {
		for i, role := range list.roles {
			if role != "*" && api.ValidateRole(role) != nil {
				return configError(fmt.Sprintf("config.authz.%s.%d", list.name, i), fmt.Sprintf("%q is neither *, nor admin, developer, operator, invoker, worker, viewer, nor role: and a name of your own", role))
			}
		}
	}
	return nil
}

// configError returns the CodeInvalid of one field of the config.
func configError(path, why string) error {
	return api.Errorf(api.CodeInvalid, "%s: %s", path, why).WithFields(api.FieldError{Path: path, Message: why})
}

// Resolve merges fn's record, the bundle's manifest and the config of the publish request,
// of which later ones override earlier ones field by field, and sets the defaults. The entry
// must be in the bundle; its default is function.js, else function.ts. Resolve returns
// CodeValidationManifest, CodeInvalid for the config, or CodeValidationBundle without an
// entry.
func Resolve(fn api.Function, files map[string][]byte, config json.RawMessage) (api.VersionConfig, error) {
	var m Manifest
	if raw, ok := files[bundle.ManifestFile]; ok {
		var err error
		m, err = Parse(raw)
		if err != nil {
			return api.VersionConfig{}, err
		}
	}
	c, err := parseConfig(config)
	if err != nil {
		return api.VersionConfig{}, err
	}
	entry, err := entryOf(fn, m, files)
	if err != nil {
		return api.VersionConfig{}, err
	}
	capabilities := m.Capabilities
	if c.Capabilities != nil {
		capabilities = *c.Capabilities
	}
	return api.VersionConfig{
		Entry:          entry,
		Handler:        first(m.Handler, fn.Handler, api.DefaultHandler),
		TimeoutMS:      first(c.TimeoutMS, m.Limits.TimeoutMS, api.DefaultTimeoutMS),
		CPUMS:          first(c.CPUMS, m.Limits.CPUMS, api.DefaultCPUMS),
		MemoryMB:       first(c.MemoryMB, m.Limits.MemoryMB, api.DefaultMemoryMB),
		MaxConcurrency: first(c.MaxConcurrency, m.Limits.MaxConcurrency, api.DefaultMaxConcurrency),
		Isolation:      first(c.Isolation, m.Isolation, api.IsolationInstance),
		Env:            c.Env,
		Capabilities:   capabilities,
		Authz:          c.Authz,
		CORS:           c.CORS,
		Retry:          c.Retry,
		MaxEventAgeMS:  c.MaxEventAgeMS,
		OnSuccess:      c.OnSuccess,
		OnFailure:      c.OnFailure,
		Record:         c.Record,
		Description:    c.Description,
		InputSchema:    c.InputSchema,
		OutputSchema:   c.OutputSchema,
	}, nil
}

// entryOf returns the file that a version starts from: the manifest's, else the function's,
// else function.js, else function.ts. A file that the manifest or the function names must
// exist; only function.js falls back.
func entryOf(fn api.Function, m Manifest, files map[string][]byte) (string, error) {
	if m.Entry != "" {
		if _, ok := files[m.Entry]; !ok {
			return "", api.Errorf(api.CodeValidationManifest, "entry %q, which %s or %s names, is not in the bundle", m.Entry, bundle.ManifestFile, SettingsFile).
				WithFields(api.FieldError{Path: "entry", Message: "names no file of the bundle"})
		}
		return m.Entry, nil
	}
	entry := first(fn.Entry, bundle.EntryJS)
	if _, ok := files[entry]; ok {
		return entry, nil
	}
	if _, ok := files[bundle.EntryTS]; ok && entry == bundle.EntryJS {
		return bundle.EntryTS, nil
	}
	why := "is not in the bundle"
	if entry == bundle.EntryJS {
		why = "is not in the bundle, nor is " + bundle.EntryTS + "; another file can be the entry of " + bundle.ManifestFile
	}
	return "", api.Errorf(api.CodeValidationBundle, "the entry %s %s", entry, why).
		WithFields(api.FieldError{Path: entry, Message: why})
}

// first returns the first of values that is not zero.
func first[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}
