import { check } from "./check.js";
export default async function () {
  check("Object.groupBy", Object.groupBy([1, 2, 3], (n, i) => (n % 2 ? "odd" : "even") + (i > 5)), { oddfalse: [1, 3], evenfalse: [2] });
  check("no prototype", Object.getPrototypeOf(Object.groupBy([], () => 1)), null);
  check("Map.groupBy", [...Map.groupBy([1, 2, 3], (n) => n % 2)], [[1, [1, 3]], [0, [2]]]);
  const w = Promise.withResolvers(); w.resolve(4); check("withResolvers", await w.promise, 4);
  check("Promise.try", [await Promise.try((a) => a, 1), await Promise.try(() => { throw 2 }).catch((x) => x)], [1, 2]);
  async function* gen() { yield 1; yield 2 }
  check("Array.fromAsync", [await Array.fromAsync(gen()), await Array.fromAsync([Promise.resolve(3)], (x) => x + 1), await Array.fromAsync({ length: 1, 0: 5 })], [[1, 2], [4], [5]]);
  const kept = new Proxy(function () {}, { apply: (t, self, args) => () => [self, args] }), add = (a, b) => a + b;
  const later = kept.call(7, { n: 1 }, 2);
  add(add(1, 2), add(3, 4));
  check("arguments that outlive their trap", later(), [7, [{ n: 1 }, 2]]);
  const frozen = new Proxy(function () {}, { apply(t, self, args) { Object.freeze(args); args = [...args, this.mark]; return async () => { await null; return args } }, mark: 5 });
  check("frozen arguments", await frozen(3, 4)(), [3, 4, 5]);
  class Base { constructor(v) { this.v = v } }
  const made = new Proxy(Base, { construct: (t, args, newTarget) => ({ made: new t(...args), same: newTarget === made, args: () => args }) });
  const one = new made(1, 2);
  add(add(1, 2), add(3, 4));
  check("construct", [one.made.v, one.same, one.args()], [1, true, [1, 2]]);
  const handler = {}, live = new Proxy(() => 1, handler), before = live();
  handler.apply = () => 2;
  const { proxy, revoke } = Proxy.revocable(() => 3, {}), three = proxy();
  revoke();
  let revoked; try { proxy() } catch (e) { revoked = e instanceof TypeError }
  check("handlers", [before, live(), three, revoked, typeof Proxy, Proxy.length, "prototype" in Proxy, new Proxy({ a: 1 }, { get: (t, k) => k }).b], [1, 2, 3, true, "function", 2, false, "b"]);
  const y2k = new Date(2000, 1, 3, 4); y2k.setYear(99);
  check("Annex B: Date", [new Date(0).toGMTString(), Date.prototype.toGMTString === Date.prototype.toUTCString, y2k.getYear(), y2k.getFullYear(), y2k.getMonth(), y2k.setYear(NaN), new Date(NaN).setYear(1970)], ["Thu, 01 Jan 1970 00:00:00 GMT", true, 99, 1999, 1, null, 0]);
  check("Annex B: String", ["a".bold(), "a".sub(), "x".anchor('"'), "t".link("u"), "a".fontsize(7), Object.keys(String.prototype)], ["<b>a</b>", "<sub>a</sub>", '<a name="&quot;">x</a>', '<a href="u">t</a>', '<font size="7">a</font>', []]);
  check("self", [self === globalThis, self.self === self], [true, true]);
}
