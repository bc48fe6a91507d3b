package child

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	const ok = "export default () => 1;\n"
	for name, tt := range map[string]struct {
		files   map[string]string
		handler string
		want    wire.Problem // Message: a part of it
	}{
		"syntax error": {
			files: map[string]string{"function.js": "export default () => {\n  const a = ;\n}"},
			want:  wire.Problem{File: "function.js", Line: 2, Column: 13, Message: `Unexpected ";"`},
		},
		"syntax error in another file": {
			files: map[string]string{"function.js": "import './lib/a'\n" + ok, "lib/a.ts": "let x: = 1"},
			want:  wire.Problem{File: "lib/a.ts", Line: 1, Column: 8, Message: `Unexpected "="`},
		},
		"no entry": {
			files: map[string]string{"other.js": ok},
			want:  wire.Problem{File: "function.ts", Message: "no entry module"},
		},
		"no default export": {
			files: map[string]string{"function.js": "export const a = 1"},
			want:  wire.Problem{File: "function.js", Message: "exports no handler: expected `export default function"},
		},
		"no export of that name": {
			files: map[string]string{"function.js": ok}, handler: "main",
			want: wire.Problem{File: "function.js", Message: "expected `export function main"},
		},
		"package": {
			files: map[string]string{"function.js": ok + "import x from 'lodash'; x()"},
			want:  wire.Problem{File: "function.js", Line: 2, Column: 15, Message: `the package "lodash" is not in the bundle`},
		},
		"unknown node module": {
			files: map[string]string{"function.js": "import fs from 'node:nothing'; fs.x();" + ok},
			want:  wire.Problem{File: "function.js", Line: 1, Column: 16, Message: `"node:nothing" is not a module of Node.js`},
		},
		"export that a node module has not": {
			files: map[string]string{"function.js": "import { readFail } from 'node:fs'; readFail();" + ok},
			want:  wire.Problem{File: "function.js", Line: 1, Column: 10, Message: `No matching export in "node:fs" for import "readFail"`},
		},
		"absolute path": {
			files: map[string]string{"function.js": "import fs from '/etc/passwd'; fs.x();" + ok},
			want:  wire.Problem{File: "function.js", Line: 1, Column: 16, Message: `not in the bundle`},
		},
		"above the bundle": {
			files: map[string]string{"function.js": "import fs from '../../../etc/passwd.json'; fs.x();" + ok},
			want:  wire.Problem{File: "function.js", Line: 1, Column: 16, Message: `the bundle has no file`},
		},
		"missing file": {
			files: map[string]string{"function.js": "import './gone.js'\n" + ok},
			want:  wire.Problem{File: "function.js", Line: 1, Column: 8, Message: `the bundle has no file for the import "./gone.js"`},
		},
		"other kind of file": {
			files: map[string]string{"function.js": "import './a.css'\n" + ok, "a.css": "a{}"},
			want:  wire.Problem{File: "function.js", Line: 1, Column: 8, Message: `a.css cannot be imported`},
		},
		"no export in a file without any": {
			files: map[string]string{"function.js": "import { a } from './a.js'; import { b } from './b.js'\n" + ok + "a(b)", "a.js": "var a = 1", "b.js": "exports.b = 1"},
			want:  wire.Problem{File: "function.js", Line: 1, Column: 10, Message: `No matching export`},
		},
		"return at the top level": {
			files: map[string]string{"function.js": "import './a.js'\n" + ok, "a.js": "return"},
			want:  wire.Problem{File: "a.js", Line: 1, Column: 1, Message: `Top-level return`},
		},
		"import attribute": {
			files: map[string]string{"function.js": "import a from './a.js' with { kind: 'x' }; a();\n" + ok, "a.js": "export default 1"},
			want:  wire.Problem{File: "function.js", Line: 1, Column: 15, Message: `the import attribute "kind"`},
		},
		"linking": {
			files: map[string]string{"function.js": "import { a } from './a.js'; a();\n" + ok, "a.js": "export { b as a } from './b.js'", "b.js": "export const c = 1"},
			want:  wire.Problem{File: "a.js", Line: 1, Column: 10, Message: `No matching export`},
		},
		"invalid property": {
			files: map[string]string{"function.js": ok + `/\p{Nope}/u.test('a')`},
			want:  wire.Problem{File: "function.js", Line: 2, Column: 1, Message: "Invalid property name"},
		},
		"invalid flags": {
			files: map[string]string{"function.js": ok + "/a/uv.test('a')"},
			want:  wire.Problem{File: "function.js", Line: 2, Column: 1, Message: "flag"},
		},
		"invalid regular expression": {
			files: map[string]string{"function.js": "export default (e) =>\n  /(/.test(e)"},
			want:  wire.Problem{File: "function.js", Line: 2, Column: 3, Message: "Unterminated group"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t)
			p.handler = tt.handler
			kind, payload := p.offer(tt.files)
			if kind != wire.KindRefused {
				t.Fatalf("got answer %d with %s, want %d", kind, payload, wire.KindRefused)
			}
			var refused wire.Refused
			if _, err := wire.ParseMessage(payload, &refused); err != nil {
				t.Fatalf("wire.ParseMessage: %v", err)
			}
			got := refused.Problems[0]
			if !strings.Contains(got.Message, tt.want.Message) {
				t.Errorf("got message %q, want %q in it", got.Message, tt.want.Message)
			}
			got.Message, tt.want.Message = "", ""
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("place (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompileRuns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files   map[string]string
		handler string
		want    string
	}{
		"named handler": {
			files:   map[string]string{"function.js": "export function main() { return 1 }"},
			handler: "main", want: "1",
		},
		"re-exported": {
			files: map[string]string{"function.js": "export { run as default } from './run'", "run.mjs": "export const run = () => 2"},
			want:  "2",
		},
		"export *": {
			files:   map[string]string{"function.js": "export * from './run.js'", "run.ts": "export const go = (a: number[]) => 3"},
			handler: "go", want: "3",
		},
		"TypeScript": {
			files: map[string]string{"function.ts": `
				enum Colour { Red, Green }
				interface E { n: number }
				class P { constructor(private readonly n: number) {} twice() { return this.n * 2 } }
				export default async (e: E, _: unknown): Promise<number[]> => [new P(e?.n ?? 4).twice(), Colour.Green satisfies number];`},
			want: "[8,1]",
		},
		"modules": {
			files: map[string]string{
				"function.js":  "import a from './lib'; import { b } from './lib/b.mjs'; import c from './data.json'; import * as d from './d'\nexport default () => [a, b, c.k, d.default, d.e]",
				"lib/index.js": "import { b } from './b'; export default 'a' + b", "lib/b.mjs": "export const b = 'b'",
				"data.json": `{"k": [1]}`, "d.mts": "export default 'd'; export const e: string = 'e'",
			},
			want: `["ab","b",[1],"d","e"]`,
		},
		"cycle": {
			files: map[string]string{
				"function.js": "import { g } from './g.js'; export const f = () => 'f'; export default () => g()",
				"g.js":        "import { f } from './function.js'; export const g = () => f() + 'g'",
			},
			want: `"fg"`,
		},
		"CommonJS": {
			files: map[string]string{"function.js": "const x = require('./x.js'); module.exports = () => x.n", "x.js": "exports.n = 5"},
			want:  "5",
		},
		"strict": {
			files: map[string]string{"function.js": "export default function () { try { undeclared = 1; return 'sloppy' } catch (e) { return e.name + typeof this } }"},
			want:  `"ReferenceErrorundefined"`,
		},
		"rewritten syntax": {
			files: map[string]string{"function.js": `
				async function* gen() { yield 1; yield 2 }
				export default async () => {
					const out = []; for await (const x of gen()) out.push(x);
					{ using r = { [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() { out.push("disposed") } } }
					return out }`},
			want: `[1,2,"disposed"]`,
		},
		"assignments to constants": {
			files: map[string]string{
				"function.js": `
				import { n, set } from "./n.js"; import * as ns from "./n.js"
				const a = 1, failed = (f) => { try { f() } catch (e) { return e.name } }
				class C { static assign() { C = 1 } }
				export default () => [failed(() => { a = 2 }), failed(() => a++), failed(() => { ({ a } = { a: 3 }) }), failed(() => { [a] = [4] }),
					failed(() => { for (a of [5]); }), failed(() => { a ??= 6 }), failed(() => { n = 7 }), failed(() => { ns.n = 8 }), failed(() => delete ns.n), failed(C.assign),
					a, n, set(9), n, ns.n]`,
				"n.js": "export let n = 1; export const set = (v) => { n = v }",
			},
			want: `["TypeError","TypeError","TypeError","TypeError","TypeError",null,"TypeError","TypeError","TypeError","TypeError",1,1,null,9,9]`,
		},
		"dynamic imports that cannot be linked": {
			files: map[string]string{
				"function.js": `const failed = (p) => p.then(() => "ran", (e) => e.name)
					export default async () => [await failed(import("./a.js")), await failed(import("./a.js")), await failed(import("./twice.js")), await failed(import("")), await failed(import("./c.js"))]`,
				"a.js":     "import './c.js'; import { gone } from './b.js'; globalThis.ran = true; export const a = gone",
				"twice.js": "export { x } from './both.js'", "both.js": "export * from './b.js'; export * from './c.js'",
				"b.js": "export const x = 1", "c.js": "export const x = 2",
			},
			want: `["SyntaxError","SyntaxError","SyntaxError","TypeError","ran"]`,
		},
		"the time before a variable is initialized": {
			files: map[string]string{
				"function.js": `
				import { early, Late, ns } from "./a.js"
				const failed = (f) => { try { return f() } catch (e) { return e.name } }
				const before = [failed(() => a), failed(() => b), failed(() => new C()), failed(() => d), failed(() => v ?? 1), failed(() => f()), early]
				export const a = 1; let b = 2; class C { static self = C }; const { d } = { d: 4 }; var v = 5; function f() { return 6 }
				b += a
				export default () => [before, a, b, C.self.name, d, v, f(), Late.name, typeof ns]`,
				"a.js": `import { a } from "./function.js"; import * as me from "./function.js"; export const ns = me
				export let early = ["a", "default"].map((k) => { try { return me[k] } catch (e) { return e.name } }); export class Late {}`,
			},
			want: `[["ReferenceError","ReferenceError","ReferenceError","ReferenceError",1,6,["ReferenceError","ReferenceError"]],1,3,"C",4,5,6,"Late","object"]`,
		},
		"names of functions": {
			files: map[string]string{
				"function.js": `import { named } from "./a.js"
				const f = () => 1, g = function () {}, h = async (x) => (x, 2), C = class { static self = 1 }; let i; i = async function () {}; const { j = (y) => ({ y }), k = y => [y] } = {}
				class E extends C { static is(e) { return e instanceof E } }
				export default () => [[f, g, h, C, i, j, k, E].map((x) => x.name), named(), f(), j(3), k(4), E.is(new E())]`,
				"a.js": `const f = () => 1, g = function () {}, h = async (x) => (x, 2), C = class {}; let i; i = async function () {}; const { j = (y) => ({ y }), k = y => [y] } = {}
				class E { static is(e) { return e instanceof E } }
				export const named = () => [f, g, h, C, i, j, k, E].map((x) => x.name)`,
			},
			want: `[["f","g","h","C","i","j","k","E"],["f","g","h","C","i","j","k","E"],1,{"y":3},[4],true]`,
		},
		"namespaces": {
			files: map[string]string{
				"function.js": `import * as ns from "./a.js"
				const failed = (f) => { try { return f() } catch (e) { return e.name } }
				export default async () => [Object.keys(ns), String(Object.prototype.toString.call(ns)), Object.getPrototypeOf(ns), Object.isExtensible(ns), failed(() => { Object(ns).x = 1 }), "toString" in ns, await import("./a.js") === ns]`,
				"a.js": "export const b = 1; export default 2; export { b as a }; export const B = 3",
			},
			want: `[["B","a","b","default"],"[object Module]",null,false,"TypeError",false,true]`,
		},
		"a namespace without names": {
			files: map[string]string{
				"function.js": "import * as ns from './a.js'; var my_exports = {}; export default async () => [ns, await import('./b.js'), my_exports].map((o) => Object.isExtensible(o))",
				"a.js":        "globalThis.x = 1; export {}", "b.js": "globalThis.y = 1",
			},
			want: `[false,false,true]`,
		},
		"its own words": {
			files: map[string]string{"function.js": "const __cs_handler = 6, handler = 1; export default () => __cs_handler + handler"},
			want:  "7",
		},
		"a comment at the end": {
			files: map[string]string{"function.js": "export default () => 1 // the end"},
			want:  "1",
		},
		"another's source map": {
			files: map[string]string{"function.js": "export default () => 1\n/*!\n//# sourceMappingURL=file:///etc/passwd\n*/"},
			want:  "1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t)
			p.handler = tt.handler
			if got := p.load(tt.files).value("null"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestGuessesWhatIsAsynchronous looks at the script alone, compiled here or not.
func TestGuessesWhatIsAsynchronous(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"export default async () => 1":         true,
		"export default () => Promise.all([])": true,
		"export default () => 1":               false,
	} {
		tar, err := bundle.Pack(map[string][]byte{
			"function.js": []byte(source), "README.md": []byte("async, a Promise"),
		})
		if err != nil {
			t.Fatalf("bundle.Pack: %v", err)
		}
		p, script, problems := load(wire.Assign{}, tar)
		if len(problems) > 0 {
			t.Fatalf("load the bundle: got problems %v, want none", problems)
		}
		again, _, problems := load(wire.Assign{Compiled: true}, script)
		if len(problems) > 0 {
			t.Fatalf("load the compiled script: got problems %v, want none", problems)
		}
		if p.asynchronous != want || again.asynchronous != want {
			t.Errorf("%s: got asynchronous %v, then %v, want %v", source, p.asynchronous, again.asynchronous, want)
		}
	}
}
