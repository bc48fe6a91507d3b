package house

import (
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/codesous/sous/"

// layer orders the top-level folders: a package imports only packages of its own
// folder and of folders in a lower layer. docs/architecture.md shows the same order.
var layer = map[string]int{
	"api": 0, "docs": 0, "lua": 0, "metrics": 0, "deploy": 0, "tools": 0,
	"storage": 1, "tracing": 1,
	"queue":   2,
	"invoker": 3, "scheduler": 3,
	"controlplane": 4, "cadenceworker": 4,
	"cmd": 5, "examples": 5, "sdk": 5,
}

// forbidden lists imports that the layers allow and the design does not. A folder
// stands for itself and the folders below it.
var forbidden = []struct {
	from, to string
	except   []string
	reason   string
}{
	{"storage", "storage/embedded", []string{"storage/storagetest"}, "the store is told how to dial; only the process knows the embedded server"},
	{"invoker/sandbox", "storage", nil, "a sandbox runs tenants' code and has no access to a store"},
	{"invoker/sandbox/child", "invoker/sandbox", []string{"invoker/sandbox/wire", "invoker/sandbox/nursery", "invoker/sandbox/child/dataurl", "invoker/sandbox/child/encoding", "invoker/sandbox/child/inflate", "invoker/sandbox/child/intl", "invoker/sandbox/child/node", "invoker/sandbox/child/regex", "invoker/sandbox/child/urlpattern", "invoker/sandbox/child/wasm", "invoker/sandbox/child/webcrypto"}, "the child shares only the protocol with its parent"},
	{"invoker/sandbox", "invoker/hostcall", nil, "host calls run in the parent"},
	{"invoker/hostcall", "invoker/vault", nil, "host calls receive the secrets of one run, not the vault"},
	{"controlplane/rest", "controlplane/docsite", nil, "the kernel does not know its endpoints"},
	{"controlplane/rest", "controlplane/functions", nil, "the kernel does not know its endpoints"},
	{"controlplane/rest", "controlplane/jobs", nil, "the kernel does not know its endpoints"},
	{"controlplane/rest", "controlplane/documents", nil, "the kernel does not know its endpoints"},
	{"controlplane/rest", "controlplane/tenancy", nil, "the kernel does not know its endpoints"},
	{"controlplane/rest", "controlplane/triggers", nil, "the kernel does not know its endpoints"},
	{"controlplane/rest", "controlplane/web", nil, "the kernel does not know its endpoints"},
	{"controlplane/rest", "storage", nil, "the kernel speaks HTTP and reads no store"},
	{"cmd/sous/internal/server", "cmd/sous/internal/cli", nil, "the server has no commands"},
	{"cmd/sous/internal/cli/command", "cmd/sous/internal/server", nil, "what commands share does not start servers"},
	{"cadenceworker", "controlplane", nil, "workers have no HTTP interface"},
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	packages := map[string]bool{}
	for _, s := range sources(t) {
		if s.file == nil || s.isTest() || strings.Contains(s.path, "testdata/") {
			continue
		}
		from := s.folder()
		packages[from] = true
		for _, spec := range s.file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatalf("%s: import %s: %v", s.path, spec.Path.Value, err)
			}
			to, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			if reason := refuse(from, to); reason != "" {
				t.Errorf("%s: %s imports %s, want no such import: %s", s.path, from, to, reason)
			}
		}
	}
	if len(packages) < 40 {
		t.Errorf("examined %d packages, want at least 40", len(packages))
	}
}

// refuse returns why the package from may not import the package to, "" if it may.
func refuse(from, to string) string {
	top := func(path string) string { head, _, _ := strings.Cut(path, "/"); return head }
	above, known := layer[top(from)]
	if !known {
		return "the folder " + top(from) + " has no layer"
	}
	below, known := layer[top(to)]
	switch {
	case !known:
		return "the folder " + top(to) + " has no layer"
	case top(from) != top(to) && above <= below:
		return top(to) + " is in no lower layer"
	}
	for _, f := range forbidden {
		if within(from, f.from) && within(to, f.to) && !withinAny(from, f.except) && !withinAny(to, f.except) {
			return f.reason
		}
	}
	return ""
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to string
		refused  bool
	}{
		{"queue", "storage", false},
		{"storage", "queue", true},
		{"invoker", "scheduler", true},
		{"storage/documents", "storage", false},
		{"storage", "storage/embedded", true},
		{"storage/storagetest", "storage/embedded", false},
		{"invoker/sandbox/child", "invoker/sandbox/wire", false},
		{"invoker/sandbox/child", "invoker/sandbox", true},
		{"invoker/sandbox", "invoker/sandbox/wire", false},
		{"cmd/sous/internal/cli", "cmd/sous/internal/server", false},
		{"cmd/sous/internal/server", "cmd/sous/internal/cli/jobs", true},
		{"elsewhere", "api", true},
	} {
		if reason := refuse(tt.from, tt.to); (reason != "") != tt.refused {
			t.Errorf("refuse(%s, %s) = %q, want refused: %v", tt.from, tt.to, reason, tt.refused)
		}
	}
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func withinAny(path string, folders []string) bool {
	for _, f := range folders {
		if within(path, f) {
			return true
		}
	}
	return false
}
