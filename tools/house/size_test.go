package house

import (
	"bytes"
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

const (
	maxPackageLines  = 4000 // comments and empty lines included
	maxExportedNames = 120  // at package level; methods and fields do not count
)

// Packages that may be larger. The sandbox child is one program that shares the
// interpreter's state.
var (
	mayHaveMoreLines = map[string]bool{"invoker/sandbox/child": true}
	mayHaveMoreNames = map[string]bool{"api": true}
)

func TestPackagesStaySmall(t *testing.T) {
	t.Parallel()
	lines, names := map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		if s.file == nil || s.isTest() || strings.Contains(s.path, "testdata/") {
			continue
		}
		lines[s.folder()] += bytes.Count(s.text, []byte("\n"))
		names[s.folder()] += exportedNames(s.file)
	}
	if len(lines) < 30 {
		t.Errorf("examined %d packages, want at least 30", len(lines))
	}
	for folder, n := range lines {
		if n > maxPackageLines && !mayHaveMoreLines[folder] {
			t.Errorf("package %s: got %d lines of production code, want at most %d", folder, n, maxPackageLines)
		}
		if n := names[folder]; n > maxExportedNames && !mayHaveMoreNames[folder] {
			t.Errorf("package %s: got %d exported names, want at most %d", folder, n, maxExportedNames)
		}
	}
}

// exportedNames counts the exported package-level declarations of f.
func exportedNames(f *ast.File) int {
	n := 0
	count := func(id *ast.Ident) {
		if id.IsExported() {
			n++
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				count(d.Name)
			}
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					count(spec.Name)
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						count(id)
					}
				}
			}
		}
	}
	return n
}
