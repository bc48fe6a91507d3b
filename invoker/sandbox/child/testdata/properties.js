// Properties that hold for random values and random pieces.
import { check } from "./check.js";
let seed = 20261123;
const random = (n) => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return (seed >> 8) % n; };
const makers = [
  () => random(1000) - 500, () => random(2) === 0, () => null, () => undefined, () => String.fromCharCode(97 + random(26), 0xd800 + random(2048)), () => BigInt(random(99)), () => random(9) / 0, () => new Date(random(1e6)), () => Object(random(9)),
  () => new Uint8Array([random(256), random(256), random(256)]).subarray(random(3)), () => new DataView(new ArrayBuffer(1 + random(8)), random(2)), () => new RangeError("m" + random(9)), () => /a+/gi, () => new Int16Array([random(99), -random(99)]),
];
function make(depth, known) {
  if (known.length > 0 && random(6) === 0) return known[random(known.length)];
  const kind = depth > 0 ? random(makers.length + 8) : random(makers.length);
  if (kind < makers.length) { const v = makers[kind](); if (v !== null && typeof v === "object") known.push(v); return v; }
  const n = random(4), out = kind % 4 === 0 ? [] : kind % 4 === 1 ? new Map() : kind % 4 === 2 ? new Set() : {};
  known.push(out);
  for (let i = 0; i < n; i++) {
    if (out instanceof Map) out.set(make(depth - 1, known), make(depth - 1, known));
    else if (out instanceof Set) out.add(make(depth - 1, known));
    else out[Array.isArray(out) ? random(6) : "k" + random(9)] = make(depth - 1, known);
  }
  return out;
}
// different tells where two values differ, and whether they share objects in the same places.
function different(a, b, pairs = new Map(), path = "v") {
  if (a === null || typeof a !== "object") return Object.is(a, b) ? "" : path;
  if (a === b) return path + " is the same object";
  if (pairs.has(a)) return pairs.get(a) === b ? "" : path + " is another object";
  pairs.set(a, b);
  if (Object.prototype.toString.call(a) !== Object.prototype.toString.call(b) || Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return path + " has another class";
  if (a instanceof Date || Object.prototype.toString.call(a) === "[object Number]") return Object.is(a.valueOf(), b.valueOf()) ? "" : path;
  if (a instanceof RegExp) return String(a) === String(b) ? "" : path;
  if (a instanceof Error) return a.message === b.message && a.name === b.name && a.stack === b.stack ? "" : path;
  if (ArrayBuffer.isView(a)) return a.byteOffset === b.byteOffset && a.byteLength === b.byteLength && String(new Uint8Array(a.buffer)) === String(new Uint8Array(b.buffer)) ? different2(a, b, pairs, path) : path;
  if (a instanceof Map || a instanceof Set) { const x = [...a], y = [...b]; return a.size !== b.size ? path + ".size" : x.map((v, i) => (a instanceof Map ? different(v[0], y[i][0], pairs, path + "#" + i) || different(v[1], y[i][1], pairs, path + "=" + i) : different(v, y[i], pairs, path + "#" + i))).find(Boolean) || ""; }
  const keys = Object.keys(a); if (String(keys) !== String(Object.keys(b)) || a.length !== b.length) return path + " has other keys";
  return keys.map((k) => different(a[k], b[k], pairs, path + "." + k)).find(Boolean) || "";
}
function different2(a, b, pairs, path) {
  if (a.buffer === b.buffer) return path + " has the same buffer";
  if (!pairs.has(a.buffer)) pairs.set(a.buffer, b.buffer);
  return pairs.get(a.buffer) === b.buffer ? "" : path + " has another buffer";
}
const collect = async (s) => { const out = []; for await (const c of s) out.push(...c); return String(out); };
function pieces(bytes, most) {
  let at = 0;
  return new ReadableStream({ type: random(2) ? "bytes" : undefined, pull(c) { const n = 1 + random(most); if (at >= bytes.length) { c.close(); if (c.byobRequest) c.byobRequest.respond(0); return; } c.enqueue(bytes.slice(at, at += n)); } }, { highWaterMark: random(3) });
}
async function byob(s) {
  const r = s.getReader({ mode: "byob" }), out = [];
  for (;;) { const { value, done } = await r.read(new Uint8Array(1 + random(40)), { min: 1 }); if (done) return String(out); out.push(...value); }
}
export default async function () {
  for (let i = 0; i < 300; i++) { const v = make(4, []); const d = different(v, structuredClone(v)); if (d) { check("clone " + i, d, ""); break; } }
  const bytes = Uint8Array.from({ length: 700 }, (_, i) => (random(4) ? i & 15 : random(256))), whole = String([...bytes]);
  for (let i = 0; i < 25; i++) {
    const most = 1 + random(300), format = ["gzip", "deflate", "deflate-raw"][random(3)];
    check("pieces " + i, await collect(pieces(bytes, most)), whole);
    check("transform " + i, await collect(pieces(bytes, most).pipeThrough(new TransformStream({ transform(c, t) { const n = random(c.length + 1); t.enqueue(c.subarray(0, n)); t.enqueue(c.subarray(n)); } }, undefined, { highWaterMark: random(4) }))), whole);
    check("compression " + i, await collect(pieces(bytes, most).pipeThrough(new CompressionStream(format)).pipeThrough(new DecompressionStream(format))), whole);
    const [a, b] = pieces(bytes, most).tee(); check("tee " + i, await Promise.all([collect(a), collect(b)]), [whole, whole]);
    check("byob " + i, await byob(new Blob([bytes]).stream()), whole);
    const [c, d] = new Blob([bytes]).stream().tee(); check("byob tee " + i, await Promise.all([byob(c), random(2) ? byob(d) : collect(d)]), [whole, whole]);
    let queued = 0, most2 = 0; await pieces(bytes, most).pipeThrough(new TransformStream({}, { highWaterMark: 1 })).pipeTo(new WritableStream({ async write() { queued++; most2 = Math.max(most2, queued); await null; queued--; } }, { highWaterMark: 2 })); check("one write at a time " + i, most2, 1);
  }
}
