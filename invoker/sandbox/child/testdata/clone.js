// structuredClone: https://html.spec.whatwg.org/#safe-passing-of-structured-data, sections
// 2.7.3 StructuredSerializeInternal, 2.7.7 StructuredSerializeWithTransfer.
import { check, throws } from "./check.js";
export default async function () {
  const shared = { s: 1 }, v = { a: [1, , 3], d: new Date(5), r: /x/gi, m: new Map([[shared, "v"]]), t: new Set([1, shared]), e: new RangeError("no", { cause: 1 }), b: new Uint8Array([1, 2, 3]).subarray(1), n: null, u: undefined, big: 1n, boxed: Object(false), shared };
  v.self = v;
  const c = structuredClone(v);
  check("copy", [c !== v, c.self === c, c.a.length, 1 in c.a, c.d.getTime(), c.d instanceof Date, String(c.r), [...c.t][1] === c.shared, c.shared !== shared, c.m.get(c.shared)], [true, true, 3, false, 5, true, "/x/gi", true, true, "v"]);
  check("error", [c.e.name, c.e.message, c.e.cause, c.e instanceof RangeError], ["RangeError", "no", 1, true]);
  check("views", [[...c.b], c.b.buffer !== v.b.buffer, c.b.byteOffset], [[2, 3], true, 1]);
  check("primitives", [structuredClone(1), structuredClone("a"), structuredClone(null), c.big === 1n, c.boxed.valueOf()], [1, "a", null, true, false]);
  check("buffer", new Uint8Array(structuredClone(new Uint8Array([7]).buffer))[0], 7);
  class P { constructor() { this.x = 1 } get y() { return 1 } } check("class", [structuredClone(new P()) instanceof P, structuredClone(new P())], [false, { x: 1 }]);
  throws("no argument", () => structuredClone(), "TypeError"); throws("options", () => structuredClone(1, 2), "TypeError"); throws("transfer", () => structuredClone(1, { transfer: 3 }), "TypeError");
  // what has no copy
  for (const [what, make] of Object.entries({
    "function": () => ({ f() {} }), "symbol": () => Symbol("x"), "boxed symbol": () => Object(Symbol()), "promise": () => Promise.resolve(), "proxy": () => new Proxy({}, {}), "proxy of an array": () => new Proxy([], {}), "weak map": () => new WeakMap(), "weak set": () => new WeakSet(), "generator": () => (function* () {})(), "iterator": () => [][Symbol.iterator](), "map iterator": () => new Map().keys(),
    "headers": () => new Headers(), "response": () => new Response(), "signal": () => new AbortController().signal, "event": () => new Event("x"), "target": () => new EventTarget(), "form": () => new FormData(), "stream": () => new ReadableStream(), "channel": () => new MessageChannel(), "port": () => new MessageChannel().port1, "deep in": () => ({ a: [new Map([[1, () => {}]])] }),
  })) {
    try { structuredClone(make()); check(what, "copied", "refused"); } catch (e) { check(what, [e.name, e.code, e instanceof DOMException], ["DataCloneError", 25, true]); }
  }
  let deep = 1; for (let i = 0; i < 5000; i++) deep = [deep];
  throws("deep", () => structuredClone(deep), "DataCloneError");
  // boxed primitives, whatever their members say
  const n = Object(5), s = Object("a\ud800"), i = Object(7n); n.valueOf = s.toString = () => { throw new Error("asked") };
  check("boxed", [structuredClone(n) + 0, structuredClone(s).length, typeof structuredClone(s), typeof structuredClone(i), structuredClone(i).valueOf() === 7n, structuredClone(n).x], [5, 2, "object", "object", true, undefined]);
  // members
  check("own enumerable ones", structuredClone(Object.defineProperty(Object.assign(Object.create({ inherited: 1 }), { [Symbol("s")]: 1, a: 1 }), "hidden", { value: 1 })), { a: 1 });
  throws("a getter that throws", () => structuredClone({ get a() { throw new Error("getter") } }), "getter");
  const odd = [1]; odd.name = "x"; check("members of an array", [structuredClone(odd).name, structuredClone(Object.assign([], { length: 3 })).length], ["x", 3]);
  const order = []; structuredClone({ get b() { order.push("b") }, get a() { order.push("a") } }); check("order", order, ["b", "a"]);
  const proto = structuredClone(JSON.parse('{"__proto__": {"x": 1}}')); check("__proto__", [Object.keys(proto), proto.x], [["__proto__"], undefined]);
  const growing = new Map([[1, { get a() { growing.set({}, 1); return 1 } }]]); check("a Map that grows", structuredClone(growing).size, 1);
  class Odd extends Map { *[Symbol.iterator]() { yield ["p", "q"]; } } check("a Map with another iterator", [...structuredClone(new Odd([["a", new Set([1])]])).entries()].map(([k, v]) => [k, [...v]]), [["a", [1]]]);
  const shrunk = new Set([1, 2, 3]); shrunk.delete(2); check("a Set without an item", [...structuredClone(shrunk)], [1, 3]); throws("arguments", () => structuredClone((function () { return arguments; })(1)), "DataCloneError");
  const re = /x/g; re.lastIndex = 3; check("lastIndex", structuredClone(re).lastIndex, 0); check("invalid date", structuredClone(new Date(NaN)).getTime(), NaN);
  // errors
  const e = new Error("m"); e.name = "TypeError"; e.extra = 1; const ce = structuredClone(e); check("the name decides", [ce instanceof TypeError, ce.extra, ce.stack === e.stack, Object.keys(ce)], [true, undefined, true, []]);
  e.name = "Mine"; check("another name", [structuredClone(e).name, structuredClone(e).constructor === Error], ["Error", true]); check("no message", Object.hasOwn(structuredClone(new Error()), "message"), false);
  const loop = new Error("l"); loop.cause = loop; const cl = structuredClone(loop); check("a cause in a circle", cl.cause === cl, true);
  const de = structuredClone(new DOMException("m", "AbortError")); check("DOMException", [de instanceof DOMException, de.name, de.message, de.code], [true, "AbortError", "m", 20]);
  // platform objects
  const f = structuredClone({ f: new File(["ab"], "n", { type: "t/x", lastModified: 4 }), b: new Blob(["c"]) }); check("File", [f.f instanceof File, f.f.name, f.f.type, f.f.lastModified, await f.f.text(), f.b instanceof File, await f.b.text()], [true, "n", "t/x", 4, "ab", false, "c"]);
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 128 }, false, ["encrypt"]), ck = structuredClone(key); check("CryptoKey", [ck !== key, ck instanceof CryptoKey, ck.usages, ck.extractable, ck.algorithm.name], [true, true, ["encrypt"], false, "AES-GCM"]);
  // buffers and views
  const buf = new ArrayBuffer(8), two = structuredClone({ x: new Uint8Array(buf, 1), y: new DataView(buf, 2, 4), z: new Float64Array(buf) }); check("one buffer", [two.x.buffer === two.y.buffer, two.y.buffer === two.z.buffer, two.x.byteOffset, two.x.length, two.y.byteOffset, two.y.byteLength, two.z.length], [true, true, 1, 7, 2, 4, 1]);
  const fake = new Uint8Array([1]); fake.constructor = function () { throw new Error("asked") }; check("a constructor of the script", [...structuredClone(fake)], [1]);
  const res = structuredClone(new ArrayBuffer(4, { maxByteLength: 16 })); check("resizable", [res.resizable, res.maxByteLength, res.byteLength], [true, 16, 4]);
  // transfer
  const moved = new Uint8Array([1, 2]), got = structuredClone({ m: moved }, { transfer: [moved.buffer] }); check("transfer", [[...got.m], moved.byteLength, moved.buffer.byteLength, moved.buffer.detached], [[1, 2], 0, 0, true]);
  throws("detached", () => structuredClone(moved.buffer), "DataCloneError"); throws("a view of a detached buffer", () => structuredClone(moved), "DataCloneError"); throws("transfer again", () => structuredClone(1, { transfer: [moved.buffer] }), "DataCloneError");
  const kept = new ArrayBuffer(1); throws("twice", () => structuredClone(1, { transfer: [kept, kept] }), "DataCloneError"); throws("no object", () => structuredClone(1, { transfer: [1] }), "TypeError"); throws("not transferable", () => structuredClone(1, { transfer: [{}] }), "DataCloneError"); throws("a view", () => structuredClone(1, { transfer: [new Uint8Array(1)] }), "DataCloneError");
  throws("a copy that fails", () => structuredClone({ kept, f() {} }, { transfer: [kept] }), "DataCloneError"); check("nothing is moved then", kept.byteLength, 1);
  throws("moved by a getter", () => structuredClone({ get a() { structuredClone(1, { transfer: [kept] }) } }, { transfer: [kept] }), "DataCloneError");
  check("not in the value", (structuredClone(1, { transfer: [new ArrayBuffer(1)] })), 1);
  const ch = new MessageChannel(), port = structuredClone({ p: ch.port1 }, { transfer: [ch.port1] }).p, heard = new Promise((r) => { ch.port2.onmessage = (m) => r(m.data); }); port.postMessage("hi"); check("port", [port instanceof MessagePort, port !== ch.port1, await heard], [true, true, "hi"]); throws("port again", () => structuredClone(1, { transfer: [ch.port1] }), "DataCloneError");
}
