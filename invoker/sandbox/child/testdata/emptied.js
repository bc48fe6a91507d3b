// What a script gives away is empty thereafter, also in a program that has no other word for
// it: this one must not name what buffers.js of the additions is installed for.
import { check } from "./check.js";

export default async function () {
  const chunk = new Uint8Array([1, 2]);
  new ReadableStream({ type: "bytes", start(c) { c.enqueue(chunk); } });
  check("a chunk of a byte stream", [chunk.length, chunk.byteLength, chunk[0]], [0, 0, undefined]);
}
