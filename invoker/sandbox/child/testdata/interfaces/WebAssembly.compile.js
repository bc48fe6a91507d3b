// WebAssembly.compile(): https://webassembly.github.io/spec/js-api/#dom-webassembly-compile
import { check, rejects } from "./check.js";
import { wasm } from "./assembler.js";
export default async function () {
  const { compile } = WebAssembly, bytes = wasm({ types: [[[], []]], funcs: [[0]], exports: [["f", 0, 0]] });
  const promise = compile(bytes);
  check("JS API §5 compile(bytes): a promise, without a receiver", [promise instanceof Promise, compile.call(1, bytes) instanceof Promise], [true, true]);
  const module = await promise;
  check("JS API §5 construct a WebAssembly module object", [module instanceof WebAssembly.Module, WebAssembly.Module.exports(module), (await compile(bytes)) === module], [true, [{ name: "f", kind: "function" }], false]);
  check("JS API §5 compile(bytes), step 1: any buffer source", await Promise.all([bytes.buffer, new DataView(bytes.buffer), bytes.subarray()].map(async (b) => WebAssembly.Module.exports(await compile(b)).length)), [1, 1, 1]);
  for (const v of [undefined, null, 1, "", {}, [...bytes], Symbol(), module]) await rejects("Web IDL §3.7.7: rejects for no buffer source, " + String(v), compile(v), "TypeError");
  await rejects("Web IDL §3.7.7: rejects without bytes", compile(), "TypeError");
  const copied = bytes.slice(), compiling = compile(copied);
  copied.fill(0);
  check("JS API §5 compile(bytes), step 1: the bytes are copied at once", WebAssembly.Module.exports(await compiling).length, 1);
  for (const [what, b] of [["nothing", new Uint8Array()], ["another version", new Uint8Array([0, 0x61, 0x73, 0x6d, 2, 0, 0, 0])], ["half a module", bytes.subarray(0, -2)], ["a body that is not valid", wasm({ types: [[[], [0x7f]]], funcs: [[0]] })]]) {
    const e = await rejects("JS API §5 asynchronously compile, step 2.2.1: " + what, compile(b), "CompileError");
    check("JS API §5 asynchronously compile, step 2.2.1: the class", e instanceof WebAssembly.CompileError, true);
  }
}
