// URLSearchParams: https://url.spec.whatwg.org/#interface-urlsearchparams
import { check, throws } from "./check.js";
const list = (v) => [...new URLSearchParams(v)];
export default function () {
  throws("URL §6.2 constructor: needs new", () => URLSearchParams(), "TypeError");
  check("URL §6.2 constructor, step 1: one leading ? is removed", [list("?a=1"), list("??a=1"), list(""), list(), list("?")], [[["a", "1"]], [["?a", "1"]], [], [], []]);
  check("URL §6.2 constructor: other values are texts", [list(null), list(1)], [[["null", ""]], [["1", ""]]]);
  check("URL §6.2 initialize, step 1: a sequence", list([["a", 1], ["a", "2"]]), [["a", "1"], ["a", "2"]]);
  for (const v of [[["a"]], [["a", "b", "c"]], [[]]]) throws("URL §6.2 initialize, step 1.1: a pair has two items", () => new URLSearchParams(v), "TypeError");
  for (const v of [["ab"], [1], [null]]) throws("Web IDL §3.2.21: a pair is an object", () => new URLSearchParams(v), "TypeError");
  check("URL §6.2 initialize, step 2: a record", list({ b: 1, a: [2, 3] }), [["b", "1"], ["a", "2,3"]]);
  check("URL §6.2 initialize: an iterable wins over members", list(new URLSearchParams("x=1&x=2")), [["x", "1"], ["x", "2"]]);
  throws("Web IDL §3.2.10: a symbol is no text", () => new URLSearchParams(Symbol()), "TypeError");
  // parser
  check("URL §5.1 parser, steps 1 to 3: pieces", list("a&b=&=c&&d=e=f"), [["a", ""], ["b", ""], ["", "c"], ["d", "e=f"]]);
  check("URL §5.1 parser, steps 3.4 and 3.5: plus and percent", list("a+b=c%20d%2B&%=%zz&%4"), [["a b", "c d+"], ["%", "%zz"], ["%4", ""]]);
  check("URL §5.1 parser, step 3.5: invalid UTF-8, no BOM is removed", list("a=%ff%c3%28&%EF%BB%BFb=1"), [["a", "\ufffd\ufffd("], ["\ufeffb", "1"]]);
  check("Web IDL §3.2.12: lone surrogates are replaced", list("a=\ud800"), [["a", "\ufffd"]]);
  // serializer
  const all = Array.from({ length: 128 }, (_, i) => String.fromCharCode(i)).join("");
  check("URL §5.2 serializer: what stays", String(new URLSearchParams([[all, ""]])).replace(/%[0-9A-F]{2}/g, ""), "+*-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz=");
  check("URL §5.2 serializer: UTF-8", String(new URLSearchParams({ "ä~": "€'" })), "%C3%A4%7E=%E2%82%AC%27");
  // methods
  const p = new URLSearchParams("a=1&b=2&a=3");
  check("URL §6.2 get, getAll, has", [p.get("a"), p.get("c"), p.getAll("a"), p.getAll("c"), p.has("b"), p.has("c")], ["1", null, ["1", "3"], [], true, false]);
  check("URL §6.2 has(name, value)", [p.has("a", "3"), p.has("a", "2"), p.has("a", undefined), p.has("a", null)], [true, false, true, false]);
  check("URL §6.2 append: at the end", [p.append("c", 4), String(p), p.size], [undefined, "a=1&b=2&a=3&c=4", 4]);
  check("URL §6.2 set: the first is changed, others go", [p.set("a", "x"), String(p)], [undefined, "a=x&b=2&c=4"]);
  p.set("d", "new"); check("URL §6.2 set: without one it is appended", String(p), "a=x&b=2&c=4&d=new");
  p.delete("b"); p.append("c", "5"); p.delete("c", "4"); check("URL §6.2 delete(name), delete(name, value)", String(p), "a=x&d=new&c=5");
  p.delete("c", undefined); check("URL §6.2 delete(name, undefined): all of the name", String(p), "a=x&d=new");
  const s = new URLSearchParams("z=1&\ufffd=2&\u{1f308}=3&a=4&z=0"); s.sort();
  check("URL §6.2 sort: code units, stable", [...s].map(([k, v]) => k + v), ["a4", "z1", "z0", "\u{1f308}3", "\ufffd2"]);
  for (const [what, n] of [["append", 2], ["set", 2], ["get", 1], ["getAll", 1], ["has", 1], ["delete", 1], ["forEach", 1]]) throws("Web IDL §3.7.6: " + what + " needs its arguments", () => (n === 2 ? p[what]("a") : p[what]()), "TypeError");
  throws("URL §6.2: the receiver is checked", () => URLSearchParams.prototype.get.call({}, "a"), "TypeError");
  throws("URL §6.2 size: read only", () => { p.size = 1; }, "TypeError");
  // iteration
  const i = new URLSearchParams("a=1&b=2&c=3"), it = i.entries();
  check("Web IDL §3.7.9: entries is the iterator", URLSearchParams.prototype[Symbol.iterator] === URLSearchParams.prototype.entries, true);
  check("Web IDL §3.7.9.2: the iterator", [Object.prototype.toString.call(it), it[Symbol.iterator]() === it, it.next()], ["[object URLSearchParams Iterator]", true, { value: ["a", "1"], done: false }]);
  i.delete("a"); check("Web IDL §3.7.9.2 next: by index, so it follows changes", it.next(), { value: ["c", "3"], done: false });
  i.append("d", "4"); check("Web IDL §3.7.9.2 next: new pairs", [it.next().value, it.next().done, it.next().done], [["d", "4"], true, true]);
  check("Web IDL §3.7.9: keys and values", [[...i.keys()], [...i.values()]], [["b", "c", "d"], ["2", "3", "4"]]);
  const seen = []; i.forEach(function (v, k, o) { seen.push(k + v + (o === i) + this); if (k === "b") i.delete("c"); }, "self");
  check("Web IDL §3.7.8 forEach: it follows changes", seen, ["b2trueself", "d4trueself"]);
  throws("Web IDL §3.7.8 forEach: needs a function", () => i.forEach({}), "TypeError");
  // update
  const u = new URL("http://h/?a=1#f"), q = u.searchParams;
  q.append("b", "2 3"); check("URL §6.2 update: append writes the query", u.href, "http://h/?a=1&b=2+3#f");
  q.set("a", "x"); q.delete("b"); check("URL §6.2 update: set and delete", u.search, "?a=x");
  q.append("A", "0"); q.sort(); check("URL §6.2 update: sort", u.search, "?A=0&a=x");
  q.delete("A"); q.delete("a"); check("URL §6.2 update, step 3: an empty list is no query", [u.href, u.search], ["http://h/#f", ""]);
  u.search = "?z=9"; check("URL §6.1 search: the list is emptied and filled", [q === u.searchParams, [...q]], [true, [["z", "9"]]]);
  check("Web IDL §3.2.22 record: keys of lone surrogates, and two that are one text", [...new URLSearchParams({ "\ud835x": "1", xx: "2", "\ud83dx": "3", "\ufffd": "4" })], [["\ufffdx", "3"], ["xx", "2"], ["\ufffd", "4"]]);
}
