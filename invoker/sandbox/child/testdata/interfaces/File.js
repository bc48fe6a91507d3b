// File: https://w3c.github.io/FileAPI/#file-section
import { check, throws } from "./check.js";
export default async function () {
  throws("File API §4.1: needs new", () => File([], "n"), "TypeError"); throws("File API §4.1: needs parts and a name", () => new File([]), "TypeError"); throws("File API §4.1: needs parts and a name", () => new File(), "TypeError");
  for (const v of [null, undefined, 1, "abc"]) throws("File API §4.1: the parts are no " + v, () => new File(v, "n"), "TypeError");
  throws("File API §4.1: a symbol is no name", () => new File([], Symbol()), "TypeError"); throws("File API §4.1: the options are an object", () => new File([], "n", 1), "TypeError");
  const before = Date.now(), f = new File(["a", new Blob(["b"])], "dir/n:ä\ud800", { type: "A/B" }), after = Date.now();
  check("File API §4.1 constructor, steps 1 to 4", [await f.text(), f.name, f.type, f.size, f instanceof Blob], ["ab", "dir/n:ä\ufffd", "a/b", 2, true]);
  check("File API §4.1 constructor, step 3.2: now is the default", f.lastModified >= before && f.lastModified <= after, true);
  for (const [value, want] of [[5, 5], ["7", 7], [new Date(9), 9], [1.9, 1], [-1.9, -1], [NaN, 0], [Infinity, 0], [null, 0], [false, 0]]) check("File API §4.1 FilePropertyBag: lastModified is a long long, " + String(value), new File([], "n", { lastModified: value }).lastModified, want);
  check("File API §4.1: name and type of other values", ((x) => [x.name, x.type])(new File([], null, { type: "ä" })), ["null", ""]);
  check("File API §4.1: endings", await new File(["a\r\n"], "n", { endings: "native" }).text(), "a\n");
  const order = []; new File([], { toString() { order.push("name"); return "n"; } }, { get lastModified() { order.push("lastModified"); }, get type() { order.push("type"); }, get endings() { order.push("endings"); } });
  check("Web IDL §3.2.17: the name, then inherited members, then its own", order, ["name", "endings", "type", "lastModified"]);
  for (const name of ["name", "lastModified"]) { throws("File API §4.2 " + name + ": read only", () => { f[name] = 1; }, "TypeError"); throws("File API §4.2 " + name + ": the receiver is checked", () => Object.getOwnPropertyDescriptor(File.prototype, name).get.call(new Blob()), "TypeError"); }
  const c = structuredClone(new File(["x"], "n", { type: "a/b", lastModified: 3 })); check("File API §4 serialization steps", [c instanceof File, c.name, c.type, c.lastModified, await c.text()], [true, "n", "a/b", 3, "x"]);
  check("File API §4: the class string", String(f), "[object File]");
  check("Web IDL §3.2.12: pairs of surrogates stay", [new File([], "n😀.txt").name, await new File(["x😀"], "n").text(), new File([], "\ud83d").name], ["n😀.txt", "x😀", "\ufffd"]);
}
