package child

import (
	"bytes"
	"regexp"

	"github.com/dop251/goja/ast"
)

// exportLines are two lines of esbuild's function that makes the namespace object of a
// module.
const (
	exportLoop   = "  for (var name in all)\n"
	exportMember = "    __defProp(target, name, { get: all[name], enumerable: true });\n"
)

const namespaceText = `function __cs_namespace(target){Object.defineProperty(target,Symbol.toStringTag,{value:"Module"});Object.setPrototypeOf(target,null);Object.preventExtensions(target)}` + "\n"

// sealNamespaces makes the objects of import * and import() those of the language: without a
// prototype, with their names in order, and not extensible, unless esbuild adds the names of
// a module of CommonJS later.
func sealNamespaces(script []byte, p *places) (edits []edit, helper string) {
	if bytes.Contains(script, []byte("__reExport(")) {
		return nil, ""
	}
	if at := bytes.Index(script, []byte(exportLoop+exportMember)); at >= 0 {
		loop := at + len("  for (var name ")
		end := at + len(exportLoop) + len(exportMember) - 1
		edits = []edit{{loop, loop + len("in all"), "of Object.keys(all).sort()"}, {end, end, " __cs_namespace(target);"}}
	}
	for _, m := range emptyNamespace.FindAllSubmatchIndex(script, -1) {
		if _, written := p.at(m[2]); written || bytes.HasPrefix(script[m[1]:], []byte("\n__export(")) {
			continue
		}
		edits = append(edits, edit{m[1], m[1], " __cs_namespace(" + string(script[m[2]:m[3]]) + ");"})
	}
	if len(edits) > 0 {
		helper = namespaceText
	}
	return edits, helper
}

// emptyNamespace is a namespace to which no call of __export adds names.
var emptyNamespace = regexp.MustCompile(`(?m)^var ([\w$]+_exports\d*) = \{\};$`)

// wrapped returns the statements of the function that a script is.
func wrapped(tree *ast.Program) []ast.Statement {
	if len(tree.Body) > 0 {
		if s, ok := tree.Body[0].(*ast.ExpressionStatement); ok {
			if f, ok := s.Expression.(*ast.FunctionLiteral); ok {
				return f.Body.List
			}
		}
	}
	return nil
}
