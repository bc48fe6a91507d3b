package child

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	esbuild "github.com/evanw/esbuild/pkg/api"
)

// declarations are the declarations of types.d.ts, as far as its form shows them: a member a
// line, two blanks in front.
type declarations struct {
	globals []string
	kinds   map[string]string            // of globals: const, function, class
	members map[string]map[string]string // of interfaces and classes: to their types, "()" for methods
	statics map[string][]string
}

var (
	declaredGlobal = regexp.MustCompile(`^declare (const|function|class|var) (\w+)`)
	declaredBody   = regexp.MustCompile(`^(?:interface|declare class|declare const) (\w+)(?:<.*?>)?(?: extends (\w+))?(?:: )? ?\{`)
	declaredMember = regexp.MustCompile(`^  (static )?(?:readonly )?(\w+)\??(?:<[^(]*>)?(\(|: )([^;]*)`)
)

func readDeclarations(t *testing.T) declarations {
	t.Helper()
	raw, err := os.ReadFile("../../../cmd/sous/internal/cli/functions/template/types.d.ts")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	d := declarations{kinds: map[string]string{}, members: map[string]map[string]string{}, statics: map[string][]string{}}
	in := ""
	for _, line := range strings.Split(string(raw), "\n") {
		if m := declaredGlobal.FindStringSubmatch(line); m != nil {
			d.globals, d.kinds[m[2]] = append(d.globals, m[2]), m[1]
		}
		if m := declaredBody.FindStringSubmatch(line); m != nil {
			in = m[1]
			if d.members[in] == nil {
				d.members[in] = map[string]string{}
			}
			if strings.HasPrefix(line, "interface") { // the test sees the own members of a class
				maps.Copy(d.members[in], d.members[m[2]])
			}
		}
		if strings.HasPrefix(line, "}") {
			in = ""
		}
		m := declaredMember.FindStringSubmatch(line)
		switch {
		case m == nil || in == "" || m[2] == "constructor" || m[2] == "private":
		case m[1] != "":
			d.statics[in] = append(d.statics[in], m[2])
		case m[3] == "(":
			d.members[in][m[2]] = "()"
		default:
			d.members[in][m[2]] = strings.TrimSpace(m[4])
		}
	}
	return d
}

// compare compares the members of an object with those of an interface, both ways.
func (d *declarations) compare(t *testing.T, at, declared string, there map[string]any) {
	t.Helper()
	for name, kind := range d.members[declared] {
		got, ok := there[name]
		object, isObject := got.(map[string]any)
		switch {
		case !ok:
			t.Errorf("%s.%s: got no such member, want it as declared", at, name)
		case (kind == "()") != (got == "method"):
			t.Errorf("%s.%s: got a %v, want %s as declared", at, name, got, kind)
		case d.members[kind] != nil && strings.HasPrefix(kind, "Cs"):
			if !isObject {
				t.Errorf("%s.%s: got a %v, want %s as declared", at, name, got, kind)
			}
			d.compare(t, at+"."+name, kind, object)
		}
	}
	for name := range there {
		if _, ok := d.members[declared][name]; !ok {
			t.Errorf("got %s.%s, want it declared", at, name)
		}
	}
}

// The types that sous fn init writes match the runtime: every member of cs and of
// ctx, every global, and every member of their classes.
func TestTypesDeclareWhatIsThere(t *testing.T) {
	t.Parallel()
	d := readDeclarations(t)
	var names []string
	for _, class := range webClasses() {
		names = append(names, class.name)
	}
	for _, row := range append(globalTable(), scopeRows()...) {
		if row.name != "Intl" { // TypeScript's library of the language declares it
			names = append(names, row.name)
		}
	}
	slices.Sort(names)
	slices.Sort(d.globals)
	if !slices.Equal(names, d.globals) {
		t.Errorf("globals:\n got %v\nwant %v", names, d.globals)
	}
	p := inProcess(t)
	p.env = map[string]string{"REGION": "eu"}
	p.source(`
		const walk = (o) => Object.fromEntries(Object.keys(o).map((k) => [k, typeof o[k] === "function" ? "method" : o[k] !== null && typeof o[k] === "object" ? walk(o[k]) : "value"]));
		const own = (o, not) => Object.getOwnPropertyNames(o).filter((k) => !not.includes(k)).sort();
		export default (names, ctx) => ({
			cs: walk(cs), ctx: { ...walk(ctx), signal: walk(ctx.signal) }, console: walk(console),
			types: Object.fromEntries(names.map((n) => [n, typeof globalThis[n]])),
			classes: Object.fromEntries(names.filter((n) => typeof globalThis[n] === "function" && globalThis[n].prototype !== undefined && n !== "DOMException")
				.map((n) => [n, { members: own(globalThis[n].prototype, ["constructor"]), statics: own(globalThis[n], ["length", "name", "prototype"]) }])),
		});`)
	event, err := json.Marshal(names)
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	var there struct {
		CS, Ctx, Console map[string]any
		Types            map[string]string
		Classes          map[string]struct{ Members, Statics []string }
	}
	if err := json.Unmarshal([]byte(p.value(string(event))), &there); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	d.compare(t, "cs", "Cs", there.CS)
	d.compare(t, "ctx", "Context", there.Ctx)
	d.compare(t, "console", "console", there.Console)
	for name, kind := range d.kinds {
		if want := map[string]string{"const": "object", "function": "function", "class": "function", "var": "object"}[kind]; there.Types[name] != want {
			t.Errorf("%s: got a %s, want a %s as declared", name, there.Types[name], kind)
		}
		if kind != "class" || name == "DOMException" { // which has what Error has
			continue
		}
		class := there.Classes[name]
		if declared := slices.Sorted(maps.Keys(d.members[name])); !slices.Equal(declared, class.Members) {
			t.Errorf("members of %s:\n got %v\nwant %v", name, class.Members, declared)
		}
		if declared := slices.Sorted(slices.Values(d.statics[name])); !slices.Equal(declared, class.Statics) {
			t.Errorf("statics of %s:\n got %v\nwant %v", name, class.Statics, declared)
		}
	}
}

func TestTypesAreTypeScript(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"types.d.ts", "ts/function.ts"} {
		raw, err := os.ReadFile("../../../cmd/sous/internal/cli/functions/template/" + name)
		if err != nil {
			t.Fatalf("os.ReadFile: %v", err)
		}
		result := esbuild.Transform(string(raw), esbuild.TransformOptions{Loader: esbuild.LoaderTS, Sourcefile: name})
		for _, e := range append(result.Errors, result.Warnings...) {
			t.Errorf("%s:%d: got problem %q, want none", name, e.Location.Line, e.Text)
		}
	}
}
