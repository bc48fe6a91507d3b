package child

import "github.com/dop251/goja/ast"

// asyncGenerators are the functions that esbuild made of asynchronous generators: functions
// that only return a call of its helper. They receive the prototypes of asynchronous generators:
//
//	f = function () {…}        // f = __cs_async.generator(function () {…}, "f")
//	async function* g() {…}    // function g() {…}__cs_async.generator(g);
//
// Methods stay ordinary ones: they cannot be wrapped where they stand.
type asyncGenerators struct {
	found  []asyncGenerator
	places map[*ast.FunctionLiteral]functionPlace // of those that are no expressions
}

type asyncGenerator struct {
	node *ast.FunctionLiteral
	name string // what an expression without a name is assigned to
}

// functionPlace is the place of a function that is not an expression.
type functionPlace int

const (
	placeDeclaration functionPlace = iota + 1
	placeMethod
)

// note records the place of a function that is about to be visited.
func (g *asyncGenerators) note(f *ast.FunctionLiteral, place functionPlace) {
	if !isAsyncGenerator(f) {
		return
	}
	if g.places == nil {
		g.places = map[*ast.FunctionLiteral]functionPlace{}
	}
	g.places[f] = place
}

// visit records a function. name is its own, or that of what it is assigned to.
func (g *asyncGenerators) visit(f *ast.FunctionLiteral, name string) {
	if isAsyncGenerator(f) && g.places[f] != placeMethod {
		if f.Name != nil {
			name = ""
		}
		g.found = append(g.found, asyncGenerator{f, name})
	}
}

func isAsyncGenerator(f *ast.FunctionLiteral) bool {
	if f.Async || f.Generator || f.Body == nil || len(f.Body.List) != 1 {
		return false
	}
	result, ok := f.Body.List[0].(*ast.ReturnStatement)
	if !ok {
		return false
	}
	call, ok := result.Argument.(*ast.CallExpression)
	if !ok {
		return false
	}
	callee, ok := call.Callee.(*ast.Identifier)
	return ok && callee.Name == "__asyncGenerator"
}

// take returns the text to put before and behind a function expression that another edit
// encloses, both "" if it is no asynchronous generator. edits then leaves it alone.
func (g *asyncGenerators) take(f ast.Expression, name string) (before, after string) {
	for i, found := range g.found {
		if ast.Expression(found.node) == f {
			g.found = append(g.found[:i], g.found[i+1:]...)
			found.name = name
			return found.enclosing()
		}
	}
	return "", ""
}

func (g asyncGenerator) enclosing() (before, after string) {
	after = ")"
	if g.name != "" {
		after = "," + quoteJS(g.name) + ")"
	}
	return asyncHelpers + ".generator(", after
}

// edits returns the edits that set the prototypes of the functions.
func (g *asyncGenerators) edits(base int, script []byte) (edits []edit) {
	for _, f := range g.found {
		start, end := int(f.node.Idx0())-base, int(f.node.Idx1())-base
		if start < 0 || end > len(script) || start >= end {
			continue
		}
		if g.places[f.node] == placeDeclaration {
			if f.node.Name != nil {
				edits = append(edits, edit{end, end, asyncHelpers + ".generator(" + f.node.Name.Name.String() + ");"})
			}
			continue
		}
		before, after := f.enclosing()
		edits = append(edits, edit{start, start, before}, edit{end, end, after})
	}
	return edits
}
