package child

import (
	"bytes"

	"github.com/dop251/goja/ast"
)

// asyncHelpers is the global object with the functions of additions/asyncfrom.js.
const asyncHelpers = "__cs_async"

// delegations are the calls of esbuild's function for yield*. esbuild calls it in all
// generators where it lowers asynchronous ones.
type delegations struct {
	asynchronous map[any]bool      // functions that are the bodies of asynchronous generators
	synchronous  []*ast.Identifier // the callees in other generators
}

// visit records a call in a function.
func (d *delegations) visit(call *ast.CallExpression, function any) {
	callee, ok := call.Callee.(*ast.Identifier)
	if !ok {
		return
	}
	switch callee.Name {
	case "__asyncGenerator":
		if d.asynchronous == nil {
			d.asynchronous = map[any]bool{}
		}
		if n := len(call.ArgumentList); n > 0 {
			d.asynchronous[call.ArgumentList[n-1]] = true
		}
	case "__yieldStar":
		if !d.asynchronous[function] {
			d.synchronous = append(d.synchronous, callee)
		}
	}
}

// replaceAsyncHelpers replaces esbuild's functions by ours for yield* in
// asynchronous generators and for await. A script with helpers of another bundler's run
// keeps these, which belong together. Other generators keep esbuild's function: goja needs
// minutes to unwind 10,000 of them that delegate to each other without it.
func replaceAsyncHelpers(script []byte, d *delegations, base int) (edits []edit) {
	insert := func(definition, text string) bool {
		if bytes.Count(script, []byte("\n"+definition)) != 1 {
			return false
		}
		at := bytes.Index(script, []byte("\n"+definition)) + 1 + len(definition)
		edits = append(edits, edit{at, at, text})
		return true
	}
	insert("var __forAwait = ", asyncHelpers+".forAwait, __cs_forAwait = ")
	if bytes.Count(script, []byte("function(promise, isYieldStar)")) != 1 || !bytes.Contains(script, []byte("\nvar __await = function(promise, isYieldStar)")) ||
		!insert("var __yieldStar = ", asyncHelpers+".yieldStar(__await), __cs_yieldStar = ") {
		return edits
	}
	for _, callee := range d.synchronous {
		at := int(callee.Idx0()) - base
		edits = append(edits, edit{at, at + len("__yieldStar"), "__cs_yieldStar"})
	}
	return edits
}
