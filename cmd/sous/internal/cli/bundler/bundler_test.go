package bundler

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dop251/goja"
	esbuild "github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
)

// write makes a folder of files by slash-separated path, beside the folders of other tests.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "fn")
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatalf("os.MkdirAll: %v", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	return root
}

// make bundles files, whose entry is the one of function.js, .jsx, .ts and .tsx that exists.
func makeBundle(t *testing.T, files map[string]string) (*Bundle, error) {
	t.Helper()
	f := Folder{Root: write(t, files), Entry: "function.js"}
	for _, ext := range []string{".jsx", ".ts", ".tsx"} {
		if _, ok := files["function"+ext]; ok {
			f.Entry = "function" + ext
		}
	}
	return Make(f)
}

// evaluate runs a bundled module and returns the result of its default export as JSON.
// Built-in modules are objects with their own name as the property builtin.
func evaluate(t *testing.T, code []byte) string {
	t.Helper()
	result := esbuild.Transform(string(code), esbuild.TransformOptions{
		Format: esbuild.FormatCommonJS, Target: esbuild.ES2017, LogLevel: esbuild.LogLevelSilent, Platform: esbuild.PlatformNode,
	})
	if len(result.Errors) > 0 {
		t.Fatalf("esbuild.Transform: got errors %v, want none, for\n%s", result.Errors, code)
	}
	vm := goja.New()
	v, err := vm.RunString(`(function () {
		const module = { exports: {} };
		const require = (name) => {
			if (!name.startsWith("node:")) throw new Error("no module " + name);
			return { __esModule: true, builtin: name, default: { builtin: name } };
		};
		(function (module, exports, require) {` + string(result.Code) + `
		})(module, module.exports, require);
		const f = module.exports.default ?? module.exports.main;
		return Promise.resolve(typeof f === "function" ? f() : f).then((v) => JSON.stringify(v));
	})()`)
	if err != nil {
		t.Fatalf("run: %v\n%s", err, code)
	}
	p, ok := v.Export().(*goja.Promise)
	if !ok || p.State() != goja.PromiseStateFulfilled {
		t.Fatalf("run: got the promise %v, want one with a result\n%s", v, code)
	}
	return p.Result().String()
}

func TestFolderWithoutPackagesIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"one module":       {"function.js": `export default () => 1;`},
		"several":          {"function.ts": `import { a } from "./lib"; import d from "./d.json"; export default () => a + d;`, "lib/index.ts": `export const a: number = 1;`, "d.json": `2`},
		"built-in module":  {"function.js": `import { createHash } from "node:crypto"; export default () => createHash;`},
		"types":            {"function.ts": `import type { Context } from "hono"; export default (c: Context) => 1;`},
		"a syntax error":   {"function.js": `export default (`},
		"a missing file":   {"function.js": `import "./none.js";`},
		"unused packages":  {"function.js": `export default () => 1;`, "package.json": `{"dependencies": {"a": "1"}}`, "node_modules/a/index.js": `broken(`},
		"import of a type": {"function.ts": `import { type T } from "./t"; export default () => 1 as T;`, "t.ts": `export type T = number;`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if b, err := makeBundle(t, files); b != nil || err != nil {
				t.Errorf("Make = %v, %v; want nil, nil", b, err)
			}
		})
	}
}

func TestBundled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a CommonJS package": {map[string]string{
			"function.js":             `import a from "a"; export default () => a.x;`,
			"node_modules/a/index.js": `exports.x = 1;`,
		}, `1`},
		"a path in a scoped package": {map[string]string{
			"function.js":                  `import { x } from "@s/a/lib/x.js"; export default () => x;`,
			"node_modules/@s/a/lib/x.js":   `export const x = 2;`,
			"node_modules/@s/a/index.js":   `throw 1;`,
			"node_modules/@s/a/lib/y.wasm": ``,
		}, `2`},
		"condition workerd": {map[string]string{
			"function.js":                 `import x from "a"; export default x;`,
			"node_modules/a/package.json": `{"exports": {"node": "./n.js", "workerd": "./w.js", "worker": "./x.js", "browser": "./x.js", "default": "./x.js"}}`,
			"node_modules/a/w.js":         `export default "workerd";`,
		}, `"workerd"`},
		"condition worker": {map[string]string{
			"function.js":                 `import x from "a"; export default x;`,
			"node_modules/a/package.json": `{"exports": {"deno": "./x.js", "worker": "./w.js", "default": "./x.js"}}`,
			"node_modules/a/w.js":         `export default "worker";`,
		}, `"worker"`},
		"condition browser": {map[string]string{
			"function.js":                 `import x from "a"; export default x;`,
			"node_modules/a/package.json": `{"exports": {"development": "./x.js", "browser": "./b.js", "default": "./x.js"}}`,
			"node_modules/a/b.js":         `export default "browser";`,
		}, `"browser"`},
		"conditions import and require": {map[string]string{
			"function.js":                 `import x from "a"; import y from "./c.cjs"; export default [x, y];`,
			"c.cjs":                       `module.exports = require("a");`,
			"node_modules/a/package.json": `{"exports": {"import": "./i.mjs", "require": "./r.cjs"}}`,
			"node_modules/a/i.mjs":        `export default "import";`,
			"node_modules/a/r.cjs":        `module.exports = "require";`,
		}, `["import","require"]`},
		"module before browser and main": {map[string]string{
			"function.js":                 `import x from "a"; export default x;`,
			"node_modules/a/package.json": `{"main": "m.js", "browser": "b.js", "module": "e.js"}`,
			"node_modules/a/e.js":         `export default "module";`,
			"node_modules/a/b.js":         `module.exports = "browser";`,
			"node_modules/a/m.js":         `module.exports = "main";`,
		}, `"module"`},
		"browser before main": {map[string]string{
			"function.js":                 `import x from "a"; export default x;`,
			"node_modules/a/package.json": `{"main": "m.js", "browser": "b.js"}`,
			"node_modules/a/b.js":         `module.exports = "browser";`,
			"node_modules/a/m.js":         `module.exports = "main";`,
		}, `"browser"`},
		"main for all where require needs it": {map[string]string{
			"function.js":                 `import a from "a"; import b from "b"; export default () => [a(), b(), a === b.a];`,
			"node_modules/a/package.json": `{"main": "m", "module": "e.js"}`,
			"node_modules/a/m.js":         `module.exports = () => "main";`,
			"node_modules/a/e.js":         `export default () => "module";`,
			"node_modules/b/index.js":     `const a = require("a"); module.exports = () => a(); module.exports.a = a;`,
		}, `["main","main",true]`},
		"index.js where there is no main": {map[string]string{
			"function.js":                 `import b from "b"; export default b;`,
			"node_modules/a/package.json": `{"module": "e.js"}`,
			"node_modules/a/index.js":     `module.exports = "index";`,
			"node_modules/a/e.js":         `export default "module";`,
			"node_modules/b/index.js":     `module.exports = require("a");`,
		}, `"index"`},
		"the browser map leaves out what Node.js needs": {map[string]string{
			"function.js":                   `import a from "a"; export default a;`,
			"node_modules/a/package.json":   `{"main": "lib/m.js", "browser": {"./lib/streams": false, "./lib/plain.js": false}}`,
			"node_modules/a/lib/m.js":       `const process = { versions: { node: "22" } }; module.exports = process.versions.node ? require("./streams")() : "none";`,
			"node_modules/a/lib/streams.js": `const plain = require("./plain"); module.exports = () => "streams " + JSON.stringify(plain);`,
			"node_modules/a/lib/plain.js":   `module.exports = 1;`,
		}, `"streams {}"`},
		"the browser map leads to a document": {map[string]string{
			"function.js":                   `import f from "a"; export default f;`,
			"node_modules/a/package.json":   `{"module": "index.js", "browser": {"./xml": "./xml.browser"}}`,
			"node_modules/a/index.js":       `export { default } from "./xml";`,
			"node_modules/a/xml.js":         `export default "text";`,
			"node_modules/a/xml.browser.js": `export default new DOMParser();`,
		}, `"text"`},
		"the browser map": {map[string]string{
			"function.js":                 `import a from "a"; export default a;`,
			"node_modules/a/package.json": `{"main": "index.js", "browser": {"crypto": false, "fs": "./fs.js", "./node.js": "./web.js"}}`,
			"node_modules/a/index.js":     `module.exports = [require("crypto"), require("fs"), require("./node.js"), require("util")];`,
			"node_modules/a/fs.js":        `module.exports = "own fs";`,
			"node_modules/a/web.js":       `module.exports = "web";`,
		}, `[{},"own fs","web",{"builtin":"node:util"}]`},
		"built-in modules": {map[string]string{
			"function.js":                  `import { builtin } from "crypto"; import e from "events"; import b from "buffer/"; import { r } from "./r.cjs"; export default async () => [builtin, e, b, r, (await import("url")).builtin];`,
			"r.cjs":                        `exports.r = require("stream");`,
			"node_modules/buffer/index.js": `module.exports = "npm's buffer";`,
			"node_modules/events/index.js": `module.exports = "npm's events";`,
		}, `["node:crypto",{"builtin":"node:events"},"npm's buffer",{"builtin":"node:stream"},"node:url"]`},
		"text, JSON and bytes": {map[string]string{
			"function.js": `import t from "./a.html"; import q from "./q.sql"; import j from "./a.json"; import w from "./m.bin"; import c from "./c.css";
				export default () => [t, q, j.n, w instanceof Uint8Array, Array.from(w), c];`,
			"a.html": "<p>ä</p>", "q.sql": "SELECT 1", "a.json": `{"n": 3}`, "m.bin": "\x00asm\xff", "c.css": "p { }",
		}, `["<p>ä</p>","SELECT 1",3,true,[0,97,115,109,255],"p { }"]`},
		"JSX": {map[string]string{
			"function.jsx":                      `export default () => <a b="1">x</a>;`,
			"node_modules/react/package.json":   `{"exports": {"./jsx-runtime": "./jsx.js"}}`,
			"node_modules/react/jsx.js":         `exports.jsx = (type, props) => [type, props];`,
			"node_modules/react/jsx-runtime.js": `throw 1;`,
		}, `["a",{"b":"1","children":"x"}]`},
		"JSX in .js": {map[string]string{
			"function.js":                       `export default () => <a/>;`,
			"node_modules/react/jsx-runtime.js": `exports.jsx = (type) => type;`,
		}, `"a"`},
		"JSX pragma": {map[string]string{
			"function.tsx":                         "/** @jsxImportSource preact */\nexport default (): unknown => <a/>;",
			"node_modules/preact/jsx-runtime.js":   `exports.jsx = () => "preact";`,
			"node_modules/preact/jsx-runtime.d.ts": ``,
		}, `"preact"`},
		"JSX of tsconfig.json": {map[string]string{
			"function.tsx":  `import { h } from "./h"; export default () => <a/>;`,
			"h.ts":          `export const h = (t: string) => "h " + t;`,
			"tsconfig.json": `{"compilerOptions": {"jsx": "react", "jsxFactory": "h"}} // with a comment`,
		}, `"h a"`},
		"JSX that tsconfig.json leaves to others": {map[string]string{
			"function.tsx":                      `export default () => <a/>;`,
			"node_modules/react/jsx-runtime.js": `exports.jsx = (type) => type;`,
			"tsconfig.json":                     `{"compilerOptions": {"jsx": "preserve"}}`,
		}, `"a"`},
		"paths of tsconfig.json": {map[string]string{
			"function.ts":   `import { x } from "@/x"; export default x;`,
			"src/x.ts":      `export const x: string = "path";`,
			"tsconfig.json": `{"compilerOptions": {"paths": {"@/*": ["./src/*"]}}}`,
		}, `"path"`},
		"imports of package.json": {map[string]string{
			"function.js":  `import x from "#x"; export default x;`,
			"x.js":         `export default "hash";`,
			"package.json": `{"imports": {"#x": "./x.js"}}`,
		}, `"hash"`},
		"dynamic import": {map[string]string{
			"function.js":             `import "a"; export default async () => (await import("./late.js")).late + (await import("b")).default;`,
			"late.js":                 `export const late = "late ";`,
			"node_modules/a/index.js": ``,
			"node_modules/b/index.js": `module.exports = "b";`,
		}, `"late b"`},
		"an optional package": {map[string]string{
			"function.js":             `import a from "a"; export default a;`,
			"node_modules/a/index.js": `try { require("none"); } catch { module.exports = "without"; }`,
		}, `"without"`},
		"NODE_ENV": {map[string]string{
			"function.js":             `import a from "a"; export default a;`,
			"node_modules/a/index.js": `if (process.env.NODE_ENV === "production") module.exports = require("./p.js"); else module.exports = require("./none.js");`,
			"node_modules/a/p.js":     `module.exports = "production";`,
		}, `"production"`},
		"TypeScript in a package": {map[string]string{
			"function.ts":             `import { a } from "a"; export default a;`,
			"node_modules/a/index.ts": `enum E { A = 4 } export const a: number = E.A;`,
		}, `4`},
		"a CommonJS entry": {map[string]string{
			"function.js":             `const a = require("a"); module.exports = () => a;`,
			"node_modules/a/index.js": `module.exports = 5;`,
		}, `5`},
		"a link to a sibling package": {map[string]string{
			"function.js":  `import { x } from "../lib/x.js"; export default x;`,
			"../lib/x.js":  `export const x = 6;`,
			"../.git/HEAD": ``,
		}, `6`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := makeBundle(t, tt.files)
			if err != nil || b == nil {
				t.Fatalf("Make = %v, %v; want a bundle", b, err)
			}
			if got := evaluate(t, b.Code); got != tt.want {
				t.Errorf("got %s, want %s\n%s", got, tt.want, b.Code[:b.Bytes])
			}
		})
	}
}

func TestNamedHandlerOfCommonJS(t *testing.T) {
	t.Parallel()
	root := write(t, map[string]string{
		"function.js":             `const a = require("a"); exports.main = () => a; exports.other = 1;`,
		"node_modules/a/index.js": `module.exports = 7;`,
	})
	b, err := Make(Folder{Root: root, Entry: "function.js", Handler: "main"})
	if err != nil || b == nil {
		t.Fatalf("Make = %v, %v; want a bundle", b, err)
	}
	if got := evaluate(t, b.Code); got != "7" {
		t.Errorf("got %s, want 7", got)
	}
	root = write(t, map[string]string{"function.js": `import "a"; export const other = 1;`, "node_modules/a/index.js": ``})
	_, err = Make(Folder{Root: root, Entry: "function.js", Handler: "main"})
	if want := "the module exports no handler: expected `export function main(event, ctx) { … }`"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}

func TestOnlyUsedModulesAreBundled(t *testing.T) {
	t.Parallel()
	b, err := makeBundle(t, map[string]string{
		"function.js":                 `import { used } from "a"; export default used;`,
		"node_modules/a/package.json": `{"sideEffects": false}`,
		"node_modules/a/index.js":     `export { used } from "./used.js"; export { other } from "./other.js"; export * from "./rest.js";`,
		"node_modules/a/used.js":      `export const used = "it is used"; export const spare = "it is spare";`,
		"node_modules/a/other.js":     `export const other = "it is other"; sideEffect();`,
		"node_modules/a/rest.js":      `export const rest = "it is the rest";`,
	})
	if err != nil {
		t.Fatalf("Make: %v", err)
	}
	for text, want := range map[string]bool{"it is used": true, "it is spare": false, "it is other": false, "sideEffect": false, "it is the rest": false} {
		if got := bytes.Contains(b.Code, []byte(text)); got != want {
			t.Errorf("the code contains %q: got %v, want %v\n%s", text, got, want, b.Code[:b.Bytes])
		}
	}
}

// TestOptionalPackages: a package may require another one that is not installed, as long as the call
// is not reached. One that is reached throws an error with Node.js' code.
func TestOptionalPackages(t *testing.T) {
	t.Parallel()
	b, err := makeBundle(t, map[string]string{
		"function.js": `import { query, connect, driver } from "a";
			export default () => { try { connect(); } catch (e) { return [query(), driver, e.code, e.message]; } };`,
		// "b" is replaced by an empty module: a call of it does not throw.
		"node_modules/a/package.json": `{"main": "index.js", "browser": {"b": false}}`,
		"node_modules/a/index.js": `require("b"); let driver; try { driver = require("@s/fast/x"); } catch { driver = "slow"; }
			module.exports = { query: () => "select 1", connect: () => require("driver/promise").connect(), driver };`,
	})
	if err != nil {
		t.Fatalf("Make: %v", err)
	}
	want := `["select 1","slow","MODULE_NOT_FOUND","Cannot find module 'driver/promise': it was not installed when the function was bundled"]`
	if got := evaluate(t, b.Code[:b.Bytes]); got != want {
		t.Errorf("the function returned %s, want %s", got, want)
	}
	if len(b.Warnings) > 0 {
		t.Errorf("got the warnings %q, want none", b.Warnings)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no node_modules": {map[string]string{"function.js": "\nimport a from \"a\"; export default a;", "package.json": `{"dependencies": {"a": "1"}}`},
			"function.js:2:15: the package \"a\" is not installed: there is no node_modules; run `npm install` in DIR"},
		"one package is missing": {map[string]string{"function.js": `import "a/x";`, "package.json": `{"devDependencies": {"a": "1"}}`, "node_modules/b/index.js": ``},
			"function.js:1:8: the package \"a\" is not installed; run `npm install` in DIR"},
		"not in package.json": {map[string]string{"function.js": `import "@s/a/x";`, "package.json": `{}`},
			"function.js:1:8: the package \"@s/a\" is not installed; run `npm install @s/a` in DIR"},
		"no package.json": {map[string]string{"function.js": `import "a";`},
			"function.js:1:8: the package \"a\" is not installed; run `npm install a` in DIR"},
		"a package of a package": {map[string]string{"function.js": `import "a";`, "node_modules/a/index.js": `import "b";`},
			"node_modules/a/index.js:1:8: the package \"b\", which node_modules/a/index.js imports, is not installed; run `npm install b` in DIR"},
		"a package that the function requires": {map[string]string{"function.js": `exports.main = () => require("a");`},
			"function.js:1:30: the package \"a\" is not installed; run `npm install a` in DIR"},
		"no such export": {map[string]string{"function.js": `import "a/x";`, "node_modules/a/package.json": `{"exports": {".": "./i.js"}}`},
			`function.js:1:8: the package "a" has no module "a/x": The path "./x" is not exported by package "a"`},
		"only for Node.js": {map[string]string{"function.js": `import "a";`, "node_modules/a/package.json": `{"exports": {"node": "./i.js"}}`},
			`function.js:1:8: the package "a" has no module "a": The path "." is not currently exported by package "a"`},
		"no such path": {map[string]string{"function.js": `import "@/x"; import "a";`, "node_modules/a/index.js": ``},
			`function.js:1:8: there is no file for the import "@/x"; tsconfig.json (paths) or package.json (imports) may define such names`},
		"no such file": {map[string]string{"function.js": `import "a"; import "./b.js";`, "node_modules/a/index.js": ``},
			`function.js:1:20: there is no file for the import "./b.js"`},
		"no such name": {map[string]string{"function.js": `import { b } from "a"; export default b;`, "node_modules/a/index.mjs": `export {};`, "node_modules/a/package.json": `{"module": "index.mjs"}`},
			`function.js:1:10: No matching export in "node_modules/a/index.mjs" for import "b"`},
		"a URL": {map[string]string{"function.js": `import "https://example.com/a.js";`},
			`function.js:1:8: "https://example.com/a.js" is a URL; install the package with npm and import it by its name`},
		"a syntax error": {map[string]string{"function.ts": `import "a"; import "./x";`, "x.ts": `let x: = 1;`, "node_modules/a/index.js": ``},
			`x.ts:1:8: Unexpected "="`},
		"a file of no known kind": {map[string]string{"function.js": `import "./a.exe";`, "a.exe": `x`},
			`function.js:1:8: No loader is configured for ".exe" files: a.exe`},
		"an ignored file": {map[string]string{"function.js": `import "a"; import "./ignored.js";`, "ignored.js": ``, "node_modules/a/index.js": ``},
			`function.js:1:20: ignored.js is imported, but not part of the function: .sousignore names it`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := Folder{Root: write(t, tt.files), Entry: "function.js", Ignored: func(path string) bool { return path == "ignored.js" }}
			for _, ext := range []string{".ts", ".tsx"} {
				if _, ok := tt.files["function"+ext]; ok {
					f.Entry = "function" + ext
				}
			}
			b, err := Make(f)
			if api.ErrorCode(err) != api.CodeValidationSource {
				t.Fatalf("Make = %v, %v; want %s", b, err, api.CodeValidationSource)
			}
			want := string(api.CodeValidationSource) + ": " + strings.ReplaceAll(tt.want, "DIR", f.Root)
			if got := err.Error(); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestPackagesAreListedBySize(t *testing.T) {
	t.Parallel()
	b, err := makeBundle(t, map[string]string{
		"function.js":                                `import a from "a"; import b from "b"; import s from "@s/c"; export default [a, b, s];`,
		"node_modules/a/package.json":                `{"version": "1.2.3", "main": "x.js"}`,
		"node_modules/a/x.js":                        `module.exports = "` + strings.Repeat("a", 500) + `";`,
		"node_modules/b/package.json":                `{"version": "2.0.0", "browser": 5, "dependencies": []}`,
		"node_modules/b/index.js":                    `module.exports = require("a");`,
		"node_modules/b/node_modules/a/package.json": `{"version": "0.9.0"}`,
		"node_modules/b/node_modules/a/index.js":     `module.exports = "` + strings.Repeat("a", 300) + `";`,
		"node_modules/@s/c/index.js":                 `module.exports = "` + strings.Repeat("c", 400) + `";`,
	})
	if err != nil {
		t.Fatalf("Make: %v", err)
	}
	sum := b.OwnBytes
	var got []string
	for _, p := range b.Packages {
		sum += p.Bytes
		got = append(got, p.Name+" "+p.Version)
	}
	if diff := cmp.Diff([]string{"a 1.2.3", "@s/c ", "a 0.9.0", "b 2.0.0"}, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	if b.OwnBytes == 0 || sum > b.Bytes || b.Bytes >= int64(len(b.Code)) {
		t.Errorf("got %d own bytes, %d with packages, %d of the module and %d with the map; want each larger than the one before", b.OwnBytes, sum, b.Bytes, len(b.Code))
	}
}

func TestWarningsAreOfOwnFiles(t *testing.T) {
	t.Parallel()
	b, err := makeBundle(t, map[string]string{
		"function.js":             `import a from "a"; export default () => typeof a === "nul";`,
		"node_modules/a/index.js": `module.exports = typeof x === "nul";`,
	})
	if err != nil {
		t.Fatalf("Make: %v", err)
	}
	if len(b.Warnings) != 1 || !strings.HasPrefix(b.Warnings[0], `function.js:1:54: The "typeof" operator`) {
		t.Errorf("got warnings %q, want one at function.js:1:54", b.Warnings)
	}
}

func TestBundleHasNoTraceOfTheMachine(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"function.ts":             "import a from \"a\";\nimport { x } from \"./lib/x\";\nexport default () => a + x;",
		"lib/x.ts":                "export const x: number = 1;\n",
		"node_modules/a/index.js": "module.exports = 1;\n//# sourceMappingURL=index.js.map\n",
		// The map names a file that is not installed.
		"node_modules/a/index.js.map": `{"version": 3, "sources": ["../src/index.ts"], "names": [], "mappings": "AAAA"}`,
	}
	first, err := makeBundle(t, files)
	if err != nil {
		t.Fatalf("Make: %v", err)
	}
	second, err := makeBundle(t, files)
	if err != nil {
		t.Fatalf("Make: %v", err)
	}
	if !bytes.Equal(first.Code, second.Code) {
		t.Errorf("two folders of the same files: got different bundles, want equal ones")
	}
	if bytes.Contains(first.Code, []byte(os.TempDir())) || bytes.Contains(first.mapping, []byte(os.TempDir())) {
		t.Errorf("got the path of the folder in the bundle, want none\n%s\n%s", first.Code, first.mapping)
	}
	if want := `"sources":["node_modules/a/index.js","function.ts","lib/x.ts"]`; !bytes.Contains(first.mapping, []byte(want)) {
		t.Errorf("source map: got %s, want %s", first.mapping, want)
	}
}

func TestOriginal(t *testing.T) {
	t.Parallel()
	b, err := makeBundle(t, map[string]string{
		"function.ts":             "import a from \"a\";\n\n\nexport default (): never => { throw a(); };",
		"node_modules/a/index.js": "\nmodule.exports = () => { return new Error(\"here\"); };",
	})
	if err != nil {
		t.Fatalf("Make: %v", err)
	}
	for text, want := range map[string]string{"throw": "function.ts:4:31", "new Error": "node_modules/a/index.js:2:33"} {
		at := bytes.LastIndex(b.Code[:b.Bytes], []byte(text)) // the first ones may be esbuild's
		if at < 0 {
			t.Fatalf("got code without %q, want it in\n%s", text, b.Code)
		}
		before := b.Code[:at]
		line := bytes.Count(before, []byte("\n")) + 1
		column := len(before) - bytes.LastIndexByte(before, '\n')
		file, l, c, ok := b.Original(line, column)
		if got := place(file, l, c); !ok || got != want {
			t.Errorf("Original of %q at %d:%d = %s, %v; want %s", text, line, column, got, ok, want)
		}
	}
	if file, _, _, ok := b.Original(1<<20, 1); ok {
		t.Errorf("Original of a line that is not there: got %s, want none", file)
	}
}

func TestPlainSource(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"function.ts":                        "function.ts",
		"../lib/x.ts":                        "../lib/x.ts",
		"node_modules/a/index.js":            "node_modules/a/index.js",
		"../../node_modules/a/index.js":      "node_modules/a/index.js",
		"node_modules/b/node_modules/a/x.js": "node_modules/b/node_modules/a/x.js",
		"web/node_modules/a/x.js":            "node_modules/a/x.js",
		"require:node:crypto":                "node:crypto",
		"../node_modules/.pnpm/@s+a@1.0.0_b@2/node_modules/@s/a/x.js": "node_modules/@s/a/x.js",
		"node_modules/.store/x.js":                                    "node_modules/.store/x.js",
	} {
		if got := plainSource(name); got != want {
			t.Errorf("plainSource(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestLinkedPackages(t *testing.T) {
	t.Parallel()
	// The layouts of workspaces and of pnpm.
	root := write(t, map[string]string{
		"apps/fn/function.js":                                    `import { shared } from "shared"; import p from "p"; export default shared + p;`,
		"package.json":                                           `{"workspaces": ["apps/*", "packages/*"]}`,
		"packages/shared/package.json":                           `{"name": "shared", "version": "1.0.0"}`,
		"packages/shared/index.js":                               `import top from "top"; export const shared = "shared " + top;`,
		"node_modules/top/index.js":                              `module.exports = "top ";`,
		"node_modules/.pnpm/p@3.0.0/node_modules/p/package.json": `{"name": "p", "version": "3.0.0"}`,
		"node_modules/.pnpm/p@3.0.0/node_modules/p/index.js":     `module.exports = require("q");`,
		"node_modules/.pnpm/p@3.0.0/node_modules/q/index.js":     `module.exports = "q";`,
	})
	for link, to := range map[string]string{"shared": "../packages/shared", "p": ".pnpm/p@3.0.0/node_modules/p"} {
		if err := os.Symlink(to, filepath.Join(root, packagesFolder, link)); err != nil {
			t.Fatalf("os.Symlink: %v", err)
		}
	}
	b, err := Make(Folder{Root: filepath.Join(root, "apps/fn"), Entry: "function.js"})
	if err != nil || b == nil {
		t.Fatalf("Make = %v, %v; want a bundle", b, err)
	}
	if got, want := evaluate(t, b.Code), `"shared top q"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := `["node_modules/top/index.js","node_modules/q/index.js","node_modules/p/index.js","../../packages/shared/index.js","function.js"]`; !bytes.Contains(b.mapping, []byte(want)) {
		t.Errorf("source map: got %s, want %s", b.mapping, want)
	}
}
