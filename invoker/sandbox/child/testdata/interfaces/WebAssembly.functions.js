// Exported functions and host functions: https://webassembly.github.io/spec/js-api/#exported-function
import { check, throws } from "./check.js";
import { I32, I64, F32, F64, FUNC, EXTERN, wasm, make, threw } from "./assembler.js";
const identity = (type) => make({ types: [[[type], [type]]], funcs: [[0, 0x20, 0]], exports: [["f", 0, 0]] }).f;
// through returns what a script's function gets of a value that WebAssembly passes it, and returns.
const through = (type, v, back = (x) => x) => { let seen; const f = make({ types: [[[type], [type]]], imports: [["m", "f", [0, 0]]], funcs: [[0, 0x20, 0, 0x10, 0]], exports: [["f", 0, 1]] }, { m: { f: (...a) => { seen = a; return back(a[0]); } } }).f; return [f(v), seen]; };
function objects() {
  const e = make({ types: [[[I32, I32], [I32]], [[], []]], funcs: [[1], [0, 0x20, 0, 0x20, 1, 0x6a]], exports: [["add", 0, 1], ["again", 0, 1], ["none", 0, 0]] }), { add } = e;
  check("JS API §5.6 the name is the index, the length the number of parameters", [add.name, add.length, e.none.name, e.none.length, Object.getOwnPropertyDescriptor(add, "name").writable], ["1", 2, "0", 0, false]);
  check("JS API §5.6 create a new Exported Function: a built-in function that is no constructor", [typeof add, Object.getPrototypeOf(add) === Function.prototype, Object.hasOwn(add, "prototype"), threw(() => new add(1, 2)), /native code/.test(Function.prototype.toString.call(add))], ["function", true, false, "TypeError", true]);
  check("JS API §5.6 create a new Exported Function, step 2: one object", e.again === add, true);
  check("JS API §5.6: extensible, and any receiver", [(add.x = 1, add.x), add.call(null, 1, 2), add.apply({}, [3, 4]), add.bind(1, 5)(6)], [1, 3, 7, 11]);
  check("JS API §5.6 call an Exported Function, step 7: missing and further arguments", [add(), add(1), add(1, 2, 3)], [0, 1, 3]);
  check("JS API §5.6 call an Exported Function, steps 13 and 14: the results", [e.none(), make({ types: [[[I32, I64], [I64, I32]]], funcs: [[0, 0x20, 1, 0x20, 0]], exports: [["f", 0, 0]] }).f(1, 2n).map(String), Array.isArray(make({ types: [[[], [I32, I32]]], funcs: [[0, 0x41, 1, 0x41, 2]], exports: [["f", 0, 0]] }).f())], [undefined, ["2", "1"], true]);
  const order = [], spy = (n) => ({ valueOf() { order.push(n); return n; } });
  add(spy(1), spy(2), spy(3));
  check("JS API §5.6 call an Exported Function, step 7: arguments are converted in order", order, [1, 2]);
  throws("JS API §5.6 call an Exported Function, step 7: exceptions of the conversion", () => add({ valueOf() { throw new RangeError("mine"); } }), "RangeError: mine");
  const v128 = make({ types: [[[0x7b], []], [[], [0x7b]]], funcs: [[0], [1, 0xfd, 12, ...Array(16).fill(0)]], exports: [["take", 0, 0], ["make", 0, 1]] });
  check("JS API §5.6 call an Exported Function, step 4: v128", [threw(() => v128.take()), threw(() => v128.make()), v128.take.length], ["TypeError", "TypeError", 1]);
}
function values() {
  check("JS API §5.6 ToWebAssemblyValue: i32", [0, -0, 1.9, -1.9, 2 ** 31, -(2 ** 31) - 1, 2 ** 32, 2 ** 53, 1e300, NaN, Infinity, "7", "x", null, undefined, true, [5], { valueOf: () => 9 }, { [Symbol.toPrimitive]: (hint) => (hint === "number" ? 3 : 4) }].map((v) => identity(I32)(v)), [0, 0, 1, -1, -(2 ** 31), 2 ** 31 - 1, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 5, 9, 3]);
  check("JS API §5.6 ToWebAssemblyValue: i64, ToBigInt64", [0n, -1n, 2n ** 63n, -(2n ** 63n) - 1n, 2n ** 64n, 2n ** 100n + 5n, "12", "0x10", "", true, [7n], { valueOf: () => 9n }].map((v) => String(identity(I64)(v))), ["0", "-1", "-9223372036854775808", "9223372036854775807", "0", "5", "12", "16", "0", "1", "7", "9"]);
  check("JS API §5.6 ToWebAssemblyValue: i64 of other values", [1, 1.5, NaN, null, undefined, Symbol(), "x", "1.5", {}].map((v) => threw(() => identity(I64)(v))), ["TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "SyntaxError", "SyntaxError", "SyntaxError"]);
  for (const type of [I32, F32, F64]) check("JS API §5.6 ToWebAssemblyValue: a BigInt and a symbol are no numbers", [1n, Symbol(), Object(1n)].map((v) => threw(() => identity(type)(v))), ["TypeError", "TypeError", "TypeError"]);
  check("JS API §5.6 ToWebAssemblyValue: f32, rounded to even", [0.1, 16777217, 16777219, 1e300, -1e300, 1e-50, Infinity, "1.5", null].map((v) => identity(F32)(v)), [Math.fround(0.1), 16777216, 16777220, Infinity, -Infinity, 0, Infinity, 1.5, 0]);
  check("JS API §5.6 ToWebAssemblyValue: f64", [0.1, 5e-324, 1.7976931348623157e308, -Infinity].map((v) => identity(F64)(v)), [0.1, 5e-324, 1.7976931348623157e308, -Infinity]);
  check("JS API §5.6 ToJSValue: NaN and negative zero", [F32, F64].flatMap((t) => [identity(t)(NaN), Object.is(identity(t)(-0), -0), Number.isNaN(identity(t)(undefined))]), [NaN, true, true, NaN, true, true]);
  const o = {}, s = Symbol(), f = identity(F64);
  check("JS API §5.6 ToWebAssemblyValue: externref, any value", [o, f, s, 1, -0, NaN, "ü\ud800", 7n, true, undefined, null, globalThis].map((v) => Object.is(identity(EXTERN)(v), v)), Array(12).fill(true));
  check("JS API §5.6 ToWebAssemblyValue: funcref", [identity(FUNC)(f) === f, identity(FUNC)(null), ...[undefined, 1, {}, () => {}, Math.max, new Proxy(f, {}), f.bind()].map((v) => threw(() => identity(FUNC)(v)))], [true, null, ...Array(7).fill("TypeError")]);
}
function hosts() {
  const o = {}, f = identity(I32);
  for (const [type, v] of [[I32, -1], [F32, 0.5], [F64, 0.1], [EXTERN, o], [EXTERN, undefined], [EXTERN, null], [FUNC, f], [FUNC, null]]) { const [result, seen] = through(type, v); check("JS API §5.6 run a host function, steps 4 and 8: " + String(v), [result === v, seen.length, seen[0] === v], [true, 1, true]); }
  check("JS API §5.6 ToJSValue: an i64 is a BigInt", through(I64, -5n).flat().map((v) => typeof v + v), ["bigint-5", "bigint-5"]);
  check("JS API §5.6 run a host function, step 8: results are converted", [through(I32, 0, () => "7.5")[0], through(I32, 0, () => undefined)[0], String(through(I64, 0n, () => "9")[0]), through(EXTERN, o, () => 1)[0]], [7, 0, "9", 1]);
  check("JS API §5.6 run a host function, step 8: exceptions of the conversion", [threw(() => through(I64, 0n, () => 1)), threw(() => through(I32, 0, () => 1n)), threw(() => through(FUNC, null, () => () => {})), threw(() => through(F64, 0, () => ({ valueOf() { throw new RangeError(); } })))], ["TypeError", "TypeError", "TypeError", "RangeError"]);
  let receiver, args;
  make({ types: [[[], []]], imports: [["m", "f", [0, 0]]], start: 0 }, { m: { f: function () { "use strict"; receiver = this; args = arguments.length; return 7; } } });
  check("JS API §5.6 run a host function, steps 5 and 7: undefined as receiver, the result is dropped", [receiver, args], [undefined, 0]);
  // several results
  const pair = (f) => make({ types: [[[], [I32, I64]]], imports: [["m", "f", [0, 0]]], funcs: [[0, 0x10, 0]], exports: [["f", 0, 1]] }, { m: { f } }).f;
  check("JS API §5.6 run a host function, step 9: any iterable", [() => [1, 2n], () => new Set([1, 2n]), function* () { yield 1; yield 2n; }, () => ({ [Symbol.iterator]: () => [1, 2n].values() })].map((f) => pair(f)().map(String)), Array(4).fill(["1", "2"]));
  check("JS API §5.6 run a host function, steps 9.2 to 9.5: no iterable, or another number of values", [undefined, null, 1, {}, [], [1], [1, 2n, 3], { [Symbol.iterator]: 1 }].map((v) => threw(pair(() => v))), Array(8).fill("TypeError"));
  check("JS API §5.6 run a host function, step 9.6: converted in order", [threw(pair(() => [1, 2])), threw(pair(() => [1n, 2n])), threw(pair(() => ({ [Symbol.iterator]() { throw new RangeError(); } })))], ["TypeError", "TypeError", "RangeError"]);
  // exceptions
  for (const v of [new RangeError("mine"), o, 1, "s", null, undefined]) { let got = "none"; try { through(I32, 1, () => { throw v; }); } catch (e) { got = e; } check("JS API §5.6 create a host function, step 3.9: thrown values pass unchanged, " + String(v), got === v, true); }
  const again = make({ types: [[[], [I32]]], imports: [["m", "f", [0, 0]]], funcs: [[0, 0x10, 0]], exports: [["f", 0, 1]] }, { m: { f: (() => { let n = 0; return () => { if (n++ === 0) throw new RangeError(); return n; }; })() } });
  check("JS API §5.6: an instance works behind an exception", [threw(() => again.f()), again.f()], ["RangeError", 2]);
  const module = new WebAssembly.Module(wasm({ types: [[[], []]], imports: [["m", "f", [0, 0]]], exports: [["f", 0, 0]] })), host = () => {};
  const one = new WebAssembly.Instance(module, { m: { f: host } }).exports.f;
  check("JS API §5.6 the name of a WebAssembly function, step 3: of a host function, and it is another object", [one === host, one.name, one(), new WebAssembly.Instance(module, { m: { f: one } }).exports.f === one], [false, "0", undefined, true]);
  let depth = 0;
  const turns = make({ types: [[[I32], [I32]]], imports: [["m", "f", [0, 0]]], funcs: [[0, 0x20, 0, 0x10, 0]], exports: [["f", 0, 1]] }, { m: { f: (x) => (depth++, x === 0 ? 7 : turns.f(x - 1)) } });
  check("JS API §5.6: calls in turn", [turns.f(50), depth], [7, 51]);
}
export default async function () { objects(); values(); hosts(); }
