package main

import (
	"os/exec"
	"strings"
	"testing"
)

// floors of the house: a package imports only what stands below it. See
// docs/architecture.md.
var floors = map[string]int{
	"api": 0, "lua": 0, "metrics": 0, "storage": 1, "tracing": 1, "queue": 2, "invoker": 3, "scheduler": 3, "controlplane": 4, "cadenceworker": 4, "cmd": 5, "examples": 6,
}

// forbidden imports within one part, each with its reason.
var forbidden = []struct{ from, to, because string }{
	{"invoker/sandbox", "storage", "a sandbox runs tenants' code and knows no store"},
	{"invoker/sandbox/child", "invoker/sandbox", "the child shares nothing with its parent but the protocol"},
	{"scheduler", "invoker", "the scheduler repairs; it does not run"},
	{"cmd/sous/internal/server", "cmd/sous/internal/cli", "a server knows no commands"},
	{"cmd/sous/internal/cli/command", "cmd/sous/internal/server", "what commands share knows no server"},
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	const module = "github.com/codesous/sous/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	part := func(path string) string { head, _, _ := strings.Cut(path, "/"); return head }
	within := func(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }
	packages := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		from := strings.TrimPrefix(fields[0], module)
		packages++
		for _, imported := range fields[1:] {
			to, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			if part(from) != part(to) && floors[part(from)] <= floors[part(to)] {
				t.Errorf("%s imports %s, which stands no lower", from, to)
			}
			for _, f := range forbidden {
				allowed := to == "invoker/sandbox/wire" || to == "invoker/sandbox/nursery"
				if within(from, f.from) && within(to, f.to) && !allowed {
					t.Errorf("%s imports %s: %s", from, to, f.because)
				}
			}
		}
	}
	if packages < 15 {
		t.Errorf("only %d packages were looked at", packages)
	}
}
