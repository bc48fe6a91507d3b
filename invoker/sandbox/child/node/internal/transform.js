// TransformStream and its controller (https://streams.spec.whatwg.org/#ts).
const { expose, illegal, react, resolved, attempt, deferred, nothing, callback } = require("internal/webidl");
const { markOf, strategyOf, sizeOf } = require("internal/queuing");
const readable = require("internal/readable"), defaults = require("internal/readabledefault"), writable = require("internal/writable");

let makingController;

class TransformStream {
  #t;
  constructor(transformer = undefined, writableStrategy = undefined, readableStrategy = undefined) {
    if (transformer === undefined) transformer = nothing;
    else if (transformer === null || typeof transformer !== "object" && typeof transformer !== "function") throw new TypeError("The transformer must be an object");
    const outer = strategyOf(writableStrategy), inner = strategyOf(readableStrategy);
    const cancel = callback(transformer, "cancel"), flush = callback(transformer, "flush"), readableType = transformer.readableType;
    const start = callback(transformer, "start"), transform = callback(transformer, "transform"), writableType = transformer.writableType;
    if (readableType !== undefined || writableType !== undefined) throw new RangeError("The types of a transformer must not be given");
    const marks = { inner: markOf(inner, 0), outer: markOf(outer, 1) };
    const t = this.#t = { object: this };
    setUp(t, {
      start: () => (start ? start(t.controller.object) : undefined),
      transform: transform && ((chunk) => attempt(() => transform(chunk, t.controller.object))),
      flush: () => attempt(() => (flush ? flush(t.controller.object) : undefined)),
      cancel: (reason) => attempt(() => (cancel ? cancel(reason) : undefined)),
    }, marks, sizeOf(outer), sizeOf(inner));
  }
  get readable() { return this.#t.readable.object; }
  get writable() { return this.#t.writable.object; }
}
expose(TransformStream);

class TransformStreamDefaultController {
  #c;
  constructor() {
    if (!makingController) throw illegal("TransformStreamDefaultController");
    this.#c = makingController;
    makingController = undefined;
  }
  get desiredSize() { return defaults.desired(this.#c.stream.readable.controller); }
  enqueue(chunk = undefined) { enqueue(this.#c.stream, chunk); }
  error(reason = undefined) { fail(this.#c.stream, reason); }
  terminate() { terminate(this.#c.stream); }
}
expose(TransformStreamDefaultController);

// create makes the state of a stream of algorithms of the platform: transform, flush and
// cancel, which return promises.
function create(algorithms) {
  const t = {};
  setUp(t, { start() {}, flush: () => resolved(undefined), cancel: () => resolved(undefined), ...algorithms }, { inner: 0, outer: 1 }, () => 1, () => 1);
  return t;
}

function setUp(t, algorithms, marks, outerSize, innerSize) {
  const started = deferred();
  t.controller = { stream: t, transform: algorithms.transform, flush: algorithms.flush, cancel: algorithms.cancel, finished: undefined };
  t.full = undefined;
  t.writable = writable.create({ start: () => started.promise, write: (chunk) => sinkWrite(t, chunk), abort: (reason) => sinkAbort(t, reason), close: () => sinkClose(t) }, marks.outer, outerSize);
  t.readable = readable.create({ start: () => started.promise, pull: () => sourcePull(t), cancel: (reason) => sourceCancel(t, reason) }, { mark: marks.inner, size: innerSize });
  setFull(t, true);
  makingController = t.controller;
  t.controller.object = new TransformStreamDefaultController();
  started.resolve(algorithms.start());
}

function clear(c) { c.transform = c.flush = c.cancel = undefined; }

function setFull(t, full) {
  if (t.fullChange) t.fullChange.resolve();
  t.fullChange = deferred();
  t.full = full;
}

// room returns a promise that settles when the reader takes more, undefined if it does now.
const room = (t) => (t.full ? t.fullChange.promise : undefined);

function fail(t, reason) {
  defaults.fail(t.readable.controller, reason);
  failWritable(t, reason);
}

function failWritable(t, reason) {
  clear(t.controller);
  writable.failIfNeeded(t.writable.controller, reason);
  if (t.full) setFull(t, false);
}

function enqueue(t, chunk) {
  const c = t.readable.controller;
  if (!defaults.writable(c)) throw new TypeError("The stream is not in a state that permits enqueue");
  try {
    defaults.enqueue(c, chunk);
  } catch (e) {
    failWritable(t, e);
    throw t.readable.stored;
  }
  const full = !defaults.wants(c);
  if (full !== t.full) setFull(t, true);
}

function terminate(t) {
  defaults.close(t.readable.controller);
  failWritable(t, new TypeError("The stream was terminated"));
}

function transform(t, chunk) {
  const f = t.controller.transform;
  const done = f ? f(chunk) : attempt(() => enqueue(t, chunk));
  return react(done, undefined, (e) => {
    fail(t, e);
    throw e;
  });
}

function sinkWrite(t, chunk) {
  if (!t.full) return transform(t, chunk);
  return react(t.fullChange.promise, () => {
    if (t.writable.state === "erroring") throw t.writable.stored;
    return transform(t, chunk);
  });
}

function sinkAbort(t, reason) {
  const c = t.controller, r = t.readable;
  if (c.finished) return c.finished.promise;
  c.finished = deferred();
  const cancelled = c.cancel(reason);
  clear(c);
  react(cancelled, () => {
    if (r.state === "errored") {
      c.finished.reject(r.stored);
    } else {
      defaults.fail(r.controller, reason);
      c.finished.resolve();
    }
  }, (e) => {
    defaults.fail(r.controller, e);
    c.finished.reject(e);
  });
  return c.finished.promise;
}

function sinkClose(t) {
  const c = t.controller, r = t.readable;
  if (c.finished) return c.finished.promise;
  c.finished = deferred();
  const flushed = c.flush();
  clear(c);
  react(flushed, () => {
    if (r.state === "errored") {
      c.finished.reject(r.stored);
    } else {
      defaults.close(r.controller);
      c.finished.resolve();
    }
  }, (e) => {
    defaults.fail(r.controller, e);
    c.finished.reject(e);
  });
  return c.finished.promise;
}

function sourcePull(t) {
  setFull(t, false);
  return t.fullChange.promise;
}

function sourceCancel(t, reason) {
  const c = t.controller, w = t.writable;
  if (c.finished) return c.finished.promise;
  c.finished = deferred();
  const cancelled = c.cancel(reason);
  clear(c);
  react(cancelled, () => {
    if (w.state === "errored") {
      c.finished.reject(w.stored);
    } else {
      writable.failIfNeeded(w.controller, reason);
      if (t.full) setFull(t, false);
      c.finished.resolve();
    }
  }, (e) => {
    writable.failIfNeeded(w.controller, e);
    if (t.full) setFull(t, false);
    c.finished.reject(e);
  });
  return c.finished.promise;
}

module.exports = { TransformStream, TransformStreamDefaultController, create, enqueue, fail, room };
