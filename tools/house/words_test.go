package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// A phrase of the project's old dialect, and what to write in its place.
type phrase struct {
	pattern *regexp.Regexp
	instead string
}

// dialect lists the phrases that made readers read a sentence twice. CONTRIBUTING.md
// explains how the project writes.
var dialect = []phrase{
	{regexp.MustCompile(`(?i)\bgives\b`), `"returns", "sets", "provides"`},
	{regexp.MustCompile(`(?i)\b(says|tells) whether\b`), `"reports whether"`},
	{regexp.MustCompile(`(?i)\bwhoever\b`), "the caller, the worker, the replica"},
	{regexp.MustCompile(`(?i)\bnobody\b`), `"no caller", "no worker", "no client"`},
	{regexp.MustCompile(`(?i)\bwhat is\b`), "the noun that is meant"},
	{regexp.MustCompile(`(?i)\bas many as (it|they) may\b`), "the limit and its value"},
	{regexp.MustCompile(`(?i)\bat once again\b`), `"immediately"`},
}

// allowed lists the texts in which a phrase of the dialect is a name that the project
// does not choose.
var allowed = []*regexp.Regexp{
	// The account of that name, which the sandbox's children run as on the host.
	regexp.MustCompile("user `?nobody\\b`?"),
}

func TestNoDialect(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if strings.HasPrefix(s.path, "tools/house/") {
			continue // quotes the phrases
		}
		if s.file == nil {
			for i, line := range strings.Split(string(s.text), "\n") {
				reportDialect(t, s.path, i+1, line)
			}
			continue
		}
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				reportDialectAt(t, s.path, c.Pos(), c.Text)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				reportDialectAt(t, s.path, text.Pos(), text.Value)
			}
			return true
		})
	}
}

func reportDialectAt(t *testing.T, path string, at token.Pos, text string) {
	t.Helper()
	first := positions.Position(at).Line
	for i, line := range strings.Split(text, "\n") {
		reportDialect(t, path, first+i, line)
	}
}

func reportDialect(t *testing.T, path string, line int, text string) {
	t.Helper()
	for _, a := range allowed {
		text = a.ReplaceAllString(text, "")
	}
	for _, p := range dialect {
		if found := p.pattern.FindString(text); found != "" {
			t.Errorf("%s:%d: got %q, want %s", path, line, found, p.instead)
		}
	}
}
