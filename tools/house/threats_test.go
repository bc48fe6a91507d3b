package house

import (
	"go/ast"
	"regexp"
	"testing"
)

// testName finds the tests that a page names.
var testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")

// TestThreatsNameTests requires that each test which the threat model names exists: a row of
// docs/security.md whose test was renamed or removed promises what nothing shows.
func TestThreatsNameTests(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	for _, s := range sources(t) {
		if s.file == nil || !s.isTest() {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = true
			}
		}
	}
	named := 0
	for _, s := range sources(t) {
		if s.path != "docs/security.md" {
			continue
		}
		for _, found := range testName.FindAllSubmatch(s.text, -1) {
			named++
			if !tests[string(found[1])] {
				t.Errorf("%s names %s, want the name of a test", s.path, found[1])
			}
		}
	}
	if named < 30 {
		t.Errorf("docs/security.md names %d tests, want at least 30", named)
	}
}
