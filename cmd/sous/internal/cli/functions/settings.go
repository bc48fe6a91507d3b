package functions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/manifest"
)

// settings returns the folder's sous.json, or empty settings if there is none.
func (s *sourceDir) settings() (manifest.Settings, error) {
	raw, err := os.ReadFile(filepath.Join(s.root, manifest.SettingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return manifest.Settings{}, nil
	}
	if err != nil {
		return manifest.Settings{}, err
	}
	return manifest.ParseSettings(raw)
}

// running is the version that an alias points at, or the latest one where the alias does not
// exist yet.
type running struct {
	record  api.Function
	version api.Version
	files   map[string][]byte
	// overrides has the settings that the version does not have from its manifest: those of
	// the config with which it was published.
	overrides map[string]json.RawMessage
}

// runningVersion returns the version that a deployment to alias replaces, nil for none.
func runningVersion(ctx context.Context, fn *client.Function, alias string) (*running, error) {
	detail, err := fn.Get(ctx)
	if api.ErrorCode(err) == api.CodeFunctionNotFound {
		return nil, nil //nolint:nilnil // documented: there is none
	}
	if err != nil {
		return nil, err
	}
	number := int64(0)
	if detail.LatestVersion != nil {
		number = *detail.LatestVersion
	}
	for _, a := range detail.Aliases {
		if a.Alias == alias {
			number = a.Version
		}
	}
	if number == 0 {
		return nil, nil //nolint:nilnil // documented: there is none
	}
	return versionOf(ctx, fn, detail.Function, number)
}

// versionOf returns the version of fn that has a number.
func versionOf(ctx context.Context, fn *client.Function, record api.Function, number int64) (*running, error) {
	version, err := fn.Version(ctx, number)
	if err != nil {
		return nil, err
	}
	tar, err := fn.Bundle(ctx, number)
	if err != nil {
		return nil, err
	}
	files, err := bundle.Unpack(bytes.NewReader(tar))
	if err != nil {
		return nil, fmt.Errorf("the bundle of version %d: %w", number, err)
	}
	r := &running{record: record, version: version, files: files}
	r.overrides, err = manifest.Overrides(record, version.Config, files)
	if err != nil {
		return nil, fmt.Errorf("the manifest of version %d: %w", version.Version, err)
	}
	return r, nil
}

// configOf returns the config of a publication: what the running version overrides, replaced
// by the fields that sous.json names, replaced by those of --config. A null removes a field.
// kept are the names of fields that only the running version has.
func configOf(now *running, settings manifest.Settings, flag json.RawMessage) (config json.RawMessage, kept []string, err error) {
	merged := map[string]json.RawMessage{}
	if now != nil {
		merged = maps.Clone(now.overrides)
	}
	var given map[string]json.RawMessage
	if len(flag) > 0 {
		if json.Unmarshal(flag, &given) != nil {
			return flag, nil, nil //nolint:nilerr // the server explains what a config must be
		}
	}
	for _, from := range []map[string]json.RawMessage{settings.Config, given} {
		for name, value := range from {
			if string(value) == "null" {
				delete(merged, name)
			} else {
				merged[name] = value
			}
		}
	}
	for _, name := range manifest.ConfigFields() {
		_, named := settings.Config[name]
		_, flagged := given[name]
		if _, ok := merged[name]; ok && !named && !flagged {
			kept = append(kept, name)
		}
	}
	if len(merged) == 0 {
		return nil, kept, nil
	}
	config, err = json.Marshal(merged)
	return config, kept, err
}

// withEntry returns the files with the entry that sous.json names in their manifest.
func withEntry(files map[string][]byte, entry string) (map[string][]byte, error) {
	fields := map[string]json.RawMessage{}
	if raw, ok := files[bundle.ManifestFile]; ok && json.Unmarshal(raw, &fields) != nil {
		return files, nil //nolint:nilerr // the server explains what a manifest must be
	}
	var err error
	fields["entry"], err = json.Marshal(entry)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(files)
	out[bundle.ManifestFile] = raw
	return out, nil
}
