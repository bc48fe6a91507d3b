package child

import (
	"testing"
	"time"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// TestHostileWebObjects: scripts that poison what the modules of the platform are made with,
// or re-enter them, get an exception or a value. A panic of Go would end the process of the
// test.
func TestHostileWebObjects(t *testing.T) {
	t.Parallel()
	const use = `
		const use = async () => {
			const c = new MessageChannel(); c.port2.onmessage = () => {}; c.port1.postMessage({ a: new Uint8Array(3), b: new Blob(["x"]) });
			structuredClone({ d: new Date(), e: new Error("x"), m: new Map([[1, 2]]), o: Object("s") }, { transfer: [new ArrayBuffer(1)] });
			addEventListener("error", (e) => e.preventDefault()); reportError(new Error("x")); const a = new AbortController(); AbortSignal.any([a.signal]); a.abort();
			const s = new Blob(["abc"]).stream().pipeThrough(new CompressionStream("gzip")).pipeThrough(new DecompressionStream("gzip"));
			const r = new ReadableStream({ type: "bytes", pull(c) { c.enqueue(new Uint8Array([1])); } }).getReader({ mode: "byob" }); await Promise.race([r.read(new Uint8Array(2)), scheduler.wait(5)]);
			await Promise.race([new Response(s).text(), scheduler.wait(5)]); dispatchEvent(new CustomEvent("x")); performance.now(); navigator.userAgent; new DOMException("m", "n").code; crypto.subtle; new Request("https://a.example/").mode;
		};
		const tried = async (poison) => { try { poison(); await use(); return "value" } catch (e) { return "exception" } };`
	for name, poison := range map[string]string{
		"setters of Object":        `for (const k of ["exports", "type", "message", "value", "done", "filename", "chunk", "stream", "bytes", "then", "kind", "reader", "transfer", "promise", "0"]) Object.defineProperty(Object.prototype, k, { set() {}, get() { return 5 }, configurable: true })`,
		"setters of Array":         `for (const k of [0, 1, 2]) Object.defineProperty(Array.prototype, k, { set() { throw 1 }, get() { return 5 }, configurable: true })`,
		"array methods":            `for (const k of Object.getOwnPropertyNames(Array.prototype)) if (typeof Array.prototype[k] === "function") Array.prototype[k] = () => 7`,
		"array iterator":           `Array.prototype[Symbol.iterator] = function* () { yield 1; yield {} }`,
		"map methods":              `for (const C of [Map, Set, WeakMap]) for (const k of Object.getOwnPropertyNames(C.prototype)) { try { if (typeof C.prototype[k] === "function") C.prototype[k] = () => 3 } catch {} }`,
		"promises":                 `Promise.prototype.then = () => 5; Promise.resolve = Promise.reject = () => 1`,
		"a then that calls back":   `Promise.prototype.then = function (f) { try { f(1) } catch {} return this }`,
		"Promise":                  `globalThis.Promise = class { constructor(f) { f(() => {}, () => {}) } then() { return this } }`,
		"species":                  `Promise[Symbol.species] = 3; Promise.prototype.constructor = 3`,
		"Reflect and Object":       `Reflect.apply = Object.defineProperty = Object.getOwnPropertyDescriptor = Object.getPrototypeOf = Object.assign = () => 3`,
		"Uint8Array":               `globalThis.Uint8Array = 3; globalThis.ArrayBuffer = 3; globalThis.DataView = 3`,
		"typed array members":      `const P = Object.getPrototypeOf(Uint8Array.prototype); for (const k of ["buffer", "byteLength", "byteOffset", "length", Symbol.toStringTag]) Object.defineProperty(P, k, { get() { return -1 } }); P.set = P.subarray = () => 3`,
		"ArrayBuffer members":      `Object.defineProperty(ArrayBuffer.prototype, "byteLength", { get() { return 1e9 } }); ArrayBuffer.isView = () => true`,
		"errors":                   `globalThis.Error = globalThis.TypeError = globalThis.RangeError = 3; globalThis.DOMException = 4`,
		"platform prototypes":      `EventTarget.prototype.addEventListener = 3; for (const k of Object.getOwnPropertyNames(ReadableStream.prototype)) delete ReadableStream.prototype[k]; delete MessagePort.prototype.postMessage`,
		"platform classes":         `for (const k of ["ReadableStream", "EventTarget", "Event", "Blob", "AbortController", "AbortSignal", "MessagePort", "TextEncoder", "TextDecoder", "DOMException"]) globalThis[k] = 5`,
		"symbols":                  `Object.defineProperty(Object.prototype, Symbol.toPrimitive, { get() { throw 1 } }); String.prototype.replace = Number.prototype.valueOf = () => ({})`,
		"String and Number":        `globalThis.String = globalThis.Number = globalThis.Math = 3`,
		"prototypes of prototypes": `Object.setPrototypeOf(EventTarget.prototype, new Proxy({}, { get() { throw 1 }, has() { throw 1 } })); Object.setPrototypeOf(AbortSignal.prototype, null)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source(use + `export default async () => tried(() => { ` + poison + ` })`)
			p.begin("null", 2*time.Second)
			if o := p.finish(); len(o.Body) == 0 && o.Outcome != wire.OutcomeTimeout {
				t.Errorf("got outcome %d without a body, want a value, an exception or a timeout", o.Outcome)
			}
		})
	}
	for name, tt := range map[string]struct{ script, want string }{
		"detached while it is read":    {`const v = new Uint8Array(8), s = new ReadableStream({ type: "bytes", pull(c) { structuredClone(1, { transfer: [c.byobRequest.view.buffer] }); try { c.byobRequest.respond(1) } catch (e) { c.error(e) } } }); return s.getReader({ mode: "byob" }).read(v).catch((e) => e.name)`, `"TypeError"`},
		"detached and compressed":      {`const b = new Uint8Array(9); structuredClone(1, { transfer: [b.buffer] }); const s = new CompressionStream("gzip"), w = s.writable.getWriter(); s.readable.getReader().read(); return w.write(b).then(() => "taken", (e) => e.name)`, `"taken"`},
		"a chunk with a huge length":   {`const b = new Uint8Array(4); Object.defineProperty(b, "byteLength", { value: 2 ** 40 }); const s = new CompressionStream("gzip"), w = s.writable.getWriter(); w.write(b); w.close(); return (await new Response(s.readable.pipeThrough(new DecompressionStream("gzip"))).bytes()).length`, `4`},
		"WebAssembly's memory":         {`const m = new WebAssembly.Memory({ initial: 1 }); try { structuredClone(1, { transfer: [m.buffer] }) } catch (e) { return [e.name, m.buffer.byteLength] }`, `["TypeError",65536]`},
		"a buffer that inherits":       {`const a = new ArrayBuffer(8, { maxByteLength: 16 }), b = new ArrayBuffer(1 << 20), v = new Float64Array(b); Object.setPrototypeOf(b, a); const { resize } = ArrayBuffer.prototype; try { resize.call(b, 8) } catch (e) { return [e.name, v[1 << 16], v.length] }`, `["TypeError",0,131072]`},
		"a state of another buffer":    {`const a = new ArrayBuffer(8, { maxByteLength: 16 }), b = new ArrayBuffer(1 << 20); for (const k of Object.getOwnPropertySymbols(a)) Object.defineProperty(b, k, { value: a[k] }); try { b.resize(8) } catch (e) { return [e.name, b.byteLength] }`, `["TypeError",1048576]`},
		"a proxy for a receiver":       {`let o = {}; for (let i = 0; i < 2e5; i++) o = { o }; const p = new Proxy(new Headers(), { get: () => o }); try { Headers.prototype.get.call(p, "x") } catch (e) { return e.name }`, `"TypeError"`},
		"an object in the slot":        {`let o = {}; for (let i = 0; i < 2e5; i++) o = { o }; const p = {}; for (const k of Object.getOwnPropertySymbols(new Headers())) p[k] = o; try { Headers.prototype.get.call(p, "x") } catch (e) { return e.name }`, `"TypeError"`},
		"a buffer that a getter moves": {`const b = new ArrayBuffer(4); try { structuredClone({ get a() { structuredClone(b, { transfer: [b] }) } }, { transfer: [b] }) } catch (e) { return e.name }`, `"DataCloneError"`},
		"a long chain of signals":      {`const c = new AbortController(); let s = c.signal; for (let i = 0; i < 20000; i++) s = AbortSignal.any([s]); c.abort(1); return s.reason`, `1`},
		"a clone in a getter":          {`let n = 0; const o = { get a() { if (n++ < 200) structuredClone(o); return 1 } }; structuredClone(o); return n`, `201`},
		"events in events":             {`const t = new EventTarget(); let n = 0; t.addEventListener("x", () => { if (n++ < 300) t.dispatchEvent(new Event("x")) }); t.dispatchEvent(new Event("x")); return n`, `301`},
		"a port in itself":             {`const { port1, port2 } = new MessageChannel(); port1.postMessage(0, [port2]); port1.postMessage(1); return "lost"`, `"lost"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := inProcess(t).source(`export default async () => { ` + tt.script + ` }`).invoke("null")
			if got := string(o.Body); got != tt.want {
				t.Errorf("got outcome %d with %s, want %s", o.Outcome, got, tt.want)
			}
		})
	}
	for name, script := range map[string]string{
		"an endless list":        `structuredClone(1, { transfer: (function* () { for (;;) yield {} })() })`,
		"a list of many locales": `Intl.getCanonicalLocales({ length: 2 ** 53 })`,
	} {
		p := inProcess(t).source(`export default () => ` + script)
		p.begin("null", 100*time.Millisecond)
		if o := p.finish(); o.Outcome != wire.OutcomeTimeout {
			t.Errorf("%s: got outcome %d with %s, want a timeout", name, o.Outcome, o.Body)
		}
	}
}
