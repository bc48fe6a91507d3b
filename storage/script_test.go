package storage_test

import (
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/lua"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// luaFiles returns the files of package lua that match pattern, as they are written.
func luaFiles(t *testing.T, pattern string) map[string]string {
	t.Helper()
	names, err := fs.Glob(lua.FS, pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("Glob(%s) = %v, %v, want files", pattern, names, err)
	}
	sources := map[string]string{}
	for _, name := range names {
		source, err := fs.ReadFile(lua.FS, name)
		if err != nil {
			t.Fatalf("ReadFile(%s): %v", name, err)
		}
		sources[name] = string(source)
	}
	return sources
}

// TestScriptsKeepTheRules reads the scripts for what docs/storage.md forbids.
func TestScriptsKeepTheRules(t *testing.T) {
	t.Parallel()
	forbidden := regexp.MustCompile(`cjson\.encode|math\.random|'TIME'|os\.|'(SCAN|KEYS|SMEMBERS|HGETALL|RANDOMKEY|EVAL|BLPOP|WAIT)'|redis\.call\([^'.]`)
	scripts := luaFiles(t, "*.lua")
	files := luaFiles(t, "include/*.lua")
	maps.Copy(files, scripts)
	for name, source := range files {
		if lines := strings.Count(source, "\n"); lines > 100 {
			t.Errorf("%s has %d lines, want at most 100", name, lines)
		}
		for line := range strings.Lines(source) {
			if code, _, _ := strings.Cut(line, "--"); forbidden.MatchString(code) {
				t.Errorf("%s: got line %q, want none that is forbidden", name, strings.TrimSpace(line))
			}
		}
	}
	for name, source := range scripts {
		for _, part := range []string{"-- KEYS[1]", "-- ARGV[1]", "-- Reply:"} {
			if !strings.Contains(source, part) {
				t.Errorf("%s: got a header without %q, want it", name, part)
			}
		}
	}
}

// TestNoScriptIsUnused finds scripts that no package runs. A package that runs one names
// it in a constant.
func TestNoScriptIsUnused(t *testing.T) {
	t.Parallel()
	declared := regexp.MustCompile(`(\w+) += "(\w+\.lua)"`)
	type constant struct{ dir, name string }
	constants := map[string]constant{}
	used := map[constant]int{} // of a word in a folder; of exported words also in ""
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			constants[m[2]] = constant{dir, m[1]}
		}
		for word := range strings.FieldsFuncSeq(string(source), func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			used[constant{dir, word}]++
			used[constant{"", word}]++
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read the sources of the module: %v", err)
	}
	for name := range luaFiles(t, "*.lua") {
		c, ok := constants[name]
		if !ok {
			t.Errorf("got no constant with the name of %s, want one in the package that runs it", name)
			continue
		}
		if ast.IsExported(c.name) {
			c.dir = ""
		}
		if used[c] < 2 {
			t.Errorf("constant %s: got %d mentions of script %s, want at least 2: a declaration and a use", c.name, used[c], name)
		}
	}
}

// TestStrictKeysCatches shows that the prelude under which the suite runs would
// find what it looks for.
func TestStrictKeysCatches(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("redis.ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	tests := map[string]struct{ script, want string }{
		"declared":        {`return redis.call('SET', KEYS[1], 'x')`, ""},
		"undeclared":      {`return redis.call('SET', KEYS[1] .. ':more', 'x')`, "undeclared key"},
		"undeclared, 2nd": {`return redis.call('DEL', KEYS[1], 'other')`, "undeclared key"},
		"lower case":      {`return redis.call('get', 'other')`, "undeclared key"},
		"by pcall":        {`return redis.pcall('GET', 'other')`, "undeclared key"},
		"unknown command": {`return redis.call('SORT', KEYS[1])`, "are not known"},
	}
	for name, tt := range tests {
		err := client.Eval(t.Context(), storagetest.StrictKeys()+tt.script, []string{"k"}).Err()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: Eval: got error %v, want one with %q, or none if that is empty", name, err, tt.want)
		}
	}
}

// TestScriptsOutliveTheServersCache: a server that forgot a script gets its text.
func TestScriptsOutliveTheServersCache(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	f := newFixture(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("redis.ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	for range 2 {
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatalf("client.ScriptFlush: %v", err)
		}
		a := f.running()
		if created, _, err := f.activations.Start(t.Context(), a); err != nil || !created {
			t.Fatalf("Start: got created %v and error %v, want true", created, err)
		}
		if won, _, err := f.activations.Finish(t.Context(), succeeded(a, f.NowMS(), "1")); err != nil || !won {
			t.Fatalf("Finish: got won %v and error %v, want true", won, err)
		}
	}
}
