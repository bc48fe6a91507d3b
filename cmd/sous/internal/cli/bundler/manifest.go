package bundler

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// packagesFolder is the folder in which npm installs packages.
const packagesFolder = "node_modules"

// A manifest is the part of a package.json that matters here.
type manifest struct {
	Name            string            `json:"name"`
	Version         string            `json:"version"`
	Main            string            `json:"main"`
	Module          string            `json:"module"`
	Browser         json.RawMessage   `json:"browser"`
	Exports         json.RawMessage   `json:"exports"`
	Dependencies    map[string]string `json:"dependencies"`
	DevDependencies map[string]string `json:"devDependencies"`

	dir string
}

// readManifest returns the manifest of the package in dir, nil if dir has none that can be
// read. Fields of unexpected types are those of other tools: they count as missing.
func readManifest(dir string) *manifest {
	raw, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return nil
	}
	m := &manifest{dir: dir}
	var fields map[string]json.RawMessage
	if json.Unmarshal(bytes.TrimPrefix(raw, []byte("\ufeff")), &fields) != nil {
		return nil
	}
	for name, to := range map[string]any{
		"name": &m.Name, "version": &m.Version, "main": &m.Main, "module": &m.Module,
		"dependencies": &m.Dependencies, "devDependencies": &m.DevDependencies,
	} {
		if field, ok := fields[name]; ok {
			_ = json.Unmarshal(field, to) // see above
		}
	}
	m.Browser, m.Exports = fields["browser"], fields["exports"]
	return m
}

// manifests has the manifests that were read, by folder; nil for a folder without one.
type manifests map[string]*manifest

// around returns the manifest of the package that the folder dir belongs to, or nil.
func (ms manifests) around(dir string) *manifest {
	m, known := ms[dir]
	if known {
		return m
	}
	m = readManifest(dir)
	if parent := filepath.Dir(dir); m == nil && parent != dir && filepath.Base(dir) != packagesFolder {
		m = ms.around(parent)
	}
	ms[dir] = m
	return m
}

// replaces reports whether the "browser" map of m has an entry for the import of path.
func (m *manifest) replaces(path string) bool {
	var browser map[string]any
	if json.Unmarshal(m.Browser, &browser) != nil {
		return false
	}
	_, ok := browser[path]
	return ok
}

// leavesOut returns the file that an import of path, with or without an extension, means, and
// reports whether the "browser" map of m replaces it by nothing.
func (m *manifest) leavesOut(path string) (file string, ok bool) {
	var browser map[string]any
	if json.Unmarshal(m.Browser, &browser) != nil {
		return "", false
	}
	for _, suffix := range []string{"", ".js", "/index.js"} {
		file := path + filepath.FromSlash(suffix)
		rel, err := filepath.Rel(m.dir, file)
		if err != nil {
			return "", false
		}
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		rel = "./" + filepath.ToSlash(rel)
		for _, name := range []string{rel, strings.TrimSuffix(rel, ".js")} {
			if v, found := browser[name]; found {
				return file, v == false
			}
		}
		return "", false
	}
	return "", false
}

// isModule reports whether the file at path is the package's "module", and the package has
// a main beside it.
func (m *manifest) isModule(path string) bool {
	if m.Module == "" || len(m.Exports) > 0 || filepath.Clean(m.Main) == filepath.Clean(m.Module) {
		return false
	}
	module := filepath.Join(m.dir, filepath.FromSlash(m.Module))
	return path == module || strings.TrimSuffix(path, filepath.Ext(path)) == module
}

// mainPath returns the path of the package's "main".
func (m *manifest) mainPath() string {
	if m.Main == "" {
		return filepath.Join(m.dir, "index.js")
	}
	return filepath.Join(m.dir, filepath.FromSlash(m.Main))
}
