// WebAssembly.Instance: https://webassembly.github.io/spec/js-api/#instances
import { check, throws } from "./check.js";
import { I32, I64, F32, F64, FUNC, EXTERN, wasm, threw } from "./assembler.js";
const signature = [[[], []]];
export default async function () {
  const { Module, Instance } = WebAssembly, empty = new Module(wasm({})), instance = new Instance(empty);
  throws("JS API §5.2: needs new", () => Instance(empty), "TypeError");
  check("JS API §5.2: the class string and the prototype", [String(instance), Object.getPrototypeOf(instance) === Instance.prototype], ["[object WebAssembly.Instance]", true]);
  // constructor
  for (const v of [undefined, null, 1, {}, wasm({}), Module, Module.prototype]) throws("JS API §5.2 Instance(moduleObject): no module, " + String(v), () => new Instance(v), "TypeError");
  for (const v of [null, 1, "", true, 1n, Symbol()]) throws("JS API §5.2 Instance(moduleObject, importObject): no object, " + String(v), () => new Instance(empty, v), "TypeError");
  check("JS API §5.2: imports that nobody needs", [new Instance(empty, undefined) instanceof Instance, new Instance(empty, {}) instanceof Instance, new Instance(empty, () => {}) instanceof Instance], [true, true, true]);
  // read the imports
  const f = new Module(wasm({ types: signature, imports: [["m", "f", [0, 0]]] }));
  throws("JS API §5 read the imports, step 1: imports are required", () => new Instance(f), "TypeError");
  for (const v of [undefined, null, 1, "", Symbol()]) throws("JS API §5 read the imports, step 5.3: the module is no object, " + String(v), () => new Instance(f, { m: v }), "TypeError");
  throws("JS API §5 read the imports, step 5.2: exceptions of getters", () => new Instance(f, { get m() { throw new RangeError("mine"); } }), "RangeError: mine");
  throws("JS API §5 read the imports, step 5.4: exceptions of getters", () => new Instance(f, { m: { get f() { throw new RangeError("mine"); } } }), "RangeError: mine");
  check("JS API §5 read the imports: functions and inherited members are objects and values", [threw(() => new Instance(f, { m: Object.assign(() => {}, { f() {} }) })), threw(() => new Instance(f, Object.create({ m: Object.create({ f() {} }) })))], [undefined, undefined]);
  const order = [], spy = (name, v) => ({ get [name]() { order.push(name); return v; } });
  throws("JS API §5 read the imports, step 5: in the order of the module, all before they are linked", () => new Instance(new Module(wasm({ types: signature, imports: [["b", "y", [0, 0]], ["a", "x", [0, 0]], ["b", "y", [0, 0]]] })), { a: spy("x", 1), b: spy("y", () => {}) }), "LinkError");
  check("JS API §5 read the imports, step 5.2: in that order", order, ["y", "x"]);
  const unnamed = new Module(wasm({ types: [[[], [I32]]], imports: [["", "", [0, 0]], ["unnamed", "f", [0, 0]]], exports: [["a", 0, 0], ["b", 0, 1]], funcs: [] })), got = new Instance(unnamed, { "": { "": () => 1 }, unnamed: { f: () => 2 } }).exports;
  check("JS API §5 read the imports: empty names", [got.a(), got.b()], [1, 2]);
  for (const v of [undefined, null, 1, {}, Object.create(Function.prototype)]) throws("JS API §5 read the imports, step 5.5.1: no function, " + Object.prototype.toString.call(v), () => new Instance(f, { m: { f: v } }), "LinkError");
  check("JS API §5 read the imports, step 5.5: what can be called", [class {}, new Proxy(() => {}, {}), (() => {}).bind(), async () => {}, Math.max].map((v) => threw(() => new Instance(f, { m: { f: v } }))), Array(5).fill(undefined));
  // globals
  const global = (type, mutable) => new Module(wasm({ imports: [["m", "g", [3, type, mutable ? 1 : 0]]], exports: [["g", 3, 0]] })), link = (type, v, mutable) => threw(() => new Instance(global(type, mutable), { m: { g: v } }));
  check("JS API §5 read the imports, step 5.6.2: an i64 needs a BigInt", [undefined, 0, "1", null, {}, Symbol()].map((v) => link(I64, v)), Array(6).fill("LinkError"));
  for (const type of [I32, F32, F64]) check("JS API §5 read the imports, step 5.6.2: a number is needed", [undefined, 1n, "1", null, true, { valueOf: () => 1 }, Symbol()].map((v) => link(type, v)), Array(7).fill("LinkError"));
  check("JS API §5 read the imports, step 5.6.2: a funcref needs null or an exported function", [undefined, 1, {}, () => {}].map((v) => link(FUNC, v)), Array(4).fill("LinkError"));
  check("JS API §5 read the imports, step 5.6.2: a value of v128", link(0x7b, 1), "LinkError");
  check("JS API §5 read the imports, step 5.6: a mutable global needs a Global", [link(I32, 1, true), link(I32, new WebAssembly.Global({ value: "i32" }, 1), true), link(I32, new WebAssembly.Global({ value: "i32", mutable: true }, 1), true)], ["LinkError", "LinkError", undefined]);
  check("JS API §5 read the imports, step 5.6: the type of a Global", [link(I32, new WebAssembly.Global({ value: "i64" })), link(F32, new WebAssembly.Global({ value: "f64" })), link(I32, new WebAssembly.Global({ value: "i32", mutable: true }))], ["LinkError", "LinkError", "LinkError"]);
  const value = (type, v) => new Instance(global(type), { m: { g: v } }).exports.g.value;
  check("JS API §5 read the imports, step 5.6.2: values are converted", [value(I32, 2 ** 32 + 1.5), value(F32, 0.1), value(F64, -0) === 0, String(value(I64, 2n ** 63n)), value(EXTERN, null), value(FUNC, null)], [1, Math.fround(0.1), true, "-9223372036854775808", null, null]);
  // memories and tables
  const kind = (d) => (v) => threw(() => new Instance(new Module(wasm({ imports: [["m", "x", d]] })), { m: { x: v } })), memory = kind([2, 1, 1, 2]), table = kind([1, FUNC, 1, 1, 2]);
  check("JS API §5 read the imports, step 5.7: a memory is needed", [undefined, {}, new ArrayBuffer(65536), WebAssembly.Memory.prototype].map(memory), Array(4).fill("LinkError"));
  check("JS API §5 read the imports, step 5.8: a table is needed", [undefined, {}, [], WebAssembly.Table.prototype].map(table), Array(4).fill("LinkError"));
  const m = (...l) => new WebAssembly.Memory({ initial: l[0], maximum: l[1] }), t = (...l) => new WebAssembly.Table({ element: "anyfunc", initial: l[0], maximum: l[1] });
  check("JS API §5 instantiate the core, step 3: the limits of a memory", [m(0, 2), m(1, 3), m(1), m(1, 2), m(2, 2)].map(memory), ["LinkError", "LinkError", "LinkError", undefined, undefined]);
  check("JS API §5 instantiate the core, step 3: the limits of a table", [t(0, 2), t(1, 3), t(1), t(1, 2), t(2, 2)].map(table), ["LinkError", "LinkError", "LinkError", undefined, undefined]);
  const grown = m(0, 2);
  grown.grow(1);
  check("JS API §5 instantiate the core, step 3: the size is that of now", memory(grown), undefined);
  // exports
  const kinds = { types: signature, tables: [[FUNC, 1]], memories: [[1]], globals: [[I32, 0, 0x41, 7, 0x0b]], funcs: [[0]] };
  const all = new Instance(new Module(wasm({ ...kinds, exports: [["f", 0, 0], ["t", 1, 0], ["m", 2, 0], ["g", 3, 0], ["2", 0, 0], ["1", 2, 0]] }))), e = all.exports;
  check("JS API §5 create an exports object, step 2: the kinds", [typeof e.f, e.t instanceof WebAssembly.Table, e.m instanceof WebAssembly.Memory, e.g instanceof WebAssembly.Global, e[2] === e.f, e[1] === e.m], ["function", true, true, true, true, true]);
  check("JS API §5 create an exports object, steps 1 and 3: frozen, without a prototype", [Object.isFrozen(e), Object.getPrototypeOf(e), Object.keys(e), Object.getOwnPropertyDescriptor(e, "f").enumerable], [true, null, ["1", "2", "f", "t", "m", "g"], true]);
  check("JS API §5.2 exports: the same object, read only", [all.exports === e, threw(() => { all.exports = 1; }), threw(() => { e.f = 1; }), threw(() => Object.getOwnPropertyDescriptor(Instance.prototype, "exports").get.call({}))], [true, "TypeError", "TypeError", "TypeError"]);
  const again = new Instance(new Module(wasm({ types: signature, imports: [["m", "f", [0, 0]], ["m", "t", [1, FUNC, 0, 1]], ["m", "m", [2, 0, 1]], ["m", "g", [3, I32, 0]]], exports: [["f", 0, 0], ["t", 1, 0], ["m", 2, 0], ["g", 3, 0]] })), { m: e }).exports;
  check("JS API §4.2 object caches: an entity has one object", ["f", "t", "m", "g"].map((n) => again[n] === e[n]), [true, true, true, true]);
  const other = new Instance(new Module(wasm({ ...kinds, exports: [["f", 0, 0], ["m", 2, 0]] }))).exports;
  check("JS API §5.2: instances share nothing", [other.f === e.f, other.m === e.m], [false, false]);
  // start
  const started = [], start = { types: signature, imports: [["m", "f", [0, 0]]], start: 0 };
  new Instance(new Module(wasm(start)), { m: { f: (...a) => started.push(a) } });
  check("JS API §5 instantiate the core, step 2: the start function runs", started, [[]]);
  throws("JS API §5 instantiate the core, step 3: what it throws passes", () => new Instance(new Module(wasm(start)), { m: { f() { throw new SyntaxError("mine"); } } }), "SyntaxError: mine");
  throws("JS API §5 instantiate the core, step 3: a trap", () => new Instance(new Module(wasm({ types: signature, funcs: [[0, 0]], start: 0 }))), "RuntimeError");
  for (const [what, parts] of [["data", { memories: [[1]], data: [[0, 0x41, 0xff, 0xff, 7, 0x0b, 2, 1, 1]] }], ["elements", { types: signature, tables: [[FUNC, 1]], funcs: [[0]], elements: [[0, 0x41, 1, 0x0b, 1, 0]] }], ["negative elements", { types: signature, tables: [[FUNC, 1]], funcs: [[0]], elements: [[0, 0x41, 0x7f, 0x0b, 1, 0]] }]]) throws("JS API §5 instantiate the core, step 3: a segment outside, of " + what, () => new Instance(new Module(wasm(parts))), "RuntimeError");
}
