package deploy_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// listed is a package as go list prints it.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string // of imports whose path in the source is another: vendored ones
	Module     *struct{ Main bool }
}

// TestOtherArchitecture type-checks the server and the sandbox child for the architecture of a
// release that is not this machine's. TestRelease builds for that one only when it is asked to: a
// first build for another architecture takes as long as all other checks of a release together.
func TestOtherArchitecture(t *testing.T) {
	t.Parallel()
	arch := "arm64"
	if runtime.GOARCH == arch {
		arch = "amd64"
	}
	c := &checker{t: t, arch: arch, files: token.NewFileSet(), checked: map[string]*types.Package{"unsafe": types.Unsafe}}
	own := 0
	for _, p := range c.list("-tags", "sandboxchild", "./cmd/sous", "./invoker/sandbox/childmain") {
		if p.ImportPath == "unsafe" {
			continue
		}
		c.check(p)
		if p.Module != nil && p.Module.Main {
			own++
		}
	}
	if own < 50 {
		t.Errorf("%d packages of the program were checked, want more than 50", own)
	}
}

// checker type-checks packages for another architecture, each after those that it imports.
type checker struct {
	t       *testing.T
	arch    string
	files   *token.FileSet
	checked map[string]*types.Package
}

// list returns packages and all that they import, in the order of their dependencies.
func (c *checker) list(args ...string) []listed {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "go", append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module"}, args...)...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+c.arch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			c.t.Fatalf("the output of go list: %v", err)
		}
		packages = append(packages, p)
	}
}

// check type-checks p. The bodies of functions of other modules are not looked at.
func (c *checker) check(p listed) {
	c.t.Helper()
	own := p.Module != nil && p.Module.Main
	syntax := make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		file, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			c.t.Fatalf("parser.ParseFile: %v", err)
		}
		syntax[i] = file
	}
	config := types.Config{
		Importer:         imports{c, p.ImportMap},
		Sizes:            types.SizesFor("gc", c.arch),
		IgnoreFuncBodies: !own,
		FakeImportC:      true,
		Error: func(err error) {
			if own {
				c.t.Errorf("type check for %s: got error %v, want none", c.arch, err)
			}
		},
	}
	// Errors have gone to config.Error. Those of other modules are of no interest.
	c.checked[p.ImportPath], _ = config.Check(p.ImportPath, c.files, syntax, nil)
}

// imports returns packages that were checked before.
type imports struct {
	c   *checker
	own map[string]string
}

// Import implements types.Importer.
func (i imports) Import(path string) (*types.Package, error) {
	if other, ok := i.own[path]; ok {
		path = other
	}
	p := i.c.checked[path]
	if p == nil {
		return nil, errors.New("not listed before its importer: " + path)
	}
	return p, nil
}
