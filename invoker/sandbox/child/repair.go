package child

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
)

// esbuild refuses some programs that the language lets run until they come to the fault:
// assignments to constants and to imports, and modules that cannot be linked but that only
// import() reaches. Such a program is built again with text that throws in these places.

// constantHelper stands for a constant that is assigned to. It is read through a function,
// so that the temporal dead zone and conditional assignments such as ??= behave as before.
const constantHelper = "__cs_constant"

const constantText = "function " + constantHelper + `(read){return{get value(){return read()},set value(v){throw new TypeError("Assignment to constant variable.")}}}` + "\n"

// maxRepairs bounds the builds of one attempt to repair a program. A build reports only a part
// of its errors.
const maxRepairs = 8

// imports are the modules that each module imports statically, by name.
type imports struct {
	mu sync.Mutex
	of map[string][]string
}

func (g *imports) add(from, to string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[string][]string{}
	}
	g.of[from] = append(g.of[from], to)
}

// from returns the modules that a module needs to be evaluated.
func (g *imports) from(name string) map[string]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	needed := map[string]bool{}
	for open := []string{name}; len(open) > 0; {
		next := open[0]
		open = open[1:]
		if !needed[next] {
			needed[next] = true
			open = append(open, g.of[next]...)
		}
	}
	return needed
}

// repaired builds a program again as long as what esbuild refuses can be repaired. Where
// something else is wrong it returns the first result.
func repaired(files map[string][]byte, entry, contents string, s syntax) (map[string][]byte, api.BuildResult) {
	graph := &imports{}
	first := build(files, contents, s, graph)
	for _, shorthand := range []bool{false, true} {
		result, fixed := first, files
		for round := 0; round < maxRepairs && len(result.Errors) > 0; round++ {
			next := repair(fixed, result.Errors, graph.from(entry), shorthand)
			if next == nil {
				break
			}
			fixed = next
			result = build(fixed, contents, s, graph)
		}
		if len(result.Errors) == 0 {
			return fixed, result
		}
	}
	return files, first
}

// repair returns the modules with other text in the places of errors, nil if one of the
// errors is of another kind. needed are the modules that the handler needs.
func repair(files map[string][]byte, errors []api.Message, needed map[string]bool, shorthand bool) map[string][]byte {
	edits := map[string][]edit{}
	fixed := maps.Clone(files)
	for _, m := range errors {
		if m.Location == nil {
			return nil
		}
		name := strings.TrimPrefix(m.Location.File, namespace+":")
		source, ok := files[name]
		if !ok {
			return nil
		}
		if unlinked(m.Text) && !needed[name] {
			fixed[name] = []byte("export {}; throw new SyntaxError(" + quoteJS(m.Text) + ");")
			continue
		}
		at := offsetOf(source, m.Location.Line, m.Location.Column+1)
		if at < 0 {
			return nil
		}
		e, ok := repairAt(source, at, m.Text, shorthand)
		if !ok {
			return nil
		}
		if !slices.Contains(edits[name], e) {
			edits[name] = append(edits[name], e)
		}
	}
	for name, list := range edits {
		if bytes.Equal(fixed[name], files[name]) {
			fixed[name] = applyEdits(files[name], list)
		}
	}
	return fixed
}

// unlinked reports whether a message is about an import without a unique export.
func unlinked(text string) bool {
	return strings.HasPrefix(text, "No matching export") || strings.HasPrefix(text, "Ambiguous import") ||
		strings.HasPrefix(text, "Detected cycle while resolving import")
}

var assignment = regexp.MustCompile(`^Cannot assign to (?:import |property on import )?"(.+?)"(?: because it is a constant)?$`)

// repairAt returns the change of a module that lets it be built in spite of an error.
func repairAt(source []byte, at int, message string, shorthand bool) (edit, bool) {
	if message == `Could not resolve ""` { // ":" is no module either
		if text := string(source[at:min(at+2, len(source))]); text == `""` || text == "''" {
			return edit{at, at + 2, `":"`}, bytes.HasSuffix(bytes.TrimRight(source[:at], " \t\r\n"), []byte("import("))
		}
		return edit{}, false
	}
	m := assignment.FindStringSubmatch(message)
	if m == nil || !bytes.HasPrefix(source[at:], []byte(m[1])) {
		return edit{}, false
	}
	name, end := m[1], at+len(m[1])
	before, after := bytes.TrimRight(source[:at], " \t\r\n"), bytes.TrimLeft(source[end:], " \t\r\n")
	switch {
	case strings.HasPrefix(message, "Cannot assign to property"):
		return edit{at, end, "Object(" + name + ")"}, true
	case endsIn(before, "."): // the member of a namespace, whose members cannot be written
		end := len(before) - 1
		start := end
		for start > 0 && wordByte(before[start-1]) {
			start--
		}
		return edit{start, end, "Object(" + string(before[start:end]) + ")"}, start < end
	case shorthand && endsIn(before, "{,") && len(after) > 0 && strings.IndexByte(",}=", after[0]) >= 0:
		return edit{at, end, name + ":" + constantHelper + "(()=>" + name + ").value"}, true
	}
	return edit{at, end, constantHelper + "(()=>" + name + ").value"}, true
}

func endsIn(text []byte, set string) bool {
	return len(text) > 0 && strings.IndexByte(set, text[len(text)-1]) >= 0
}
