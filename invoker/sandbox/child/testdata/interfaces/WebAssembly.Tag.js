// WebAssembly.Tag, Exception and JSTag: https://webassembly.github.io/spec/js-api/#tags
// They are missing, for the reason in docs/web-apis.md: a module that needs them is refused.
import { check, throws } from "./check.js";
import { wasm } from "./assembler.js";
export default async function () {
  check("JS API §5.7 and §5.9: missing, so that a script can test for them", ["Tag", "Exception", "JSTag"].map((name) => [name in WebAssembly, typeof WebAssembly[name]]), Array(3).fill([false, "undefined"]));
  const header = [...wasm({ types: [[[], []]] })], modules = { "a tag": [...header, 13, 3, 1, 0, 0], "an import of a tag": [...header, 2, 7, 1, 1, 97, 1, 98, 4, 0, 0] };
  for (const [what, bytes] of Object.entries(modules)) {
    throws("JS API §5.1 Module(bytes), step 3: " + what, () => new WebAssembly.Module(new Uint8Array(bytes)), "CompileError");
    check("JS API §5 validate(bytes): " + what, WebAssembly.validate(new Uint8Array(bytes)), false);
  }
  for (const [what, ...code] of [["throw", 0x08, 0], ["throw_ref", 0x0a], ["try_table", 0x1f, 0x40, 0, 0x0b], ["the older try", 0x06, 0x40, 0x19, 0x0b]]) throws("JS API §5.1 Module(bytes), step 3: the instruction " + what, () => new WebAssembly.Module(wasm({ types: [[[], []]], funcs: [[0, ...code]] })), "CompileError");
}
