// WebAssembly.instantiate(): https://webassembly.github.io/spec/js-api/#dom-webassembly-instantiate
import { check, rejects } from "./check.js";
import { I32, wasm } from "./assembler.js";
export default async function () {
  const { instantiate, Module, Instance } = WebAssembly;
  const bytes = wasm({ types: [[[I32], [I32]]], imports: [["m", "f", [0, 0]]], funcs: [[0, 0x20, 0, 0x10, 0]], exports: [["g", 0, 1]] }), module = new Module(bytes), imports = { m: { f: (x) => x * 2 } };
  const source = instantiate(bytes, imports), one = instantiate(module, imports);
  check("JS API §5 instantiate(): a promise, without a receiver", [source instanceof Promise, one instanceof Promise, instantiate.call(1, module, imports) instanceof Promise], [true, true, true]);
  const both = await source, instance = await one;
  check("JS API §5 instantiate a promise of a module, step 2: the module and its instance", [Object.keys(both), both.module instanceof Module, both.instance instanceof Instance, Object.getPrototypeOf(both) === Object.prototype, both.instance.exports.g(21)], [["module", "instance"], true, true, true, 42]);
  check("JS API §5 asynchronously instantiate: the instance", [instance instanceof Instance, instance.exports.g(4), instance === (await instantiate(module, imports))], [true, 8, false]);
  // arguments
  for (const v of [undefined, null, 1, "", {}, [...bytes], Symbol(), instance, Module]) await rejects("Web IDL §3.6: rejects for neither bytes nor a module, " + String(v), instantiate(v, imports), "TypeError");
  await rejects("Web IDL §3.7.7: rejects without arguments", instantiate(), "TypeError");
  for (const v of [null, 1, "", true, Symbol()]) for (const [what, first] of [["bytes", bytes], ["a module", module]]) await rejects("JS API §5 instantiate(" + what + ", importObject): no object, " + String(v), instantiate(first, v), "TypeError");
  for (const first of [bytes, module]) {
    await rejects("JS API §5 read the imports, step 1: imports are required", instantiate(first), "TypeError");
    await rejects("JS API §5 read the imports, step 5.3: the module is no object", instantiate(first, {}), "TypeError");
    await rejects("JS API §5 read the imports, step 5.5.1: no function", instantiate(first, { m: { f: 1 } }), "LinkError");
    await rejects("JS API §5 read the imports, step 5.4: exceptions of getters reject", instantiate(first, { m: { get f() { throw new RangeError("mine"); } } }), "RangeError: mine");
  }
  await rejects("JS API §5 asynchronously compile, step 2.2.1", instantiate(new Uint8Array(8), imports), "CompileError");
  await rejects("JS API §5 asynchronously compile, step 2.2.1: before the imports are read", instantiate(new Uint8Array(8), { get m() { throw new RangeError("mine"); } }), "CompileError");
  // order
  const order = [], spied = { get m() { order.push("read"); return imports.m; } };
  const late = instantiate(bytes, spied);
  order.push("returned");
  await late;
  check("JS API §5 instantiate(bytes, importObject), step 3: the imports are read when the module is compiled", order, ["returned", "read"]);
  const early = instantiate(module, spied);
  order.push("returned");
  await early;
  check("JS API §5 asynchronously instantiate, step 5: the imports are read at once", order.slice(2), ["read", "returned"]);
  const copied = bytes.slice(), compiling = instantiate(copied, imports);
  copied.fill(0);
  check("JS API §5 instantiate(bytes), step 1: the bytes are copied at once", (await compiling).instance.exports.g(1), 2);
  // start
  const started = [], start = wasm({ types: [[[], []]], imports: [["m", "f", [0, 0]]], start: 0 });
  const running = instantiate(new Module(start), { m: { f: () => started.push("start") } });
  started.push("returned");
  await running;
  check("JS API §5 asynchronously instantiate, step 6: the start function runs later", started, ["returned", "start"]);
  await rejects("JS API §5 instantiate the core, step 3: what the start function throws", instantiate(start, { m: { f() { throw new SyntaxError("mine"); } } }), "SyntaxError: mine");
  await rejects("JS API §5 instantiate the core, step 3: a trap", instantiate(wasm({ types: [[[], []]], funcs: [[0, 0]], start: 0 })), "RuntimeError");
  const then = Object.getOwnPropertyDescriptor(Promise.prototype, "then");
  Promise.prototype.then = () => { throw new Error("replaced then"); };
  const replaced = [instantiate(bytes, imports), instantiate(module, imports)];
  Object.defineProperty(Promise.prototype, "then", then);
  check("Web IDL §3.2.24.1 react: a replaced then is not called", [(await replaced[0]).instance.exports.g(1), (await replaced[1]).exports.g(1)], [2, 2]);
}
