import { check, throws, rejects } from "./check.js";
import { I32, I64, F32, F64, FUNC, EXTERN, wasm, make, threw } from "./assembler.js";

async function modules() {
  const add = wasm({ types: [[[I32, I32], [I32]]], funcs: [[0, 0x20, 0, 0x20, 1, 0x6a]], exports: [["add", 0, 0]], custom: ["note", [1, 2, 3]] });
  check("validate", [WebAssembly.validate(add), WebAssembly.validate(add.buffer), WebAssembly.validate(new Uint8Array(4)), WebAssembly.validate(add.slice(0, -3))], [true, true, false, false]);
  throws("validate of text", () => WebAssembly.validate("x"), "TypeError");
  const module = await WebAssembly.compile(add);
  check("compile", [module instanceof WebAssembly.Module, String(module), String(WebAssembly), WebAssembly.Module.name], [true, "[object WebAssembly.Module]", "[object WebAssembly]", "Module"]);
  check("descriptions", [WebAssembly.Module.exports(module), WebAssembly.Module.imports(module), WebAssembly.Module.customSections(module, "note").map((b) => [...new Uint8Array(b)]), WebAssembly.Module.customSections(module, "none")],
    [[{ name: "add", kind: "function" }], [], [[1, 2, 3]], []]);
  throws("customSections without a name", () => WebAssembly.Module.customSections(module), "TypeError");
  const both = await WebAssembly.instantiate(add), one = await WebAssembly.instantiate(module);
  check("instantiate", [both.instance.exports.add(2, 3), both.module instanceof WebAssembly.Module, one instanceof WebAssembly.Instance, one.exports.add(-1, "5"), one.exports.add(2 ** 31, 0), one.exports.add()], [5, true, true, 4, -(2 ** 31), 0]);
  const exports = one.exports;
  check("exports", [Object.isFrozen(exports), Object.getPrototypeOf(exports), exports === one.exports, exports.add.name, exports.add.length, typeof exports.add, threw(() => { "use strict"; exports.x = 1; })], [true, null, true, "0", 2, "function", "TypeError"]);
  await rejects("compile of garbage", WebAssembly.compile(new Uint8Array([1, 2])), "CompileError");
  await rejects("instantiate with imports of a wrong type", WebAssembly.instantiate(add, 3), "TypeError");
  for (const name of ["CompileError", "LinkError", "RuntimeError"]) {
    const E = WebAssembly[name], e = new E("m", { cause: 7 });
    check(name, [e instanceof Error, e.name, e.message, String(E("x")), e.cause, Object.keys(e), E.length, Object.getPrototypeOf(E) === Error], [true, name, "m", name + ": x", 7, [], 1, true]);
  }
  check("constructors need their argument", ["Module", "Instance", "Memory", "Table", "Global"].map((n) => [threw(() => WebAssembly[n]()), threw(() => new WebAssembly[n]())]), Array(5).fill(["TypeError", "TypeError"]));
  throws("a member of another class", () => Object.getOwnPropertyDescriptor(WebAssembly.Memory.prototype, "buffer").get.call(module), "TypeError");
}

function values() {
  const id = (t) => make({ types: [[[t], [t]]], funcs: [[0, 0x20, 0]], exports: [["f", 0, 0]] }).f;
  check("i64", [String(id(I64)(2n ** 63n)), String(id(I64)(-1n)), typeof id(I64)(true), threw(() => id(I64)(1)), String(id(I64)("12"))], ["-9223372036854775808", "-1", "bigint", "TypeError", "12"]);
  check("i32", [id(I32)(4294967297.9), id(I32)(-1.5), id(I32)(NaN), threw(() => id(I32)(1n)), threw(() => id(I32)(Symbol())), id(I32)({ valueOf: () => 9 })], [1, -1, 0, "TypeError", "TypeError", 9]);
  check("floats", [id(F32)(0.1), id(F64)(0.1), Object.is(id(F64)(-0), -0), id(F32)(1e300)], [Math.fround(0.1), 0.1, true, Infinity]);
  const o = {};
  check("externref", [id(EXTERN)(o) === o, id(EXTERN)(null), id(EXTERN)(undefined) === undefined, id(EXTERN)("s"), id(FUNC)(null)], [true, null, true, "s", null]);
  const f = id(F64);
  check("funcref", [id(FUNC)(f) === f, threw(() => id(FUNC)(() => 1)), threw(() => id(FUNC)(1))], [true, "TypeError", "TypeError"]);
  check("several results", make({ types: [[[I32, I64], [I64, I32]]], funcs: [[0, 0x20, 1, 0x20, 0]], exports: [["f", 0, 0]] }).f(1, 2n).map(String), ["2", "1"]);
  const swap = { types: [[[], [I32, I32]]], imports: [["m", "f", [0, 0]]], exports: [["f", 0, 0]] };
  check("several results of an import", [make(swap, { m: { f: () => [3, 4] } }).f(), threw(() => make(swap, { m: { f: () => [3] } }).f()), threw(() => make(swap, { m: { f: () => 3 } }).f())], [[3, 4], "TypeError", "TypeError"]);
}

function imports() {
  const m = { types: [[[I32], [I32]]], imports: [["m", "f", [0, 0]]], funcs: [[0, 0x20, 0, 0x10, 0]], exports: [["g", 0, 1], ["again", 0, 0]] };
  check("call", [make(m, { m: { f: (x) => x * 2 } }).g(21), threw(() => make(m)), threw(() => make(m, {})), threw(() => make(m, { m: {} })), threw(() => make(m, { m: { f: 1 } }))], [42, "TypeError", "TypeError", "LinkError", "LinkError"]);
  const boom = { boom: 1 };
  let got;
  try { make(m, { m: { f() { throw boom; } } }).g(1); } catch (e) { got = e; }
  check("an exception passes WebAssembly as it is", got === boom, true);
  const a = make(m, { m: { f: (x) => x + 1 } }), b = make(m, { m: { f: a.g } });
  check("linked instances", [b.g(1), b.again === a.g, a.again === a.g], [2, true, false]);
  const other = make({ types: [[[], []]], funcs: [[0]], exports: [["f", 0, 0]] }).f;
  throws("another signature", () => make(m, { m: { f: other } }), "LinkError");
  let depth = 0;
  const deep = make(m, { m: { f: (x) => (x === 0 ? ++depth : deep.g(x - 1)) } });
  check("JavaScript and WebAssembly in turn", [deep.g(50), depth], [1, 1]);
  const endless = make(m, { m: { f: (x) => endless.g(x) } });
  check("endless recursion through JavaScript", [threw(() => endless.g(1)), deep.g(1)], ["RangeError", 2]);
  const recursion = make({ types: [[[], []]], funcs: [[0, 0x10, 0]], exports: [["f", 0, 0]] });
  check("endless recursion", [threw(() => recursion.f()), threw(() => recursion.f())], ["RangeError", "RangeError"]);
  const order = [];
  const spy = (name, v) => ({ get [name]() { order.push(name); return v; } });
  check("getters run in order", [threw(() => make({ types: [[[], []]], imports: [["a", "x", [0, 0]], ["b", "y", [0, 0]]] }, { a: spy("x", () => 1), b: spy("y", 1) })), order], ["LinkError", ["x", "y"]]);
}

function traps() {
  const trap = (...code) => make({ types: [[[], [I32]]], memories: [[1]], tables: [[FUNC, 1]], funcs: [[0, ...code]], exports: [["f", 0, 0]] }).f;
  const name = (...code) => threw(trap(...code));
  check("traps", [name(0), name(0x41, 1, 0x41, 0, 0x6d), name(0x41, 0x7f, 0x28, 2, 0), name(0x41, 0, 0x11, 0, 0), name(0x41, 5, 0x11, 0, 0)], Array(5).fill("RuntimeError"));
  throws("the text of a trap", trap(0), "RuntimeError: unreachable");
  throws("a start function that traps", () => make({ types: [[[], []]], funcs: [[0, 0]], start: 0 }), "RuntimeError: unreachable");
  throws("data beyond the memory", () => make({ memories: [[1]], data: [[0, 0x41, 0xff, 0xff, 7, 0x0b, 2, 1, 1]] }), "RuntimeError");
}

function memories() {
  const m = new WebAssembly.Memory({ initial: 1, maximum: 3 }), first = m.buffer, view = new Uint8Array(first);
  view[5] = 7;
  check("grow", [m.buffer === first, first.byteLength, m.grow(1), first.byteLength, view.length, m.buffer.byteLength, new Uint8Array(m.buffer)[5], m.buffer === first], [true, 65536, 1, 0, 0, 131072, 7, false]);
  const second = m.buffer;
  throws("the buffer is no memory", () => WebAssembly.Memory.prototype.grow.call(m.buffer, 1), "TypeError");
  check("grow by 0", [m.grow(0), m.buffer === second, second.byteLength], [2, false, 0]);
  check("errors", [threw(() => m.grow(9)), threw(() => m.grow(-1)), threw(() => new WebAssembly.Memory({ initial: 2, maximum: 1 })), threw(() => new WebAssembly.Memory({ initial: 65537 })), threw(() => new WebAssembly.Memory({})), threw(() => new WebAssembly.Memory({ initial: 60000 })), threw(() => m.buffer.transfer())],
    ["RangeError", "TypeError", "RangeError", "RangeError", "TypeError", "RangeError", "TypeError"]);
  const uses = { types: [[[I32], [I32]]], imports: [["m", "mem", [2, 0, 1]]], funcs: [[0, 0x20, 0, 0x2d, 0, 0], [0, 0x20, 0, 0x40, 0]], exports: [["load", 0, 0], ["grow", 0, 1], ["mem", 2, 0]] };
  const shared = new WebAssembly.Memory({ initial: 1 }), a = make(uses, { m: { mem: shared } }), b = make(uses, { m: { mem: shared } });
  new Uint8Array(shared.buffer)[9] = 200;
  const before = shared.buffer;
  const filled = new WebAssembly.Table({ element: "externref", initial: 1e5 }, "x");
  const values = ["ü€", "x", 1, 1.5, 7n, true, undefined, null, NaN, "\ud800"], refs = new WebAssembly.Global({ value: "externref", mutable: true });
  check("values as externref", values.map((v) => { refs.value = v; return Object.is(refs.value, v) || refs.value === v; }), values.map(() => true));
  check("a table that is filled", [filled.get(0), filled.get(99999), filled.length], ["x", "x", 1e5]);
  check("a memory of two instances", [a.mem === shared, b.load(9), a.grow(1), before.byteLength, shared.buffer.byteLength, b.load(70000), b.load(9)], [true, 200, 1, 0, 131072, 0, 200]);
  check("link errors", [threw(() => make(uses, { m: { mem: {} } })), threw(() => make({ imports: [["m", "mem", [2, 0, 3]]] }, { m: { mem: new WebAssembly.Memory({ initial: 1 }) } })), threw(() => make({ imports: [["m", "mem", [2, 1, 1, 2]]] }, { m: { mem: new WebAssembly.Memory({ initial: 1 }) } }))], ["LinkError", "LinkError", "LinkError"]);
  check("memory.grow beyond the limit of the function", [a.grow(5000), threw(() => shared.grow(5000))], [-1, "RangeError"]);
  let pages = 2;
  while (a.grow(1) >= 0) pages++;
  check("a loop of memory.grow", [pages > 100 && pages <= 1024, threw(() => new WebAssembly.Memory({ initial: 1024 }))], [true, "RangeError"]);
}

function tables() {
  const t = new WebAssembly.Table({ element: "anyfunc", initial: 2, maximum: 4 });
  const f = make({ types: [[[I32], [I32]]], funcs: [[0, 0x20, 0, 0x41, 1, 0x6a]], exports: [["f", 0, 0]] }).f;
  t.set(1, f);
  check("set and get", [t.length, t.get(0), t.get(1) === f, t.get(1)(4), t.grow(1, f), t.get(2) === f, t.length], [2, null, true, 5, 2, true, 3]);
  check("errors", [threw(() => t.get(9)), threw(() => t.set(9, f)), threw(() => t.set(0, () => 1)), threw(() => t.grow(5)), threw(() => new WebAssembly.Table({ element: "i32", initial: 1 })), threw(() => new WebAssembly.Table({ element: "anyfunc", initial: 4e9 })), threw(() => t.get(-1))],
    ["RangeError", "RangeError", "TypeError", "RangeError", "TypeError", "RangeError", "TypeError"]);
  const uses = { types: [[[I32, I32], [I32]], [[I32], [I32]]], imports: [["m", "t", [1, FUNC, 0, 1]]], funcs: [[0, 0x20, 0, 0x20, 1, 0x11, 1, 0], [1, 0x20, 0, 0x41, 3, 0x6c]], exports: [["call", 0, 0], ["t", 1, 0]], elements: [[0, 0x41, 0, 0x0b, 1, 1]] };
  const a = make(uses, { m: { t } });
  const inner = t.get(0);
  check("a table of an instance", [a.t === t, a.call(10, 1), a.call(10, 0), inner(7), inner === t.get(0), threw(() => a.call(1, 3))], [true, 11, 30, 21, true, "RuntimeError"]);
  const reuse = make({ types: [[[I32], [I32]]], imports: [["m", "f", [0, 0]]], exports: [["f", 0, 0]] }, { m: { f: inner } });
  check("a function from a table as an import", reuse.f(5), 15);
  const e = new WebAssembly.Table({ element: "externref", initial: 2 }, "x");
  e.set(1, t);
  check("externref", [e.get(0), e.get(1) === t, (e.set(0), e.get(0)) === undefined], ["x", true, true]);
  const big = make({ types: [[[I32], [I32]]], tables: [[FUNC, 1]], funcs: [[0, 0xd0, FUNC, 0x20, 0, 0xfc, 15, 0]], exports: [["grow", 0, 0]] });
  check("table.grow beyond the limit", [big.grow(2), big.grow(1e9)], [1, -1]);
  throws("a huge table", () => make({ tables: [[FUNC, 1e8]] }), "RangeError");
  throws("a table beyond the format", () => make({ tables: [[FUNC, 4e9]] }), "CompileError");
  throws("another type", () => make({ imports: [["m", "t", [1, EXTERN, 0, 1]]] }, { m: { t } }), "LinkError");
}

function globals() {
  const g = new WebAssembly.Global({ value: "i32", mutable: true }, 5);
  g.value = 6.9;
  check("i32", [g.value, g.valueOf(), new WebAssembly.Global({ value: "f64" }).value, String(new WebAssembly.Global({ value: "i64" }, -5n).value), new WebAssembly.Global({ value: "f32" }, 0.5).value], [6, 6, 0, "-5", 0.5]);
  check("errors", [threw(() => { new WebAssembly.Global({ value: "i32" }, 1).value = 2; }), threw(() => new WebAssembly.Global({ value: "i16" })), threw(() => new WebAssembly.Global({ value: "i64" }, 1))], ["TypeError", "TypeError", "TypeError"]);
  const uses = { types: [[[], [I32]], [[I32], []]], imports: [["m", "g", [3, I32, 1]], ["m", "c", [3, I32, 0]]], funcs: [[0, 0x23, 0, 0x23, 1, 0x6a], [1, 0x20, 0, 0x24, 0]], exports: [["sum", 0, 0], ["set", 0, 1], ["g", 3, 0], ["c", 3, 1]] };
  const a = make(uses, { m: { g, c: 100 } });
  check("in instances", [a.sum(), (a.set(1), g.value), a.g === g, a.c.value, a.c instanceof WebAssembly.Global], [106, 1, true, 100, true]);
  check("link errors", [threw(() => make(uses, { m: { g: 1, c: 1 } })), threw(() => make(uses, { m: { g, c: 1n } })), threw(() => make(uses, { m: { g, c: g } })), threw(() => make(uses, { m: { g, c: "1" } }))], ["LinkError", "LinkError", "LinkError", "LinkError"]);
  const o = {}, x = new WebAssembly.Global({ value: "externref", mutable: true }, o), y = new WebAssembly.Global({ value: "externref" }, o);
  check("externref", [x.value === o, y.value === o, new WebAssembly.Global({ value: "anyfunc" }).value, new WebAssembly.Global({ value: "externref" }).value === undefined], [true, true, null, true]);
  const f = make({ types: [[[], []]], funcs: [[0]], exports: [["f", 0, 0]] }).f;
  check("funcref", new WebAssembly.Global({ value: "anyfunc" }, f).value === f, true);
}

// Each byte of a module is replaced in turn: a module is refused or works, and the child lives.
function malformed() {
  const good = wasm({ types: [[[I32], [I32]]], tables: [[FUNC, 1]], memories: [[1]], globals: [[I32, 1, 0x41, 1, 0x0b]], funcs: [[0, 0x20, 0, 0x28, 2, 0]], exports: [["f", 0, 0], ["m", 2, 0]], elements: [[0, 0x41, 0, 0x0b, 1, 0]], data: [[0, 0x41, 0, 0x0b, 1, 1]] });
  let refused = 0, accepted = 0;
  for (let at = 8; at < good.length; at++) {
    for (const b of [0, 1, 0x7f, 0x80, 0xff, good[at] ^ 1]) {
      const bad = good.slice();
      bad[at] = b;
      try { const m = new WebAssembly.Module(bad); accepted++; new WebAssembly.Instance(m); } catch (e) {
        if (!(e instanceof WebAssembly.CompileError || e instanceof WebAssembly.RuntimeError || e instanceof RangeError || e instanceof TypeError)) throw e;
        refused++;
      }
    }
  }
  check("malformed modules", [refused > 200, accepted > 20], [true, true]);
  throws("a vector of 4 billion", () => new WebAssembly.Module(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 10, 5, 0xff, 0xff, 0xff, 0xff, 15])), "CompileError");
}

// https://webassembly.github.io/spec/web-api/#streaming-modules
async function streaming() {
  const add = wasm({ types: [[[I32, I32], [I32]]], imports: [["m", "f", [0, 0]]], funcs: [[0, 0x20, 0, 0x20, 1, 0x10, 0]], exports: [["add", 0, 1]] });
  const answer = (body = add, type = "application/wasm", status = 200) => new Response(body, { status, headers: type === null ? {} : { "content-type": type } });
  const chunks = (...parts) => new ReadableStream({ start(c) { for (const p of parts) c.enqueue(p); c.close(); } });
  const m = { f: (a, b) => a + b };
  const module = await WebAssembly.compileStreaming(answer());
  check("compileStreaming", [module instanceof WebAssembly.Module, WebAssembly.Module.exports(module)], [true, [{ name: "add", kind: "function" }]]);
  const { instance, module: again } = await WebAssembly.instantiateStreaming(Promise.resolve(answer()), { m });
  check("instantiateStreaming", [instance.exports.add(2, 3), again instanceof WebAssembly.Module], [5, true]);
  check("the type in other letters", await WebAssembly.compileStreaming(answer(add, " Application/WASM\t")) instanceof WebAssembly.Module, true);
  check("a stream", (await WebAssembly.instantiateStreaming(answer(chunks(add.slice(0, 9), add.slice(9))), { m })).instance.exports.add(4, 5), 9);
  check("a thenable", await WebAssembly.compileStreaming({ then(f) { f(answer()); } }) instanceof WebAssembly.Module, true);
  check("lengths", [WebAssembly.compileStreaming.length, WebAssembly.instantiateStreaming.length, Object.keys(WebAssembly).includes("compileStreaming")], [1, 1, true]);
  const used = answer(), locked = answer(chunks(add));
  await used.arrayBuffer();
  locked.body.getReader();
  for (const [what, source, text] of [
    ["bytes", add, "TypeError: WebAssembly: a Response"], ["nothing", undefined, "TypeError"], ["a Request", new Request("https://a"), "TypeError"],
    ["no type", answer(add, null), "TypeError: WebAssembly: the response has no Content-Type"], ["another type", answer(add, "text/html"), 'Content-Type "text/html"'],
    ["a parameter", answer(add, "application/wasm;charset=utf-8"), "TypeError"], ["an empty parameter", answer(add, "application/wasm;"), "TypeError"], ["a longer type", answer(add, "application/wasmx"), "TypeError"],
    ["a status", answer(add, undefined, 404), "TypeError: WebAssembly: the response has the status 404"], ["an error", Response.error(), "TypeError"],
    ["a used body", used, "TypeError"], ["a locked body", locked, "TypeError"], ["a rejected promise", Promise.reject(new RangeError("mine")), "RangeError: mine"],
    ["garbage", answer(new Uint8Array([1, 2])), "CompileError"], ["an empty body", answer(null), "CompileError"], ["half a module", answer(add.slice(0, -3)), "CompileError"],
    ["a stream that fails", answer(new ReadableStream({ pull(c) { c.error(new RangeError("cut")); } })), "RangeError: cut"],
    ["a stream of text", answer(chunks("text")), "TypeError"], ["a getter that throws", { get then() { throw new RangeError("mine"); } }, "RangeError: mine"],
  ]) await rejects("compileStreaming of " + what, WebAssembly.compileStreaming(source), text);
  await rejects("imports that are no object", WebAssembly.instantiateStreaming(answer(), 3), "TypeError");
  await rejects("imports that are missing", WebAssembly.instantiateStreaming(answer()), "TypeError");
  await rejects("an import of another kind", WebAssembly.instantiateStreaming(answer(), { m: { f: 1 } }), "LinkError");
  const once = answer();
  await WebAssembly.compileStreaming(once);
  check("the body is used", once.bodyUsed, true);
  const then = Promise.prototype.then;
  Promise.prototype.then = () => { throw new Error("replaced then"); };
  const got = WebAssembly.compileStreaming(answer());
  Promise.prototype.then = then;
  check("a replaced then", await got instanceof WebAssembly.Module, true);
}

export default async function () {
  await modules();
  await streaming();
  for (const part of [values, imports, traps, memories, tables, globals, malformed]) {
    try { part(); } catch (e) { check(part.name, String(e && e.stack), "no exception"); }
  }
}
