package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestFailuresExplain requires that a test failure has words, and that a failure which
// prints a value states the expectation, with the word want. Only an error needs no
// expectation, after the name of its call and where a condition found that it is not nil.
func TestFailuresExplain(t *testing.T) {
	t.Parallel()
	calls := 0
	for _, s := range sources(t) {
		if s.file == nil {
			continue
		}
		for _, f := range failures(s.file) {
			calls++
			if reason := f.fault(); reason != "" {
				t.Errorf("%s: got a failure that %s, want the call, the result and the expectation: got %%v, want %%v", positions.Position(f.at), reason)
			}
		}
	}
	if calls < 1000 {
		t.Errorf("examined %d failure calls, want at least 1000", calls)
	}
}

// A failure is a call that reports the failure of a test.
type failure struct {
	at      token.Pos
	args    []ast.Expr
	formats bool // the first argument is a format
	found   bool // the nearest condition around the call found that something is not nil
}

// failing names the methods of testing.TB that print a failure, and whether they
// take a format.
var failing = map[string]bool{"Fatal": false, "Error": false, "Fatalf": true, "Errorf": true}

// failures returns the calls in a file that report a failure.
func failures(file *ast.File) []failure {
	var all []failure
	var around []ast.Node // the nodes from the file to the visited one
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			around = around[:len(around)-1]
			return true
		}
		around = append(around, n)
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if formats, ok := failing[method.Sel.Name]; ok && isTestingTB(method.X) {
			all = append(all, failure{call.Pos(), call.Args, formats, comparesWithNil(condition(around))})
		}
		return true
	})
	return all
}

// isTestingTB reports whether x is named as testing.TB, and what embeds it, usually
// is: t, b, f, x, tb, ts, or a field of one of these names.
func isTestingTB(x ast.Expr) bool {
	switch nameOf(x) {
	case "t", "b", "f", "x", "tb", "ts", "TB", "T":
		return true
	}
	return false
}

// nameOf returns the name of a variable or a field, "" of other expressions.
func nameOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// condition returns what the innermost if or case around the last node tests, within its
// function. It is empty if there is none.
func condition(around []ast.Node) []ast.Expr {
	for i := len(around) - 1; i >= 0; i-- {
		switch n := around[i].(type) {
		case *ast.IfStmt:
			return []ast.Expr{n.Cond}
		case *ast.CaseClause:
			return n.List
		case *ast.FuncDecl, *ast.FuncLit, *ast.CommClause:
			return nil
		}
	}
	return nil
}

// comparesWithNil reports whether a condition has a part of the form x != nil.
func comparesWithNil(condition []ast.Expr) bool {
	found := false
	for _, x := range condition {
		ast.Inspect(x, func(n ast.Node) bool {
			if c, ok := n.(*ast.BinaryExpr); ok && c.Op == token.NEQ && nameOf(c.Y) == "nil" {
				found = true
			}
			return true
		})
	}
	return found
}

var (
	verb   = regexp.MustCompile(`%[-+# 0-9.\[\]*]*[a-zA-Z]`)
	word   = regexp.MustCompile(`[A-Za-z]{2,}`)
	wanted = regexp.MustCompile(`\bwant(s|ed)?\b`)

	// reported ends what names the call whose error follows. Further lines are its output.
	reported   = regexp.MustCompile(`: %[vw](\n|$)`)
	errorNames = regexp.MustCompile(`^err\d?$|Err$`)
)

// fault returns the fault of a failure, "" for none.
func (f *failure) fault() string {
	text, values := f.text()
	text = strings.ReplaceAll(text, "%%", "")
	words := verb.ReplaceAllString(text, "")
	switch {
	case !word.MatchString(words):
		return "has no words"
	case values > 0 && !wanted.MatchString(words) && !f.reportsError(text):
		return "prints a value without the expectation"
	}
	return ""
}

// text returns the constant text of a failure, and how many values it prints beside it.
func (f *failure) text() (text string, values int) {
	for i, a := range f.args {
		if f.formats && i > 0 {
			return text, len(f.args) - 1
		}
		before := text
		ast.Inspect(a, func(n ast.Node) bool {
			if part, ok := n.(*ast.BasicLit); ok && part.Kind == token.STRING {
				s, err := strconv.Unquote(part.Value)
				if err == nil {
					text += s
				}
			}
			return true
		})
		if text == before && !f.formats {
			values++
		}
	}
	return text, values
}

// reportsError reports whether a failure is about an error that was found, and prints
// it after the name of its call.
func (f *failure) reportsError(text string) bool {
	if !f.found {
		return false
	}
	if !f.formats {
		return isError(f.args[len(f.args)-1])
	}
	at := reported.FindStringIndex(text)
	if at == nil {
		return false
	}
	n := 1 + len(verb.FindAllString(text[:at[0]], -1))
	return n < len(f.args) && isError(f.args[n])
}

// isError reports whether x is named as an error usually is, or calls a method Err.
func isError(x ast.Expr) bool {
	if call, ok := x.(*ast.CallExpr); ok {
		return nameOf(call.Fun) == "Err"
	}
	return errorNames.MatchString(nameOf(x))
}

func TestFailureFaults(t *testing.T) {
	t.Parallel()
	const none, bare, unexplained = "", "has no words", "prints a value without the expectation"
	for text, want := range map[string]string{
		`if n != 2 { t.Errorf("Count(%q) = %d, want 2", key, n) }`:                   none,
		`if diff != "" { t.Errorf("records differ (-want +got):\n%s", diff) }`:       none,
		`if n != 2 { t.Error("a character was cut in two") }`:                        none,
		`if err != nil { t.Fatalf("Get(%s): %v", key, err) }`:                        none,
		`if err := run(); err != nil { t.Fatalf("run: %v\n%s", err, output) }`:       none,
		`switch { case err != nil: c.t.Errorf("Get: %v", err) }`:                     none,
		`if err != nil { t.Fatal("Get:", err) }`:                                     none,
		`if s.Err() != nil { t.Fatalf("Scan: %v", s.Err()) }`:                        none,
		`if n < 90 { t.Errorf("got %d%%, want at least 90%%", n) }`:                  none,
		`if err != nil { t.Fatal(err) }`:                                             bare,
		`if got != want { t.Errorf("%v", got) }`:                                     bare,
		`if took > second { t.Errorf("took %v", took) }`:                             unexplained,
		`if o.Body != "1" { t.Errorf("outcome %d: %s", o.Outcome, o.Body) }`:         unexplained,
		`if !ok { t.Errorf("%s is not there", key) }`:                                unexplained,
		`if n != 150 { t.Error("counted", n) }`:                                      unexplained,
		`if err != nil || n != 1 { t.Errorf("logs %+v %v", lines, err) }`:            unexplained,
		`if err != nil || n != 1 { t.Errorf("first: %+v %v", first, err) }`:          unexplained,
		`if err != nil || n != 1 { t.Errorf("got %v", err) }`:                        unexplained,
		`if api.ErrorCode(err) != api.CodeInvalid { t.Errorf("Get: %v", err) }`:      unexplained,
		`switch api.ErrorCode(err) { default: t.Errorf("Put: %v", err) }`:            unexplained,
		`if err != nil { on(func(err error) { t.Errorf("OnError: %v", err) }) }`:     unexplained,
		`if diff != "" { t.Errorf("difference (-made +stored):\n%s", diff) }`:        unexplained,
		`if cause != nil { x.Errorf("ended: %v", cause) }`:                           unexplained,
		`if err == nil { ts.Fatalf("%s is too long for %s", path, "unwanted: %s") }`: unexplained,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p; func _() { "+text+" }", 0)
		if err != nil {
			t.Fatalf("ParseFile(%s): %v", text, err)
		}
		all := failures(file)
		if len(all) != 1 {
			t.Fatalf("failures(%s): got %d, want 1", text, len(all))
		}
		if got := all[0].fault(); got != want {
			t.Errorf("fault of %s = %q, want %q", text, got, want)
		}
	}
}
