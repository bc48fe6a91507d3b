package child

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker/sandbox/child/node"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

//go:embed testdata/node/*.js
var nodeScripts embed.FS

// isolations are both ways in which a version is served.
func isolations() map[string]*wire.Instance {
	return map[string]*wire.Instance{"instance": longLived(), "activation": nil}
}

// TestNodeModules runs the script of each module of Node, testdata/node/NAME.js, twice in
// both isolations.
func TestNodeModules(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(nodeScripts, "testdata/node/*.js")
	if err != nil || len(names) == 0 {
		t.Fatalf("scripts of modules = %v, %v, want some", names, err)
	}
	for _, name := range names {
		source, err := nodeScripts.ReadFile(name)
		if err != nil {
			t.Fatalf("nodeScripts.ReadFile: %v", err)
		}
		for isolation, instance := range isolations() {
			t.Run(strings.TrimSuffix(strings.TrimPrefix(name, "testdata/node/"), ".js")+"/"+isolation, func(t *testing.T) {
				t.Parallel()
				p := inProcess(t)
				p.env = map[string]string{"REGION": "eu"}
				p.host, p.instance = answer, instance
				p.load(map[string]string{
					"function.js": `import run from "./case.js"; import { failures } from "./check.js";
						export default async () => { await run(); return failures.splice(0) }`,
					"case.js": string(source), "check.js": prelude,
				})
				for range 2 {
					var failures []string
					if err := json.Unmarshal([]byte(p.value("null")), &failures); err != nil {
						t.Fatalf("json.Unmarshal: %v", err)
					}
					for _, f := range failures {
						t.Errorf("script: got failure %s, want none", f)
					}
				}
			})
		}
	}
}

// TestNodeModulesExportWhatNodeExports: each name that Node's module exports is there. Where
// it is not supported, it is a function that says so when it is called.
func TestNodeModulesExportWhatNodeExports(t *testing.T) {
	t.Parallel()
	if len(node.Modules()) < 55 {
		t.Errorf("got %d modules, want at least 55", len(node.Modules()))
	}
	for _, module := range node.Modules() {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t)
			p.source(`
				import * as all from "node:` + module + `";
				import whole from "node:` + module + `";
				const required = require("node:` + module + `");
				export default async (names) => {
					const wrong = [];
					if (required !== whole) wrong.push("require and import differ");
					for (const name of names) {
						if (!(name in whole)) { wrong.push(name + " is missing"); continue }
						const v = whole[name];
						if (all[name] !== v && v === v) wrong.push(name + " differs between the namespace and the default export");
						if (typeof v !== "function" || !/throw unsupportedError\((module, name|name, key)\)/.test(v.toString())) continue;
						for (const use of [() => v(), () => new v()]) {
							try { await use(); wrong.push(name + " does not throw") }
							catch (e) {
								if (e instanceof TypeError && /constructor/.test(e.message)) continue; // an async function
								if (e.code !== "ERR_CS_UNSUPPORTED" || !/^node:\S+: \S+ is not available in functions$/.test(e.message)) wrong.push(name + ": " + e.code + " " + e.message);
							}
						}
					}
					return wrong;
				}`)
			names, err := json.Marshal(node.Names(module))
			if err != nil {
				t.Fatalf("json.Marshal: %v", err)
			}
			if got := p.value(string(names)); got != "[]" {
				t.Errorf("got %s, want []", got)
			}
		})
	}
}

// TestAsyncLocalStorageEndsWithItsActivation: a store that an activation leaves is not there
// in the next one, and what an activation bound runs in the one that calls it.
func TestAsyncLocalStorageEndsWithItsActivation(t *testing.T) {
	t.Parallel()
	p := inInstance(t, `import { AsyncLocalStorage } from "node:async_hooks";
		const als = new AsyncLocalStorage(); let bound, go; const gate = new Promise((r) => { go = r });
		export default async (step) => {
			if (step === 1) { als.enterWith("one"); bound = AsyncLocalStorage.snapshot(); return als.getStore() }
			const before = als.getStore();
			const kept = await bound(async () => { console.log("in it"); await cs.kv.get("there"); return als.getStore() });
			return [before, kept, als.getStore()];
		}`)
	for step, want := range []string{`"one"`, `[null,"one",null]`, `[null,"one",null]`} {
		o := p.invoke(fmt.Sprint(step + 1))
		if string(o.Body) != want {
			t.Errorf("activation %d: got %s, want %s", step+1, o.Body, want)
		}
		if got := len(o.Logs); got != min(step, 1) {
			t.Errorf("activation %d: got %d log lines, want %d", step+1, got, min(step, 1))
		}
	}
}

// TestNodeModulesArePure: modules that are imported have no effect when they are evaluated,
// so that a realm can be built ahead.
func TestNodeModulesArePure(t *testing.T) {
	t.Parallel()
	for _, module := range node.Modules() {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			source := "const m = require(" + strconv.Quote(node.Prefix+module) + "); export default () => typeof m"
			ctl := newControl()
			r := newRealm(loaded(t, source), ctl, nil)
			if err := r.evaluate(); err != nil || ctl.cause() != causeNone {
				t.Errorf("evaluate: got %v, stopped for %d; want no error and no stop", err, ctl.cause())
			}
		})
	}
}

// loaded compiles a module.
func loaded(t *testing.T, source string) *program {
	t.Helper()
	tar, err := bundle.Pack(map[string][]byte{"function.js": []byte(source)})
	if err != nil {
		t.Fatalf("bundle.Pack: %v", err)
	}
	p, _, problems := load(wire.Assign{Handler: "default"}, tar)
	if len(problems) > 0 {
		t.Fatalf("load = %v, want no problems", problems)
	}
	return p
}

// TestNodeIsNotFree: a script that names no module of Node evaluates none.
func TestNodeIsNotFree(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"export default async (event, ctx) => ({ hello: event.name, n: await 1 })": false,
		"export default () => typeof Buffer":                                       true,
		"import 'node:fs'; export default () => 1":                                 false,
		"import os from 'node:os'; export default () => os.EOL":                    true,
	} {
		r := newRealm(loaded(t, source), newControl(), nil)
		if err := r.evaluate(); err != nil {
			t.Fatalf("evaluate: %v", err)
		}
		if _, err := r.handler(goja.Undefined(), r.vm.NewObject()); err != nil {
			t.Fatalf("handler: %v", err)
		}
		if got := len(r.node) > 0; got != want {
			t.Errorf("%s: got modules of Node %v, want %v", source, got, want)
		}
	}
}
