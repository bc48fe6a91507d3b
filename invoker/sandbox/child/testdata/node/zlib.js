import { check, throws, rejects } from "./check.js";
import zlib, { gzipSync, gunzipSync, deflateSync, inflateSync, deflateRawSync, inflateRawSync, constants, createGzip, createGunzip } from "node:zlib";
import { promisify } from "node:util";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
export default async function () {
  const text = "hello ".repeat(1000), data = Buffer.from(text);
  check("round trips", [[gzipSync, gunzipSync], [deflateSync, inflateSync], [deflateRawSync, inflateRawSync], [gzipSync, zlib.unzipSync], [deflateSync, zlib.unzipSync]].map(([pack, unpack]) => { const p = pack(text); return Buffer.isBuffer(p) && p.length < 200 && unpack(p).equals(data) }), [true, true, true, true, true]);
  check("known", [inflateSync(Buffer.from("eJzLSM3JyQcABiwCFQ==", "base64")).toString(), gunzipSync(Buffer.from("H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==", "base64")).toString()], ["hello", "hello"]);
  check("level", [deflateSync(data, { level: 0 }).length > 6000, gzipSync("", { level: 9 }).length > 10], [true, true]);
  check("promises", [(await promisify(zlib.gunzip)(await promisify(zlib.gzip)("abc"))).toString(), await new Promise((r) => zlib.deflate("x", { level: 1 }, (e, b) => r(inflateSync(b).toString())))], ["abc", "x"]);
  throws("header", () => gunzipSync(Buffer.from("garbage here")), "incorrect header check"); throws("end", () => inflateSync(deflateSync(data).subarray(0, 20)), "unexpected end of file"); throws("most", () => gunzipSync(gzipSync(data), { maxOutputLength: 100 }), "larger than 100 bytes"); throws("level", () => gzipSync("", { level: 12 }), "options.level");
  try { inflateSync(Buffer.from([1, 2, 3, 4])) } catch (e) { check("error", [e.code, e.errno], ["Z_DATA_ERROR", -3]) }
  await rejects("callback error", promisify(zlib.inflate)(Buffer.from("no")), "header"); throws("brotli", () => zlib.brotliDecompressSync(data), "node:zlib: brotliDecompressSync is not available");
  const parts = []; await pipeline(Readable.from([Buffer.from("stream "), Buffer.from("of parts")]), createGzip(), createGunzip(), async (source) => { for await (const c of source) parts.push(c) }); check("streams", Buffer.concat(parts).toString(), "stream of parts");
  const early = createGzip(), seen = []; early.on("data", (c) => seen.push(c)); const noise = Buffer.from(Array.from({ length: 200000 }, (_, i) => (i * 7919 + (i >> 7) * 31) & 255)); early.write(noise); await new Promise((r) => setTimeout(r, 1)); check("output before the end", seen.length > 0, true); early.end(); await new Promise((r) => early.on("end", r));
  const unpacked = []; await pipeline(Readable.from(Array.from(Buffer.concat([zlib.gzipSync("first"), zlib.gzipSync("second"), Buffer.from("junk")]), (b) => Buffer.from([b]))), createGunzip(), async (s) => { for await (const c of s) unpacked.push(c) }); check("members byte by byte", Buffer.concat(unpacked).toString(), "firstsecond"); check("what came early", zlib.gunzipSync(Buffer.concat(seen)).equals(noise), true);
  const both = []; await pipeline(Readable.from([Buffer.concat([zlib.gzipSync("one"), zlib.gzipSync("two"), Buffer.from("junk")])]), createGunzip(), async (s) => { for await (const c of s) both.push(c) }); check("members and junk", Buffer.concat(both).toString(), "onetwo");
  let members = 0; await pipeline(Readable.from([Buffer.concat(Array(500).fill(zlib.gzipSync("m")))]), createGunzip(), async (s) => { for await (const c of s) members += c.length }); check("many members", members, 500);
  await rejects("a stream that is cut", pipeline(Readable.from([zlib.gzipSync("cut").subarray(0, 20)]), createGunzip(), async (s) => { for await (const _ of s); }), "unexpected end of file");
  await rejects("stream error", pipeline(Readable.from([Buffer.from("nope nope")]), createGunzip(), async (s) => { for await (const _ of s); }), "header");
  check("rest", [constants.Z_BEST_COMPRESSION, zlib.crc32("hello"), zlib.Z_SYNC_FLUSH, createGzip() instanceof zlib.Gzip], [9, 907060870, 2, true]);
}
