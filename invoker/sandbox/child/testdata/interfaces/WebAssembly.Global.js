// WebAssembly.Global: https://webassembly.github.io/spec/js-api/#globals
import { check, throws } from "./check.js";
import { I32, I64, F32, F64, FUNC, EXTERN, make, threw } from "./assembler.js";
export default async function () {
  const { Global } = WebAssembly, g = new Global({ value: "i32", mutable: true }, 5);
  throws("JS API §5.5: needs new", () => Global({ value: "i32" }), "TypeError");
  check("JS API §5.5: the class string and the prototype", [String(g), Object.getPrototypeOf(g) === Global.prototype], ["[object WebAssembly.Global]", true]);
  // constructor
  for (const v of [undefined, null, 1, "", true, Symbol()]) throws("JS API §5.5 Global(descriptor): no object, " + String(v), () => new Global(v), "TypeError");
  for (const value of [undefined, null, "", "i16", "I32", "i32 ", Symbol()]) throws("JS API §5.5 Global(descriptor), step 2: value " + String(value), () => new Global({ value }), "TypeError");
  throws("JS API §5.5 Global(descriptor), step 3: v128", () => new Global({ value: "v128" }), "TypeError");
  const order = [], member = (name, v) => ({ get() { order.push(name); return v; } });
  new Global(Object.defineProperties({}, { value: member("value", "i32"), mutable: member("mutable", false) }), { valueOf() { order.push("v"); return 1; } });
  check("Web IDL §3.2.17: the members in order, then the value", order, ["mutable", "value", "v"]);
  const types = ["i32", "f32", "f64", "anyfunc", "externref"];
  check("JS API §5.5 Global(descriptor, v), step 4: the default", types.flatMap((value) => [new Global({ value }).value, new Global({ value }, undefined).value]), [0, 0, 0, 0, 0, 0, null, null, undefined, undefined]);
  check("JS API §5.5 Global(descriptor, v), step 4: the default of i64", [String(new Global({ value: "i64" }).value), String(new Global({ value: "i64" }, undefined).value)], ["0", "0"]);
  const of = (value, v) => new Global({ value }, v).value, o = {};
  check("JS API §5.6 ToWebAssemblyValue: i32", [1.9, -1.9, 2 ** 31, 2 ** 32 + 7, NaN, Infinity, "0x10", null, true, [], { valueOf: () => 9 }].map((v) => of("i32", v)), [1, -1, -(2 ** 31), 7, 0, 0, 16, 0, 1, 0, 9]);
  check("JS API §5.6 ToWebAssemblyValue: i64", [1n, -1n, 2n ** 63n, 2n ** 64n + 3n, "12", true, { valueOf: () => 9n }].map((v) => String(of("i64", v))), ["1", "-1", "-9223372036854775808", "3", "12", "1", "9"]);
  check("JS API §5.6 ToWebAssemblyValue: f32 and f64", [of("f32", 0.1), of("f32", 1e300), of("f64", 0.1), Object.is(of("f64", -0), -0), Object.is(of("f32", -0), -0), Number.isNaN(of("f64", "x")), of("f32", 16777217)], [Math.fround(0.1), Infinity, 0.1, true, true, true, 16777216]);
  check("JS API §5.6 ToWebAssemblyValue: externref", [of("externref", o) === o, of("externref", null), of("externref", "s"), String(of("externref", 7n)), of("externref", NaN)], [true, null, "s", "7", NaN]);
  const f = make({ types: [[[], []]], funcs: [[0]], exports: [["f", 0, 0]] }).f;
  check("JS API §5.6 ToWebAssemblyValue: funcref", [of("anyfunc", f) === f, of("anyfunc", null)], [true, null]);
  for (const [value, ...bad] of [["i32", 1n, Symbol()], ["f32", 1n, Symbol()], ["f64", 1n, Symbol()], ["i64", 1, null, Symbol(), 1.5, {}], ["anyfunc", 1, {}, () => {}, Symbol()]]) for (const v of bad) throws("JS API §5.5 Global(descriptor, v), step 5: " + value + " of " + String(v), () => new Global({ value }, v), value === "i64" && typeof v === "object" && v !== null ? "SyntaxError" : "TypeError");
  throws("JS API §5.5 Global(descriptor, v), step 5: exceptions of the conversion", () => new Global({ value: "i32" }, { valueOf() { throw new RangeError("mine"); } }), "RangeError: mine");
  // value
  g.value = 6.9;
  check("JS API §5.5 value: set and get", [g.value, g.valueOf(), g + 1], [6, 6, 7]);
  for (const [value, v] of [["i64", 3n], ["f32", 0.5], ["f64", 0.1], ["externref", o], ["anyfunc", f]]) { const m = new Global({ value, mutable: true }); m.value = v; check("JS API §5.5 value: set, " + value, m.value === v, true); }
  const kept = new Global({ value: "externref", mutable: true }, o);
  kept.value = undefined;
  check("JS API §5.5 value: undefined is a value", kept.value, undefined);
  check("JS API §5.5 value, setter, step 5: immutable", [threw(() => { new Global({ value: "i32" }, 1).value = 2; }), threw(() => { new Global({ value: "i32", mutable: 0 }, 1).value = Symbol(); }), (() => { const m = new Global({ value: "i32", mutable: "x" }); m.value = 3; return m.value; })()], ["TypeError", "TypeError", 3]);
  check("JS API §5.5 value, setter, step 6: converted", [threw(() => { g.value = 1n; }), threw(() => { g.value = Symbol(); }), g.value], ["TypeError", "TypeError", 6]);
  const value = Object.getOwnPropertyDescriptor(Global.prototype, "value");
  for (const v of [undefined, {}, Global, Global.prototype]) check("JS API §5.5: the receiver is checked, " + String(v), [threw(() => value.get.call(v)), threw(() => value.set.call(v, 1)), threw(() => Global.prototype.valueOf.call(v))], ["TypeError", "TypeError", "TypeError"]);
  check("Web IDL §3.7.6: a setter without a value has undefined", [value.set.call(g), g.value, (g.value = 6)], [undefined, 0, 6]);
  // in instances
  const uses = { types: [[[], [I32]], [[I32], []]], imports: [["m", "g", [3, I32, 1]], ["m", "c", [3, I32, 0]]], funcs: [[0, 0x23, 0, 0x23, 1, 0x6a], [1, 0x20, 0, 0x24, 0]], exports: [["sum", 0, 0], ["set", 0, 1], ["g", 3, 0], ["c", 3, 1]] };
  const a = make(uses, { m: { g, c: 100 } });
  check("JS API §5.5: shared with an instance", [a.sum(), (a.set(1), g.value), a.g === g, (g.value = 2, a.sum()), a.c.value, a.c instanceof Global], [106, 1, true, 102, 100, true]);
  const own = make({ globals: [[I32, 0, 0x41, 0x7f, 0x0b], [I64, 0, 0x42, 0x7f, 0x0b], [F32, 0, 0x43, 0, 0, 0, 0x3f, 0x0b], [F64, 1, 0x44, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0x0b], [FUNC, 0, 0xd0, FUNC, 0x0b], [EXTERN, 1, 0xd0, EXTERN, 0x0b]], exports: ["a", "b", "c", "d", "e", "f"].map((n, i) => [n, 3, i]) });
  check("JS API §5.6 ToJSValue: of a module's globals", [own.a.value, String(own.b.value), own.c.value, own.d.value, own.e.value, own.f.value, threw(() => { own.a.value = 1; }), (own.d.value = 2, own.d.value), (own.f.value = o, own.f.value === o)], [-1, "-1", 0.5, 0.5, null, null, "TypeError", 2, true]);
  const v128 = make({ globals: [[0x7b, 1, 0xfd, 12, ...Array(16).fill(0), 0x0b]], exports: [["v", 3, 0]] }).v;
  check("JS API §5.5 GetGlobalValue, step 4, and the setter, step 4: v128", [threw(() => v128.value), threw(() => v128.valueOf()), threw(() => { v128.value = 1; })], ["TypeError", "TypeError", "TypeError"]);
}
