// The streams of the web (https://streams.spec.whatwg.org) with default readers: what
// libraries expect to exist and use in small. There is no reading into a caller's buffer.
const { unsupportedError } = require("internal/errors");
const asyncIterator = Symbol.asyncIterator || Symbol.for("Symbol.asyncIterator");

function deferred() {
  const d = {};
  d.promise = new Promise((resolve, reject) => { d.resolve = resolve; d.reject = reject; });
  d.promise.catch(() => {}); // handled here: a script sees the rejection when it reads the promise
  return d;
}

class CountQueuingStrategy {
  constructor({ highWaterMark }) { this.highWaterMark = highWaterMark; }
  size() { return 1; }
}
class ByteLengthQueuingStrategy {
  constructor({ highWaterMark }) { this.highWaterMark = highWaterMark; }
  size(chunk) { return chunk.byteLength; }
}

const internals = new WeakMap(); // of streams, readers and writers
const of = (o, C) => {
  const s = internals.get(o);
  if (!s || !(o instanceof C)) throw new TypeError("Illegal invocation");
  return s;
};
const secret = Symbol("secret");
function guard(key, name) { if (key !== secret) throw new TypeError(`Illegal constructor: ${name}`); }
const sizeOf = (strategy) => (strategy && typeof strategy.size === "function" ? (c) => strategy.size(c) : () => 1);
const markOf = (strategy, fallback) => {
  const mark = strategy && strategy.highWaterMark !== undefined ? Number(strategy.highWaterMark) : fallback;
  if (mark !== mark || mark < 0) throw new RangeError("Invalid highWaterMark");
  return mark;
};

// ReadableStream.

class ReadableStreamDefaultController {
  #s;
  constructor(key, s) { guard(key, "ReadableStreamDefaultController"); this.#s = s; }
  get desiredSize() { const s = this.#s; return s.state === "errored" ? null : s.state === "closed" ? 0 : s.mark - s.total; }
  get byobRequest() { return null; }
  enqueue(chunk) {
    const s = this.#s;
    if (s.closing || s.state !== "readable") throw new TypeError("The stream is not in a state that permits enqueue");
    if (s.bytes && !ArrayBuffer.isView(chunk)) throw new TypeError("The chunk must be a view");
    if (s.waiting.length > 0) {
      s.waiting.shift().resolve({ value: chunk, done: false });
    } else {
      let size;
      try {
        size = s.size(chunk);
      } catch (e) {
        failReading(s, e);
        throw e;
      }
      s.queue.push([chunk, size]);
      s.total += size;
    }
    pull(s);
  }
  close() {
    const s = this.#s;
    if (s.closing || s.state !== "readable") throw new TypeError("The stream is not in a state that permits close");
    s.closing = true;
    if (s.queue.length === 0) closeReading(s);
  }
  error(reason) { failReading(this.#s, reason); }
}
class ReadableByteStreamController extends ReadableStreamDefaultController {}

function pull(s) {
  if (!s.started || s.closing || s.state !== "readable" || !s.source.pull) return;
  if (s.waiting.length === 0 && s.mark - s.total <= 0) return;
  if (s.pulling) {
    s.again = true;
    return;
  }
  s.pulling = true;
  attempt(() => s.source.pull(s.controller)).then(() => {
    s.pulling = false;
    if (s.again) {
      s.again = false;
      pull(s);
    }
  }, (e) => failReading(s, e));
}

function attempt(f) {
  try {
    return Promise.resolve(f());
  } catch (e) {
    return Promise.reject(e);
  }
}

function closeReading(s) {
  s.state = "closed";
  for (const w of s.waiting.splice(0)) w.resolve({ value: undefined, done: true });
  s.closed.resolve();
}

function failReading(s, reason) {
  if (s.state !== "readable") return;
  s.state = "errored";
  s.reason = reason;
  s.queue = [];
  s.total = 0;
  for (const w of s.waiting.splice(0)) w.reject(reason);
  s.closed.reject(reason);
}

function readFrom(s) {
  s.disturbed = true;
  if (s.queue.length > 0) {
    const [chunk, size] = s.queue.shift();
    s.total -= size;
    if (s.queue.length === 0 && s.closing) closeReading(s);
    else pull(s);
    return Promise.resolve({ value: chunk, done: false });
  }
  if (s.state === "closed") return Promise.resolve({ value: undefined, done: true });
  if (s.state === "errored") return Promise.reject(s.reason);
  const d = deferred();
  s.waiting.push(d);
  pull(s);
  return d.promise;
}

function cancelReading(s, reason) {
  s.disturbed = true;
  if (s.state === "closed") return Promise.resolve();
  if (s.state === "errored") return Promise.reject(s.reason);
  s.queue = [];
  s.total = 0;
  closeReading(s);
  return attempt(() => (s.source.cancel ? s.source.cancel(reason) : undefined)).then(() => undefined);
}

class ReadableStream {
  constructor(source = {}, strategy = {}) {
    if (source === null) source = {};
    const bytes = source.type !== undefined;
    if (bytes && String(source.type) !== "bytes") throw new RangeError("Invalid type of a stream");
    const s = { source, bytes, queue: [], total: 0, waiting: [], state: "readable", closing: false, started: false, pulling: false, again: false, disturbed: false, reader: null, closed: deferred(), size: sizeOf(strategy), mark: markOf(strategy, bytes ? 0 : 1) };
    internals.set(this, s);
    s.controller = bytes ? new ReadableByteStreamController(secret, s) : new ReadableStreamDefaultController(secret, s);
    const started = source.start ? source.start(s.controller) : undefined;
    Promise.resolve(started).then(() => { s.started = true; pull(s); }, (e) => failReading(s, e));
  }
  static from(items) {
    const method = items[asyncIterator] || items[Symbol.iterator];
    if (typeof method !== "function") throw new TypeError("ReadableStream.from: the value is not iterable");
    const it = method.call(items);
    return new ReadableStream({
      async pull(controller) {
        const r = await it.next();
        if (r.done) controller.close();
        else controller.enqueue(await r.value);
      },
      async cancel(reason) { if (it.return) await it.return(reason); },
    }, { highWaterMark: 0 });
  }
  get locked() { return of(this, ReadableStream).reader !== null; }
  cancel(reason) {
    const s = of(this, ReadableStream);
    return s.reader ? Promise.reject(new TypeError("The stream is locked")) : cancelReading(s, reason);
  }
  getReader(options) {
    if (options && options.mode !== undefined) throw unsupportedError("stream/web", "ReadableStreamBYOBReader");
    return new ReadableStreamDefaultReader(this);
  }
  pipeThrough({ writable, readable }, options) {
    this.pipeTo(writable, options).catch(() => {});
    return readable;
  }
  async pipeTo(target, options = {}) {
    const reader = this.getReader(), writer = target.getWriter(), { signal } = options;
    let failure;
    const aborted = () => {
      failure = [signal.reason];
      if (!options.preventCancel) reader.cancel(signal.reason).catch(() => {});
      if (!options.preventAbort) writer.abort(signal.reason).catch(() => {});
    };
    if (signal) {
      if (signal.aborted) aborted();
      else signal.addEventListener("abort", aborted);
    }
    let reading = true;
    try {
      for (;;) {
        reading = false;
        await writer.ready;
        reading = true;
        if (failure) throw failure[0];
        const { value, done } = await reader.read();
        if (failure) throw failure[0];
        reading = false;
        if (done) break;
        await writer.write(value);
      }
      if (!options.preventClose) await writer.close();
    } catch (e) {
      if (!failure && reading && !options.preventAbort) await writer.abort(e).catch(() => {});
      if (!failure && !reading && !options.preventCancel) await reader.cancel(e).catch(() => {});
      throw e;
    } finally {
      if (signal) signal.removeEventListener("abort", aborted);
      reader.releaseLock();
      writer.releaseLock();
    }
  }
  tee() {
    const reader = this.getReader(), branches = [], gone = [false, false], done = deferred();
    let reading = false;
    const pullBoth = async () => {
      if (reading) return;
      reading = true;
      try {
        const r = await reader.read();
        for (const i of [0, 1]) {
          if (gone[i]) continue;
          if (r.done) internals.get(branches[i]).controller.close();
          else internals.get(branches[i]).controller.enqueue(r.value);
        }
      } catch (e) {
        for (const b of branches) internals.get(b).controller.error(e);
      }
      reading = false;
    };
    for (const i of [0, 1]) {
      branches.push(new ReadableStream({
        pull: pullBoth,
        cancel(reason) {
          gone[i] = true;
          if (gone[0] && gone[1]) reader.cancel(reason).then(done.resolve, done.reject);
          return done.promise;
        },
      }, { highWaterMark: 0 }));
    }
    return branches;
  }
  values(options) {
    const reader = this.getReader();
    let over = false;
    return {
      async next() {
        if (over) return { value: undefined, done: true };
        const r = await reader.read();
        if (r.done) {
          over = true;
          reader.releaseLock();
        }
        return r;
      },
      async return(value) {
        if (!over) {
          over = true;
          if (!options || !options.preventCancel) await reader.cancel(value);
          reader.releaseLock();
        }
        return { value, done: true };
      },
      [asyncIterator]() { return this; },
    };
  }
  [asyncIterator]() { return this.values(); }
  get [Symbol.toStringTag]() { return "ReadableStream"; }
}

class ReadableStreamDefaultReader {
  #stream;
  #closed;
  constructor(stream) {
    const s = of(stream, ReadableStream);
    if (s.reader) throw new TypeError("The stream is locked to a reader");
    s.reader = this;
    this.#stream = s;
    this.#closed = s.closed.promise;
  }
  #own() {
    if (!this.#stream) throw new TypeError("The reader was released");
    return this.#stream;
  }
  get closed() { return this.#closed; }
  async read() { return readFrom(this.#own()); }
  async cancel(reason) { return cancelReading(this.#own(), reason); }
  releaseLock() {
    const s = this.#stream;
    if (!s) return;
    const e = new TypeError("The reader was released");
    for (const w of s.waiting.splice(0)) w.reject(e);
    s.reader = null;
    this.#stream = null;
    const d = deferred();
    d.reject(e);
    this.#closed = d.promise;
  }
}

// WritableStream.

class WritableStreamDefaultController {
  #s;
  #abort = new AbortController();
  constructor(key, s) { guard(key, "WritableStreamDefaultController"); this.#s = s; s.aborting = this.#abort; }
  get signal() { return this.#abort.signal; }
  error(reason) { failWriting(this.#s, reason); }
}

function failWriting(s, reason) {
  if (s.state !== "writable" && s.state !== "closing") return;
  s.state = "errored";
  s.reason = reason;
  for (const [, , d] of s.queue.splice(0)) d.reject(reason);
  s.total = 0;
  s.closed.reject(reason);
  s.ready.reject(reason);
  const rejected = deferred();
  rejected.reject(reason);
  s.ready = rejected;
}

function work(s) {
  if (s.working || !s.started || s.queue.length === 0 || s.state === "errored") return;
  s.working = true;
  const [kind, chunk, d, size] = s.queue[0];
  attempt(() => (kind === "close" ? s.sink.close && s.sink.close() : s.sink.write && s.sink.write(chunk, s.controller))).then(() => {
    s.working = false;
    if (s.state === "errored") {
      d.reject(s.reason);
      return;
    }
    s.queue.shift();
    s.total -= size;
    d.resolve();
    if (kind === "close") {
      s.state = "closed";
      s.closed.resolve();
      return;
    }
    if (s.mark - s.total > 0) s.ready.resolve();
    work(s);
  }, (e) => {
    s.working = false;
    d.reject(e);
    failWriting(s, e);
  });
}

function abortWriting(s, reason) {
  if (s.state === "closed" || s.state === "errored") return Promise.resolve();
  s.aborting.abort(reason);
  failWriting(s, reason);
  return attempt(() => (s.sink.abort ? s.sink.abort(reason) : undefined)).then(() => undefined);
}

function closeWriting(s) {
  if (s.state !== "writable") return Promise.reject(s.state === "errored" ? s.reason : new TypeError("The stream is closing or closed"));
  s.state = "closing";
  const d = deferred();
  s.queue.push(["close", undefined, d, 0]);
  s.ready.resolve();
  work(s);
  return d.promise;
}

class WritableStream {
  constructor(sink = {}, strategy = {}) {
    const s = { sink: sink || {}, queue: [], total: 0, state: "writable", started: false, working: false, writer: null, closed: deferred(), ready: deferred(), size: sizeOf(strategy), mark: markOf(strategy, 1) };
    internals.set(this, s);
    s.controller = new WritableStreamDefaultController(secret, s);
    if (s.mark > 0) s.ready.resolve();
    const started = s.sink.start ? s.sink.start(s.controller) : undefined;
    Promise.resolve(started).then(() => { s.started = true; work(s); }, (e) => failWriting(s, e));
  }
  get locked() { return of(this, WritableStream).writer !== null; }
  abort(reason) {
    const s = of(this, WritableStream);
    return s.writer ? Promise.reject(new TypeError("The stream is locked")) : abortWriting(s, reason);
  }
  close() {
    const s = of(this, WritableStream);
    return s.writer ? Promise.reject(new TypeError("The stream is locked")) : closeWriting(s);
  }
  getWriter() { return new WritableStreamDefaultWriter(this); }
  get [Symbol.toStringTag]() { return "WritableStream"; }
}

class WritableStreamDefaultWriter {
  #stream;
  #closed;
  constructor(stream) {
    const s = of(stream, WritableStream);
    if (s.writer) throw new TypeError("The stream is locked to a writer");
    s.writer = this;
    this.#stream = s;
    this.#closed = s.closed.promise;
  }
  #own() {
    if (!this.#stream) throw new TypeError("The writer was released");
    return this.#stream;
  }
  get closed() { return this.#closed; }
  get ready() { return this.#own().ready.promise; }
  get desiredSize() { const s = this.#own(); return s.state === "errored" ? null : s.state === "closed" ? 0 : s.mark - s.total; }
  async write(chunk) {
    const s = this.#own();
    if (s.state === "errored") throw s.reason;
    if (s.state !== "writable") throw new TypeError("The stream is closing or closed");
    const d = deferred(), size = s.size(chunk);
    s.queue.push(["write", chunk, d, size]);
    s.total += size;
    if (s.mark - s.total <= 0) s.ready = deferred();
    work(s);
    return d.promise;
  }
  async close() { return closeWriting(this.#own()); }
  async abort(reason) { return abortWriting(this.#own(), reason); }
  releaseLock() {
    if (!this.#stream) return;
    this.#stream.writer = null;
    this.#stream = null;
  }
}

// TransformStream.

class TransformStreamDefaultController {
  #ends;
  constructor(key, ends) { guard(key, "TransformStreamDefaultController"); this.#ends = ends; }
  get desiredSize() { return this.#ends.out().desiredSize; }
  enqueue(chunk) { this.#ends.out().enqueue(chunk); }
  error(reason) { this.#ends.fail(reason); }
  terminate() {
    if (!internals.get(this.#ends.readable).closing) this.#ends.out().close();
    failWriting(internals.get(this.#ends.writable), new TypeError("The stream was terminated"));
  }
}

class TransformStream {
  #readable;
  #writable;
  constructor(transformer = {}, writableStrategy = {}, readableStrategy = { highWaterMark: 0 }) {
    transformer = transformer || {};
    let room = deferred(), controller;
    const ends = {
      out: () => internals.get(this.#readable).controller,
      fail: (reason) => {
        failReading(internals.get(this.#readable), reason);
        failWriting(internals.get(this.#writable), reason);
        room.resolve();
      },
    };
    controller = new TransformStreamDefaultController(secret, ends);
    const whole = (f) => attempt(f).catch((e) => { ends.fail(e); throw e; });
    this.#readable = ends.readable = new ReadableStream({
      pull() { room.resolve(); room = deferred(); },
      cancel(reason) {
        failWriting(internals.get(ends.writable), reason);
        room.resolve();
        return transformer.cancel ? transformer.cancel(reason) : undefined;
      },
    }, { highWaterMark: 0, ...readableStrategy });
    let begun;
    this.#writable = ends.writable = new WritableStream({
      start: () => { begun = attempt(() => (transformer.start ? transformer.start(controller) : undefined)); return begun; },
      async write(chunk) {
        const s = internals.get(ends.readable);
        if (s.state === "readable" && s.waiting.length === 0 && s.mark - s.total <= 0) await room.promise;
        await whole(() => (transformer.transform ? transformer.transform(chunk, controller) : controller.enqueue(chunk)));
      },
      async close() {
        await whole(() => (transformer.flush ? transformer.flush(controller) : undefined));
        const s = internals.get(ends.readable);
        if (s.state === "readable" && !s.closing) s.controller.close();
      },
      abort(reason) { failReading(internals.get(ends.readable), reason); },
    }, writableStrategy);
    begun.catch((e) => ends.fail(e));
  }
  get readable() { return this.#readable; }
  get writable() { return this.#writable; }
  get [Symbol.toStringTag]() { return "TransformStream"; }
}

class TextEncoderStream extends TransformStream {
  constructor() {
    const encoder = new TextEncoder();
    super({ transform(chunk, c) { c.enqueue(encoder.encode(String(chunk))); } });
  }
  get encoding() { return "utf-8"; }
}
class TextDecoderStream extends TransformStream {
  #decoder;
  constructor(label, options) {
    const decoder = new TextDecoder(label, options);
    super({
      transform(chunk, c) { const text = decoder.decode(chunk, { stream: true }); if (text) c.enqueue(text); },
      flush(c) { const text = decoder.decode(); if (text) c.enqueue(text); },
    });
    this.#decoder = decoder;
  }
  get encoding() { return this.#decoder.encoding; }
  get fatal() { return this.#decoder.fatal; }
  get ignoreBOM() { return this.#decoder.ignoreBOM; }
}

const wholeBodies = new WeakMap(); // of streams: the functions that take their bytes

// bodyStream makes the stream of a body that is whole.
function bodyStream(take) {
  const stream = new ReadableStream({
    pull(controller) {
      const bytes = take();
      if (bytes.length > 0) controller.enqueue(bytes);
      controller.close();
    },
  }, { highWaterMark: 0 });
  wholeBodies.set(stream, take);
  return stream;
}

// bodyOfStream returns what is the body of another message: the bytes of a stream that
// bodyStream made, which it takes, or the stream.
function bodyOfStream(stream) {
  const s = of(stream, ReadableStream);
  if (s.reader) throw new TypeError("The body's stream has a reader");
  const take = wholeBodies.get(stream);
  if (take) return { bytes: take(), type: "" };
  if (s.disturbed) throw new TypeError("The body's stream has already been read");
  return { stream, type: "" };
}

// streamOfBytes makes a stream of the items of an asynchronous iterable, texts or bytes.
function streamOfBytes(items) {
  const { Buffer } = require("internal/bytes");
  const it = items[asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await it.next();
      if (done) {
        controller.close();
        return;
      }
      const chunk = Buffer.from(value);
      controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    },
    async cancel(reason) { if (it.return) await it.return(reason); },
  }, { highWaterMark: 0 });
}

// readWhole reads a stream to its end and calls then with its bytes, or failed with the
// error. A stream of more than limit bytes is cancelled, and has none; -1 is no limit.
function readWhole(stream, limit, then, failed) {
  const reader = new ReadableStreamDefaultReader(stream), s = of(stream, ReadableStream), chunks = [];
  let total = 0;
  const whole = async () => {
    for (;;) {
      const { value, done } = await readFrom(s);
      if (done) break;
      if (!(value instanceof Uint8Array)) {
        const e = new TypeError("The chunks of a body must be of the class Uint8Array");
        cancelReading(s, e).catch(() => {});
        throw e;
      }
      total += Reflect.apply(sizeOfBytes, value, []);
      if (limit >= 0 && total > limit) {
        cancelReading(s, new RangeError(`The body has more than ${limit} bytes`)).catch(() => {});
        return undefined;
      }
      chunks.push(value);
    }
    reader.releaseLock();
    if (chunks.length === 1) return chunks[0];
    const out = new Uint8Array(total);
    let at = 0;
    for (const c of chunks) {
      out.set(c, at);
      at += Reflect.apply(sizeOfBytes, c, []);
    }
    return out;
  };
  whole().then(then, failed);
}

// cancelWhole ends the reading of readWhole.
function cancelWhole(stream, reason) { cancelReading(of(stream, ReadableStream), reason).catch(() => {}); }

// A script may replace a method of its stream, or hide the size of its chunks.
const { tee } = ReadableStream.prototype;
const sizeOfBytes = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), "byteLength").get;

module.exports = {
  bodyStream, bodyOfStream, streamOfBytes, readWhole, cancelWhole, tee: (stream) => Reflect.apply(tee, stream, []),
  // stateOf returns undefined for a value that is not a stream of this module.
  stateOf(stream) { const s = stream !== null && typeof stream === "object" && internals.get(stream); return s && s.closed && s.state ? s : undefined; },
  isDisturbed: (stream) => of(stream, ReadableStream).disturbed, isLocked: (stream) => of(stream, ReadableStream).reader !== null, ReadableStream, ReadableStreamDefaultReader, ReadableStreamDefaultController, ReadableByteStreamController, WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController,
  TransformStream, TransformStreamDefaultController, ByteLengthQueuingStrategy, CountQueuingStrategy, TextEncoderStream, TextDecoderStream,
};
