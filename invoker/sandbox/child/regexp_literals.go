package child

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf16"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/evanw/esbuild/pkg/api"

	"github.com/codesous/sous/invoker/sandbox/child/regex"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// regexpHelper is the function of a script that makes the RegExp objects of its literals,
// by number.
const regexpHelper = "__cs_regexps"

// lowerExpressions returns the edits that replace all literals of a script by calls that
// make expressions of ours, and the function that they call. There are none where goja can
// run all literals and the script makes no other expressions as it runs.
func lowerExpressions(literals []*ast.RegExpLiteral, base int, script []byte) (edits []edit, helper string) {
	ours := bytes.Contains(script, []byte("RegExp"))
	for _, l := range literals {
		ours = ours || !plainExpression(l.Pattern, l.Flags) || !runsNatively(textOfLiteral(l))
	}
	if !ours || len(literals) == 0 {
		return nil, ""
	}
	var cases strings.Builder
	for i, l := range literals {
		start := int(l.Idx) - base
		edits = append(edits, edit{start, start + len(textOfLiteral(l)), fmt.Sprintf("%s(%d)", regexpHelper, i)})
		fmt.Fprintf(&cases, "case %d:return __cs_regexp(%s,%q);", i, quoteJS(l.Pattern), l.Flags)
	}
	return edits, fmt.Sprintf("function %s(n){switch(n){%s}}\n", regexpHelper, cases.String())
}

// textOfLiteral returns the text of a literal; goja's own reaches too far.
func textOfLiteral(l *ast.RegExpLiteral) string { return "/" + l.Pattern + "/" + l.Flags }

// checkLiterals returns the problem of a literal that is no regular expression.
func checkLiterals(literals []*ast.RegExpLiteral, tree *ast.Program, script []byte) *wire.Problem {
	for _, l := range literals {
		start := int(l.Idx) - tree.File.Base()
		problem := "Invalid regular expression flags"
		flags, ok := regex.ParseFlags(l.Flags)
		if ok {
			_, err := regex.Compile(utf16.Encode([]rune(l.Pattern)), flags)
			if err == nil && bytes.HasPrefix(script[start:], []byte(textOfLiteral(l))) {
				continue
			}
			problem = "the regular expression cannot be read"
			if err != nil {
				problem = err.Error()
			}
		}
		p := original(tree.File.Position(start), problem, script)
		return &p
	}
	return nil
}

// checkExpressions refuses a module whose literals are no regular expressions. esbuild
// leaves that to the engine, which does not see the literals that the bundle drops as unused.
func checkExpressions(file, source string, loader api.Loader) []api.Message {
	if loader == api.LoaderJSON || !strings.Contains(source, "/") {
		return nil
	}
	result := api.Transform(source, api.TransformOptions{
		Loader: loader, LogLevel: api.LogLevelSilent, Format: api.FormatCommonJS, Target: api.ESNext, Supported: unsupported(),
		Sourcemap: api.SourceMapInline, SourcesContent: api.SourcesContentExclude, Charset: api.CharsetUTF8,
	})
	if len(result.Errors) > 0 {
		return nil // the build reports them
	}
	script := bytes.TrimSpace(result.Code)
	tree, err := parser.ParseFile(nil, scriptName, script, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil
	}
	var found finder
	found.walk(reflect.ValueOf(tree.Body), "")
	problem := checkLiterals(found.expressions, tree, script)
	if problem == nil {
		return nil
	}
	lines := strings.Split(source, "\n")
	message := api.Message{Text: problem.Message}
	if problem.Line >= 1 && problem.Line <= len(lines) {
		message.Location = &api.Location{File: file, Namespace: namespace, Line: problem.Line, Column: problem.Column - 1, LineText: lines[problem.Line-1]}
	}
	return []api.Message{message}
}

// runsNatively reports whether goja accepts the literal at all.
func runsNatively(literal string) bool {
	_, err := goja.Compile("", literal, true)
	return err == nil
}

// quoteJS writes s as a string of JavaScript.
func quoteJS(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range utf16.Encode([]rune(s)) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteByte(byte(c))
		}
	}
	b.WriteByte('"')
	return b.String()
}
