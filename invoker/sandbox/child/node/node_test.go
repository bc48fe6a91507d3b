package node

import (
	"io/fs"
	"strings"
	"testing"
)

// TestProgramsCompile: each source is of the language that goja runs without esbuild.
func TestProgramsCompile(t *testing.T) {
	t.Parallel()
	n := 0
	for _, pattern := range []string{"*.js", "*/*.js"} {
		names, err := fs.Glob(sources, pattern)
		if err != nil {
			t.Fatalf("fs.Glob: %v", err)
		}
		for _, name := range names {
			n++
			if _, err := Program(strings.TrimSuffix(name, ".js")); err != nil {
				t.Errorf("Program(%s): got %v, want no error", name, err)
			}
		}
	}
	if n < 50 {
		t.Errorf("compiled %d programs, want at least 50", n)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"fs": "fs", "node:fs": "fs", "fs/promises": "fs/promises", "node:util/types": "util/types",
		"node:test": "test", "test": "", "node:nothing": "", "lodash": "", "": "", "node:": "",
		"internal/errors": "", "node:internal/errors": "", "_stream_readable": "stream/readable", "_http_client": "http",
	} {
		if got, ok := Resolve(name); got != want || ok != (want != "") {
			t.Errorf("Resolve(%q): got %q, %v, want %q", name, got, ok, want)
		}
	}
}
