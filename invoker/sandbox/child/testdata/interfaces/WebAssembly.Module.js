// WebAssembly.Module: https://webassembly.github.io/spec/js-api/#modules
import { check, throws } from "./check.js";
import { I32, FUNC, str, u, wasm, threw } from "./assembler.js";
const signature = [[[], []]];
const custom = (name, ...data) => [0, ...u(u(name.length).length + name.length + data.length), ...u(name.length), ...name, ...data];
export default async function () {
  const { Module } = WebAssembly, module = new Module(wasm({}));
  throws("JS API §5.1: needs new", () => Module(wasm({})), "TypeError");
  check("JS API §5.1: the class string and the prototype", [String(module), Object.getPrototypeOf(module) === Module.prototype, module instanceof Module], ["[object WebAssembly.Module]", true, true]);
  // constructor
  for (const v of [undefined, null, 1, "", {}, [0], Symbol(), () => {}, module]) throws("JS API §5.1 Module(bytes): no buffer source, " + String(v), () => new Module(v), "TypeError");
  const bytes = wasm({ types: signature, funcs: [[0]], exports: [["f", 0, 0]] }), padded = new Uint8Array(bytes.length + 9);
  padded.set(bytes, 5);
  for (const [what, source] of [["a typed array", bytes], ["a buffer", bytes.buffer], ["a part of a buffer", padded.subarray(5, 5 + bytes.length)], ["a DataView", new DataView(padded.buffer, 5, bytes.length)]]) check("JS API §5.1 Module(bytes), step 1: " + what, Module.exports(new Module(source)).length, 1);
  const changed = bytes.slice(), before = new Module(changed);
  changed.fill(0);
  check("JS API §5.1 Module(bytes), step 1: the bytes are copied", [Module.exports(before).length, typeof new WebAssembly.Instance(before).exports.f], [1, "function"]);
  const detached = bytes.slice();
  detached.buffer.transfer();
  throws("JS API §5.1 Module(bytes), step 1: a detached buffer has no bytes", () => new Module(detached), "CompileError");
  const header = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
  for (const [what, ...b] of [["no bytes"], ["another magic", 1, 0x61, 0x73, 0x6d, 1, 0, 0, 0], ["another version", 0, 0x61, 0x73, 0x6d, 2, 0, 0, 0], ["a cut section", ...header, 1, 5, 1], ["an unknown section", ...header, 99, 0], ["sections out of order", ...header, 3, 1, 0, 1, 1, 0],
    ["an unknown type", ...header, 1, 2, 1, 0x50], ["an export of nothing", ...header, 7, 5, 1, 1, 97, 0, 0], ["a function without a body", ...header, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0]]) throws("JS API §5.1 Module(bytes), step 3: " + what, () => new Module(new Uint8Array(b)), "CompileError");
  throws("JS API §5.1 Module(bytes), step 3: a body that is not valid", () => new Module(wasm({ types: [[[], [I32]]], funcs: [[0]] })), "CompileError");
  throws("JS API §5.1 Module(bytes), step 3: a name twice", () => new Module(wasm({ types: signature, funcs: [[0]], exports: [["f", 0, 0], ["f", 0, 0]] })), "CompileError");
  throws("JS API §5.1 Module(bytes), step 3: names are UTF-8", () => new Module(new Uint8Array([...header, 0, 3, 1, 0xff, 1])), "CompileError");
  // exports
  const kinds = { types: signature, tables: [[FUNC, 1]], memories: [[1]], globals: [[I32, 0, 0x41, 1, 0x0b]], funcs: [[0]] };
  const all = new Module(wasm({ ...kinds, exports: [["t", 1, 0], ["f", 0, 0], ["m", 2, 0], ["g", 3, 0], ["", 0, 0]] }));
  check("JS API §5.1 exports(moduleObject), step 3: in the order of the module", Module.exports(all), [{ name: "t", kind: "table" }, { name: "f", kind: "function" }, { name: "m", kind: "memory" }, { name: "g", kind: "global" }, { name: "", kind: "function" }]);
  check("JS API §5.1 exports(moduleObject): a new array each time", [Module.exports(all) === Module.exports(all), Object.getOwnPropertyDescriptor(Module.exports(all)[0], "name")], [false, { value: "t", writable: true, enumerable: true, configurable: true }]);
  check("JS API §5.1 exports(moduleObject): nothing", [Module.exports(module), Array.isArray(Module.exports(module))], [[], true]);
  // imports
  const wanted = new Module(wasm({ types: signature, imports: [["m", "f", [0, 0]], ["m", "t", [1, FUNC, 0, 1]], ["n", "m", [2, 0, 1]], ["", "g", [3, I32, 0]], ["unnamed", "", [3, I32, 0]], ["m", "f", [0, 0]]] }));
  check("JS API §5.1 imports(moduleObject), step 5: in order, also twice and without names", Module.imports(wanted).map((i) => [i.module, i.name, i.kind]), [["m", "f", "function"], ["m", "t", "table"], ["n", "m", "memory"], ["", "g", "global"], ["unnamed", "", "global"], ["m", "f", "function"]]);
  check("JS API §5.1 imports(moduleObject): nothing", Module.imports(module), []);
  // customSections
  const utf8 = [0xc3, 0xa9], sections = new Module(new Uint8Array([...header, ...custom(str("a").slice(1), 1, 2), ...custom([], 3), ...custom(str("a").slice(1)), ...custom(utf8, 4), ...custom([0xef, 0xbf, 0xbd], 5), ...custom([0xef, 0xbb, 0xbf, 97], 6)]));
  const of = (name) => Module.customSections(sections, name).map((b) => [b instanceof ArrayBuffer, ...new Uint8Array(b)]);
  check("JS API §5.1 customSections(moduleObject, sectionName), step 3", [of("a"), of(""), of("b"), of("é")], [[[true, 1, 2], [true]], [[true, 3]], [], [[true, 4]]]);
  check("JS API §5.1 customSections(): the name is a DOMString, and decoded without BOM", [of("\ufffd"), of("\ud800"), of("\ufeffa"), of("A")], [[[true, 5]], [], [[true, 6]], []]);
  check("JS API §5.1 customSections(): the name is converted", [of({ toString: () => "a" }).length, Module.customSections(new Module(new Uint8Array([...header, ...custom(str("undefined").slice(1), 7)])), undefined).length], [2, 1]);
  const [first] = Module.customSections(sections, "a");
  new Uint8Array(first)[0] = 9;
  check("JS API §5.1 customSections(), step 3.3: a copy", of("a")[0], [true, 1, 2]);
  throws("JS API §5.1 customSections(): needs a name", () => Module.customSections(sections), "TypeError");
  throws("JS API §5.1 customSections(): a symbol is no name", () => Module.customSections(sections, Symbol()), "TypeError");
  for (const name of ["exports", "imports", "customSections"]) {
    check("JS API §5.1 " + name + "(): needs a module", [undefined, null, {}, Module, Module.prototype, bytes].map((v) => threw(() => Module[name](v, ""))), Array(6).fill("TypeError"));
    check("Web IDL §3.7.7: " + name + "() has no receiver", Array.isArray((0, Module[name])(sections, "")), true);
  }
}
