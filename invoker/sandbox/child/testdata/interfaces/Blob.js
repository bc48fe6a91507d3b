// Blob: https://w3c.github.io/FileAPI/#blob-section
import { check, throws, rejects } from "./check.js";
const bytes = async (b) => [...new Uint8Array(await b.arrayBuffer())];
export default async function () {
  throws("File API §3.1: needs new", () => Blob(), "TypeError");
  for (const v of [null, 1, "abc", true, {}, new Date()]) throws("File API §3.1 constructor: the parts are no " + Object.prototype.toString.call(v), () => new Blob(v), "TypeError");
  for (const v of [1, "x", true]) throws("File API §3.1 constructor: the options are no " + typeof v, () => new Blob([], v), "TypeError");
  check("File API §3.1 constructor, step 1: nothing", ((b) => [b.size, b.type, b instanceof Blob])(new Blob()), [0, "", true]);
  check("File API §3.1 constructor: null and undefined options", [new Blob([], null).type, new Blob([], undefined).type], ["", ""]);
  check("File API §3.1 constructor: any iterable object", await new Blob(new Set(["a", "b"])).text(), "ab");
  // process blob parts
  const source = new Uint8Array([1, 2, 3, 4]);
  check("File API §3.1.1 process blob parts, steps 2.1 to 2.4", await bytes(new Blob(["é", source.buffer, source.subarray(1, 3), new DataView(source.buffer, 3), new Blob(["x"]), new Uint16Array([0x0201])])), [195, 169, 1, 2, 3, 4, 2, 3, 4, 120, 1, 2]);
  check("File API §3.1.1: other values are texts", await new Blob([1, null, undefined, {}, ["a", "b"]]).text(), "1nullundefined[object Object]a,b");
  check("Web IDL §3.2.12: lone surrogates are replaced", await bytes(new Blob(["\ud800"])), [239, 191, 189]);
  throws("Web IDL §3.2.12: a symbol is no text", () => new Blob([Symbol()]), "TypeError");
  const b = new Blob([source]); source[0] = 9; check("File API §3.1.1: bytes are copied", await bytes(b), [1, 2, 3, 4]);
  check("File API §3.1.1, step 2.1: line endings, native", await new Blob(["a\r\nb\rc\n", new Blob(["\r\n"])], { endings: "native" }).text(), "a\nb\nc\n\r\n");
  check("File API §3.1.1, step 2.1: transparent", await new Blob(["a\r\n"], { endings: "transparent" }).text(), "a\r\n"); for (const endings of ["", "Native", null]) throws("File API §3.1 BlobPropertyBag: endings " + endings, () => new Blob([], { endings }), "TypeError");
  const order = []; new Blob([{ toString() { order.push("part"); return ""; } }], { get type() { order.push("type"); }, get endings() { order.push("endings"); } }); check("Web IDL §3.2.17: parts, then members by name", order, ["part", "endings", "type"]);
  // type
  for (const [type, want] of [["Text/PLAIN", "text/plain"], ["a\u007f", ""], ["ä", ""], ["a\u0000", ""], [null, "null"], [undefined, ""], ["a b ~", "a b ~"]]) check("File API §3.1 constructor, step 3: type " + JSON.stringify(type), new Blob([], { type }).type, want);
  for (const name of ["size", "type"]) { throws("File API §3.2 " + name + ": read only", () => { b[name] = 1; }, "TypeError"); throws("File API §3.2 " + name + ": the receiver is checked", () => Object.getOwnPropertyDescriptor(Blob.prototype, name).get.call({}), "TypeError"); }
  // slice
  const t = new Blob(["abcdef"], { type: "x/y" });
  for (const [args, want] of [[[], "abcdef"], [[2], "cdef"], [[1, 3], "bc"], [[-2], "ef"], [[-4, -2], "cd"], [[-9, 2], "ab"], [[4, 2], ""], [[9], ""], [[0, 99], "abcdef"], [[undefined, 2], "ab"], [[1, undefined], "bcdef"], [["1", "2"], "b"], [[NaN, 1], "a"], [[null, 1], "a"], [[-0.5, 1], "a"], [[0, Infinity], "abcdef"], [[-Infinity, 1], "a"], [[1e20], ""]]) check("File API §3.3.1 slice(" + args + ")", await t.slice(...args).text(), want);
  check("File API §3.3.1 slice, step 3: the content type", [t.slice().type, t.slice(0, 1, "A/B").type, t.slice(0, 1, "ä").type, t.slice(0, 1, undefined).type], ["", "a/b", "", ""]);
  check("File API §3.3.1 slice: a Blob, also of a File", new File(["ab"], "n").slice(0, 1).constructor, Blob); check("File API §3.3.1 slice of a slice", await t.slice(1, 5).slice(1, 3).text(), "cd");
  // content
  check("File API §3.3.3 text(): UTF-8 decode", [await new Blob([new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xff])]).text(), await t.text()], ["a\ufffd", "abcdef"]);
  const buffer = await t.arrayBuffer(); check("File API §3.3.4 arrayBuffer(): a new buffer", [buffer instanceof ArrayBuffer, buffer.byteLength, (await t.arrayBuffer()) === buffer], [true, 6, false]); new Uint8Array(buffer)[0] = 0; check("File API §3.3.4: the blob does not change", await t.text(), "abcdef");
  const array = await t.bytes(); check("File API §3.3.5 bytes(): a Uint8Array", [array.constructor === Uint8Array, array.length], [true, 6]);
  for (const name of ["text", "arrayBuffer", "bytes"]) await rejects("File API §3.3 " + name + "(): rejects for another receiver", Blob.prototype[name].call({}), "TypeError");
  throws("File API §3.3.2 stream(): the receiver is checked", () => Blob.prototype.stream.call({}), "TypeError"); throws("File API §3.3.1 slice(): the receiver is checked", () => Blob.prototype.slice.call({}), "TypeError");
  const s = t.stream(); check("File API §3.3.2 stream(): a new readable byte stream", [s instanceof ReadableStream, s === t.stream(), String((await s.getReader({ mode: "byob" }).read(new Uint8Array(3))).value)], [true, false, "97,98,99"]); const chunks = []; for await (const c of t.stream()) chunks.push(c instanceof Uint8Array, c.length); check("File API §3.3.2: chunks", chunks, [true, 6]);
  check("File API §3.3.2: an empty blob has no chunk", (await new Blob().stream().getReader().read()).done, true); check("File API §3: the class string", String(t), "[object Blob]");
  check("Web IDL §3.2.12: pairs of surrogates stay", await bytes(new Blob(["a😀😀\ud83db", "\ude00𝓽"])), [97, 240, 159, 152, 128, 240, 159, 152, 128, 239, 191, 189, 98, 239, 191, 189, 240, 157, 147, 189]);
  const asked = []; new Blob({ get [Symbol.iterator]() { asked.push("iterator"); return [][Symbol.iterator]; }, length: 0 }); check("Web IDL §3.2.21 sequence: the method is read once", asked, ["iterator"]);
}
