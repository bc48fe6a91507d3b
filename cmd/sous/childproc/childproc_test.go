package childproc_test

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
)

// TestChildKnowsNoServer: a child runs tenants' code, and everything that it
// links in it also initialises.
func TestChildKnowsNoServer(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("Output: %v", err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		for _, forbidden := range []string{"github.com/redis/", "github.com/spf13/", "github.com/danielgtaylor/", "go.uber.org/zap",
			"go.opentelemetry.io/", "github.com/codesous/sous/storage", "github.com/codesous/sous/controlplane"} {
			if strings.HasPrefix(pkg, forbidden) {
				t.Errorf("the child depends on %s, want only the runtime", pkg)
			}
		}
	}
}

// TestDispatchComesEarly: the order in which Go initialises packages follows
// from import paths and imports, so a new dependency can move the dispatch.
func TestDispatchComesEarly(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(sandboxtest.Build(t, "github.com/codesous/sous/cmd/sous"), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("Run: %v", err)
	}
	var order []string
	for line := range strings.Lines(trace.String()) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "init" {
			order = append(order, fields[1])
		}
	}
	dispatch := slices.Index(order, "github.com/codesous/sous/cmd/sous/childproc")
	if dispatch < 0 {
		t.Fatalf("init order %v has no childproc, want it early", order)
	}
	for _, pkg := range []string{"go.uber.org/zap", "github.com/codesous/sous/controlplane", "github.com/codesous/sous/invoker"} {
		if at := slices.Index(order, pkg); at >= 0 && at < dispatch {
			t.Errorf("%s is initialised before childproc, want it after", pkg)
		}
	}
}
