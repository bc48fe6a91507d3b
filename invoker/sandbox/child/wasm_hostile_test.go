package child

import (
	"testing"
	"time"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// Modules of the tests, as bytes of JavaScript.
const (
	// loopModule exports f, which never ends.
	loopModule = `[0,97,115,109,1,0,0,0, 1,4,1,96,0,0, 3,2,1,0, 7,5,1,1,102,0,0, 10,9,1,7,0,3,64,12,0,11,11]`
	// loopStart never ends its start function.
	loopStart = `[0,97,115,109,1,0,0,0, 1,4,1,96,0,0, 3,2,1,0, 8,1,0, 10,9,1,7,0,3,64,12,0,11,11]`
	// forward exports f, which calls the import m.f.
	forward = `[0,97,115,109,1,0,0,0, 1,4,1,96,0,0, 2,7,1,1,109,1,102,0,0, 3,2,1,0, 7,5,1,1,102,0,1, 10,6,1,4,0,16,0,11]`
)

const instanceOf = `const of = (bytes, m) => new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes)), { m }).exports;`

// TestWasmLoopsEnd: WebAssembly that never ends is stopped by the deadline, without the kill
// of the process that the parent holds in reserve, and cannot be caught.
func TestWasmLoopsEnd(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"export":             `of(` + loopModule + `).f()`,
		"start":              `of(` + loopStart + `)`,
		"import":             `of(` + forward + `, of(` + loopModule + `)).f()`,
		"import of a script": `const e = of(` + loopModule + `); of(` + forward + `, { f() { e.f() } }).f()`,
		"loop of a script":   `of(` + forward + `, { f() { for (;;); } }).f()`,
		"calls in a loop":    `const e = of(` + forward + `, { f() {} }); for (;;) e.f()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := spawn(t)
			p.source(instanceOf + `export default () => { for (;;) { try { ` + source + ` } catch (e) {} } }`)
			start := time.Now()
			p.begin("null", 300*time.Millisecond)
			if o := p.finish(); o.Outcome != wire.OutcomeTimeout || o.Flags&wire.FlagRetire == 0 {
				t.Errorf("outcome %d with flags %b (%s), want a timeout that retires the child", o.Outcome, o.Flags, o.Body)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("the activation took %v, want about its deadline of 300ms", took)
			}
		})
	}
}

// TestWasmRecursionIsCaught: no recursion ends the child, whose stack is bounded.
func TestWasmRecursionIsCaught(t *testing.T) {
	t.Parallel()
	p := spawn(t)
	p.source(instanceOf + `
		const recursive = [0,97,115,109,1,0,0,0, 1,4,1,96,0,0, 3,2,1,0, 7,5,1,1,102,0,0, 10,6,1,4,0,16,0,11];
		const caught = (f) => { try { f(); return "returned" } catch (e) { return e.name } };
		export default () => {
			const turns = of(` + forward + `, { f: () => turns.f() });
			const deep = of(recursive);
			const both = of(` + forward + `, { f() { try { both.f() } finally { deep.f() } } });
			const mapped = of(` + forward + `, { f: () => [1].map(() => mapped.f()) });
			const made = { f: () => of(` + forward + `, made).f() };
			return [caught(() => deep.f()), caught(() => turns.f()), caught(() => both.f()), caught(() => mapped.f()), caught(() => made.f()), caught(() => of(` + forward + `, { f() {} }).f())];
		}`)
	for range 2 {
		if got, want := p.value("null"), `["RangeError","RangeError","RangeError","RangeError","RangeError","returned"]`; got != want {
			t.Errorf("recursions: got %s, want %s", got, want)
		}
	}
}

// TestWasmMemoryIsCounted: memories of WebAssembly are part of the memory of an activation,
// and instances that each activation makes do not fill an instance of the function.
func TestWasmMemoryIsCounted(t *testing.T) {
	t.Parallel()
	p := spawn(t)
	p.instance = &wire.Instance{Activations: 1000, AgeMS: 600_000}
	p.source(`export default (pages) => { const m = new WebAssembly.Memory({ initial: pages }); new Uint8Array(m.buffer).fill(1); return m.buffer.byteLength }`)
	for range 30 {
		o := p.invoke("160")
		if string(o.Body) != "10485760" {
			t.Fatalf("a memory of 10 MB in each activation: outcome %d (%s), want 10485760", o.Outcome, o.Body)
		}
		if o.MemoryPeak < 10<<20 {
			t.Errorf("memory peak %d, want at least the 10 MB of the memory", o.MemoryPeak)
		}
	}
}

// TestWasmMemoryGrowsToItsLimit: a memory that is copied while it grows reaches an error of
// its own, not the memory limit of the activation.
func TestWasmMemoryGrowsToItsLimit(t *testing.T) {
	t.Parallel()
	p := spawn(t).source(`export default () => { const m = new WebAssembly.Memory({ initial: 1 }); let n = 1; try { for (;; n++) m.grow(1) } catch (e) { return [e.name, n > 512, n * 65536 === m.buffer.byteLength] } }`)
	if o := p.invoke("null"); string(o.Body) != `["RangeError",true,true]` {
		t.Errorf("a memory that grows by pages: got outcome %d (%s), want a RangeError above 32 MB of 64 MB", o.Outcome, o.Body)
	}
}

// TestWasmTablesShareALimit: the tables of all instances count, and a handler that makes one
// in each activation gets a new instance of the function before there is no room.
func TestWasmTablesShareALimit(t *testing.T) {
	t.Parallel()
	const script = `
		const count = [0,97,115,109,1,0,0,0, 4,16,3, 0x70,0,0x80,0x89,0x7a, 0x70,0,0x80,0x89,0x7a, 0x70,0,0x80,0x89,0x7a]; // 3 tables of 2,000,000 elements
		export default () => {
			const made = (f) => { try { f(); return "made" } catch (e) { return e.name } };
			const t = new WebAssembly.Table({ element: "anyfunc", initial: 4e6 });
			return [made(() => new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(count)))), made(() => new WebAssembly.Table({ element: "anyfunc", initial: 4e5 })), made(() => t.grow(4e5)), made(() => t.grow(1e5))];
		}`
	if got, want := spawn(t).source(script).value("null"), `["RangeError","RangeError","RangeError","made"]`; got != want {
		t.Errorf("tables beyond the limit: got %s, want %s", got, want)
	}
	p := spawn(t)
	p.instance = &wire.Instance{Activations: 1000, AgeMS: 600_000}
	p.source(`export default () => new WebAssembly.Table({ element: "anyfunc", initial: 1e6 }).length`)
	for range 12 {
		if got := p.value("null"); got != "1000000" {
			t.Fatalf("a table of 8 MB in each activation: got %s, want 1000000", got)
		}
	}
}

// TestWasmPoisonedInput: values and builtins that scripts have prepared end as errors, not the
// child.
func TestWasmPoisonedInput(t *testing.T) {
	t.Parallel()
	const global = `[0,97,115,109,1,0,0,0, 2,8,1,1,109,1,103,3,127,0]` // imports the global m.g, an i32
	for name, source := range map[string]string{
		"a deep object":       `let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; of(` + global + `, { g: o })`,
		"an object's getters": `of(` + global + `, { g: { get x() { for (;;); } } })`,
		"no Object.freeze":    `Object.freeze = 1; of(` + global + `, { g: 1 })`,
		"no BigInt.asIntN":    `BigInt.asIntN = 1; of(` + global + `, { g: 1 })`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := spawn(t)
			p.source(instanceOf + `export default () => { try { ` + source + `; return "linked" } catch (e) { return e.name } }`)
			if got := p.value("null"); got != `"TypeError"` && got != `"LinkError"` {
				t.Errorf("got %s, want a TypeError or a LinkError", got)
			}
		})
	}
	p := spawn(t).source(instanceOf + `export default () => {
		Object.defineProperty(Object.prototype, "CompileError", { set() {}, configurable: true });
		return typeof WebAssembly.CompileError }`)
	if got := p.value("null"); got != `"function"` {
		t.Errorf("with a setter of Object.prototype: got %s, want a class", got)
	}
}
