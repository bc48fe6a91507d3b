import { check, throws } from "./check.js";
export default function () {
  const shared = { s: 1 }, v = { a: [1, , 3], d: new Date(5), r: /x/gi, m: new Map([[shared, "v"]]), t: new Set([1, shared]), e: new RangeError("no", { cause: 1 }), b: new Uint8Array([1, 2, 3]).subarray(1), n: null, u: undefined, big: 1n, boxed: Object(false), shared };
  v.self = v;
  const c = structuredClone(v);
  check("copy", [c !== v, c.self === c, c.a.length, 1 in c.a, c.d.getTime(), c.d instanceof Date, String(c.r), [...c.t][1] === c.shared, c.shared !== shared, c.m.get(c.shared)], [true, true, 3, false, 5, true, "/x/gi", true, true, "v"]);
  check("error", [c.e.name, c.e.message, c.e.cause, c.e instanceof RangeError], ["RangeError", "no", 1, true]);
  check("views", [[...c.b], c.b.buffer !== v.b.buffer, c.b.byteOffset], [[2, 3], true, 1]);
  check("primitives", [structuredClone(1), structuredClone("a"), structuredClone(null), c.big === 1n, c.boxed.valueOf()], [1, "a", null, true, false]);
  check("buffer", new Uint8Array(structuredClone(new Uint8Array([7]).buffer))[0], 7);
  class P { constructor() { this.x = 1 } } check("class", structuredClone(new P()) instanceof P, false);
  throws("function", () => structuredClone({ f() {} }), "DataCloneError");
  throws("symbol", () => structuredClone(Symbol("x")), "DataCloneError");
  throws("promise", () => structuredClone(Promise.resolve()), "DataCloneError");
  throws("platform object", () => structuredClone(new Headers()), "DataCloneError");
  let deep = 1; for (let i = 0; i < 5000; i++) deep = [deep];
  throws("deep", () => structuredClone(deep), "DataCloneError");
}
