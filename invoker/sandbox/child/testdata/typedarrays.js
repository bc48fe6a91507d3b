import { check } from "./check.js";
const threw = (f) => { try { f(); } catch (e) { return e.name; } };
export default function () {
  const a = new Float32Array([1, 2]), none = new Uint8Array(0);
  a.set(none); a.set(none, 2); a.set(new Uint16Array(new ArrayBuffer(8), 8), 1); a.set([7], 1);
  check("set", [...a], [1, 7]);
  new Int32Array(0).set(none);
  check("errors of set", [threw(() => a.set(none, 3)), threw(() => a.set(none, -1)), threw(() => a.set(new BigInt64Array(0))), threw(() => Float32Array.prototype.set.call([], none)), threw(() => a.set([1, 2, 3]))],
    ["RangeError", "RangeError", "TypeError", "TypeError", "RangeError"]);
  check("from", [[...Uint8Array.from("12")], [...Int16Array.from([1], (x) => x + 1)], Uint8Array.from.length, Uint8Array.prototype.set.length], [[1, 2], [2], 1, 1]);
}
