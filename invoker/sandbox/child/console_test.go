package child

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

func TestConsole(t *testing.T) {
	t.Parallel()
	const text, isJSON = false, true
	type line struct {
		Level string
		JSON  bool
		Text  string
	}
	for _, tt := range []struct {
		source string
		want   line
	}{
		{`console.log("a", 1, true, null, undefined)`, line{"info", text, "a 1 true null undefined"}},
		{`console.log()`, line{"info", text, ""}},
		{`console.log({ a: 1 })`, line{"info", isJSON, `{"a":1}`}},
		{`console.log([1, "b"])`, line{"info", isJSON, `[1,"b"]`}},
		{`console.debug("d")`, line{"debug", text, "d"}},
		{`console.info("i")`, line{"info", text, "i"}},
		{`console.warn("w")`, line{"warn", text, "w"}},
		{`console.error("e")`, line{"error", text, "e"}},
		{`console.log("%s is %d of %i, %j %o %% %c%x", "a", 4.5, 4.5, { k: 1 }, { o: [1] }, "css", 7)`, line{"info", text, `a is 4.5 of 4, {"k":1} { o: [ 1 ] } % %x 7`}},
		{`console.log("%d", "x", "%s")`, line{"info", text, "NaN %s"}},
		{`console.log("100%")`, line{"info", text, "100%"}},
		{`console.log("x", { a: "it's", "b-c": [1, [2, [3, [4]]]], d: { e: { f: { g: 1 } } } })`, line{"info", text, `x { a: 'it\'s', 'b-c': [ 1, [ 2, [Array] ] ], d: { e: { f: [Object] } } }`}},
		{`console.log("x", new Map([[1, { a: 1 }]]), new Set(["s"]), [], {}, -0, 1n, Symbol("q"))`, line{"info", text, `x Map(1) { 1 => { a: 1 } } Set(1) { 's' } [] {} -0 1n Symbol(q)`}},
		{`class P { x = 1 } console.log("x", new P(), () => 1, function f() {}, /r/g, new Date(0), Promise.resolve())`, line{"info", text, `x P { x: 1 } [Function (anonymous)] [Function: f] /r/g 1970-01-01T00:00:00.000Z Promise { <fulfilled> }`}},
		{`const a = {}; a.self = a; console.log(a)`, line{"info", text, `{ self: [Circular *1] }`}},
		{`const e = new Error("m"); e.stack = "S"; console.error("failed:", e)`, line{"error", text, `failed: S`}},
		{`const e = new Error("m"); e.stack = "S"; cs.log.error(e)`, line{"error", text, `S`}},
		{`cs.log.info({ a: [1] })`, line{"info", isJSON, `{"a":[1]}`}},
		{`const e = new TypeError("m", { cause: new Error("c") }); e.stack = "S"; e.code = "E"; e.cause.stack = "T"; cs.log.info({ e })`,
			line{"info", isJSON, `{"e":{"name":"TypeError","message":"m","stack":"S","cause":{"name":"Error","message":"c","stack":"T"},"code":"E"}}`}},
		{`const e = new AggregateError([new Error("a")], "m"); e.stack = e.errors[0].stack = "S"; console.log({ e })`,
			line{"info", isJSON, `{"e":{"name":"AggregateError","message":"m","stack":"S","errors":[{"name":"Error","message":"a","stack":"S"}]}}`}},
		{`class E extends Error { toJSON() { return "own" } } cs.log.info({ e: new E("m") })`, line{"info", isJSON, `{"e":"own"}`}},
		{`cs.log.info("failed", new Error("m").cause)`, line{"info", isJSON, `["failed",null]`}},
		{`const e = new Error("m"); e.stack = "S"; cs.log.info("failed", e)`, line{"info", isJSON, `["failed",{"name":"Error","message":"m","stack":"S"}]`}},
		{`cs.log.warn("text")`, line{"warn", text, `text`}},
		{`cs.log.debug("a", { b: 1 }, undefined)`, line{"debug", isJSON, `["a",{"b":1},null]`}},
		{`cs.log.info(5)`, line{"info", isJSON, `5`}},
		{`cs.log.info(1n)`, line{"info", text, `1n`}},
		{`cs.log.info(undefined)`, line{"info", text, `undefined`}},
		{`console.table([{ a: 1, b: "x" }, { a: 2 }, 3])`, line{"info", text, "┌─────────┬───┬─────┬────────┐\n│ (index) │ a │ b   │ Values │\n├─────────┼───┼─────┼────────┤\n│ 0       │ 1 │ 'x' │        │\n│ 1       │ 2 │     │        │\n│ 2       │   │     │ 3      │\n└─────────┴───┴─────┴────────┘"}},
		{`console.table([{ a: 1, b: 2 }], ["b"])`, line{"info", text, "┌─────────┬───┐\n│ (index) │ b │\n├─────────┼───┤\n│ 0       │ 2 │\n└─────────┴───┘"}},
		{`console.table(5)`, line{"info", text, "5"}},
		{`console.assert(true, "no"); console.assert(1 > 2, "a %s", "b")`, line{"warn", text, "Assertion failed: a b"}},
		{`console.group(); console.log("a\nb"); console.groupEnd(); console.groupEnd()`, line{"info", text, "  a\n  b"}},
		{`const e = new Error("m", { cause: "c" }); e.stack = "S"; console.error("failed:", e)`, line{"error", text, "failed: S\nCaused by: c"}},
		{`console.log("\ud800")`, line{"info", text, "\ufffd"}},
	} {
		t.Run(tt.source, func(t *testing.T) {
			t.Parallel()
			o := inProcess(t).source("export default () => { " + tt.source + " }").invoke("null")
			if o.Outcome != wire.OutcomeUndefined || len(o.Logs) != 1 {
				t.Fatalf("got outcome %d with %s and %d lines, want undefined and 1 line", o.Outcome, o.Body, len(o.Logs))
			}
			l := o.Logs[0]
			if diff := cmp.Diff(tt.want, line{wire.Levels[l.Level], l.JSON, string(l.Text)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConsoleShowsThePlace(t *testing.T) {
	t.Parallel()
	o := inProcess(t).source("export default function handle() {\n  console.error(new Error('m'));\n  console.trace('here');\n}").invoke("null")
	want := []string{"Error: m\n    at handle (function.js:2:17)", "Trace: here\n    at handle (function.js:3:"}
	for i, w := range want {
		if got := string(o.Logs[i].Text); len(got) < len(w) || got[:len(w)] != w {
			t.Errorf("got %q, want %q", got, w)
		}
	}
}
