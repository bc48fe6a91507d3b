package storage_test

import (
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
				t.Errorf("%s has the forbidden line %q", name, strings.TrimSpace(line))
			}
		}
	}
	for name, source := range scripts {
		for _, part := range []string{"-- KEYS[1]", "-- ARGV[1]", "-- Reply:"} {
			if !strings.Contains(source, part) {
				t.Errorf("%s: its header lacks %q", name, part)
			}
		}
	}
}

// TestNoScriptIsUnused finds scripts that neither a repository nor the queue runs.
func TestNoScriptIsUnused(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, pattern := range []string{"*.go", "statestore/kvrocks/*.go", "secrets/*.go", "../queue/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(source)
		}
	}
	constants, words := map[string]string{}, map[string]int{}
	for _, m := range regexp.MustCompile(`(\w+) += "(\w+\.lua)"`).FindAllStringSubmatch(code.String(), -1) {
		constants[m[2]] = m[1]
	}
	for word := range strings.FieldsFuncSeq(code.String(), func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		words[word]++
	}
	for name := range luaFiles(t, "*.lua") {
		constant, ok := constants[name]
		if !ok {
			t.Errorf("%s has no name in storage/script.go", name)
			continue
		}
		if words[constant] < 2 {
			t.Errorf("%s is never run", name)
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
		t.Fatal(err)
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
			t.Errorf("%s: %v", name, err)
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
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	for range 2 {
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		a := f.running()
		if created, _, err := f.activations.Start(t.Context(), a); err != nil || !created {
			t.Fatal(created, err)
		}
		if won, _, err := f.activations.Finish(t.Context(), succeeded(a, f.NowMS(), "1"), 1); err != nil || !won {
			t.Fatal(won, err)
		}
	}
}
