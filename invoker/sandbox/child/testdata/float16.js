import { check } from "./check.js";
const threw = (f) => { try { f(); } catch (e) { return e.name; } };
export default function () {
  const a = new Float16Array([1, 2.5, 65519, 65520, 1e-8, NaN, -0]);
  check("elements", [...a].map(String), ["1", "2.5", "65504", "Infinity", "0", "NaN", "0"]);
  check("negative zero", Object.is(a[6], -0), true);
  check("rounding", [new Float16Array([1.337])[0], Math.f16round(1.337), 2049, new Float16Array([2049])[0]], [1.3369140625, 1.3369140625, 2049, 2048]);
  check("shape", [Float16Array.name, Float16Array.length, Float16Array.BYTES_PER_ELEMENT, a.BYTES_PER_ELEMENT, a.byteLength, a[Symbol.toStringTag], Object.prototype.toString.call(a)],
    ["Float16Array", 3, 2, 2, 14, "Float16Array", "[object Float16Array]"]);
  check("classes", [a instanceof Float16Array, a instanceof Uint16Array, Object.getPrototypeOf(Float16Array) === Object.getPrototypeOf(Int8Array), ArrayBuffer.isView(a), a.constructor === Float16Array], [true, false, true, true, true]);
  const bits = new Uint16Array(new Float16Array([1, -2]).buffer);
  check("buffer", [...bits], [0x3c00, 0xc000]);
  const view = new Float16Array(bits.buffer, 2, 1);
  view[0] = "0.5";
  check("view", [view.length, view.byteOffset, bits[1], view[0], view[1]], [1, 2, 0x3800, 0.5, null]);
  check("methods", [
    [...a.map((x) => x * 2)].slice(0, 2), [...a.slice(0, 2)], a.map((x) => x).constructor.name, a.subarray(1, 2)[0], [...Float16Array.of(3, 1, -0, 0, NaN, -Infinity, 2).sort()].map((x) => (Object.is(x, -0) ? "-0" : String(x))),
    a.indexOf(2.5), a.indexOf(2.4999), a.includes(NaN), a.indexOf(0), a.lastIndexOf(-0), [...Float16Array.from({ length: 2, 0: 7, 1: 8.125 })], a.at(1), a.with(0, 9)[0], new Float16Array(2).fill(1.5).join(),
  ], [[2, 5], [1, 2.5], "Float16Array", 2.5, ["-Infinity", "-0", "0", "1", "2", "3", "NaN"], 1, -1, true, 4, 6, [7, 8.125], 2.5, 9, "1.5,1.5"]);
  check("other arrays", [[...new Float16Array(new Float64Array([0.1, 3]))], [...new Float32Array(new Float16Array([0.1]))], [...new Uint8Array(Float16Array.of(5.9))]], [[0.0999755859375, 3], [0.0999755859375], [5]]);
  const set = new Float16Array(3); set.set([1, 2.25]); set.set(new Int8Array([4]), 2); set.set(new Float16Array(0));
  check("set", [...set], [1, 2.25, 4]);
  class Half extends Float16Array { sum() { return this.reduce((x, y) => x + y, 0); } }
  const half = new Half([0.5, 0.25]);
  check("a subclass", [half.sum(), half instanceof Half, half instanceof Float16Array, half.map((x) => x) instanceof Half], [0.75, true, true, true]);
  check("iterables and DataView", [[...new Float16Array(new Set([1, 2]))], new DataView(a.buffer).getFloat16(2, true)], [[1, 2], 2.5]);
  check("errors", [threw(() => Float16Array(1)), threw(() => new Float16Array(-1)), threw(() => new Float16Array(new BigInt64Array(1))), threw(() => new Float16Array([1n])), threw(() => { a[0] = 1n; }), threw(() => new Float16Array(new ArrayBuffer(3)))],
    ["TypeError", "RangeError", "TypeError", "TypeError", "TypeError", "RangeError"]);
  check("search for other types", [a.includes(undefined), a.includes(), a.indexOf(null), a.lastIndexOf(undefined), a.includes("1"), new Float16Array([1]).includes(new Number(1)), new Float16Array([1]).includes(1)], [false, false, -1, -1, false, false, true]);
  let reads = 0;
  check("a length that is read once", [new Float16Array({ get length() { reads++; return 2; } }).length, reads], [2, 1]);
  const moved = new Float16Array([1]), buffer = moved.buffer.transfer();
  check("detached", [moved.length, moved[0], threw(() => moved.fill(1)), new Float16Array(buffer)[0]], [0, null, "TypeError", 1]);
  const big = new ArrayBuffer(4, { maxByteLength: 8 }), tracking = new Float16Array(big);
  big.resize(8);
  tracking[3] = 1.5;
  check("resizable", [tracking.length, tracking[3]], [4, 1.5]);
}
