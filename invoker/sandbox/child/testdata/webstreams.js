// The Streams Standard (https://streams.spec.whatwg.org): sections 4 (readable), 5 (writable),
// 6 (transform), 7 (strategies).
import { check, throws, rejects } from "./check.js";
const read = async (s) => { const out = []; for await (const c of s) out.push(c); return out; };
const tick = async (n = 10) => { for (let i = 0; i < n; i++) await null; };
const log = [];

async function readable() {
  // 4.2.4 constructor
  throws("source null", () => new ReadableStream(null), "TypeError");
  throws("pull is no function", () => new ReadableStream({ pull: 1 }), "TypeError");
  throws("type", () => new ReadableStream({ type: "text" }), "TypeError");
  throws("mark", () => new ReadableStream({}, { highWaterMark: -1 }), "RangeError");
  throws("mark NaN", () => new ReadableStream({}, { highWaterMark: NaN }), "RangeError");
  throws("size", () => new ReadableStream({}, { size: 1 }), "TypeError");
  throws("size of bytes", () => new ReadableStream({ type: "bytes" }, { size() {} }), "RangeError");
  throws("start throws", () => new ReadableStream({ start() { throw new Error("begun") } }), "begun");
  throws("autoAllocateChunkSize", () => new ReadableStream({ type: "bytes", autoAllocateChunkSize: 0 }), "TypeError");
  // 4.2.4 methods
  const s = new ReadableStream({ start(c) { c.enqueue(1); c.enqueue(2); c.close(); } });
  const r = s.getReader();
  check("locked", s.locked, true);
  throws("a second reader", () => s.getReader(), "TypeError");
  await rejects("cancel while locked", s.cancel(), "TypeError");
  await rejects("receiver of cancel", ReadableStream.prototype.cancel.call({}), "TypeError");
  throws("receiver of locked", () => Object.getOwnPropertyDescriptor(ReadableStream.prototype, "locked").get.call({}), "TypeError");
  check("reads", [await r.read(), await r.read(), await r.read()], [{ value: 1, done: false }, { value: 2, done: false }, { done: true }]);
  check("closed", await r.closed, undefined);
  r.releaseLock(); r.releaseLock();
  await rejects("released", r.read(), "TypeError");
  await rejects("closed of a released reader", r.closed, "TypeError");
  throws("mode", () => s.getReader({ mode: "x" }), "TypeError");
  throws("byob of a default stream", () => s.getReader({ mode: "byob" }), "TypeError");
  // Reads that wait are rejected by releaseLock, and the chunks go to the next reader.
  let c; const w = new ReadableStream({ start(x) { c = x; } });
  const first = w.getReader(), pending = first.read(); first.releaseLock();
  await rejects("a read that waits", pending, "TypeError");
  c.enqueue("a"); check("the next reader", (await w.getReader().read()).value, "a");
  // desiredSize, back pressure
  let pulls = 0; const p = new ReadableStream({ pull(x) { pulls++; x.enqueue(pulls); } }, { highWaterMark: 3 });
  await tick(); check("pulls up to the mark", pulls, 3);
  await p.getReader().read(); await tick(); check("pulls again", pulls, 4);
  throws("size throws", () => new ReadableStream({ start(x) { x.enqueue(1); } }, { size() { throw new Error("sized") } }), "sized");
  for (const size of [-1, NaN, Infinity]) throws("size " + size, () => new ReadableStream({ start(x) { x.enqueue(1); } }, { size: () => size }), "RangeError");
  // the controller
  const e = new Error("broken"); let k; const broken = new ReadableStream({ start(x) { k = x; } });
  k.error(e); check("desiredSize of an errored stream", k.desiredSize, null);
  throws("enqueue behind an error", () => k.enqueue(1), "TypeError"); throws("close behind an error", () => k.close(), "TypeError"); k.error("again");
  await rejects("read of an errored stream", broken.getReader().read(), "broken");
  throws("illegal constructor", () => new ReadableStreamDefaultController(), "TypeError");
  throws("illegal constructor", () => new ReadableByteStreamController(), "TypeError"); throws("illegal constructor", () => new ReadableStreamBYOBRequest(), "TypeError");
  // cancel
  let why; const cancelled = new ReadableStream({ cancel(x) { why = x; return "ignored"; } });
  check("cancel", [await cancelled.cancel("why"), why], [undefined, "why"]);
  await rejects("cancel fails", new ReadableStream({ cancel() { throw new Error("no") } }).cancel(), "no");
  // 4.2.5 asynchronous iteration
  const it = new ReadableStream({ start(x) { x.enqueue(1); x.enqueue(2); x.enqueue(3); } }).values({ preventCancel: true });
  check("next and return in their order", await Promise.all([it.next(), it.next(), it.return("v"), it.next()]), [{ value: 1, done: false }, { value: 2, done: false }, { value: "v", done: true }, { done: true }]);
  const kept = new ReadableStream({ start(x) { x.enqueue(1); x.enqueue(2); } }); for await (const v of kept.values({ preventCancel: true })) break;
  check("preventCancel", (await kept.getReader().read()).value, 2);
  let left; for await (const v of new ReadableStream({ pull(x) { x.enqueue(1); }, cancel() { left = true; } })) break; check("break cancels", left, true);
  // ReadableStream.from
  check("from an array", await read(ReadableStream.from([1, Promise.resolve(2)])), [1, 2]);
  check("from an async iterable", await read(ReadableStream.from((async function* () { yield 1; yield 2; })())), [1, 2]);
  for (const v of [undefined, null, 3, {}]) throws("from " + v, () => ReadableStream.from(v), "TypeError");
  check("from a string", await read(ReadableStream.from("ab")), ["a", "b"]);
  // tee
  const object = {}, [a, b] = new ReadableStream({ start(x) { x.enqueue(object); x.close(); } }).tee();
  check("tee shares chunks", [(await read(a))[0] === object, (await read(b))[0] === object], [true, true]);
  let reasons; const t = new ReadableStream({ cancel(x) { reasons = x; } }).tee();
  const one = t[0].cancel("1"); let settled = false; one.then(() => { settled = true; }); await tick(); check("waits for both", settled, false);
  await t[1].cancel("2"); check("reasons", [reasons, await one], [["1", "2"], undefined]);
  const [f] = new ReadableStream({ start(x) { x.error(new Error("source")); } }).tee(); await rejects("error of a branch", f.getReader().read(), "source");
}

async function bytes() {
  // 4.5 ReadableStreamBYOBReader, 4.7 controller, 4.8 request
  let c; const s = new ReadableStream({ type: "bytes", start(x) { c = x; } });
  check("kind", [String(c), c.byobRequest, c.desiredSize], ["[object ReadableByteStreamController]", null, 0]);
  const r = s.getReader({ mode: "byob" }), view = new Uint8Array(4), reading = r.read(view);
  check("transferred", [view.byteLength, view.buffer.byteLength], [0, 0]);
  const q = c.byobRequest; check("request", [q === c.byobRequest, q.view.byteLength, String(q)], [true, 4, "[object ReadableStreamBYOBRequest]"]);
  q.view.set([1, 2]);
  throws("too many", () => q.respond(5), "RangeError"); throws("none", () => q.respond(0), "TypeError"); throws("no number", () => q.respond(-1), "TypeError");
  q.respond(2); check("answered", [q.view, c.byobRequest], [null, null]); throws("twice", () => q.respond(1), "TypeError");
  const got = await reading; check("read", [[...got.value], got.done, got.value.buffer.byteLength], [[1, 2], false, 4]);
  throws("no view", () => c.enqueue("x"), "TypeError"); throws("an empty view", () => c.enqueue(new Uint8Array()), "TypeError");
  const sent = new Uint8Array([1, 2, 3, 4, 5]); c.enqueue(sent); check("enqueue transfers", sent.byteLength, 0); check("desiredSize", c.desiredSize, -5);
  check("part", [...(await r.read(new Uint8Array(2))).value], [1, 2]);
  check("elements are whole", [...(await r.read(new Uint16Array(3))).value].length, 1);
  const rest = r.read(new Uint16Array(1)); c.enqueue(new Uint8Array([6])); check("an element of two chunks", [...new Uint8Array((await rest).value.buffer)], [5, 6]);
  check("DataView", (await (async () => { const p = r.read(new DataView(new ArrayBuffer(8), 2, 4)); c.enqueue(new Uint8Array([9])); return (await p).value; })()).byteOffset, 2);
  for (const [what, v] of [["no view", 1], ["empty", new Uint8Array()], ["nothing", undefined]]) await rejects(what, r.read(v), "TypeError");
  await rejects("min 0", r.read(new Uint8Array(1), { min: 0 }), "TypeError"); await rejects("min too large", r.read(new Uint8Array(1), { min: 2 }), "RangeError");
  const least = r.read(new Uint8Array(5), { min: 3 }); c.enqueue(new Uint8Array([1])); c.enqueue(new Uint8Array([2])); await tick(); c.enqueue(new Uint8Array([3])); check("min", [...(await least).value], [1, 2, 3]);
  const last = r.read(new Uint8Array(3)); c.close(); c.byobRequest.respond(0); const end = await last; check("end", [end.done, end.value.byteLength, end.value.buffer.byteLength], [true, 0, 3]);
  const after = await r.read(new Uint8Array(2)); check("behind the end", [after.done, after.value.byteLength], [true, 0]);
  // respondWithNewView
  let d; const n = new ReadableStream({ type: "bytes", start(x) { d = x; } }).getReader({ mode: "byob" }), waits = n.read(new Uint8Array(4));
  throws("another length", () => d.byobRequest.respondWithNewView(new Uint8Array(3)), "RangeError"); throws("no view", () => d.byobRequest.respondWithNewView(1), "TypeError");
  d.byobRequest.respondWithNewView(new Uint8Array(d.byobRequest.view.buffer, 0, 3)); check("new view", (await waits).value.byteLength, 3);
  // an element that the end cuts
  let h; const half = new ReadableStream({ type: "bytes", start(x) { h = x; } }).getReader({ mode: "byob" }), cut = half.read(new Uint16Array(1)); cut.catch(() => {});
  h.byobRequest.view[0] = 1; h.byobRequest.respond(1); throws("close", () => h.close(), "TypeError"); await rejects("cut", cut, "TypeError");
  // autoAllocateChunkSize
  const auto = new ReadableStream({ type: "bytes", autoAllocateChunkSize: 8, pull(x) { x.byobRequest.view[0] = 7; x.byobRequest.respond(1); } }).getReader(); check("auto", [...(await auto.read()).value], [7]);
  // releaseLock keeps what the source writes
  let l; const lost = new ReadableStream({ type: "bytes", start(x) { l = x; } }), lr = lost.getReader({ mode: "byob" }), gone = lr.read(new Uint8Array(2)); lr.releaseLock(); await rejects("released", gone, "TypeError");
  l.byobRequest.view[0] = 5; l.byobRequest.respond(1); check("kept", [...(await lost.getReader().read()).value], [5]);
  // tee copies
  const [a, b] = new ReadableStream({ type: "bytes", start(x) { x.enqueue(new Uint8Array([1, 2])); x.close(); } }).tee();
  const x = (await a.getReader().read()).value; x[0] = 9; check("tee copies", [...(await b.getReader({ mode: "byob" }).read(new Uint8Array(2))).value], [1, 2]);
  let y; const [u, v] = new ReadableStream({ type: "bytes", start(k) { y = k; } }).tee(), ur = u.getReader({ mode: "byob" }).read(new Uint8Array(3)); await tick(); y.byobRequest.view[0] = 3; y.byobRequest.respond(1);
  check("tee with a view", [[...(await ur).value], [...(await v.getReader().read()).value]], [[3], [3]]);
  // Streams §4.9.1 ReadableByteStreamTee, step 17: a chunk that cannot be cloned ends both branches, with no other error
  const Bytes = Uint8Array, [w1, w2] = new ReadableStream({ type: "bytes", pull(k) { k.byobRequest.view[0] = 3; k.byobRequest.respond(1); } }).tee(), wr = w1.getReader({ mode: "byob" }).read(new Bytes(3));
  globalThis.Uint8Array = new Proxy(Bytes, { construct(T, args, N) { if (args[0] instanceof Bytes) throw new Error("no room"); return Reflect.construct(T, args, N); } });
  try { await rejects("tee with a view, of a chunk that is not cloned", wr, "no room"); } finally { globalThis.Uint8Array = Bytes; }
  await rejects("and the other branch", w2.getReader().read(), "no room"); await tick();
  check("a body is a byte stream", [...(await new Response("abc").body.getReader({ mode: "byob" }).read(new Uint8Array(2))).value], [97, 98]);
  const blob = new Blob(["abc"]).stream().getReader({ mode: "byob" }); check("a blob is a byte stream", [(await blob.read(new Uint8Array(9))).value.length, (await blob.read(new Uint8Array(9))).done], [3, true]);
}

async function writable() {
  throws("sink null", () => new WritableStream(null), "TypeError"); throws("type", () => new WritableStream({ type: "bytes" }), "RangeError"); throws("illegal constructor", () => new WritableStreamDefaultController(), "TypeError");
  const seen = []; let release; const s = new WritableStream({ start() { seen.push("start"); }, write(c) { seen.push(c); return new Promise((r) => { release = r; }); }, close() { seen.push("close"); } }, { highWaterMark: 2 });
  const w = s.getWriter(); check("locked", s.locked, true); throws("a second writer", () => s.getWriter(), "TypeError"); await rejects("abort while locked", s.abort(), "TypeError"); await rejects("close while locked", s.close(), "TypeError");
  check("desiredSize", w.desiredSize, 2); const a = w.write("a"), b = w.write("b"); check("full", w.desiredSize, 0); let ready = false; w.ready.then(() => { ready = true; }); await tick(); check("not ready", [ready, seen], [false, ["start", "a"]]);
  release(); await a; await tick(); check("ready", [ready, seen, w.desiredSize], [true, ["start", "a", "b"], 1]); const closed = w.close(); await rejects("close twice", w.close(), "TypeError"); await rejects("write behind close", w.write("c"), "TypeError"); release(); await closed; check("closed", [await w.closed, seen, w.desiredSize], [undefined, ["start", "a", "b", "close"], 0]);
  // abort
  let why, signal; const t = new WritableStream({ start(c) { signal = c.signal; }, write() { return new Promise(() => {}); }, abort(x) { why = x; } }), v = t.getWriter(); await tick();
  check("signal", [signal instanceof AbortSignal, signal.aborted], [true, false]); const lost = v.write(1), queued = v.write(2); queued.catch(() => {}); lost.catch(() => {}); v.closed.catch(() => {}); v.ready.catch(() => {}); v.abort("stop"); check("aborted", [signal.aborted, signal.reason, v.desiredSize], [true, "stop", null]); await tick(); check("abort waits for the write", why, undefined);
  const u = new WritableStream({ abort(x) { why = x; } }).getWriter(); await u.abort("now"); check("abort", why, "now"); await rejects("closed", u.closed, "now"); await rejects("write", u.write(1), "now"); check("again", await u.abort(), undefined);
  // errors
  let c; const e = new WritableStream({ start(x) { c = x; } }).getWriter(); c.error(new Error("bad")); await rejects("ready", e.ready, "bad"); await rejects("closed", e.closed, "bad"); c.error("ignored");
  const f = new WritableStream({ write() { throw new Error("full"); } }).getWriter(); await rejects("write fails", f.write(1), "full"); await rejects("closed", f.closed, "full"); await rejects("close", f.close(), "TypeError");
  const g = new WritableStream({ close() { throw new Error("end"); } }).getWriter(); await rejects("close fails", g.close(), "end"); await rejects("start fails", new WritableStream({ start() { return Promise.reject(new Error("begun")); } }).getWriter().closed, "begun");
  const r = new WritableStream().getWriter(); r.releaseLock(); await rejects("released", r.write(1), "TypeError"); throws("desiredSize of a released writer", () => r.desiredSize, "TypeError"); await rejects("ready of a released writer", r.ready, "TypeError"); await rejects("receiver", WritableStreamDefaultWriter.prototype.write.call({}), "TypeError");
  const z = new WritableStream({}, { size() { throw new Error("sized"); } }).getWriter(); await rejects("size throws", z.write(1), "sized");
}

async function transforms() {
  throws("transformer null", () => new TransformStream(null), "TypeError"); throws("readableType", () => new TransformStream({ readableType: "bytes" }), "RangeError"); throws("start throws", () => new TransformStream({ start() { throw new Error("begun"); } }), "begun"); throws("illegal constructor", () => new TransformStreamDefaultController(), "TypeError");
  const order = [], t = new TransformStream({ start(c) { order.push("start"); c.enqueue(0); }, transform(v, c) { order.push(v); c.enqueue(v * 2); }, flush(c) { order.push("flush"); c.enqueue(99); } });
  const w = t.writable.getWriter(); w.write(1).catch(() => {}); w.close(); check("transform", [await read(t.readable), order], [[0, 2, 99], ["start", 1, "flush"]]);
  const i = new TransformStream(), iw = i.writable.getWriter(); check("back pressure", iw.desiredSize, 1); let written = false; iw.write("x").then(() => { written = true; }); await tick(); check("identity waits", written, false); check("identity", (await i.readable.getReader().read()).value, "x"); await tick(); check("written", written, true);
  const e = new TransformStream({ transform() { throw new Error("mid"); } }), ew = e.writable.getWriter(); const failed = ew.write(1); await rejects("read", e.readable.getReader().read(), "mid"); await rejects("write", failed, "mid"); await rejects("closed", ew.closed, "mid");
  let c; const k = new TransformStream({ start(x) { c = x; } }); check("desiredSize", c.desiredSize, 0); c.terminate(); check("terminated", (await k.readable.getReader().read()).done, true); await rejects("terminated", k.writable.getWriter().closed, "TypeError"); throws("enqueue behind the end", () => c.enqueue(1), "TypeError");
  let d; const x = new TransformStream({ start(y) { d = y; } }); d.error(new Error("both")); await rejects("readable", x.readable.getReader().read(), "both"); await rejects("writable", x.writable.getWriter().closed, "both");
  let why; const y = new TransformStream({ cancel(r) { why = r; } }); await y.readable.cancel("left"); check("cancel", why, "left"); await rejects("writable", y.writable.getWriter().closed, "left");
  const z = new TransformStream({ cancel(r) { why = r; } }); await z.writable.abort("stop"); check("abort", why, "stop"); await rejects("readable", z.readable.getReader().read(), "stop");
  const encoder = new TextEncoderStream(), ew2 = encoder.writable.getWriter(); ew2.write("a\ud83d"); ew2.write("\ude00\ud800"); ew2.close(); check("surrogates", (await read(encoder.readable)).map((b) => [...b]), [[97], [240, 159, 152, 128], [239, 191, 189]]);
  const decoder = new TextDecoderStream("utf-8", { fatal: true }), dw = decoder.writable.getWriter(); check("decoder", [decoder.encoding, decoder.fatal, decoder.ignoreBOM, encoder.encoding], ["utf-8", true, false, "utf-8"]); const bad = decoder.readable.getReader().read(); dw.closed.catch(() => {}); await rejects("fatal", dw.write(new Uint8Array([255])), "TypeError"); await rejects("fatal", bad, "TypeError");
}

async function pipes() {
  const into = []; const sink = () => new WritableStream({ write(v) { into.push(v); }, close() { into.push("close"); }, abort(r) { into.push(["abort", String(r)]); } });
  await new ReadableStream({ start(c) { c.enqueue(1); c.enqueue(2); c.close(); } }).pipeTo(sink()); check("pipeTo", into.splice(0), [1, 2, "close"]);
  const keep = sink(); await ReadableStream.from([1]).pipeTo(keep, { preventClose: true }); check("preventClose", [into.splice(0), keep.locked], [[1], false]);
  await rejects("error forward", new ReadableStream({ start(c) { c.error(new Error("src")); } }).pipeTo(sink()), "src"); check("aborted", into.splice(0), [["abort", "Error: src"]]);
  await rejects("preventAbort", new ReadableStream({ start(c) { c.error(new Error("src")); } }).pipeTo(sink(), { preventAbort: true }), "src"); check("not aborted", into.splice(0), []);
  let why; const source = () => new ReadableStream({ pull(c) { c.enqueue(1); }, cancel(r) { why = String(r); } }); await rejects("error backward", source().pipeTo(new WritableStream({ write() { throw new Error("dst"); } })), "dst"); check("cancelled", why, "Error: dst");
  const closed = new WritableStream(); await closed.close(); await rejects("closed destination", source().pipeTo(closed), "TypeError");
  const stop = new AbortController(), going = source().pipeTo(new WritableStream({ write: () => new Promise((r) => setTimeout(r, 0)) }), { signal: stop.signal }); await tick(); stop.abort(new Error("enough")); await rejects("signal", going, "enough"); check("signal cancels", why, "Error: enough");
  await rejects("signal that has aborted", source().pipeTo(sink(), { signal: AbortSignal.abort(new Error("before")) }), "before"); check("signal aborts", into.splice(0), [["abort", "Error: before"]]);
  await rejects("no signal", source().pipeTo(sink(), { signal: {} }), "TypeError"); await rejects("no destination", source().pipeTo({}), "TypeError"); throws("no transform", () => source().pipeThrough({}), "TypeError");
  const locked = source(); locked.getReader(); await rejects("locked", locked.pipeTo(sink()), "TypeError"); throws("locked", () => locked.pipeThrough(new TransformStream()), "TypeError");
  check("pipeThrough", await read(ReadableStream.from([1, 2]).pipeThrough({ readable: ReadableStream.from(["r"]), writable: sink() })), ["r"]);
}

// order: the promises of methods are those of the algorithms, so they settle in their order.
async function order() {
  const seen = [];
  const count = async (n) => { for (let i = 1; i <= n; i++) { seen.push(i); await null; } };
  const r = new ReadableStream({ start(c) { c.enqueue(1); c.close(); } }).getReader();
  const counted = count(6);
  r.read().then(() => seen.push("read")); r.closed.then(() => seen.push("closed")); r.read().then(() => seen.push("done"));
  await counted;
  check("order of reads", seen, [1, 2, "read", "closed", "done", 3, 4, 5, 6]);
  seen.length = 0;
  const w = new WritableStream().getWriter();
  await tick();
  const again = count(6);
  w.write(1).then(() => seen.push("write")); w.ready.then(() => seen.push("ready")); w.close().then(() => seen.push("close")); w.closed.then(() => seen.push("closed"));
  await again;
  check("order of writes", seen, [1, 2, "ready", 3, "write", 4, "close", "closed", 5, 6]);
}

export default async function () {
  throws("highWaterMark is required", () => new CountQueuingStrategy({}), "TypeError"); throws("highWaterMark is required", () => new ByteLengthQueuingStrategy(), "TypeError");
  const k = new CountQueuingStrategy({ highWaterMark: "4" }), l = new ByteLengthQueuingStrategy({ highWaterMark: 5 }); check("strategies", [k.highWaterMark, k.size(9), l.highWaterMark, l.size({ byteLength: 3 }), k.size === new CountQueuingStrategy({ highWaterMark: 1 }).size], [4, 1, 5, 3, true]);
  await readable(); await bytes(); await writable(); await transforms(); await pipes(); await order();
}
