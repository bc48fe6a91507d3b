import { check, throws, rejects } from "./check.js";
import util, { inspect, format, promisify, callbackify, inherits, deprecate, types, isDeepStrictEqual, parseArgs, stripVTControlCharacters, TextEncoder as TE } from "node:util";
export default async function () {
  for (const [value, want] of [
    [{ a: 1, b: "x", c: [1, 2, { d: 3 }], e: null, f: undefined }, "{ a: 1, b: 'x', c: [ 1, 2, { d: 3 } ], e: null, f: undefined }"],
    [[], "[]"], [{}, "{}"], [[undefined, null, , 3], "[ undefined, null, <1 empty item>, 3 ]"], ["it's", '"it\'s"'], ["a\nb", "'a\\nb'"], [-0, "-0"], [10n, "10n"], [Symbol("s"), "Symbol(s)"],
    [new Map([["a", { b: 1 }]]), "Map(1) { 'a' => { b: 1 } }"], [new Set([1, "2"]), "Set(2) { 1, '2' }"], [new Date(0), "1970-01-01T00:00:00.000Z"], [/a/g, "/a/g"],
    [class A {}, "[class A]"], [class B extends Array {}, "[class B extends Array]"], [function f() {}, "[Function: f]"], [() => {}, "[Function (anonymous)]"], [async () => {}, "[AsyncFunction (anonymous)]"],
    [Object.create(null), "[Object: null prototype] {}"], [new (class Foo { x = 1 })(), "Foo { x: 1 }"], [{ a: { b: { c: { d: 1 } } } }, "{ a: { b: { c: [Object] } } }"], [[[[[1]]]], "[ [ [ [Array] ] ] ]"],
    [new Uint8Array([1, 2]), "Uint8Array(2) [ 1, 2 ]"], [Promise.resolve(4), "Promise { 4 }"], [new Promise(() => {}), "Promise { <pending> }"], [{ get a() { return 1 }, set b(v) {} }, "{ a: [Getter], b: [Setter] }"],
    [new String("x"), "[String: 'x']"], [{ "a-b": 1, [Symbol("k")]: 2 }, "{ 'a-b': 1, [Symbol(k)]: 2 }"], [new WeakMap(), "WeakMap { <items unknown> }"], [Object.assign(() => {}, { a: 1 }), "[Function (anonymous)] { a: 1 }"],
    [Object.assign([1], { x: 2 }), "[ 1, x: 2 ]"], ["x".repeat(5), "'xxxxx'"], [{ [inspect.custom]: () => "mine" }, "mine"], [new ArrayBuffer(2), "ArrayBuffer { [Uint8Contents]: <00 00>, byteLength: 2 }"], [true, "true"],
  ]) check(`inspect ${want}`, inspect(value), want);
  const loop = { name: "l" }; loop.self = loop; check("circular", inspect(loop), "<ref *1> { name: 'l', self: [Circular *1] }");
  check("depth", [inspect({ a: { b: { c: {} } } }, { depth: 0 }), inspect({ a: { b: { c: { d: 1 } } } }, false, null)], ["{ a: [Object] }", "{\n  a: { b: { c: { d: 1 } } }\n}"]);
  check("long", inspect(Array.from({ length: 120 }, (_, i) => i)).split("\n").length, 12); check("more", inspect(Array(101).fill(1)).endsWith("... 1 more item\n]"), true);
  check("lines", inspect({ aaaaaaaaaaaaaaaaaaaaaaaa: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbb", cccccccccccccccccc: "dddddddddddddddddddddddddd" }), "{\n  aaaaaaaaaaaaaaaaaaaaaaaa: 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbb',\n  cccccccccccccccccc: 'dddddddddddddddddddddddddd'\n}");
  check("colors", inspect({ a: 1 }, { colors: true }), "{ a: \u001b[33m1\u001b[39m }");
  const e = new TypeError("mine", { cause: new Error("inner") }); check("error", [inspect(e).startsWith("TypeError: mine\n    at"), inspect(e).includes("[cause]: Error: inner")], [true, true]);
  check("format", [format("%s is %d and %i, %f, %j, %o %O %%", "a", 1.5, 2.9, "3.5", { b: 1 }, [1], { c: 1 }, "rest"), format(1, "a", { b: 2 }), format("%s", null, undefined), format("a%"), format("%x", 1)], ["a is 1.5 and 2, 3.5, {\"b\":1}, [ 1, [length]: 1 ] { c: 1 } % rest", "1 a { b: 2 }", "null undefined", "a%", "%x 1"]);
  const p = promisify((a, cb) => (a ? cb(null, a + 1) : cb(new Error("no")))); check("promisify", await p(1), 2); await rejects("promisify", p(0), "no");
  check("promisify custom", await promisify(require("timers").setTimeout)(1, "v"), "v");
  check("callbackify", await new Promise((r) => callbackify(async (x) => x + 1)(1, (err, v) => r([err, v]))), [null, 2]);
  function A() {} function B() {} inherits(A, B); check("inherits", [new A() instanceof B, A.super_ === B], [true, true]);
  check("deprecate", deprecate(() => 5, "old")(), 5);
  check("types", [types.isPromise(Promise.resolve()), types.isPromise({ then() {} }), types.isDate(new Date()), types.isRegExp(/a/), types.isMap(new Map()), types.isSet({}), types.isUint8Array(Buffer.alloc(1)), types.isTypedArray(new DataView(new ArrayBuffer(1))), types.isAnyArrayBuffer(new ArrayBuffer(1)), types.isNativeError(new RangeError()), types.isAsyncFunction(async () => {}), types.isGeneratorFunction(function* () {}), types.isProxy(new Proxy({}, {})), types.isBoxedPrimitive(Object(1n))], [true, false, true, true, true, false, true, false, true, true, true, true, true, true]);
  check("equal", [isDeepStrictEqual({ a: [1, new Map([[{ x: 1 }, new Set([1])]])] }, { a: [1, new Map([[{ x: 1 }, new Set([1])]])] }), isDeepStrictEqual([1], ["1"]), isDeepStrictEqual(NaN, NaN), isDeepStrictEqual(0, -0), isDeepStrictEqual({ a: undefined }, {}), isDeepStrictEqual(new Date(1), new Date(1)), isDeepStrictEqual([1, , 2], [1, undefined, 2])], [true, false, true, false, false, true, false]);
  check("args", parseArgs({ args: ["-f", "--bar=b", "pos"], options: { foo: { type: "boolean", short: "f" }, bar: { type: "string" } }, allowPositionals: true }), { values: { foo: true, bar: "b" }, positionals: ["pos"] });
  throws("args", () => parseArgs({ args: ["--x"] }), "Unknown option '--x'");
  check("rest", [stripVTControlCharacters("\u001b[31mred\u001b[39m"), util.isArray([]), TE === TextEncoder, util.styleText("red", "x"), util._extend({ a: 1 }, { b: 2 }), util.getSystemErrorName(-2)], ["red", true, true, "x", { a: 1, b: 2 }, "ENOENT"]);
  throws("not there", () => new util.MIMEType("a/b"), "node:util: MIMEType is not available in functions");
}
