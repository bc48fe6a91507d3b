// WebAssembly.compileStreaming(): https://webassembly.github.io/spec/web-api/#streaming-modules
import { check, rejects } from "./check.js";
import { wasm } from "./assembler.js";
export default async function () {
  const { compileStreaming, Module } = WebAssembly, bytes = wasm({ types: [[[], []]], funcs: [[0]], exports: [["f", 0, 0]] });
  const answer = (body = bytes, type = "application/wasm", status = 200) => new Response(body, { status, headers: type === null ? {} : { "content-type": type } });
  const chunks = (...parts) => new ReadableStream({ start(c) { for (const p of parts) c.enqueue(p); c.close(); } });
  const promise = compileStreaming(answer());
  check("Web API §4: a promise", promise instanceof Promise, true);
  check("Web API §4 compile a potential WebAssembly response, step 10", Module.exports(await promise), [{ name: "f", kind: "function" }]);
  for (const [what, source] of [["a promise", Promise.resolve(answer())], ["a thenable", { then(f) { f(answer()); } }], ["a promise that waits", new Promise((r) => setTimeout(() => r(answer()), 1))]]) check("Web API §4 compile a potential WebAssembly response: of " + what, (await compileStreaming(source)) instanceof Module, true);
  for (const body of [bytes.buffer, new Blob([bytes]), chunks(bytes.slice(0, 3), bytes.slice(3, 9), new Uint8Array(), bytes.slice(9))]) check("Web API §4, step 8: any body", (await compileStreaming(answer(body))) instanceof Module, true);
  // the response
  for (const [what, source] of [["bytes", bytes], ["nothing", undefined], ["null", null], ["a Request", new Request("https://a.example")], ["an object", { body: bytes }]]) await rejects("Web API §4, step 3: no Response, " + what, compileStreaming(source), "TypeError");
  await rejects("Web API §4, step 3: a promise that rejects", compileStreaming(Promise.reject(new RangeError("mine"))), "RangeError: mine");
  await rejects("Web API §4, step 3: a getter of then", compileStreaming({ get then() { throw new RangeError("mine"); } }), "RangeError: mine");
  for (const type of [null, "", "text/html", "application/wasm;", "application/wasm; charset=utf-8", "application/wasmx", "x/application/wasm", "application/wasm, application/wasm"]) await rejects("Web API §4, steps 4 to 7: the type " + type, compileStreaming(answer(bytes, type)), "TypeError");
  for (const type of ["APPLICATION/WASM", " application/wasm\t"]) check("Web API §4, steps 5 and 6: the type " + JSON.stringify(type), (await compileStreaming(answer(bytes, type))) instanceof Module, true);
  for (const status of [300, 404, 500]) await rejects("Web API §4, step 8: the status " + status, compileStreaming(answer(bytes, undefined, status)), "TypeError");
  await rejects("Web API §4: an error", compileStreaming(Response.error()), "TypeError");
  const used = answer(), locked = answer(chunks(bytes));
  await used.text();
  locked.body.getReader();
  await rejects("Web API §4, step 9: a used body", compileStreaming(used), "TypeError");
  await rejects("Web API §4, step 9: a locked body", compileStreaming(locked), "TypeError");
  const once = answer();
  await compileStreaming(once);
  check("Web API §4, step 9: the body is used", once.bodyUsed, true);
  await rejects("Web API §4, step 9: a stream that fails", compileStreaming(answer(new ReadableStream({ pull(c) { c.error(new RangeError("cut")); } }))), "RangeError: cut");
  await rejects("Web API §4, step 9: a chunk that is no bytes", compileStreaming(answer(chunks("text"))), "TypeError");
  // the module
  for (const [what, body] of [["no body", null], ["garbage", new Uint8Array(9)], ["half a module", bytes.slice(0, -2)], ["a cut stream", chunks(bytes.slice(0, 9))]]) await rejects("Web API §4, step 10: " + what, compileStreaming(answer(body)), "CompileError");
}
