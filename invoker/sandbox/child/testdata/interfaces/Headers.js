// Headers: https://fetch.spec.whatwg.org/#headers-class
import { check, throws } from "./check.js";
export default async function () {
  throws("Fetch §5.1 constructor: needs new", () => Headers(), "TypeError");
  for (const v of [null, 1, "a: b", true]) throws("Fetch §5.1 constructor: HeadersInit is no " + JSON.stringify(v), () => new Headers(v), "TypeError");
  check("Fetch §5.1 constructor: nothing", [...new Headers()], []);
  check("Fetch §5.1 fill, step 1: a sequence", [...new Headers([["b", "1"], ["A", "2"], ["b", "3"]])], [["a", "2"], ["b", "1, 3"]]);
  check("Fetch §5.1 fill, step 1: an iterable of iterables", [...new Headers(new Map([["m", "1"]]))], [["m", "1"]]);
  for (const v of [[["a"]], [["a", "1", "2"]], [[]]]) throws("Fetch §5.1 fill, step 1.1: a pair has two items", () => new Headers(v), "TypeError");
  for (const v of [["ab"], [1]]) throws("Web IDL §3.2.21: a pair is an object", () => new Headers(v), "TypeError");
  check("Fetch §5.1 fill, step 2: a record, of own enumerable members", [...new Headers(Object.assign(Object.create({ inherited: "1" }), { Own: 2 }))], [["own", "2"]]);
  const first = new Headers({ a: "1" }), copy = new Headers(first); copy.set("a", "2");
  check("Fetch §5.1 constructor: Headers are copied", [first.get("a"), copy.get("a")], ["1", "2"]);
  // validate
  for (const name of ["", "a b", "a\n", "ä", "a:", "(", "\u0100"]) {
    for (const [what, f] of Object.entries({ append: (h) => h.append(name, "v"), set: (h) => h.set(name, "v"), delete: (h) => h.delete(name), get: (h) => h.get(name), has: (h) => h.has(name), init: () => new Headers([[name, "v"]]) }))
      throws("Fetch §5.1 " + what + ": " + JSON.stringify(name) + " is no header name", () => f(new Headers()), "TypeError");
  }
  for (const value of ["a\nb", "a\rb", "a\0b", "\u0100", "\ud800"]) for (const what of ["append", "set"]) throws("Fetch §5.1 " + what + ": " + JSON.stringify(value) + " is no header value", () => new Headers()[what]("a", value), "TypeError");
  const h = new Headers();
  h.append("a", " \t\r\n x y \n"); check("Fetch §5.1 append, step 1: normalize", h.get("a"), "x y");
  h.set("b", "\u00e4"); check("Web IDL §3.2.11: a value has bytes", h.get("b"), "\u00e4");
  for (const what of ["append", "set"]) throws("Fetch §5.1 " + what + ": a symbol is no text", () => h[what]("a", Symbol()), "TypeError");
  // get, has, delete, set
  h.append("A", "2"); check("Fetch §2.2.2 get: values are joined, names have no case", [h.get("a"), h.get("A"), h.has("a"), h.get("none"), h.has("none")], ["x y, 2", "x y, 2", true, null, false]);
  check("Fetch §5.1 append, set, delete: return undefined", [h.append("c", "1"), h.set("c", "2"), h.delete("c"), h.delete("c")], [undefined, undefined, undefined, undefined]);
  h.append("a", ""); check("Fetch §2.2.2 get: an empty value counts", h.get("a"), "x y, 2, ");
  h.set("a", "3"); check("Fetch §2.2.2 set: replaces the first, removes others", [...h], [["a", "3"], ["b", "\u00e4"]]);
  for (const [what, n] of [["append", 2], ["set", 2], ["get", 1], ["has", 1], ["delete", 1], ["forEach", 1]]) throws("Web IDL §3.7.6: " + what + " needs its arguments", () => (n === 2 ? h[what]("a") : h[what]()), "TypeError");
  // Set-Cookie
  const c = new Headers([["Set-Cookie", "a=1"], ["set-cookie", "b=2"], ["z", "1"]]);
  check("Fetch §5.1 getSetCookie()", [c.getSetCookie(), new Headers().getSetCookie(), c.get("set-cookie")], [["a=1", "b=2"], [], "a=1, b=2"]);
  check("Fetch §2.2.2 sort and combine: cookies are not combined", [...c], [["set-cookie", "a=1"], ["set-cookie", "b=2"], ["z", "1"]]);
  c.set("set-cookie", "c=3"); check("Fetch §2.2.2 set: of cookies", c.getSetCookie(), ["c=3"]);
  // iteration
  const i = new Headers({ b: "1", a: "2", c: "3" });
  check("Fetch §2.2.2 sort and combine: by name", [[...i.keys()], [...i.values()], [...i.entries()].length], [["a", "b", "c"], ["2", "1", "3"], 3]);
  check("Web IDL §3.7.9: entries is the iterator", Headers.prototype[Symbol.iterator] === Headers.prototype.entries, true);
  const it = i[Symbol.iterator]();
  check("Web IDL §3.7.9.2: the class string of the iterator", Object.prototype.toString.call(it), "[object Headers Iterator]");
  check("Web IDL §3.7.9.2: it inherits from the prototype of iterators", [it[Symbol.iterator]() === it, Object.getPrototypeOf(Object.getPrototypeOf(it)) === Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()))], [true, true]);
  check("Web IDL §3.7.9.2 next: the first", it.next(), { value: ["a", "2"], done: false });
  i.delete("b"); i.append("d", "4"); check("Web IDL §3.7.9.2 next: it follows changes", [it.next().value, it.next().value, it.next()], [["c", "3"], ["d", "4"], { value: undefined, done: true }]);
  throws("Web IDL §3.7.9.2 next: the receiver is checked", () => it.next.call({}), "TypeError");
  const seen = [], self = {}; i.forEach(function (v, k, all) { seen.push(k, v, all === i, this === self); if (k === "a") i.set("a2", "new"); }, self);
  check("Web IDL §3.7.8 forEach: value, key, object; it follows changes", seen, ["a", "2", true, true, "a2", "new", true, true, "c", "3", true, true, "d", "4", true, true]);
  for (const f of [undefined, null, 1, {}]) throws("Web IDL §3.7.8 forEach: needs a function", () => i.forEach(f), "TypeError");
  throws("Web IDL §3.7.8 forEach: exceptions leave it", () => i.forEach(() => { throw new Error("out"); }), "out");
  // guard
  for (const [what, r] of [["error()", Response.error()], ["redirect()", Response.redirect("http://h/")], ["fetch()", await fetch("https://a.example/json")]]) for (const [name, f] of [["append", (x) => x.append("a", "b")], ["set", (x) => x.set("a", "b")], ["delete", (x) => x.delete("a")]])
    throws("Fetch §5.1 validate, step 2: " + name + ", headers of " + what + " are immutable", () => f(r.headers), "TypeError");
  throws("Fetch §5.1: the receiver is checked", () => Headers.prototype.get.call({}, "a"), "TypeError");
  check("Fetch §5.1: the class string", String(h), "[object Headers]");
  const own = new Headers({ a: "1" }); own[Symbol.iterator] = function* () { yield ["b", "2"]; }; check("Fetch §5.1 fill: an iterable, also Headers with another iterator", [...new Headers(own)], [["b", "2"]]);
  const log = [], traced = new Proxy({ b: "1", a: "2" }, { ownKeys: (t) => (log.push("ownKeys"), Reflect.ownKeys(t)), get: (t, k) => (typeof k === "symbol" ? undefined : (log.push("get " + k), t[k])), getOwnPropertyDescriptor: (t, k) => (log.push("describe " + k), Reflect.getOwnPropertyDescriptor(t, k)) }); new Headers(traced); check("Web IDL §3.2.22 record: key by key", log, ["ownKeys", "describe b", "get b", "describe a", "get a"]);
  throws("Web IDL §3.2.22 record: a symbol that is enumerated is no key", () => new Headers({ a: "1", [Symbol("s")]: "2" }), "TypeError"); check("Web IDL §3.2.22 record: another symbol is left out", [...new Headers(Object.defineProperty({ a: "1" }, Symbol("s"), { value: "2" }))], [["a", "1"]]);
  for (const [init, want] of [[{ "\uffff": "1", b: "2" }, ["ownKeys", "describe \uffff"]], [{ a: "\uffff", b: "2" }, ["ownKeys", "describe a", "get a"]]]) { log.length = 0; throws("Web IDL §3.2.10 ByteString: characters above U+00FF", () => new Headers(new Proxy(init, { ownKeys: (t) => (log.push("ownKeys"), Reflect.ownKeys(t)), get: (t, k) => (typeof k === "symbol" ? undefined : (log.push("get " + k), t[k])), getOwnPropertyDescriptor: (t, k) => (log.push("describe " + k), Reflect.getOwnPropertyDescriptor(t, k)) })), "TypeError"); check("Web IDL §3.2.22 record: each key and value is converted in turn", log, want); }
}
