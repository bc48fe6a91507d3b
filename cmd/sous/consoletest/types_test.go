package consoletest

import (
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

var update = flag.Bool("update", false, "write the types of the API")

// node runs a program of Node.js in the folder of the console.
func node(t *testing.T, arguments ...string) {
	t.Helper()
	archive(t) // installs the packages
	cmd := exec.CommandContext(t.Context(), "node", arguments...)
	cmd.Dir = filepath.Join(root, "console")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("node %v: got %v, want success\n%s", arguments, err, out)
	}
}

// The types of the console are those of the server's document. -update writes them.
func TestTypesAreCurrent(t *testing.T) {
	t.Parallel()
	server := startDev(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/openapi.json", nil)
	if err != nil {
		t.Fatalf("NewRequestWithContext: %v", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("ReadAll: %v", err)
	}
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
	document["paths"] = map[string]any{} // the console uses the schemas only
	raw, err = json.Marshal(document)
	if err != nil {
		t.Fatalf("Marshal: %v", err)
	}
	dir := t.TempDir()
	from, to := filepath.Join(dir, "openapi.json"), filepath.Join(dir, "api.gen.ts")
	if err := os.WriteFile(from, raw, 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
	node(t, "node_modules/openapi-typescript/bin/cli.js", from, "--alphabetize", "--output", to)
	fresh, err := os.ReadFile(to)
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	kept := filepath.Join(root, "console/src/api.gen.ts")
	if *update {
		if err := os.WriteFile(kept, fresh, 0o644); err != nil {
			t.Fatalf("WriteFile: %v", err)
		}
	}
	current, err := os.ReadFile(kept)
	if err != nil || string(current) != string(fresh) {
		t.Errorf("console/src/api.gen.ts: got error %v or other types, want those of the server: go test ./cmd/sous/consoletest -run TestTypesAreCurrent -update writes them", err)
	}
}

// TestUnits runs the tests of the console that need no browser.
func TestUnits(t *testing.T) {
	t.Parallel()
	out, err := filepath.Abs(filepath.Join(t.TempDir(), "unit.mjs"))
	if err != nil {
		t.Fatalf("Abs: %v", err)
	}
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{filepath.Join(root, "console/test/unit.ts")}, Outfile: out, Write: true,
		Bundle: true, Format: api.FormatESModule, Platform: api.PlatformNode, LogLevel: api.LogLevelSilent,
	})
	if len(result.Errors) > 0 {
		t.Fatalf("Build: got %v, want success", result.Errors)
	}
	node(t, "--test", out)
}
