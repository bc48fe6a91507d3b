package child

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja/ast"
)

// esbuild joins the modules of a bundle to one function. In it, the variables that let, const
// and class declare at the top level of a module become variables of var, and some variables
// get other names, which are also the names of their functions. The source map has the
// original positions and names.

// place is where text of the script comes from. Lines and columns count from 0, columns in
// UTF-16 code units.
type place struct {
	column                     int // in the script
	source, line, sourceColumn int
	name                       int // -1 for none
}

// places are those of a script, by line.
type places struct {
	sourceMap

	lines  [][]place
	starts []int // of the lines of the script
	script []byte
}

func placesOf(script []byte) *places {
	p := &places{script: script, starts: []int{0}}
	m, at, ok := mapOf(script)
	if !ok {
		return p
	}
	p.sourceMap = m
	for i, c := range script[:at] {
		if c == '\n' {
			p.starts = append(p.starts, i+1)
		}
	}
	var now place
	name := 0
	for line := range strings.SplitSeq(p.Mappings, ";") {
		var list []place
		now.column = 0
		for segment := range strings.SplitSeq(line, ",") {
			var by int
			for i, part := range []*int{&now.column, &now.source, &now.line, &now.sourceColumn, &name} {
				now.name = -1
				if segment == "" {
					break
				}
				by, segment = decodeVLQ(segment)
				*part += by
				if i == 4 {
					now.name = name
				}
			}
			list = append(list, now)
		}
		p.lines = append(p.lines, list)
	}
	return p
}

// at returns where the text at an offset of the script begins in its source, if the source
// map has exactly that offset.
func (p *places) at(offset int) (place, bool) {
	line, found := slices.BinarySearch(p.starts, offset)
	if !found {
		line--
	}
	if line < 0 || line >= len(p.lines) {
		return place{}, false
	}
	column := utf16Length(string(p.script[p.starts[line]:offset]))
	list := p.lines[line]
	i, found := slices.BinarySearchFunc(list, column, func(a place, column int) int { return a.column - column })
	if !found || list[i].source < 0 || list[i].source >= len(p.Sources) {
		return place{}, false
	}
	return list[i], true
}

// nameAt returns the name of a variable at an offset before it was renamed, "" if it was not.
func (p *places) nameAt(offset int) string {
	if from, ok := p.at(offset); ok && from.name >= 0 && from.name < len(p.Names) {
		return p.Names[from.name]
	}
	return ""
}

// maxDeclaration bounds the text in which the beginning of a declaration is looked for.
const maxDeclaration = 256

var lexical = regexp.MustCompile(`^(?:export\s+)?(?:default\s+)?(?:let|const|(?:abstract\s+)?class)\b|^export\s+default\b`)

// restoreLexical restores let for variables that the source declares with let, const or class:
// reading them before they are initialized throws. A source that was itself made from others has their positions, not its
// own.
func restoreLexical(body []ast.Statement, base int, p *places, files map[string][]byte) (edits []edit) {
	compiled := map[int]bool{} // sources that were made from others
	for i, name := range p.Sources {
		compiled[i] = bytes.Contains(files[name], []byte("sourceMappingURL="))
	}
	reading := cursor{source: -1}
	for _, statement := range body {
		n, ok := statement.(*ast.VariableStatement)
		if !ok {
			continue
		}
		at := int(n.Var) - base
		from, ok := p.at(at)
		if !ok || compiled[from.source] || !bytes.HasPrefix(p.script[at:], []byte("var ")) {
			continue
		}
		text := reading.from(files[p.Sources[from.source]], from)
		text = text[:min(len(text), maxDeclaration)]
		all := lexical.Match(text)
		for _, binding := range n.List { // what the bundler declares itself has no position
			named, ok := p.at(int(binding.Idx0()) - base)
			all = all && ok && (named.source != from.source || named.line != from.line || named.sourceColumn != from.sourceColumn)
		}
		if !all {
			continue
		}
		edits = append(edits, edit{at, at + len("var"), "let"})
		if m := declaredClass.FindSubmatch(text); m != nil {
			if class, ok := n.List[0].Initializer.(*ast.ClassLiteral); ok {
				edits = append(edits, nameClass(class, string(m[1]), base, p.script)...)
			}
		}
	}
	return edits
}

var declaredClass = regexp.MustCompile(`^(?:export\s+)?(?:default\s+)?(?:abstract\s+)?class\s+([\p{L}\p{N}_$]+)`)

// nameClass names a class that the bundler renamed because its body refers to it.
func nameClass(class *ast.ClassLiteral, name string, base int, script []byte) []edit {
	if class.Name == nil || class.Name.Name.String() == name {
		return nil
	}
	at := int(class.Name.Idx1()) - base
	if class.SuperClass != nil {
		at = int(class.SuperClass.Idx1()) - base
	}
	end := int(class.RightBrace) - base
	if at < 0 || end > len(script) || at > end || bytes.Contains(script[at:end], []byte("static name")) {
		return nil
	}
	brace := bytes.IndexByte(script[at:end+1], '{')
	if brace < 0 || script[at+brace+1] != '\n' {
		return nil
	}
	at += brace + 1
	return []edit{{at, at, `static{Object.defineProperty(this,"name",{value:` + quoteJS(name) + `,configurable:true})}`}}
}

// cursor is a position in a source. Positions are mostly asked for in ascending order, so it goes
// on from the last one: a bundle in one line of 500 KB has thousands of declarations.
type cursor struct {
	source, line int
	units        int // UTF-16 code units of the line that are behind
	offset       int // in the text of the source
}

// from returns the text of a source from a place on, nil if the source or the line ends before.
func (c *cursor) from(text []byte, at place) []byte {
	if at.source != c.source || at.line < c.line || at.line == c.line && at.sourceColumn < c.units {
		*c = cursor{source: at.source}
	}
	for c.line < at.line {
		n := bytes.IndexByte(text[c.offset:], '\n')
		if n < 0 {
			return nil
		}
		c.line, c.units, c.offset = c.line+1, 0, c.offset+n+1
	}
	for c.units < at.sourceColumn {
		r, size := utf8.DecodeRune(text[c.offset:])
		if size == 0 || r == '\n' { // a map that names a place beyond the line
			return nil
		}
		c.units += utf16.RuneLen(r)
		c.offset += size
	}
	return text[c.offset:]
}

// nameless is a function or class without a name that is assigned to a variable.
type nameless struct {
	variable *ast.Identifier
	value    ast.Expression
}

// assigned records the value that a variable is declared or assigned with, if it is a
// function or class without a name.
func (s *finder) assigned(target, value any) {
	variable, ok := target.(*ast.Identifier)
	if !ok {
		return
	}
	switch n := value.(type) {
	case *ast.FunctionLiteral:
		if n.Name == nil {
			s.nameless = append(s.nameless, nameless{variable, n})
		}
	case *ast.ClassLiteral:
		if n.Name == nil {
			s.nameless = append(s.nameless, nameless{variable, n})
		}
	case *ast.ArrowFunctionLiteral:
		s.nameless = append(s.nameless, nameless{variable, n})
	}
}

// restoreNames names functions after the variables that they were assigned to, where these
// were renamed:
//
//	var f2 = () => 1;   // var f2 = ({f:() => 1}).f;
//
// Members of classes and methods keep their names in any case.
func restoreNames(list []nameless, generators *asyncGenerators, base int, p *places) (edits []edit) {
	for _, f := range list {
		start, end := int(f.value.Idx0())-base, int(f.value.Idx1())-base
		name := p.nameAt(int(f.variable.Idx0()) - base)
		if name == "" || name == f.variable.Name.String() || name == "__proto__" || start < 0 || end > len(p.script) || start >= end {
			continue
		}
		if n, ok := f.value.(*ast.ArrowFunctionLiteral); ok {
			end = arrowEnd(n, end, p.script)
		}
		if end < 0 {
			continue
		}
		if before := bytes.TrimRight(p.script[:start], " "); bytes.HasSuffix(before, []byte("async")) {
			start = len(before) - len("async")
		}
		key := quoteJS(name)
		before, after := generators.take(f.value, name)
		edits = append(edits, edit{start, start, "({" + key + ":" + before}, edit{end, end, after + "})[" + key + "]"})
	}
	return edits
}

// arrowEnd returns where an arrow function ends, given the end of its body; -1 where that
// is not plain to see, since the tree has no parentheses.
func arrowEnd(n *ast.ArrowFunctionLiteral, end int, script []byte) int {
	body, ok := n.Body.(*ast.ExpressionBody)
	if !ok {
		return end
	}
	switch body.Expression.(type) {
	case *ast.ObjectLiteral, *ast.SequenceExpression: // esbuild writes them in parentheses
		if end >= len(script) || script[end] != ')' {
			return -1
		}
		end++
	}
	if !endsExpression(script[end:], " \n") {
		return -1
	}
	return end
}

// endsExpression reports whether text, behind the bytes of skip, begins with what can only
// follow a whole expression.
func endsExpression(text []byte, skip string) bool {
	next := bytes.TrimLeft(text, skip)
	return len(next) > 0 && strings.IndexByte(",;]}", next[0]) >= 0
}
