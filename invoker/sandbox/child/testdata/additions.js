import { check } from "./check.js";
export default async function () {
  check("Object.groupBy", Object.groupBy([1, 2, 3], (n, i) => (n % 2 ? "odd" : "even") + (i > 5)), { oddfalse: [1, 3], evenfalse: [2] });
  check("no prototype", Object.getPrototypeOf(Object.groupBy([], () => 1)), null);
  check("Map.groupBy", [...Map.groupBy([1, 2, 3], (n) => n % 2)], [[1, [1, 3]], [0, [2]]]);
  const w = Promise.withResolvers(); w.resolve(4); check("withResolvers", await w.promise, 4);
  check("Promise.try", [await Promise.try((a) => a, 1), await Promise.try(() => { throw 2 }).catch((x) => x)], [1, 2]);
  async function* gen() { yield 1; yield 2 }
  check("Array.fromAsync", [await Array.fromAsync(gen()), await Array.fromAsync([Promise.resolve(3)], (x) => x + 1), await Array.fromAsync({ length: 1, 0: 5 })], [[1, 2], [4], [5]]);
}
