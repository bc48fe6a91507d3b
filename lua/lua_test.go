package lua

import (
	"io/fs"
	"path"
	"strings"
	"testing"
)

func TestSourcesKeepLineNumbers(t *testing.T) {
	t.Parallel()
	sources, err := Sources()
	if err != nil {
		t.Fatalf("Sources: %v", err)
	}
	if len(sources) == 0 {
		t.Fatal("Sources returned no scripts")
	}
	for name, source := range sources {
		file, err := fs.ReadFile(FS, name)
		if err != nil {
			t.Fatalf("ReadFile(%s): %v", name, err)
		}
		if got, want := strings.Count(source, "\n"), strings.Count(string(file), "\n"); got != want {
			t.Errorf("%s: Sources returned %d lines, want the file's %d", name, got, want)
		}
		if strings.Contains(source, includePrefix) {
			t.Errorf("%s: got an include line after expansion, want none", name)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	got, err := expand("-- Header.\n-- include integer.lua\nreturn integer(1)\n")
	want := "-- Header.\nlocal function integer(number) return string.format('%.0f', number) end\nreturn integer(1)\n"
	if err != nil || got != want {
		t.Errorf("expand = %q, %v, want %q", got, err, want)
	}
	if got, err := expand("-- include missing.lua\n"); err == nil {
		t.Errorf("expand of a missing file = %q, want an error", got)
	}
}

// TestIncludesAreUsed finds included files that no script includes.
func TestIncludesAreUsed(t *testing.T) {
	t.Parallel()
	scripts, err := fs.Glob(FS, "*.lua")
	if err != nil {
		t.Fatalf("Glob: %v", err)
	}
	used := map[string]bool{}
	for _, name := range scripts {
		source, err := fs.ReadFile(FS, name)
		if err != nil {
			t.Fatalf("ReadFile(%s): %v", name, err)
		}
		for line := range strings.Lines(string(source)) {
			if included, ok := strings.CutPrefix(line, includePrefix); ok {
				used[strings.TrimSpace(included)] = true
			}
		}
	}
	included, err := fs.Glob(FS, "include/*.lua")
	if err != nil {
		t.Fatalf("Glob: %v", err)
	}
	for _, name := range included {
		if !used[path.Base(name)] {
			t.Errorf("%s: got no script that includes it, want at least one", name)
		}
	}
}
