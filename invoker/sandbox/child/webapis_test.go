package child

import (
	_ "embed"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/webapis.txt
var webAPIs string

// webInterface is an interface of ECMA-429 as the list has it.
type webInterface struct {
	Name    string
	Length  string
	Parent  string
	Members []webMember
}

// webMember is a member of an interface, or a global.
type webMember struct{ Kind, Name, Arg string }

var (
	interfaceLine = regexp.MustCompile(`^interface ([\w.]+)\((\d|-)\)(?: extends (\w+))?  https://\S+$`)
	globalLine    = regexp.MustCompile(`^global ([\w.]+)(?:\((\d)\))?  https://\S+$`)
	methodLine    = regexp.MustCompile(`^(static )?(\w+)\((\d)\)$`)
	memberLine    = regexp.MustCompile(`^(readonly|attribute|iterator|asyncIterator|const) (\w+)(?: (\d+))?$`)
)

// readWebAPIs reads the list; every line of it must have one of its forms.
func readWebAPIs(t *testing.T) (interfaces []webInterface, globals []webMember) {
	t.Helper()
	for _, line := range strings.Split(webAPIs, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if m := interfaceLine.FindStringSubmatch(line); m != nil {
			interfaces = append(interfaces, webInterface{Name: m[1], Length: m[2], Parent: m[3]})
			continue
		}
		if m := globalLine.FindStringSubmatch(line); m != nil {
			globals = append(globals, webMember{"global", m[1], m[2]})
			continue
		}
		last := &interfaces[len(interfaces)-1]
		if m := methodLine.FindStringSubmatch(line); m != nil {
			last.Members = append(last.Members, webMember{strings.TrimSpace(m[1] + "method"), m[2], m[3]})
		} else if m := memberLine.FindStringSubmatch(line); m != nil {
			last.Members = append(last.Members, webMember{m[1], m[2], m[3]})
		} else {
			t.Fatalf("webapis.txt: got line %q, want an interface or a member", line)
		}
	}
	return interfaces, globals
}

// webChecks returns the names of the members that are missing or of another form, with what
// is wrong.
const webChecks = `
const at = (path) => path.split(".").reduce((o, k) => (o === undefined ? undefined : o[k]), globalThis);
const throwsTypeError = (f) => { try { f(); return false } catch (e) { return e instanceof TypeError } };
const member = {
	"readonly": (C, m) => accessor(C, m, false), "attribute": (C, m) => accessor(C, m, true),
	"method": (C, m) => method(C.prototype, m), "static method": (C, m) => method(C, m),
	"const": (C, m) => [C, C.prototype].map((o) => Object.getOwnPropertyDescriptor(o, m.Name)).every((d) => d && d.value === Number(m.Arg) && d.enumerable && !d.writable && !d.configurable) ? "" : "not that constant",
	"iterator": (C, m) => symbol(C, m, Symbol.iterator), "asyncIterator": (C, m) => symbol(C, m, Symbol.asyncIterator),
};
function accessor(C, m, writable) {
	const d = Object.getOwnPropertyDescriptor(C.prototype, m.Name);
	if (!d) return "missing";
	if (!d.get) return "not an accessor";
	if (!d.enumerable || !d.configurable) return "not enumerable and configurable";
	if (!!d.set !== writable) return writable ? "has no setter" : "has a setter";
	if (d.get.name !== "get " + m.Name) return "the getter has the name " + d.get.name;
	return "";
}
function method(o, m) {
	const d = Object.getOwnPropertyDescriptor(o, m.Name);
	if (!d) return "missing";
	if (typeof d.value !== "function") return "not a function";
	if (!d.enumerable || !d.configurable || !d.writable) return "not enumerable, configurable and writable";
	if (d.value.length !== Number(m.Arg)) return "the length is " + d.value.length;
	if (d.value.name !== m.Name) return "the name is " + d.value.name;
	return "";
}
function symbol(C, m, s) {
	const d = Object.getOwnPropertyDescriptor(C.prototype, s);
	return d && d.value === C.prototype[m.Name] && !d.enumerable ? "" : "not the method";
}
function whole(i, C) {
	const d = Object.getOwnPropertyDescriptor(at(i.Name.split(".").slice(0, -1).join(".") || "globalThis"), i.Name.split(".").at(-1));
	if (!d || d.enumerable || !d.configurable || !d.writable) return "the property is not configurable, writable and hidden";
	if (C.length !== (i.Length === "-" ? 0 : Number(i.Length))) return "the length is " + C.length;
	if (C.name !== i.Name.split(".").at(-1)) return "the name is " + C.name;
	for (const [k, fixed] of [["name", false], ["length", false], ["prototype", true]]) {
		const p = Object.getOwnPropertyDescriptor(C, k);
		if (p.writable || p.enumerable || p.configurable === fixed) return k + " is not as that of a class";
	}
	const error = /Error$/.test(i.Name);
	if (!error && !throwsTypeError(() => C())) return "can be called";
	if (i.Length === "-" && !throwsTypeError(() => new C())) return "can be constructed";
	if (Number(i.Length) > 0 && !error && !throwsTypeError(() => new C())) return "can be constructed without arguments";
	const parent = i.Parent ? at(i.Parent) : Function.prototype, proto = i.Parent ? at(i.Parent).prototype : error || i.Name === "DOMException" ? Error.prototype : Object.prototype;
	if (!error && Object.getPrototypeOf(C) !== parent) return "inherits from another class";
	if (Object.getPrototypeOf(C.prototype) !== proto) return "the prototype inherits from another one";
	if (!error && C.prototype[Symbol.toStringTag] !== i.Name) return "the tag is " + C.prototype[Symbol.toStringTag];
	return "";
}
export default ({ Interfaces, Globals }) => {
	const wrong = {};
	for (const i of Interfaces) {
		const C = at(i.Name);
		if (typeof C !== "function") { wrong[i.Name] = "missing"; continue; }
		const problem = whole(i, C);
		if (problem) wrong[i.Name] = problem;
		for (const m of i.Members || []) { const p = member[m.Kind](C, m); if (p) wrong[i.Name + "." + m.Name] = p; }
	}
	for (const g of Globals) {
		const v = at(g.Name);
		if (v === undefined) wrong[g.Name] = "missing";
		else if (g.Arg && (typeof v !== "function" || v.length !== Number(g.Arg) || v.name !== g.Name.split(".").at(-1))) wrong[g.Name] = "a function with the length " + v.length + " and the name " + v.name;
	}
	return wrong;
};`

// documentedRow is a row of a table of docs/web-apis.md.
var documentedRow = regexp.MustCompile("(?m)^\\| `([\\w.]+)` \\| (.+) \\|$")

// TestWebAPIs: each interface and member of ECMA-429 is there in the form of its
// specification, or docs/web-apis.md has it with the reason; and the page has nothing else.
func TestWebAPIs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/web-apis.md")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	whole, missing, ok := strings.Cut(string(page), "## Missing")
	if !ok {
		t.Fatal("docs/web-apis.md has no section Missing")
	}
	missing, _, _ = strings.Cut(missing, "\n## ")
	documented := map[string]string{}
	for _, m := range documentedRow.FindAllStringSubmatch(missing, -1) {
		documented[m[1]] = m[2]
	}
	interfaces, globals := readWebAPIs(t)
	if len(interfaces) != 53 || len(globals) != 25 {
		t.Errorf("the list has %d interfaces and %d globals, want the 53 and 25 of the standard", len(interfaces), len(globals))
	}
	event, err := json.Marshal(struct {
		Interfaces []webInterface
		Globals    []webMember
	}{interfaces, globals})
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	var wrong map[string]string
	if err := json.Unmarshal([]byte(inProcess(t).source(webChecks).value(string(event))), &wrong); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		if documented[name] == "" {
			t.Errorf("%s: %s; want it as specified, or a row with the reason in docs/web-apis.md", name, wrong[name])
		}
	}
	for name, reason := range documented {
		if wrong[name] == "" {
			t.Errorf("docs/web-apis.md lists %s as missing (%s), want no row, because it exists", name, reason)
		}
	}
	var listed []string
	for _, m := range documentedRow.FindAllStringSubmatch(whole, -1) {
		listed = append(listed, m[1])
		incomplete := slices.ContainsFunc(slices.Collect(maps.Keys(wrong)), func(name string) bool {
			return name == m[1] || strings.HasPrefix(name, m[1]+".")
		})
		if says := strings.HasSuffix(m[2], "| complete"); says == incomplete {
			t.Errorf("docs/web-apis.md: got row %q of %s, want complete only without missing members, which are %v", m[2], m[1], incomplete)
		}
	}
	var want []string
	for _, i := range interfaces {
		want = append(want, i.Name)
	}
	for _, g := range globals {
		want = append(want, g.Name)
	}
	if !slices.Equal(listed, want) {
		t.Errorf("docs/web-apis.md has rows for\n%v, want\n%v", listed, want)
	}
}
