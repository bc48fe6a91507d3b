package child

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestModules(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"dynamic import": {
			files: map[string]string{
				"function.js": "export default async () => { const m = await import('./a.js'); return [m.default, m.b, Object.keys(m)] }",
				"a.js":        "export default 1; export const b = 2",
			},
			want: `[1,2,["b","default"]]`,
		},
		"dynamic import runs a module once": {
			files: map[string]string{
				"function.js": "export default async () => { await import('./a.js'); await import('./a.js'); return globalThis.n }",
				"a.js":        "globalThis.n = (globalThis.n ?? 0) + 1",
			},
			want: `1`,
		},
		"asynchronous generators that are renamed": {
			files: map[string]string{
				"function.js": "import { g } from './a.js'; const f = async function* () {}; export default async () => [f.name, g.name, (await g().next()).value, Object.getPrototypeOf(f) === Object.getPrototypeOf(g), f.prototype[Symbol.toStringTag]]",
				"a.js":        "const f = async function* () { yield 4 }; export const g = f",
			},
			want: `["f","f",4,true,"AsyncGenerator"]`,
		},
		"dynamic import of a missing module": {
			files: map[string]string{"function.js": "export default async (e) => [await import('./no.js').catch((e) => e instanceof Error), await import(String(e)).catch((e) => e instanceof Error)]"},
			want:  `[true,true]`,
		},
		"dynamic import of a pattern stays off the disk": {
			files: map[string]string{"function.js": "export default async () => (await import('./testdata/' + String('url') + '.js').catch((e) => 'no')) === 'no'"},
			want:  `true`,
		},
		"dynamic import of a computed name": {
			files: map[string]string{
				"function.js": "import load from './lib/load.js'; export default async () => [(await load('./a.js')).default, (await load('../b.js')).default, await load('./c.js').catch((e) => e.message)]",
				"lib/load.js": "export default (name) => import(name)",
				"lib/a.js":    "export default 'a'",
				"b.js":        "export default 'b'",
			},
			want: `["a","b","the bundle has no file for the import \"./c.js\""]`,
		},
		"import.meta": {
			files: map[string]string{
				"function.js": "import { url } from './lib/ä.js'; export default () => [import.meta.url, url, typeof import.meta, import.meta.main === undefined, import.meta.dirname === undefined]",
				"lib/ä.js":    "export const url = import.meta.url",
			},
			want: `["file:///function.js","file:///lib/%C3%A4.js","object",true,true]`,
		},
		"top-level await": {
			files: map[string]string{
				"function.js": "import { b } from './a.js'; const a = await 1; export default () => [a, b]",
				"a.js":        "export const b = await new Promise((yes) => setTimeout(yes, 1, 2))",
			},
			want: `[1,2]`,
		},
		"fields with the names of modifiers": {
			files: map[string]string{"function.js": `class A { get; set = (v) => v + 1; static = 2; async = 3; "x y" = 4; #p = 5; static get = 6; static #q = 7
				get sum() { return this.#p + A.#q } set sum(v) { this.#p = v } static async run() { return A.get } }
				export default async () => { const a = new A(); a.sum = 8; return [a.set(1), a.static, a.async, a["x y"], a.sum, await A.run(), Object.keys(a)] }`},
			want: `[2,2,3,4,15,6,["get","set","static","async","x y"]]`,
		},
		"top-level await of a resolved promise": {
			files: map[string]string{"function.js": "const a = await Promise.resolve(1); export default () => a"},
			want:  `1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).load(tt.files)
			for range 2 {
				if diff := cmp.Diff(tt.want, p.value("null")); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestTopLevelAwaitRejects(t *testing.T) {
	t.Parallel()
	p := inProcess(t).source("await Promise.reject(new TypeError('no'));\nexport default () => 1")
	if got := p.invoke("null").failure(t); !strings.Contains(got.Message, "TypeError: no") {
		t.Errorf("message %q, want the reason of the rejection", got.Message)
	}
	p = inProcess(t).source("await new Promise(() => {});\nexport default () => 1")
	if got := p.invoke("null").failure(t); got.Type != "Unsettled" {
		t.Errorf("type %q, want Unsettled", got.Type)
	}
}

// TestImportMetaKeepsPlaces: the module is compiled twice, and a stack names its own text.
func TestImportMetaKeepsPlaces(t *testing.T) {
	t.Parallel()
	p := inProcess(t).load(map[string]string{
		"function.js": "import './lib/a.ts'; export default () => 1",
		"lib/a.ts":    "const u: string = import.meta.url;\nif (u as string) throw new Error('x');",
	})
	if got := p.invoke("null").failure(t); !strings.Contains(got.Stack, "lib/a.ts:2:") {
		t.Errorf("stack %q, want the place lib/a.ts:2", got.Stack)
	}
}
