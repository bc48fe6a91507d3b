package functions

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/manifest"
)

func TestEachFolderIsATemplate(t *testing.T) {
	t.Parallel()
	entries, err := templates.ReadDir("template")
	if err != nil {
		t.Fatalf("ReadDir: %v", err)
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, e.Name())
		}
	}
	want := slices.Sorted(slices.Values(templateNames()))
	if diff := cmp.Diff(want, folders); diff != "" {
		t.Errorf("folders of templates (-want +got):\n%s", diff)
	}
}

// packageJSON is the part of a template's package.json that the test examines.
type packageJSON struct {
	Name            string            `json:"name"`
	Dependencies    map[string]string `json:"dependencies"`
	DevDependencies map[string]string `json:"devDependencies"`
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, kind := range templateNames() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			files, err := initialFiles("my-function", kind)
			if err != nil {
				t.Fatalf("initialFiles: %v", err)
			}
			if _, err := manifest.Parse([]byte(files[bundle.ManifestFile])); err != nil {
				t.Errorf("manifest.json: %v", err)
			}
			readme := files["README.md"]
			if n := strings.Count(readme, "\n"); !strings.HasPrefix(readme, "# my-function\n") || n > 15 || strings.Contains(readme, "{{") {
				t.Errorf("README.md: got %d lines, want at most 15 that begin with the name:\n%s", n, readme)
			}
			for _, name := range []string{"types.d.ts", ignoreFile} {
				if files[name] == "" {
					t.Errorf("got no %s, want one", name)
				}
			}
			var p packageJSON
			if kind != templateJS {
				p = parsePackage(t, files["package.json"])
			}
			// Stubs of the packages: the modules of the template import no other ones.
			for name := range p.Dependencies {
				files["node_modules/"+name+"/index.js"] = "module.exports = {};"
			}
			s, err := openSource(folder(t, files))
			if err != nil {
				t.Fatalf("openSource: %v", err)
			}
			uploaded, b, err := s.upload(true, "")
			if err != nil {
				t.Fatalf("upload: %v", err)
			}
			if (b != nil) != (len(p.Dependencies) > 0) {
				t.Errorf("got the bundle %v, want one if there are packages: %v", b, p.Dependencies)
			}
			for name := range uploaded {
				if strings.HasSuffix(name, ".d.ts") || strings.HasSuffix(name, ".md") {
					t.Errorf("got %s in the upload, want it ignored", name)
				}
			}
		})
	}
}

func parsePackage(t *testing.T, text string) packageJSON {
	t.Helper()
	var p packageJSON
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("package.json: %v\n%s", err, text)
	}
	if p.Name != "my-function" {
		t.Errorf("package.json: got the name %q, want my-function", p.Name)
	}
	pinned := regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	for _, versions := range []map[string]string{p.Dependencies, p.DevDependencies} {
		for name, version := range versions {
			if !pinned.MatchString(version) {
				t.Errorf("package.json: got version %q of %s, want a pinned one", version, name)
			}
		}
	}
	return p
}
