package functions

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/cmd/sous/internal/cli/bundler"
)

func TestUploadedFiles(t *testing.T) {
	t.Parallel()
	const imports = `import a from "a"; export default a;`
	for name, tt := range map[string]struct {
		files    map[string]string
		bundled  bool
		manifest string // of the upload
	}{
		"no package":          {map[string]string{"function.js": `export default 1;`}, false, ""},
		"a package":           {map[string]string{"function.js": imports}, true, `{"entry":"bundled.js","schema":"cs.function.script.v1"}`},
		"JSX":                 {map[string]string{"function.jsx": imports}, true, `{"entry":"bundled.js","schema":"cs.function.script.v1"}`},
		"an entry of its own": {map[string]string{"src/a.ts": imports, "manifest.json": `{"schema": "x", "entry": "src/a.ts", "limits": {"memoryMb": 64}}`}, true, `{"entry":"bundled.js","limits":{"memoryMb":64},"schema":"x"}`},
		"a handler":           {map[string]string{"function.ts": `import a from "a"; export const main = a;`, "manifest.json": `{"handler": "main"}`}, true, `{"entry":"bundled.js","handler":"main"}`},
		// The server refuses these.
		"no entry":                {map[string]string{"other.js": imports}, false, ""},
		"an entry outside":        {map[string]string{"function.js": imports, "manifest.json": `{"entry": "../function.js"}`}, false, `{"entry": "../function.js"}`},
		"an ignored entry":        {map[string]string{"function.js": imports, "a.json": "1", ignoreFile: "function.js"}, false, ""},
		"a manifest without JSON": {map[string]string{"function.js": imports, "manifest.json": `{`}, false, `{`},
		"a handler that is none":  {map[string]string{"function.js": imports, "manifest.json": `{"handler": "a b"}`}, false, `{"handler": "a b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.files["node_modules/a/index.js"] = `exports.a = 1;`
			s, err := openSource(folder(t, tt.files))
			if err != nil {
				t.Fatalf("openSource: %v", err)
			}
			files, b, err := s.upload(true, "")
			if err != nil {
				t.Fatalf("upload: %v", err)
			}
			if (b != nil) != tt.bundled {
				t.Errorf("upload: got the bundle %v, want one: %v", b, tt.bundled)
			}
			if got := string(files[bundle.ManifestFile]); got != tt.manifest {
				t.Errorf("manifest.json of the upload: got %s, want %s", got, tt.manifest)
			}
			if b != nil && len(files) != 3 {
				t.Errorf("upload: got %d files, want the module, the manifest and the sources", len(files))
			}
			if files, b, err := s.upload(false, ""); err != nil || b != nil || len(files) == 0 {
				t.Errorf("upload without bundling = %d files, %v, %v; want those of the folder", len(files), b, err)
			}
		})
	}
}

func TestBundleText(t *testing.T) {
	t.Parallel()
	b := &bundler.Bundle{Code: make([]byte, 3000), Bytes: 2000, OwnBytes: 70}
	for i := range maxShownPackages + 2 {
		b.Packages = append(b.Packages, bundler.Package{Name: fmt.Sprintf("p%d", i), Version: "1.0.0", Bytes: 1024 - int64(i)})
	}
	b.Packages[1].Version = ""
	got := bundleText("hello", b)
	want := "bundled hello: 2.0 KiB, and a source map of 1000 B\n  p0 1.0.0         1.0 KiB\n  p1                1023 B\n"
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("the first lines (-want +got):\n%s", diff)
	}
	want = "\n  2 more packages  2.0 KiB\n  own files           70 B"
	if diff := cmp.Diff(want, got[len(got)-len(want):]); diff != "" {
		t.Errorf("the last lines (-want +got):\n%s", diff)
	}
}

func TestErrorsNameTheOriginalPlace(t *testing.T) {
	t.Parallel()
	s, err := openSource(folder(t, map[string]string{
		"function.js":             "import a from \"a\";\n\nexport default () => a;",
		"node_modules/a/index.js": "exports.a = 1;",
	}))
	if err != nil {
		t.Fatalf("openSource: %v", err)
	}
	_, b, err := s.upload(true, "")
	if err != nil {
		t.Fatalf("upload: %v", err)
	}
	line := 0
	for l := 1; line == 0; l++ {
		if file, at, _, _ := b.Original(l, 1); file == "function.js" && at == 3 {
			line = l
		}
	}
	refused := api.Errorf(api.CodeValidationSource, "bundled.js:%d:1: no", line).WithFields(
		api.FieldError{Path: "bundled.js", Line: line, Column: 1, Message: "no"},
		api.FieldError{Path: "bundled.js", Line: 10000, Column: 1, Message: "no place"},
		api.FieldError{Path: "elsewhere.js", Line: 1, Message: "another file"},
	)
	got := original(b, s.root, fmt.Errorf("publish: %w", refused))
	var coded *api.Error
	if !errors.As(got, &coded) {
		t.Fatalf("original: got %v, want the error with its code", got)
	}
	if coded.Message != "function.js:3:1: no" {
		t.Errorf("message: got %q, want %q", coded.Message, "function.js:3:1: no")
	}
	want := []api.FieldError{
		{Path: "function.js", Line: 3, Column: 1, Message: "no", Excerpt: "export default () => a;\n^"},
		{Path: "bundled.js", Line: 10000, Column: 1, Message: "no place"},
		{Path: "elsewhere.js", Line: 1, Message: "another file"},
	}
	if diff := cmp.Diff(want, coded.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// A folder's imports, and a manifest that is a link, upload no file of another folder.
func TestUploadsStayInTheirRepository(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{
		"fn/function.js": `import s from "../x.json"; export default s;`, "x.json": `{"a": 1}`,
		"linked/function.js": `import s from "./y.txt"; export default s;`, "linked/y.txt": "y",
	})
	s, err := openSource(filepath.Join(root, "fn"))
	if err != nil {
		t.Fatalf("openSource: %v", err)
	}
	if _, b, err := s.upload(true, ""); api.ErrorCode(err) != api.CodeValidationSource {
		t.Errorf("upload: got %v, %v; want %s", b, err, api.CodeValidationSource)
	}
	s.outside = true
	if _, b, err := s.upload(true, ""); b == nil || err != nil {
		t.Errorf("upload with --allow-outside: got %v, %v; want a bundle", b, err)
	}
	if err := os.Symlink(filepath.Join(root, "x.json"), filepath.Join(root, "linked", bundle.ManifestFile)); err != nil {
		t.Fatalf("os.Symlink: %v", err)
	}
	s, err = openSource(filepath.Join(root, "linked"))
	if err != nil {
		t.Fatalf("openSource: %v", err)
	}
	if files, _, err := s.upload(true, ""); api.ErrorCode(err) != api.CodeValidationBundle {
		t.Errorf("upload of a linked manifest: got %d files, %v; want %s", len(files), err, api.CodeValidationBundle)
	}
}
