package child

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// lower rewrites what goja lacks and esbuild does not know about, in a script that esbuild
// made: computed dynamic imports, regular expressions, and functions that call themselves.
// It is called once, when a bundle is compiled. The functions that the new text calls stand
// at the end of the script:
//
//	const word = /^\p{L}+$/u;           // const word = __cs_regexps(0);
//	const load = (name) => import(name) // const load = (name) => __cs_import(name)
func lower(script []byte, files map[string][]byte) ([]byte, []wire.Problem) {
	script, helpers := lowerImports(script)
	if bytes.Contains(script, []byte(constantHelper+"(")) {
		helpers += constantText
	}
	tree, err := parser.ParseFile(nil, scriptName, script, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return script, nil // parse reports it
	}
	var found finder
	found.walk(reflect.ValueOf(tree.Body), "")
	slices.SortFunc(found.expressions, func(a, b *ast.RegExpLiteral) int { return int(a.Idx - b.Idx) })
	if problem := checkLiterals(found.expressions, tree, script); problem != nil {
		return nil, []wire.Problem{*problem}
	}
	edits, helper := lowerExpressions(found.expressions, tree.File.Base(), script)
	helpers += helper
	deep, helper := guardRecursion(found.functions, tree.File.Base(), script)
	helpers += helper
	edits = append(edits, deep...)
	places := placesOf(script)
	edits = append(edits, restoreNames(found.nameless, &found.generators, tree.File.Base(), places)...)
	edits = append(edits, found.generators.edits(tree.File.Base(), script)...)
	edits = append(edits, restoreLexical(wrapped(tree), tree.File.Base(), places, files)...)
	namespaces, helper := sealNamespaces(script, places)
	helpers += helper
	edits = append(edits, namespaces...)
	edits = append(edits, replaceAsyncHelpers(script, &found.delegations, tree.File.Base())...)
	if len(edits) > 0 {
		script = applyEdits(script, edits)
	}
	if helpers == "" {
		return script, nil
	}
	at := bytes.LastIndex(script, []byte("return "+bindName+"})"))
	return slices.Insert(script, at, []byte(helpers)...), nil
}

// finder collects what lower rewrites in a syntax tree.
type finder struct {
	expressions []*ast.RegExpLiteral
	functions   []namedFunction
	open        []int // of functions, those that are visited
	delegations delegations
	generators  asyncGenerators
	nameless    []nameless
	class       string // whose element is visited
}

// namedFunction is a function and the name under which its body may call it.
type namedFunction struct {
	name string
	node any // *ast.FunctionLiteral or *ast.ArrowFunctionLiteral

	calls      []string // names that it may call
	dispatches bool     // it calls what an expression in brackets names
}

// walk visits a node of goja's syntax tree, which has no walker of its own. name is what
// the node is assigned to.
func (s *finder) walk(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() || v.Type() == reflect.TypeFor[*file.File]() {
			return
		}
		if v.Kind() == reflect.Pointer && !s.visit(v.Interface(), name) {
			return
		}
		s.walk(v.Elem(), name)
	case reflect.Slice:
		for i := range v.Len() {
			s.walk(v.Index(i), "")
		}
	case reflect.Struct:
		if p, ok := v.Interface().(ast.PropertyKeyed); ok {
			name = nameOf(p.Key)
		}
		for i := range v.NumField() {
			// DeclarationList repeats nodes of the body.
			if f := v.Type().Field(i); f.IsExported() && f.Name != "DeclarationList" {
				s.walk(v.Field(i), name)
			}
		}
	}
}

// visit records a node, and visits its children itself where these have a name.
func (s *finder) visit(node any, name string) (descend bool) {
	switch n := node.(type) {
	case *ast.RegExpLiteral:
		s.expressions = append(s.expressions, n)
		return false
	case *ast.FunctionLiteral:
		if n.Name != nil {
			name = n.Name.Name.String()
		}
		s.generators.visit(n, name)
		s.function(name, n, n.ParameterList, n.Body)
		return false
	case *ast.FunctionDeclaration:
		s.generators.note(n.Function, placeDeclaration)
	case *ast.ArrowFunctionLiteral:
		s.function(name, n, n.ParameterList, n.Body)
		return false
	case *ast.CallExpression:
		s.calls(n.Callee, n.ArgumentList)
		if len(s.open) > 0 {
			s.delegations.visit(n, s.functions[s.open[len(s.open)-1]].node)
		}
	case *ast.NewExpression:
		s.calls(n.Callee, n.ArgumentList)
	case *ast.TemplateLiteral:
		s.calls(n.Tag, nil)
	case *ast.ClassLiteral:
		if n.Name != nil {
			name = n.Name.Name.String()
		}
		s.walk(reflect.ValueOf(n.SuperClass), "")
		for _, element := range n.Body {
			s.class = name
			s.walk(reflect.ValueOf(element), "")
		}
		return false
	case *ast.MethodDefinition:
		class := s.class
		s.generators.note(n.Body, placeMethod)
		s.walk(reflect.ValueOf(n.Key), "")
		name = nameOf(n.Key)
		if name == "constructor" {
			name = class // new calls it by that name
		}
		s.walk(reflect.ValueOf(n.Body), name)
		return false
	default:
		return s.visitNamed(node)
	}
	return true
}

// visitNamed visits the children of a node that names a value.
func (s *finder) visitNamed(node any) (descend bool) {
	switch n := node.(type) {
	case *ast.Binding:
		s.walk(reflect.ValueOf(n.Target), "")
		s.walk(reflect.ValueOf(n.Initializer), nameOf(n.Target))
		s.assigned(n.Target, n.Initializer)
	case *ast.AssignExpression:
		s.walk(reflect.ValueOf(n.Left), "")
		s.walk(reflect.ValueOf(n.Right), nameOf(n.Left))
		s.assigned(n.Left, n.Right)
	case *ast.PropertyKeyed:
		if f, ok := n.Value.(*ast.FunctionLiteral); ok && n.Kind != ast.PropertyKindValue {
			s.generators.note(f, placeMethod)
		}
		s.walk(reflect.ValueOf(n.Key), "")
		s.walk(reflect.ValueOf(n.Value), nameOf(n.Key))
	case *ast.FieldDefinition:
		s.walk(reflect.ValueOf(n.Key), "")
		s.walk(reflect.ValueOf(n.Initializer), nameOf(n.Key))
	default:
		return true
	}
	return false
}

// function records a function and visits its parts.
func (s *finder) function(name string, node any, parameters *ast.ParameterList, body ast.Node) {
	s.open = append(s.open, len(s.functions))
	s.functions = append(s.functions, namedFunction{name: name, node: node})
	s.walk(reflect.ValueOf(parameters), "")
	s.walk(reflect.ValueOf(body), "")
	s.open = s.open[:len(s.open)-1]
}

// nameOf returns the name that an assignment's target or a property's key is.
func nameOf(node any) string {
	switch n := node.(type) {
	case *ast.Identifier:
		return n.Name.String()
	case *ast.StringLiteral:
		return n.Value.String()
	case *ast.PrivateIdentifier:
		return "#" + n.Name.String()
	case *ast.DotExpression:
		return n.Identifier.Name.String()
	}
	return ""
}

// The guard of functions that call themselves. It looks at the depth of calls at every
// 64th call of any of them, and at each one that is too deep.
const (
	guardText   = "--__cs_d||__cs_deep()"
	guardHelper = "var __cs_d=1;function __cs_deep(){__cs_d=1;if(__cs_depth()>%d)throw new RangeError(\"Maximum call stack size exceeded\");__cs_d=64}\n"
)

// implicit reports whether the language calls functions of that name where the name is not
// written.
func implicit(name string) bool {
	switch name {
	case "toString", "valueOf", "toJSON", "then", "get", "set", "has", "apply", "construct", "ownKeys", "next":
		return true
	}
	return false
}

// guardRecursion makes functions that call themselves, also through others, throw a
// RangeError before goja ends the script, which no script can catch.
func guardRecursion(functions []namedFunction, base int, script []byte) (edits []edit, helper string) {
	heads := cyclic(functions)
	for i, f := range functions {
		always := heads[i] || f.dispatches
		switch n := f.node.(type) {
		case *ast.FunctionLiteral:
			edits = append(edits, guardBlock(f.name, always, n.Body, base, script)...)
		case *ast.ArrowFunctionLiteral:
			switch body := n.Body.(type) {
			case *ast.BlockStatement:
				edits = append(edits, guardBlock(f.name, always, body, base, script)...)
			case *ast.ExpressionBody:
				if _, ok := body.Expression.(*ast.Identifier); ok {
					continue // calls nothing
				}
				edits = append(edits, guardExpression(f.name, always, body.Expression, base, script)...)
			}
		}
	}
	if len(edits) > 0 {
		helper = fmt.Sprintf(guardHelper, maxDepth)
	}
	return edits, helper
}

func guardBlock(name string, always bool, body *ast.BlockStatement, base int, script []byte) []edit {
	start, end := int(body.LeftBrace)-base, int(body.RightBrace)-base
	if start < 0 || end > len(script) || start >= end || script[start] != '{' || !always && !mentions(script[start:end], name) {
		return nil
	}
	return []edit{{start + 1, start + 1, guardText + ";"}}
}

// guardExpression guards the expression that an arrow function returns. Where its end is
// not plain to see it stays.
func guardExpression(name string, always bool, body ast.Expression, base int, script []byte) []edit {
	start, end := int(body.Idx0())-base, int(body.Idx1())-base
	if start < 2 || end > len(script) || start >= end || !always && !mentions(script[start:end], name) {
		return nil
	}
	for start > 2 && (script[start-1] == ' ' || script[start-1] == '(') {
		start--
	}
	if string(script[start-2:start]) != "=>" || !endsExpression(script[end:], " )\n") {
		return nil
	}
	return []edit{{start, start, "(" + guardText + ","}, {end, end, ")"}}
}

// mentions reports whether a function with that name may call itself: its text has the name
// as a word, or the language calls it where no name is written.
func mentions(text []byte, name string) bool {
	if name == "" || implicit(name) {
		return name != ""
	}
	return nextWord(text, name, 0) >= 0
}

// nextWord returns where a name stands next in a text as a word, -1 if nowhere from there on.
func nextWord(text []byte, name string, from int) int {
	for {
		i := bytes.Index(text[from:], []byte(name))
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(name)
		if (i == 0 || !wordByte(text[i-1])) && (end == len(text) || !wordByte(text[end])) {
			return i
		}
		from = end
	}
}

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
