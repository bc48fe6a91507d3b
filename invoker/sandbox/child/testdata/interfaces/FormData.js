// FormData: https://xhr.spec.whatwg.org/#interface-formdata
import { check, throws, rejects } from "./check.js";
const read = (body, type) => new Response(body, { headers: { "content-type": type } }).formData();
export default async function () {
  throws("XHR §4: needs new", () => FormData(), "TypeError"); for (const v of [null, 1, {}, "f"]) throws("XHR §4 constructor: a form is no " + v, () => new FormData(v), "TypeError");
  check("XHR §4 constructor: undefined is no form", [...new FormData(undefined)], []);
  const f = new FormData();
  check("XHR §4 append(name, value): returns undefined", f.append("a", 1), undefined); f.append("a", null); f.append("\ud800", "\ud800");
  check("XHR §4 append(name, value): scalar values", [...f], [["a", "1"], ["a", "null"], ["\ufffd", "\ufffd"]]);
  for (const [what, args] of [["append", ["a"]], ["set", ["a"]], ["get", []], ["getAll", []], ["has", []], ["delete", []], ["forEach", []]]) throws("Web IDL §3.7.6: " + what + " needs its arguments", () => f[what](...args), "TypeError");
  for (const v of ["text", {}, null]) for (const what of ["append", "set"]) throws("Web IDL §3.6: " + what + " with a filename needs a Blob", () => f[what]("a", v, "n"), "TypeError"); throws("XHR §4: a symbol is no text", () => f.append("a", Symbol()), "TypeError");
  // create an entry
  const b = new FormData(), blob = new Blob(["x"], { type: "t/x" }), file = new File(["y"], "own", { type: "t/y", lastModified: 5 });
  b.append("b", blob); b.append("b", blob, "given"); b.append("f", file); b.append("f", file, "other"); b.append("f", file, undefined);
  check("XHR §4 create an entry, step 3.1: a Blob becomes a File named blob", ((x) => [x instanceof File, x.name, x.type])(b.get("b")), [true, "blob", "t/x"]); check("XHR §4 create an entry, step 3.2: the filename", b.getAll("b")[1].name, "given");
  check("XHR §4 create an entry: a File stays itself", [b.get("f") === file, b.getAll("f")[2] === file], [true, true]); check("XHR §4 create an entry, step 3.2: of a File", ((x) => [x.name, x.type, x === file])(b.getAll("f")[1]), ["other", "t/y", false]);
  // get, has, delete, set
  check("XHR §4 get, getAll, has", [f.get("a"), f.get("no"), f.getAll("a"), f.getAll("no"), f.has("a"), f.has("no")], ["1", null, ["1", "null"], [], true, false]);
  const s = new FormData(); for (const [k, v] of [["x", 1], ["y", 2], ["x", 3], ["z", 4]]) s.append(k, v); s.set("x", "new"); s.set("w", "5");
  check("XHR §4 set: replaces the first, removes others, or appends", [...s], [["x", "new"], ["y", "2"], ["z", "4"], ["w", "5"]]); s.delete("y"); s.delete("none"); check("XHR §4 delete", [...s.keys()], ["x", "z", "w"]);
  // iteration
  const it = s.entries(); check("Web IDL §3.7.9.2: the iterator", [Object.prototype.toString.call(it), it[Symbol.iterator]() === it, FormData.prototype[Symbol.iterator] === FormData.prototype.entries, it.next()], ["[object FormData Iterator]", true, true, { value: ["x", "new"], done: false }]);
  s.delete("x"); s.append("v", "6"); check("Web IDL §3.7.9.2 next: by index, so it follows changes", [it.next().value, it.next().value, it.next().done], [["w", "5"], ["v", "6"], true]); throws("Web IDL §3.7.9.2 next: the receiver is checked", () => it.next.call({}), "TypeError");
  const seen = []; s.forEach(function (v, k, o) { seen.push(k, v, o === s, this.t); if (k === "z") s.delete("w"); }, { t: 1 }); check("Web IDL §3.7.8 forEach: it follows changes", seen, ["z", "4", true, 1, "v", "6", true, 1]); throws("Web IDL §3.7.8 forEach: needs a function", () => s.forEach(1), "TypeError"); check("Web IDL §3.7.9: values", [...s.values()], ["4", "6"]);
  throws("XHR §4: the receiver is checked", () => FormData.prototype.get.call({}, "a"), "TypeError"); throws("HTML §2.7.3: a form cannot be cloned", () => structuredClone(s), "DataCloneError"); check("XHR §4: the class string", String(s), "[object FormData]");
  // multipart/form-data
  const m = new FormData(); m.append('n"\r\n', "a\nb\rc\r\nd"); m.append("f", new File(["\r\n"], 'q".txt')); const r = new Response(m), type = r.headers.get("content-type"), text = await r.clone().text(), mark = /boundary=(.*)$/.exec(type)[1];
  check("HTML §4.10.21.8 multipart/form-data: names are escaped, lines end with CR LF", text, `--${mark}\r\nContent-Disposition: form-data; name="n%22%0D%0A"\r\n\r\na\r\nb\r\nc\r\nd\r\n--${mark}\r\nContent-Disposition: form-data; name="f"; filename="q%22.txt"\r\nContent-Type: application/octet-stream\r\n\r\n\r\n\r\n--${mark}--\r\n`);
  const back = await r.formData(); check("Fetch §5.3 formData(): the same entries", [back.get('n"\r\n'), back.get("f").name, await back.get("f").text(), back.get("f").type], ["a\r\nb\r\nc\r\nd", 'q".txt', "\r\n", "application/octet-stream"]);
  check("Fetch §5.3 formData(): urlencoded", [...await read("a=1&b=%20+", "application/x-www-form-urlencoded; charset=x")], [["a", "1"], ["b", "  "]]); check("Fetch §5.3 formData(): a file without a type is text/plain", ((x) => [x instanceof File, x.type])((await read('--b\r\nContent-Disposition: form-data; name="a"; filename="n"\r\n\r\nx\r\n--b--', "multipart/form-data; boundary=b")).get("a")), [true, "text/plain"]);
  for (const [what, body, t] of [["no type", "a=1", "text/plain"], ["no boundary", "--b--", "multipart/form-data"], ["another boundary", "--c--", "multipart/form-data; boundary=b"], ["no end", '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx', "multipart/form-data; boundary=b"], ["no name", "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--", "multipart/form-data; boundary=b"], ["no disposition", "--b\r\nA: b\r\n\r\nx\r\n--b--", "multipart/form-data; boundary=b"]]) await rejects("Fetch §5.3 formData(): " + what, read(body, t), "TypeError");
  const emoji = new FormData(); emoji.append("e😀", "v😀"); check("Web IDL §3.2.12: pairs of surrogates stay", [[...emoji], emoji.get("e😀"), (await new Response(emoji).formData()).get("e😀")], [[["e😀", "v😀"]], "v😀", "v😀"]);
  const dated = new FormData(); dated.set("f", new File(["a"], "a.txt", { lastModified: 123, type: "x/y" }), "b.txt"); check("XHR §4 create an entry, step 4: another name keeps the rest", [dated.get("f").name, dated.get("f").lastModified, dated.get("f").type], ["b.txt", 123, "x/y"]);
  check("URL §5.1 the urlencoded parser: decoded without BOM", [...await new Response("\ufefftest=\ufeff", { headers: { "content-type": "application/x-www-form-urlencoded" } }).formData()], [["\ufefftest", "\ufeff"]]);
  const breaks = new FormData(); breaks.append("a\nb\rc", "d\ne"); breaks.append("f", new Blob(["g\nh"]), "i\nj\rk\r\nl\"m"); const sent = await new Response(breaks).text(), received = await new Response(breaks).formData();
  check("HTML §4.10.22.7 multipart/form-data, steps 1 and 2: names and values have CRLF, the names and contents of files stay", [/ name="([^"]*)"\r\n\r\n([^-]*)\r\n--/.exec(sent).slice(1), /filename="([^"]*)"/.exec(sent)[1]], [["a%0D%0Ab%0D%0Ac", "d\r\ne"], "i%0Aj%0Dk%0D%0Al%22m"]);
  check("HTML §4.10.22.7 multipart/form-data, read back", [[...received.keys()], received.get("f").name, await received.get("f").text()], [["a\r\nb\r\nc", "f"], "i\nj\rk\r\nl\"m", "g\nh"]);
}
