// WebAssembly.instantiateStreaming(): https://webassembly.github.io/spec/web-api/#streaming-modules
import { check, rejects } from "./check.js";
import { I32, wasm } from "./assembler.js";
export default async function () {
  const { instantiateStreaming } = WebAssembly, bytes = wasm({ types: [[[I32], [I32]]], imports: [["m", "f", [0, 0]]], funcs: [[0, 0x20, 0, 0x10, 0]], exports: [["g", 0, 1]] });
  const answer = (body = bytes, type = "application/wasm") => new Response(body, { headers: { "content-type": type } }), imports = { m: { f: (x) => x * 2 } };
  const promise = instantiateStreaming(answer(), imports);
  check("Web API §4: a promise", promise instanceof Promise, true);
  const both = await promise;
  check("Web API §4 instantiateStreaming(source, importObject), step 2: the module and its instance", [Object.keys(both), both.module instanceof WebAssembly.Module, both.instance instanceof WebAssembly.Instance, both.instance.exports.g(21)], [["module", "instance"], true, true, 42]);
  check("Web API §4: a promise for a response", (await instantiateStreaming(Promise.resolve(answer()), imports)).instance.exports.g(1), 2);
  const order = [], spied = { get m() { order.push("read"); return imports.m; } }, late = instantiateStreaming(answer(), spied);
  order.push("returned");
  await late;
  check("Web API §4, step 2: the imports are read when the module is compiled", order, ["returned", "read"]);
  check("Web API §4: no imports are needed", (await instantiateStreaming(answer(wasm({})))).instance instanceof WebAssembly.Instance, true);
  for (const v of [null, 1, "", true]) await rejects("Web IDL §3.7.7: rejects for imports that are no object, " + String(v), instantiateStreaming(answer(), v), "TypeError");
  await rejects("JS API §5 read the imports, step 1", instantiateStreaming(answer()), "TypeError");
  await rejects("JS API §5 read the imports, step 5.5.1", instantiateStreaming(answer(), { m: { f: 1 } }), "LinkError");
  await rejects("JS API §5 read the imports, step 5.2", instantiateStreaming(answer(), { get m() { throw new RangeError("mine"); } }), "RangeError: mine");
  await rejects("JS API §5 instantiate the core, step 3: a trap", instantiateStreaming(answer(wasm({ types: [[[], []]], funcs: [[0, 0]], start: 0 }))), "RuntimeError");
  for (const [what, source, text] of [["no Response", bytes, "TypeError"], ["another type", answer(bytes, "text/html"), "TypeError"], ["garbage", answer(new Uint8Array(9)), "CompileError"], ["a rejected promise", Promise.reject(new RangeError("mine")), "RangeError: mine"]]) await rejects("Web API §4 compile a potential WebAssembly response: " + what, instantiateStreaming(source, imports), text);
}
