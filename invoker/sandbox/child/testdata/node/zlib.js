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
  await rejects("stream error", pipeline(Readable.from([Buffer.from("nope nope")]), createGunzip(), async (s) => { for await (const _ of s); }), "header");
  check("rest", [constants.Z_BEST_COMPRESSION, zlib.crc32("hello"), zlib.Z_SYNC_FLUSH, createGzip() instanceof zlib.Gzip], [9, 907060870, 2, true]);
}
