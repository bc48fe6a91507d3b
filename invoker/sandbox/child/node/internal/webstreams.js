// The streams of the bodies of requests and responses. The classes of streams are in
// internal/readable, internal/writable and internal/transform.
const { react, resolved, handled, attempt, apply, asyncIterator } = require("internal/webidl");
const streams = require("internal/readables");
const defaults = require("internal/readabledefault");
const bytes = require("internal/readablebytes");
const { stateOf, isReadable, create, teeStates } = require("internal/readable");
const { viewOf } = require("internal/views");

const wholeBodies = new WeakMap(); // of streams: the functions that take their bytes

// bodyStream makes the stream of a body that is whole.
function bodyStream(take) {
  const s = create({
    pull: () => attempt(() => {
      const whole = take();
      if (whole.length > 0) bytes.enqueue(s.controller, viewOf(whole));
      bytes.close(s.controller);
      // The request of a reader with a buffer of its own is answered.
      if (s.controller.pending.length > 0) bytes.respond(s.controller, 0);
    }),
    cancel: () => resolved(undefined),
  }, { mark: 0, bytes: true });
  wholeBodies.set(s.object, take);
  return s.object;
}

// streamOfWhole makes the stream of a Blob, which shows copies of its bytes, in parts.
function streamOfWhole(data) {
  let at = 0;
  const s = create({
    pull: () => attempt(() => {
      if (at < data.length) bytes.enqueue(s.controller, viewOf(new Uint8Array(apply(subarray, data, [at, at += partOfBlob]))));
      if (at < data.length) return;
      bytes.close(s.controller);
      if (s.controller.pending.length > 0) bytes.respond(s.controller, 0);
    }),
    cancel: () => resolved(undefined),
  }, { mark: 0, bytes: true });
  return s.object;
}

const partOfBlob = 65536;

// incomingBody makes the stream of a body that arrives in parts. next returns a promise of the
// next part and of whether it is the last one; stop ends the exchange. It returns the stream
// and a function that fails it.
function incomingBody(first, next, stop) {
  let ended = false;
  const part = (data, last) => {
    ended = last;
    if (data.length > 0) bytes.enqueue(s.controller, viewOf(data));
    if (!last) return;
    bytes.close(s.controller);
    if (s.controller.pending.length > 0) bytes.respond(s.controller, 0);
  };
  const s = create({
    pull: () => attempt(() => {
      if (first.length === 0) return react(next(), (answer) => { if (!ended) part(answer[0], answer[1]); });
      const data = first;
      first = new Uint8Array(0);
      return part(data, false);
    }),
    cancel: () => attempt(() => {
      if (ended) return undefined;
      ended = true;
      return stop();
    }),
  }, { mark: 0, bytes: true });
  const fail = (reason) => {
    if (ended) return;
    ended = true;
    handled(stop());
    bytes.fail(s.controller, reason);
  };
  return [s.object, fail];
}

// bodyOfStream returns what is the body of another message: the bytes of a stream that
// bodyStream made, which it takes, or the stream.
function bodyOfStream(stream) {
  const s = stateOf(stream);
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
  const s = create({
    pull: () => react(attempt(() => it.next()), ({ done, value }) => {
      if (done) {
        defaults.close(s.controller);
        return;
      }
      const chunk = Buffer.from(value);
      defaults.enqueue(s.controller, new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    }),
    cancel: (reason) => attempt(() => (it.return ? it.return(reason) : undefined)),
  }, { mark: 0 });
  return s.object;
}

// readWhole reads a stream to its end and calls then with its bytes, or failed with the
// error. A stream of more than limit bytes is cancelled, and has none; -1 is no limit.
function readWhole(stream, limit, then, failed) {
  const s = stateOf(stream), reader = streams.acquire(s, "default"), chunks = [];
  let total = 0;
  const stop = (e, settle) => {
    handled(streams.cancel(s, e));
    settle();
  };
  const finish = () => {
    streams.release(reader);
    if (chunks.length === 1) return then(chunks[0][0]);
    const out = new Uint8Array(total);
    let at = 0;
    for (const [chunk, size] of chunks) {
      apply(set, out, [chunk, at]);
      at += size;
    }
    return then(out);
  };
  const step = (chunk) => {
    let view;
    try {
      view = viewOf(chunk);
    } catch { /* no view */ }
    if (!view || view.Type !== Uint8Array) {
      const e = new TypeError("The chunks of a body must be of the class Uint8Array");
      return stop(e, () => failed(e));
    }
    total += view.byteLength;
    if (limit >= 0 && total > limit) return stop(new RangeError(`The body has more than ${limit} bytes`), () => then(undefined));
    chunks[chunks.length] = [chunk, view.byteLength];
    return next();
  };
  // Each chunk is a microtask of its own, and no object: a script can extend those with a method then.
  const soon = (f, value) => handled(react(resolved(undefined), () => f(value)));
  const next = () => streams.read(reader, {
    chunk: (chunk) => soon(step, chunk),
    close: () => soon(finish),
    error: (e) => soon(failed, e),
  });
  next();
}

// lock gives a stream a reader that nobody has, if it has none.
function lock(stream) {
  const s = stateOf(stream);
  s.disturbed = true;
  if (!s.reader) streams.acquire(s, "default");
}

// cancelWhole ends the reading of readWhole.
function cancelWhole(stream, reason) { handled(streams.cancel(stateOf(stream), reason)); }

const { set, subarray } = Object.getPrototypeOf(Uint8Array.prototype);

module.exports = {
  bodyStream, incomingBody, streamOfWhole, bodyOfStream, streamOfBytes, readWhole, cancelWhole, lock, isReadable,
  tee: (stream) => teeStates(stateOf(stream), true).map((s) => s.object),
  isDisturbed: (stream) => stateOf(stream).disturbed, isLocked: (stream) => stateOf(stream).reader !== undefined,
};
