import { check, throws } from "./check.js";
export default function () {
  const o = { a: 1 };
  check("WeakRef", [new WeakRef(o).deref() === o, new WeakRef(Symbol.iterator).deref() === Symbol.iterator], [true, true]);
  throws("of a string", () => new WeakRef("a"), "TypeError");
  throws("of a registered symbol", () => new WeakRef(Symbol.for("a")), "TypeError");
  const r = new FinalizationRegistry(() => {}), token = {};
  check("register", [r.register({}, 1, token), r.unregister(token), r.unregister(token)], [undefined, true, false]);
  throws("held", () => r.register(o, o), "TypeError");
  const s = Symbol("s"), m = new WeakMap([[s, 1], [o, 2]]), w = new WeakSet([s]);
  check("symbols as keys", [m.get(s), m.get(o), m.has(s), w.has(s), m.delete(s), m.has(s), new WeakMap().has(s)], [1, 2, true, true, true, false, false]);
  throws("registered symbols", () => m.set(Symbol.for("a"), 1), "TypeError");
}
