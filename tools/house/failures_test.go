package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"testing"
)

// failing names the methods of testing.TB that print a failure, and whether they
// take a format.
var failing = map[string]bool{"Fatal": false, "Error": false, "Fatalf": true, "Errorf": true}

// TestFailuresExplain holds test failures to words: a failure that prints only a
// value does not say what was called or wanted.
func TestFailuresExplain(t *testing.T) {
	t.Parallel()
	calls := 0
	for _, s := range sources(t) {
		if s.file == nil {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			formats, ok := failing[method.Sel.Name]
			if !ok || !isTestingTB(method.X) {
				return true
			}
			calls++
			if !explains(call.Args, formats) {
				t.Errorf("%s: %s prints a bare value; want what was called, what came and what was expected", positions.Position(call.Pos()), method.Sel.Name)
			}
			return true
		})
	}
	if calls < 1000 {
		t.Errorf("examined %d failure calls, want at least 1000", calls)
	}
}

// isTestingTB reports whether x is named as testing.TB usually is: t, b, f, tb, or
// a field of one of these names.
func isTestingTB(x ast.Expr) bool {
	name := ""
	switch x := x.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	}
	switch name {
	case "t", "b", "f", "tb", "TB", "T":
		return true
	}
	return false
}

var verb = regexp.MustCompile(`%[-+# 0-9.\[\]*]*[a-zA-Z%]`)

// explains reports whether the arguments of a failure hold at least one word beside
// the values that they print.
func explains(args []ast.Expr, formats bool) bool {
	for i, a := range args {
		if formats && i > 0 {
			return false
		}
		found := false
		ast.Inspect(a, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			s, err := strconv.Unquote(text.Value)
			found = found || err == nil && word.MatchString(verb.ReplaceAllString(s, ""))
			return true
		})
		if found {
			return true
		}
	}
	return false
}

var word = regexp.MustCompile(`[A-Za-z]{2,}`)
