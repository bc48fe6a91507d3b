import { check, throws } from "./check.js";
export default function () {
  function* numbers() { yield 1; yield 2; yield 3 }
  check("chain", numbers().map((n) => n * 2).filter((n) => n > 2).toArray(), [4, 6]);
  check("take and drop", [[...numbers().take(2)], [...numbers().drop(1)]], [[1, 2], [2, 3]]);
  check("flatMap", [...numbers().flatMap((n) => [n, n])], [1, 1, 2, 2, 3, 3]);
  check("reduce", [numbers().reduce((a, b) => a + b), numbers().reduce((a, b) => a + b, 10)], [6, 16]);
  check("some, every, find", [numbers().some((n) => n > 2), numbers().every((n) => n > 2), numbers().find((n) => n > 1)], [true, false, 2]);
  let sum = 0; numbers().forEach((n) => { sum += n }); check("forEach", sum, 6);
  check("values of a Map", new Map([["a", 1]]).values().map((n) => n + 1).toArray(), [2]);
  check("from", Iterator.from({ next() { return { done: true } } }).toArray(), []);
  check("from a string", Iterator.from("ab").toArray(), ["a", "b"]);
  check("concat", Iterator.concat([1], new Set([2])).toArray(), [1, 2]);
  class Own extends Iterator { next() { return { value: 7, done: false } } }
  check("subclass", [[...new Own().take(1)], new Own() instanceof Iterator], [[7], true]);
  let closed = 0;
  const endless = { next: () => ({ value: 1, done: false }), return() { closed++; return {} }, __proto__: Iterator.prototype };
  endless.take(1).toArray(); check("take closes", closed, 1);
  throws("callback", () => endless.map(1), "TypeError"); check("a refusal closes", closed, 2);
  throws("limit", () => endless.take(-1), "RangeError");
  throws("new", () => new Iterator(), "TypeError");
  check("tag", Object.prototype.toString.call(numbers().map((x) => x)), "[object Iterator Helper]");
}
