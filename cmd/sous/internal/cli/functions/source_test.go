package functions

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
)

// folder makes a folder of files by slash-separated path.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatalf("os.MkdirAll: %v", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	return root
}

func TestIgnoredFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"function.js": "x", "lib/a.js": "x", "lib/a.test.js": "x", "keep.log": "x", "b.log": "x", "docs/x/readme.md": "x",
		"lib/docs/y.js": "x", "build/out.js": "x", "lib/build/out.js": "x", ".git/HEAD": "x", "lib/.git": "x",
		"node_modules/a/index.js": "x", "lib/node_modules/a/index.js": "x", ".sous/store.snapshot": "x", "UPPER.LOG": "x", "#hash.js": "x",
	}
	tests := map[string]struct {
		ignore string
		want   []string
	}{
		"nothing said":             {"", []string{"#hash.js", "UPPER.LOG", "b.log", "build/out.js", "docs/x/readme.md", "function.js", "keep.log", "lib/a.js", "lib/a.test.js", "lib/build/out.js", "lib/docs/y.js"}},
		"patterns":                 {"*.log\n!keep.log\n/docs\nbuild/\n*.test.*\n\\#hash.js\n# a remark\n\n", []string{"UPPER.LOG", "function.js", "keep.log", "lib/a.js", "lib/docs/y.js"}},
		"double star":              {"**/docs/**\r\nlib/build\r\n", []string{"#hash.js", "UPPER.LOG", "b.log", "build/out.js", "function.js", "keep.log", "lib/a.js", "lib/a.test.js"}},
		"nothing brings .git back": {"!.git\n!node_modules\n!.sous\n", []string{"#hash.js", "UPPER.LOG", "b.log", "build/out.js", "docs/x/readme.md", "function.js", "keep.log", "lib/a.js", "lib/a.test.js", "lib/build/out.js", "lib/docs/y.js"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := maps.Clone(files)
			if tt.ignore != "" {
				with[ignoreFile] = tt.ignore
			}
			s, err := openSource(folder(t, with))
			if err != nil {
				t.Fatalf("openSource: %v", err)
			}
			got, err := s.files()
			if err != nil {
				t.Fatalf("files: %v", err)
			}
			if diff := cmp.Diff(tt.want, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFolderTooLargeIsNotRead(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"function.js": "x"})
	// A sparse file of a terabyte: reading it would not end.
	f, err := os.Create(filepath.Join(root, "data.json"))
	if err != nil {
		t.Fatalf("os.Create: %v", err)
	}
	if err := f.Truncate(1 << 40); err != nil {
		t.Fatalf("Truncate: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	s, err := openSource(root)
	if err != nil {
		t.Fatalf("openSource: %v", err)
	}
	if _, err := s.files(); api.ErrorCode(err) != api.CodeBodyLimit {
		t.Errorf("got %v, want %s", err, api.CodeBodyLimit)
	}
}

func TestFolderOfTooManyFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{"function.js": "x"}
	for i := range api.MaxBundleFiles {
		files[string(bytes.Repeat([]byte{'a'}, 1+i%200))+"/"+string(rune('a'+i/200))+".js"] = ""
	}
	s, err := openSource(folder(t, files))
	if err != nil {
		t.Fatalf("openSource: %v", err)
	}
	if _, err := s.files(); api.ErrorCode(err) != api.CodeBodyLimit {
		t.Errorf("got %v, want %s", err, api.CodeBodyLimit)
	}
}

func TestFunctionNameFromFolder(t *testing.T) {
	t.Parallel()
	tests := map[string]string{"/tmp/Hello": "hello", "/tmp/web-hook_1/": "web-hook_1", "/tmp/1st": "", "/tmp/a b c": "", "/": ""}
	for root, want := range tests {
		got, err := (&sourceDir{root: root}).name()
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", root, got, err, want)
		}
	}
}
