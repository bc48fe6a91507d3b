// The Compression Standard (https://compression.spec.whatwg.org), sections 5 and 6.
import { check, throws, rejects } from "./check.js";
const bytes = (s) => new TextEncoder().encode(s);
const through = (chunks, stream) => new ReadableStream({ pull(c) { if (chunks.length) c.enqueue(chunks.shift()); else c.close(); } }).pipeThrough(stream);
const collect = async (s) => new Uint8Array(await new Response(s).arrayBuffer());
const text = async (s) => new Response(s).text();
const known = { // "hello hello hello", as zlib writes it
  gzip: "H4sIAAAAAAAAA8tIzcnJV8hAkACAiPnlEQAAAA==", deflate: "eJzLSM3JyVfIQJAAOi4GfQ==", "deflate-raw": "y0jNyclXyECQAA==",
};
const unbase = (s) => Uint8Array.from(atob(s), (c) => c.charCodeAt(0));
export default async function () {
  for (const C of [CompressionStream, DecompressionStream]) {
    throws("a format is required", () => new C(), "TypeError");
    for (const format of ["", "GZIP", "zlib", null, undefined]) throws("no format", () => new C(format), "TypeError");
    throws("without new", () => C("gzip"), "TypeError");
    const s = new C({ toString: () => "gzip" });
    check("members", [C.length, s.readable instanceof ReadableStream, s.writable instanceof WritableStream, s.readable === s.readable, String(s)], [1, true, true, true, `[object ${C.name}]`]);
    throws("receiver", () => Object.getOwnPropertyDescriptor(C.prototype, "readable").get.call({}), "TypeError");
    for (const chunk of [undefined, null, 3, "text", {}, [1]]) {
      const t = new C("gzip"), writer = t.writable.getWriter();
      writer.closed.catch(() => {});
      const read = t.readable.getReader().read();
      await rejects("chunk " + typeof chunk, writer.write(chunk), "TypeError");
      await rejects("the reader sees it", read, "TypeError");
    }
  }
  for (const [format, packed] of Object.entries(known)) {
    check("known " + format, await text(through([unbase(packed)], new DecompressionStream(format))), "hello hello hello");
    const single = [...unbase(packed)].map((b) => new Uint8Array([b]));
    check("byte by byte " + format, await text(through(single, new DecompressionStream(format))), "hello hello hello");
    const parts = [bytes("ab").buffer, new DataView(bytes("xcdx").buffer, 1, 2), new Uint16Array([0x6665]), new Uint8Array()];
    check("round trip " + format, await text(through(parts, new CompressionStream(format)).pipeThrough(new DecompressionStream(format))), "abcdef");
    check("nothing " + format, await text(through([], new CompressionStream(format)).pipeThrough(new DecompressionStream(format))), "");
    await rejects("truncated " + format, text(through([unbase(packed).slice(0, -1)], new DecompressionStream(format))), "TypeError");
    await rejects("empty " + format, text(through([], new DecompressionStream(format))), "TypeError");
    await rejects("trailing, same chunk " + format, text(through([new Uint8Array([...unbase(packed), 0])], new DecompressionStream(format))), "TypeError");
    await rejects("trailing, next chunk " + format, text(through([unbase(packed), new Uint8Array([0])], new DecompressionStream(format))), "TypeError");
    check("an empty chunk is no trailing data", await text(through([unbase(packed), new Uint8Array(0)], new DecompressionStream(format))), "hello hello hello");
    await rejects("a second member " + format, text(through([unbase(packed), unbase(packed)], new DecompressionStream(format))), "TypeError");
    await rejects("garbage " + format, text(through([new Uint8Array([7, 8, 9, 10, 255, 255])], new DecompressionStream(format))), "TypeError");
  }
  const damaged = unbase(known.gzip); damaged[damaged.length - 6] ^= 1;
  await rejects("checksum", text(through([damaged], new DecompressionStream("gzip"))), "incorrect data check");
  const random = new Uint8Array(300000); for (let i = 0; i < random.length; i++) random[i] = (i * 7919 + (i >> 8) * 31) & 255;
  const back = await collect(through([random.subarray(0, 70000), random.subarray(70000)], new CompressionStream("deflate")).pipeThrough(new DecompressionStream("deflate")));
  check("large", [back.length, back.every((b, i) => b === random[i])], [300000, true]);
  // 8 MiB of zeros: the part that nobody reads is not made.
  const packer = new CompressionStream("gzip"), zeros = new Uint8Array(1 << 20), w = packer.writable.getWriter();
  (async () => { for (let i = 0; i < 8; i++) await w.write(zeros); await w.close(); })();
  const bomb = await collect(packer.readable), reader = through([bomb], new DecompressionStream("gzip")).getReader();
  const first = await reader.read();
  check("bomb", [bomb.length < 100000, first.done, first.value.length <= 65536], [true, false, true]);
  await reader.cancel("enough");
  let total = 0; for await (const c of through([bomb], new DecompressionStream("gzip"))) total += c.length;
  check("whole bomb", total, 8 << 20);
  // A chunk that is changed while it waits was taken before.
  const slow = new CompressionStream("deflate-raw"), chunk = random.slice(0, 200000), writer = slow.writable.getWriter();
  const written = writer.write(chunk); await null; await null;
  chunk.fill(0);
  written.then(() => writer.close());
  const taken = await collect(slow.readable.pipeThrough(new DecompressionStream("deflate-raw")));
  check("a chunk is taken whole", [taken.length, taken.subarray(150000).every((b, i) => b === random[i + 150000]) || taken.every((b) => b === 0)], [200000, true]);
  const left = new DecompressionStream("gzip"), held = left.writable.getWriter();
  await left.readable.cancel("gone");
  await rejects("a write after the reader left", held.write(bomb), "gone");
}
