// WebAssembly.CompileError, LinkError and RuntimeError: https://webassembly.github.io/spec/js-api/#error-objects
import { check, throws } from "./check.js";
import { I32, I64, F32, FUNC, make, threw } from "./assembler.js";
export default async function () {
  for (const name of ["CompileError", "LinkError", "RuntimeError"]) {
    const E = WebAssembly[name], d = (o, k) => { const p = Object.getOwnPropertyDescriptor(o, k); return p && [p.writable, p.enumerable, p.configurable]; };
    check("JS API §5.11, as ECMA-262 §20.5.6.1: the constructor " + name, [Object.getPrototypeOf(E) === Error, E.name, E.length, d(E, "prototype"), d(E, "name"), d(E, "length"), d(WebAssembly, name)], [true, name, 1, [false, false, false], [false, false, true], [false, false, true], [true, false, true]]);
    check("ECMA-262 §20.5.6.3: the prototype of " + name, [Object.getPrototypeOf(E.prototype) === Error.prototype, E.prototype.constructor === E, E.prototype.name, E.prototype.message, Object.hasOwn(E.prototype, "toString"), d(E.prototype, "name"), d(E.prototype, "message")], [true, true, name, "", false, [true, false, true], [true, false, true]]);
    const e = new E("m"), called = E("m");
    check("ECMA-262 §20.5.6.1.1: " + name + " with and without new", [e instanceof E, e instanceof Error, called instanceof E, e.message, String(e), d(e, "message"), Object.keys(e), typeof e.stack, Object.prototype.toString.call(e)], [true, true, true, "m", name + ": m", [true, false, true], [], "string", "[object Error]"]);
    check("ECMA-262 §20.5.6.1.1, step 3: the message of " + name, [Object.hasOwn(new E(), "message"), Object.hasOwn(new E(undefined), "message"), new E(null).message, new E({ toString: () => "t" }).message, threw(() => new E(Symbol()))], [false, false, "null", "t", "TypeError"]);
    check("ECMA-262 §20.5.8.1: the cause of " + name, [new E("m", { cause: 7 }).cause, Object.hasOwn(new E("m", {}), "cause"), Object.hasOwn(new E("m", { cause: undefined }), "cause"), Object.hasOwn(new E("m", 7), "cause")], [7, false, true, false]);
    class Mine extends E {}
    check("ECMA-262 §20.5.6.1.1, step 1: a class of " + name, [new Mine("x") instanceof Mine, new Mine("x").name, Object.getPrototypeOf(Reflect.construct(E, [], Array)) === Array.prototype], [true, name, true]);
  }
  // the mapping of traps
  const trap = (...code) => { try { make({ types: [[[], []]], memories: [[1]], tables: [[FUNC, 1]], funcs: [[0, ...code]], exports: [["f", 0, 0]] }).f(); } catch (e) { return [e.constructor === WebAssembly.RuntimeError, typeof e.stack]; } };
  for (const [what, ...code] of [["unreachable", 0], ["a division by zero", 0x41, 1, 0x41, 0, 0x6d, 0x1a], ["an overflow", 0x41, 0x80, 0x80, 0x80, 0x80, 0x78, 0x41, 0x7f, 0x6d, 0x1a], ["a remainder by zero", 0x41, 1, 0x41, 0, 0x6f, 0x1a], ["a conversion of NaN", 0x43, 0, 0, 0xc0, 0x7f, 0xa8, 0x1a], ["a conversion of infinity", 0x43, 0, 0, 0x80, 0x7f, 0xa8, 0x1a], ["an access outside of the memory", 0x41, 0x7f, 0x28, 2, 0, 0x1a], ["an index outside of the table", 0x41, 9, 0x11, 0, 0], ["a null function", 0x41, 0, 0x11, 0, 0], ["memory.fill outside", 0x41, 0x7f, 0x41, 0, 0x41, 9, 0xfc, 11, 0], ["table.get outside", 0x41, 9, 0x25, 0, 0x1a]]) check("JS API §5.6 call an Exported Function, step 10: " + what, trap(...code), [true, "string"]);
  const typed = make({ types: [[[], []], [[I32], [I64]]], tables: [[FUNC, 1]], funcs: [[0, 0x41, 0, 0x11, 0, 0], [1, 0x42, 1]], exports: [["f", 0, 0]], elements: [[0, 0x41, 0, 0x0b, 1, 1]] });
  throws("JS API §5.6 call an Exported Function, step 10: call_indirect of another type", typed.f, "RuntimeError");
  // §7.1
  const recursion = make({ types: [[[], []]], funcs: [[0, 0x10, 0]], exports: [["f", 0, 0]] });
  check("JS API §7.1 stack overflow: as the language's own", [threw(() => recursion.f()), threw(() => recursion.f())], ["RangeError", "RangeError"]);
  const loop = make({ types: [[[], []]], imports: [["m", "f", [0, 0]]], funcs: [[0, 0x10, 0]], exports: [["f", 0, 1]] }, { m: { f: () => loop.f() } });
  check("JS API §7.1 stack overflow: through both", threw(() => loop.f()), "RangeError");
  throws("JS API §7.2 out of memory: when an instance is made", () => make({ memories: [[65536]] }), "RangeError");
  check("JS API §7.2 out of memory: memory.grow returns -1", make({ types: [[[], [I32]]], memories: [[0]], funcs: [[0, 0x41, 0xff, 0xff, 3, 0x40, 0]], exports: [["f", 0, 0]] }).f(), -1);
  throws("JS API §8: a function of more than 1,000 parameters", () => make({ types: [[Array(1001).fill(F32), []]] }), "CompileError");
  check("JS API §8: 1,000 parameters", make({ types: [[Array(1000).fill(F32), []]], funcs: [[0]], exports: [["f", 0, 0]] }).f.length, 1000);
}
