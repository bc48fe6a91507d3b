package child

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/evanw/esbuild/pkg/api"

	"github.com/codesous/sous/invoker/sandbox/child/regex"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// regexpHelper is the function of a script that makes the RegExp objects of its literals,
// by number.
const regexpHelper = "__cs_regexps"

// lowerExpressions refuses literals that are no regular expressions. Where goja cannot run
// one of them, or the script makes others as it runs, it replaces all of them by calls that
// make expressions of ours. It is called once, when a bundle is compiled:
//
//	const word = /^\p{L}+$/u;      // const word = __cs_regexps(0);
//	…
//	function __cs_regexps(n){switch(n){case 0:return __cs_regexp("^\\p{L}+$","u")}}
//
// A call is as long as its literal where that can be, so that the source map holds.
func lowerExpressions(script []byte) ([]byte, []wire.Problem) {
	if bytes.IndexByte(script, '/') < 0 {
		return script, nil
	}
	tree, err := parser.ParseFile(nil, scriptName, script, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return script, nil // parse reports it
	}
	literals, problem := expressionsOf(tree, script)
	if problem != nil {
		return nil, []wire.Problem{*problem}
	}
	ours := bytes.Contains(script, []byte("RegExp"))
	for _, l := range literals {
		ours = ours || !plainExpression(l.Pattern, l.Flags) || !runsNatively("/"+l.Pattern+"/"+l.Flags)
	}
	var out []byte
	var cases strings.Builder
	done, count := 0, 0
	for _, l := range literals {
		start := int(l.Idx) - tree.File.Base()
		text := "/" + l.Pattern + "/" + l.Flags // goja's own Literal reaches too far
		if !ours || start < done {
			continue
		}
		if !bytes.HasPrefix(script[start:], []byte(text)) {
			return nil, []wire.Problem{original(tree.File.Position(start), "the regular expression cannot be read", script)}
		}
		out = append(out, script[done:start]...)
		call := fmt.Sprintf("%s(%d)", regexpHelper, count)
		out = append(out, call...)
		out = append(out, bytes.Repeat([]byte(" "), max(0, len(text)-len(call)))...)
		done = start + len(text)
		fmt.Fprintf(&cases, "case %d:return __cs_regexp(%s,%q);", count, quoteJS(l.Pattern), l.Flags)
		count++
	}
	if count == 0 {
		return script, nil
	}
	out = append(out, script[done:]...)
	at := bytes.LastIndex(out, []byte("return "+bindName+"})"))
	helper := fmt.Sprintf("function %s(n){switch(n){%s}}\n", regexpHelper, cases.String())
	return slices.Insert(out, at, []byte(helper)...), nil
}

// expressionsOf returns the literals of a script in their order, or the problem of one.
func expressionsOf(tree *ast.Program, script []byte) ([]*ast.RegExpLiteral, *wire.Problem) {
	var literals []*ast.RegExpLiteral
	collectExpressions(reflect.ValueOf(tree.Body), &literals)
	slices.SortFunc(literals, func(a, b *ast.RegExpLiteral) int { return int(a.Idx - b.Idx) })
	for _, l := range literals {
		problem := "Invalid regular expression flags"
		flags, ok := regex.ParseFlags(l.Flags)
		if ok {
			_, err := regex.Compile(utf16.Encode([]rune(l.Pattern)), flags)
			if err == nil {
				continue
			}
			problem = err.Error()
		}
		p := original(tree.File.Position(int(l.Idx)-tree.File.Base()), problem, script)
		return nil, &p
	}
	return literals, nil
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
	_, problem := expressionsOf(tree, script)
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

// collectExpressions walks a syntax tree of goja, which has no walker of its own.
func collectExpressions(v reflect.Value, to *[]*ast.RegExpLiteral) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		if l, ok := v.Interface().(*ast.RegExpLiteral); ok {
			if !slices.Contains((*to)[max(0, len(*to)-2):], l) {
				*to = append(*to, l)
			}
			return
		}
		if v.Type() == reflect.TypeFor[*file.File]() {
			return
		}
		collectExpressions(v.Elem(), to)
	case reflect.Slice:
		for i := range v.Len() {
			collectExpressions(v.Index(i), to)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "DeclarationList" && v.Type().Field(i).IsExported() {
				collectExpressions(v.Field(i), to)
			}
		}
	}
}
