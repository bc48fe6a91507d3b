package manifest

import (
	"bytes"
	_ "embed" // settings.schema.json
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/codesous/sous/api"
)

// SettingsFile is the name of the file with the settings of a function, beside its code. It is
// no part of the bundle: manifest.json describes what runs inside the sandbox.
const SettingsFile = "sous.json"

// Settings is the content of sous.json.
type Settings struct {
	Name    string   `json:"name"`
	Entry   string   `json:"entry"`
	Aliases []string `json:"aliases"`
	// Schedules invoke the function. They have no target: it is the function.
	Schedules []api.NewSchedule `json:"schedules"`
	// Triggers invoke the function, too.
	Triggers Triggers `json:"triggers"`
	// Config has the fields of a publish request's config that the file names. null returns
	// one to its default.
	Config map[string]json.RawMessage `json:"-"`
}

// Triggers are the queues whose jobs invoke the function.
type Triggers struct {
	Queues []QueueTrigger `json:"queues"`
}

// QueueTrigger is a queue trigger without its function.
type QueueTrigger struct {
	Queue       string `json:"queue"`
	BatchSize   int    `json:"batch_size,omitempty"`
	WindowMS    int64  `json:"window_ms,omitempty"`
	Concurrency int    `json:"concurrency,omitempty"`
	Enabled     *bool  `json:"enabled,omitempty"`
}

//go:embed settings.schema.json
var settingsSource []byte

const settingsURL = "https://github.com/codesous/sous/api/manifest/settings.schema.json"

// limitFields are the fields of limits, and of a config.
var limitFields = []string{"timeout_ms", "cpu_ms", "memory_mb", "max_concurrency"}

// ConfigFields returns the names of the fields of a publish request's config, in order.
func ConfigFields() []string {
	properties, _ := object(Schema)["$defs"].(map[string]any)["config"].(map[string]any)["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// object decodes a JSON object of this package.
func object(raw []byte) map[string]any {
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(fmt.Sprintf("manifest: %v", err)) // it is embedded, and a test reads it
	}
	return out
}

// SettingsSchema returns the JSON Schema (2020-12) of sous.json. It refers to no other
// document. With nullable, a setting of the config may be null; without, it is the schema of a
// file whose nulls were removed, which has clearer failures.
func SettingsSchema(nullable bool) []byte {
	schema, definitions := object(settingsSource), object(Schema)["$defs"].(map[string]any)
	properties := schema["properties"].(map[string]any)
	for name, property := range definitions["config"].(map[string]any)["properties"].(map[string]any) {
		if slices.Contains(limitFields, name) {
			continue
		}
		if nullable {
			property = map[string]any{"anyOf": []any{property, map[string]any{"type": "null"}}}
		}
		properties[name] = property
	}
	delete(definitions, "manifest")
	delete(definitions, "config")
	schema["$defs"] = definitions
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		panic(fmt.Sprintf("manifest: %v", err)) // it was JSON before
	}
	return out.Bytes()
}

var compiledSettings = sync.OnceValues(func() (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(SettingsSchema(false)))
	if err != nil {
		return nil, fmt.Errorf("settings schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(settingsURL, document); err != nil {
		return nil, fmt.Errorf("settings schema: %w", err)
	}
	return c.Compile(settingsURL)
})

// ParseSettings parses a sous.json. It returns CodeValidationManifest for one that does not
// match the schema, with a field for each offence.
//
//	{"name": "shop", "env": {"MODE": "test"}, "limits": {"timeout_ms": 500}, "cors": null}
//
// has the Config env, timeout_ms and cors, of which cors is null.
func ParseSettings(raw []byte) (Settings, error) {
	schema, err := compiledSettings()
	if err != nil {
		return Settings{}, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return Settings{}, settingsKind.decode(raw, schema, &fields)
	}
	var s Settings
	config := map[string]json.RawMessage{}
	given := maps.Clone(fields)
	for _, name := range ConfigFields() {
		value, ok := fields[name]
		if !ok || slices.Contains(limitFields, name) {
			continue
		}
		config[name] = value
		if string(value) == "null" {
			delete(given, name)
		}
	}
	text, err := json.Marshal(given)
	if err != nil {
		return Settings{}, fmt.Errorf("%s: %w", SettingsFile, err)
	}
	if err := settingsKind.decode(text, schema, &s); err != nil {
		return Settings{}, err
	}
	limits := map[string]json.RawMessage{}
	if raw, ok := fields["limits"]; ok {
		if err := json.Unmarshal(raw, &limits); err != nil {
			return Settings{}, fmt.Errorf("%s: limits: %w", SettingsFile, err) // the schema has admitted an object
		}
	}
	maps.Copy(config, limits)
	s.Config = config
	return s, nil
}
