// WebAssembly.validate(): https://webassembly.github.io/spec/js-api/#dom-webassembly-validate
import { check, throws } from "./check.js";
import { I32, wasm } from "./assembler.js";
export default async function () {
  const { validate } = WebAssembly, add = wasm({ types: [[[I32, I32], [I32]]], funcs: [[0, 0x20, 0, 0x20, 1, 0x6a]], exports: [["add", 0, 0]] });
  check("JS API §5 validate(bytes): without a receiver", [validate(add), validate.call(null, add), validate(add.buffer), validate(new DataView(add.buffer))], [true, true, true, true]);
  for (const v of [undefined, null, 1, "", "\0asm", {}, [...add], Symbol(), new WebAssembly.Module(add)]) throws("JS API §5 validate(bytes): no buffer source, " + String(v), () => validate(v), "TypeError");
  throws("JS API §5 validate(): needs bytes", () => validate(), "TypeError");
  const invalid = add.slice();
  invalid[add.length - 2] = 0x7c; // i64.add
  check("JS API §5 validate(bytes), step 3: false", [new Uint8Array(), new Uint8Array(8), add.subarray(0, 7), add.subarray(0, add.length - 1), invalid].map((b) => validate(b)), [false, false, false, false, false]);
  check("JS API §5 validate(bytes): the header alone is a module", validate(add.subarray(0, 8)), true);
  check("JS API §5 validate(bytes): what only an instance refuses is valid", validate(wasm({ memories: [[1]], data: [[0, 0x41, 0xff, 0xff, 7, 0x0b, 1, 1]] })), true);
}
