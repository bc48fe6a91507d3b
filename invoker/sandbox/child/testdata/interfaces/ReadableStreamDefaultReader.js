// ReadableStreamDefaultReader: https://streams.spec.whatwg.org/#default-reader-class
import { check, throws, rejects } from "./check.js";
export default async function () {
  throws("Streams §4.4.3 constructor: needs a stream", () => new ReadableStreamDefaultReader(), "TypeError"); throws("Streams §4.4.3 constructor: needs a stream", () => new ReadableStreamDefaultReader({}), "TypeError");
  let c; const s = new ReadableStream({ start(x) { c = x; } }), r = new ReadableStreamDefaultReader(s);
  throws("Streams §4.9.1 SetUpReadableStreamDefaultReader, step 1: locked", () => new ReadableStreamDefaultReader(s), "TypeError");
  check("Streams §4.3.3 closed: the same promise", r.closed === r.closed, true);
  const waits = r.read(); c.enqueue("a"); c.enqueue("b"); check("Streams §4.4.3 read(): waits for a chunk", [await waits, await r.read()], [{ value: "a", done: false }, { value: "b", done: false }]);
  const list = [r.read(), r.read()]; c.enqueue(1); c.enqueue(2); check("Streams §4.4.3 read(): in the order of the calls", (await Promise.all(list)).map((x) => x.value), [1, 2]);
  const pending = r.read(), closed = r.closed; check("Streams §4.4.3 releaseLock(): returns undefined", r.releaseLock(), undefined);
  await rejects("Streams §4.9.2 ReadableStreamDefaultReaderErrorReadRequests: reads that wait", pending, "TypeError"); await rejects("Streams §4.9.2 ReadableStreamReaderGenericRelease: closed", closed, "TypeError"); check("Streams §4.4.3 releaseLock(): again", r.releaseLock(), undefined);
  await rejects("Streams §4.4.3 read(), step 1: released", r.read(), "TypeError"); await rejects("Streams §4.3.3 cancel(), step 1: released", r.cancel(), "TypeError"); await rejects("Streams §4.3.3 closed: released", r.closed, "TypeError");
  const n = s.getReader(); c.enqueue("x"); c.close(); check("Streams §4.4.3 read(): then the end", [await n.read(), await n.read(), await n.closed], [{ value: "x", done: false }, { value: undefined, done: true }, undefined]); n.releaseLock();
  const again = s.getReader(); check("Streams §4.9.2 ReadableStreamReaderGenericInitialize, step 4: of a closed stream", await again.closed, undefined);
  const e = new Error("e"), bad = new ReadableStream({ start(x) { x.error(e); } }).getReader(); await rejects("Streams §4.9.2 ReadableStreamReaderGenericInitialize, step 5: of an errored stream", bad.closed, "e"); await rejects("Streams §4.4.3 read(): of an errored stream", bad.read(), "e");
  let k; const late = new ReadableStream({ start(x) { k = x; } }).getReader(), reading = late.read(); k.error(e); await rejects("Streams §4.9.2 ReadableStreamError: reads that wait", reading, "e"); await rejects("Streams §4.9.2 ReadableStreamError: closed", late.closed, "e");
  let why; const t = new ReadableStream({ cancel(x) { why = x; return 5; } }).getReader(), unread = t.read(); check("Streams §4.3.3 cancel(): undefined, and reads end", [await t.cancel("why"), why, await unread], [undefined, "why", { value: undefined, done: true }]);
  for (const name of ["read", "cancel"]) await rejects("Streams §4.4.3 " + name + "(): rejects for another receiver", ReadableStreamDefaultReader.prototype[name].call({}), "TypeError"); await rejects("Streams §4.3.3 closed: rejects for another receiver", Object.getOwnPropertyDescriptor(ReadableStreamDefaultReader.prototype, "closed").get.call({}), "TypeError"); throws("Streams §4.4.3 releaseLock(): the receiver is checked", () => ReadableStreamDefaultReader.prototype.releaseLock.call({}), "TypeError");
}
