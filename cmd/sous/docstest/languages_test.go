package docstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/knadh/koanf/parsers/yaml"
)

// languages maps the language of a fence to the check of its code, nil for none. Commands
// are checked by TestPages, which runs them.
var languages = map[string]func(code string) error{
	"sh":     nil,
	"text":   nil, // output and diagrams
	"http":   nil,
	"ini":    nil,
	"promql": nil,
	"python": nil, // the tests of sdk run it
	"js":     compiled(api.LoaderJS),
	"ts":     compiled(api.LoaderTS),
	"jsx":    compiled(api.LoaderJSX),
	"tsx":    compiled(api.LoaderTSX),
	"json":   func(code string) error { return json.Unmarshal([]byte(code), new(any)) },
	"yaml": func(code string) error {
		_, err := yaml.Parser().Unmarshal([]byte(code))
		return err
	},
	"go": goCode,
}

// TestLanguages checks every code block of the documentation by its language.
func TestLanguages(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			check, known := languages[b.language]
			if !known {
				t.Errorf("%s:%d: language %q, want one of those in languages_test.go", p.name, b.line, b.language)
				continue
			}
			if check == nil {
				continue
			}
			if err := check(b.code); err != nil {
				t.Errorf("%s:%d: got %v, want valid %s", p.name, b.line, err, b.language)
			}
		}
	}
}

// compiled compiles code as the bundler of sous does.
func compiled(loader api.Loader) func(string) error {
	return func(code string) error {
		result := api.Transform(code, api.TransformOptions{Loader: loader, Target: api.ES2022, Format: api.FormatESModule})
		for _, m := range result.Errors {
			return fmt.Errorf("line %d: %s", m.Location.Line, m.Text)
		}
		return nil
	}
}

// goCode parses a file, declarations or statements.
func goCode(code string) error {
	var all []error
	for _, form := range []string{"%s", "package p\n%s", "package p\nfunc _() {\n%s\n}"} {
		_, err := parser.ParseFile(token.NewFileSet(), "", fmt.Sprintf(form, code), parser.SkipObjectResolution)
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

func TestLanguageChecks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		language, code string
		valid          bool
	}{
		{"js", "const x = await f();", true},
		{"js", "const x: number = 1;", false},
		{"ts", "const x: number = 1;", true},
		{"json", `{"a": 1}`, true},
		{"json", `{"a": …}`, false},
		{"yaml", "a: [b, c]", true},
		{"yaml", "a: [b", false},
		{"go", "x := f()", true},
		{"go", "func f() {}", true},
		{"go", "func {", false},
	} {
		if err := languages[tt.language](tt.code); (err == nil) != tt.valid {
			t.Errorf("check of %s %q = %v, want valid: %v", tt.language, tt.code, err, tt.valid)
		}
	}
}
