import { check, throws } from "./check.js";
export default function () {
  const a = new Uint8Array([1, 2, 3]).buffer, b = a.transfer();
  check("transfer", [a.detached, a.byteLength, b.byteLength, [...new Uint8Array(b)]], [true, 0, 3, [1, 2, 3]]);
  check("transfer to a length", [...new Uint8Array(b.transfer(5))], [1, 2, 3, 0, 0]);
  throws("transfer twice", () => b.transfer(), "TypeError");
  const r = new ArrayBuffer(4, { maxByteLength: 8 });
  const all = new Uint8Array(r), part = new Uint16Array(r, 2, 1), view = new DataView(r, 2);
  all[3] = 9;
  check("resizable", [r.resizable, r.maxByteLength, new ArrayBuffer(1).resizable, new ArrayBuffer(1).maxByteLength], [true, 8, false, 1]);
  r.resize(8);
  check("grown", [r.byteLength, all.length, part.length, view.byteLength, all[3], all[7]], [8, 8, 1, 6, 9, 0]);
  r.resize(2);
  check("shrunk", [r.byteLength, all.length, part.length, part.byteOffset, part[0] === undefined, view.byteLength], [2, 2, 0, 0, true, 0]);
  throws("out of bounds", () => part.fill(1), "TypeError");
  r.resize(4);
  check("back in bounds", [part.length, part[0], all[3]], [1, 0, 0]);
  check("buffer of a view", [part.buffer === r, all.buffer === r], [true, true]);
  throws("too large", () => r.resize(9), "RangeError");
  throws("length above the maximum", () => new ArrayBuffer(2, { maxByteLength: 1 }), "RangeError");
  throws("not resizable", () => new ArrayBuffer(2).resize(1), "TypeError");
  const moved = r.transfer(6); check("a resizable one moves", [moved.resizable, moved.byteLength, r.detached, all.length], [true, 6, true, 0]);
  check("to a fixed length", moved.transferToFixedLength().resizable, false);
  class Bytes extends Uint8Array {}
  check("classes", [new Bytes(2) instanceof Uint8Array, new Bytes(2).map((x) => x + 1) instanceof Bytes, Uint8Array.name, Uint8Array.BYTES_PER_ELEMENT, [...Uint8Array.of(1)]], [true, true, "Uint8Array", 1, [1]]);
  // A script may resize a buffer while a method runs on it.
  const hostile = new ArrayBuffer(8, { maxByteLength: 8 }), bytes = new Uint8Array(hostile);
  for (const run of [
    () => bytes.fill({ valueOf() { hostile.resize(0); return 1 } }), () => bytes.set([{ valueOf() { hostile.resize(1); return 1 } }, 2, 3]),
    () => bytes.sort(() => { hostile.resize(1); return 1 }), () => bytes.map(() => { hostile.resize(0); return 1 }),
    () => bytes.copyWithin({ valueOf() { hostile.resize(2); return 0 } }, 3), () => bytes.slice({ valueOf() { hostile.resize(2); return 0 } }),
    () => bytes.subarray({ valueOf() { hostile.resize(2); return 0 } }), () => bytes.with({ valueOf() { hostile.resize(1); return 3 } }, 1),
    () => bytes.toSorted(() => { hostile.resize(0); return 1 }), () => bytes.join({ toString() { hostile.resize(0); return "," } }),
    () => { hostile.resize(1); bytes.map(() => { hostile.resize(8); return 255 }) }, () => { hostile.resize(1); bytes.with({ valueOf() { hostile.resize(8); return 5 } }, 255) },
    () => new Uint8Array(4).set(bytes, { valueOf() { hostile.resize(0); return 0 } }),
  ]) {
    hostile.resize(8);
    try { run() } catch (e) { check("an error of the language", e instanceof TypeError || e instanceof RangeError, true) }
  }
  // Or detach one that a method of goja writes to.
  const loot = new Uint8Array(1 << 12);
  for (const run of [
    (v, detach) => Uint8Array.from.call(function () { return v }, [{ valueOf() { detach(); return 1 } }, 2, 3]),
    (v, detach) => Uint8Array.from.call(function () { return v }, { length: 3000, get 2000() { detach(); return 1 } }),
    (v, detach) => Uint8Array.of.call(function () { return v }, { valueOf() { detach(); return 1 } }, 2, 3),
    (v, detach) => { loot.constructor = { [Symbol.species]: function () { return v } }; loot.map((x, i) => { if (i === 9) detach(); return i }) },
    (v, detach) => v.set([{ valueOf() { detach(); return 1 } }, 2, 3]), (v, detach) => v.fill({ valueOf() { detach(); return 1 } }),
    (v, detach) => v.sort(() => { detach(); return 1 }), (v, detach) => v.with({ valueOf() { detach(); return 1 } }, 1),
    (v, detach) => v.slice({ valueOf() { detach(); return 1 } }), (v, detach) => v.reduce(() => detach()), (v, detach) => v.filter(() => detach()),
    (v, detach) => v.indexOf(0, { valueOf() { detach(); return 1 } }), (v, detach) => v.copyWithin({ valueOf() { detach(); return 1 } }, 9),
    (v, detach) => new DataView(v.buffer).setFloat64({ valueOf() { detach(); return 1 } }, 1), (v, detach) => { detach(); return new TextDecoder().decode(v) },
    (v, detach) => { detach(); crypto.getRandomValues(v) }, (v, detach) => { detach(); return new Uint16Array(v) }, (v, detach) => { detach(); return [...v] },
    (v, detach) => { detach(); return structuredClone(v) }, (v, detach) => { detach(); return btoa(v) }, (v, detach) => { detach(); return new Response(v) },
  ]) {
    const v = new Uint8Array(new ArrayBuffer(1 << 13), 1 << 12);
    try { run(v, () => { if (!v.buffer.detached) v.buffer.transfer() }) } catch (e) { check("an error of the language: " + e, e instanceof TypeError || e instanceof RangeError || e instanceof DOMException, true) }
    check("a detached view", [v.buffer.detached, v.length, v.byteLength, v.byteOffset, v[0] === undefined], [true, 0, 0, 0, true]);
  }
  check("f16round", [Math.f16round(1.337), Math.f16round(65520), Math.f16round(5e-8)], [1.3369140625, Infinity, 5.960464477539063e-8]);
  const d = new DataView(new ArrayBuffer(2)); d.setFloat16(0, 1.5); check("getFloat16", [d.getFloat16(0), d.getUint16(0)], [1.5, 0x3e00]);
}
