// WritableStream, its writer and its controller (https://streams.spec.whatwg.org/#ws).
const { expose, illegal, react, resolved, rejected, attempt, promised, request, deferred, nothing, callback, needs, Queue } = require("internal/webidl");
const { markOf, strategyOf, sizeOf, SizedQueue } = require("internal/queuing");
const { begin } = require("internal/readables");

let making, makingController, stateOf, isWritable;
const closing = {}; // the item of a queue that stands for the close

class WritableStream {
  #s;
  static {
    stateOf = (o) => o.#s;
    isWritable = (o) => o !== null && typeof o === "object" && #s in o;
  }
  constructor(sink = undefined, strategy = undefined) {
    if (making) {
      this.#s = making;
      making = undefined;
      return;
    }
    if (sink === undefined) sink = nothing;
    else if (sink === null || typeof sink !== "object" && typeof sink !== "function") throw new TypeError("The sink must be an object");
    const given = strategyOf(strategy), s = this.#s = newWritable();
    s.object = this;
    const abort = callback(sink, "abort"), close = callback(sink, "close"), start = callback(sink, "start"), type = sink.type, write = callback(sink, "write");
    if (type !== undefined) throw new RangeError("A sink has no type");
    setUp(s, {
      start: (c) => (start ? start(c) : undefined),
      write: (chunk) => attempt(() => (write ? write(chunk, s.controller.object) : undefined)),
      close: () => attempt(() => (close ? close() : undefined)),
      abort: (reason) => attempt(() => (abort ? abort(reason) : undefined)),
    }, markOf(given, 1), sizeOf(given));
  }
  get locked() { return this.#s.writer !== undefined; }
  abort(reason = undefined) {
    return promised(() => {
      if (this.#s.writer) throw new TypeError("The stream is locked");
      return abort(this.#s, reason);
    });
  }
  close() {
    return promised(() => {
      if (this.#s.writer) throw new TypeError("The stream is locked");
      if (closes(this.#s)) throw new TypeError("The stream is closing");
      return close(this.#s);
    });
  }
  getWriter() { return this.#s && new WritableStreamDefaultWriter(this); }
}
expose(WritableStream);

const newWritable = () => ({ kind: "writable", state: "writable", stored: undefined, writer: undefined, controller: undefined, flying: undefined, closeRequest: undefined, closeFlying: undefined, aborting: undefined, requests: new Queue(), full: false, object: undefined, ended: undefined });

// create makes a stream of algorithms of the platform.
function create(algorithms, mark, size) {
  const s = newWritable();
  making = s;
  s.object = new WritableStream();
  setUp(s, { start() {}, ...algorithms }, mark, size);
  return s;
}

const closes = (s) => s.closeRequest !== undefined || s.closeFlying !== undefined;

function ended(s) {
  if (!s.ended) {
    s.ended = deferred();
    if (s.state === "closed") s.ended.resolve();
    else if (s.state === "errored") s.ended.reject(s.stored);
  }
  return s.ended.promise;
}

function abort(s, reason) {
  if (s.state === "closed" || s.state === "errored") return resolved(undefined);
  s.controller.abortReason = { reason };
  if (s.controller.abortController) s.controller.abortController.abort(reason);
  if (s.state === "closed" || s.state === "errored") return resolved(undefined);
  if (s.aborting) return s.aborting.done.promise;
  const already = s.state === "erroring";
  s.aborting = { done: request(), reason: already ? undefined : reason, already };
  const { promise } = s.aborting.done;
  if (!already) startErroring(s, reason);
  return promise;
}

function close(s) {
  if (s.state === "closed" || s.state === "errored") return rejected(new TypeError("The stream is closed or errored"));
  s.closeRequest = request();
  if (s.writer && s.full && s.state === "writable") s.writer.ready.resolve();
  s.controller.queue.push(closing, 0);
  const { promise } = s.closeRequest;
  advance(s.controller);
  return promise;
}

function dealWithRejection(s, reason) {
  if (s.state === "writable") startErroring(s, reason);
  else finishErroring(s);
}

function startErroring(s, reason) {
  s.state = "erroring";
  s.stored = reason;
  if (s.writer) failReady(s.writer, reason);
  if (!s.flying && !s.closeFlying && s.controller.started) finishErroring(s);
}

function finishErroring(s) {
  s.state = "errored";
  s.controller.queue.clear();
  while (s.requests.length > 0) s.requests.shift().reject(s.stored);
  const { aborting } = s;
  if (!aborting) {
    failClosed(s);
    return;
  }
  s.aborting = undefined;
  if (aborting.already) {
    aborting.done.reject(s.stored);
    failClosed(s);
    return;
  }
  const c = s.controller, aborted = c.abort(aborting.reason);
  clear(c);
  react(aborted, () => {
    aborting.done.resolve();
    failClosed(s);
  }, (e) => {
    aborting.done.reject(e);
    failClosed(s);
  });
}

function failClosed(s) {
  if (s.closeRequest) {
    s.closeRequest.reject(s.stored);
    s.closeRequest = undefined;
  }
  if (s.writer) s.writer.closed.reject(s.stored);
  if (s.ended) s.ended.reject(s.stored);
}

function failReady(w, reason) {
  if (!w.ready.pending) w.ready = deferred();
  w.ready.reject(reason);
}

function failWriterClosed(w, reason) {
  if (!w.closed.pending) w.closed = deferred();
  w.closed.reject(reason);
}

function finishClose(s) {
  s.closeFlying.resolve();
  s.closeFlying = undefined;
  if (s.state === "erroring") {
    s.stored = undefined;
    if (s.aborting) {
      s.aborting.done.resolve();
      s.aborting = undefined;
    }
  }
  s.state = "closed";
  if (s.writer) s.writer.closed.resolve();
  if (s.ended) s.ended.resolve();
}

function setFull(s, full) {
  if (s.writer && full !== s.full) {
    if (full) s.writer.ready = deferred();
    else s.writer.ready.resolve();
  }
  s.full = full;
}

// The writer.

class WritableStreamDefaultWriter {
  #w;
  constructor(stream) {
    needs(arguments.length, 1, "WritableStreamDefaultWriter");
    this.#w = acquire(stateOf(stream));
  }
  get closed() { return promiseOf(() => this.#w.closed); }
  get desiredSize() { return desiredOf(own(this.#w)); }
  get ready() { return promiseOf(() => this.#w.ready); }
  abort(reason = undefined) { return promised(() => abort(own(this.#w), reason)); }
  close() {
    return promised(() => {
      const s = own(this.#w);
      if (closes(s)) throw new TypeError("The stream is closing");
      return close(s);
    });
  }
  releaseLock() { release(this.#w); }
  write(chunk = undefined) { return promised(() => write(this.#w, chunk)); }
}
expose(WritableStreamDefaultWriter);

function promiseOf(get) {
  try {
    return get().promise;
  } catch (e) {
    return rejected(e);
  }
}

function own(w) {
  if (!w.stream) throw new TypeError("The writer was released");
  return w.stream;
}

function acquire(s) {
  if (s.writer) throw new TypeError("The stream is locked to a writer");
  const w = { stream: s, closed: deferred(), ready: deferred() };
  s.writer = w;
  if (s.state === "writable") {
    if (closes(s) || !s.full) w.ready.resolve();
  } else if (s.state === "closed") {
    w.ready.resolve();
    w.closed.resolve();
  } else {
    w.ready.reject(s.stored);
    if (s.state === "errored") w.closed.reject(s.stored);
  }
  return w;
}

function release(w) {
  if (!w.stream) return;
  const e = new TypeError("The writer was released");
  failReady(w, e);
  failWriterClosed(w, e);
  w.stream.writer = undefined;
  w.stream = undefined;
}

function desiredOf(s) {
  if (s.state === "errored" || s.state === "erroring") return null;
  return s.state === "closed" ? 0 : desired(s.controller);
}

function write(w, chunk) {
  const s = own(w), c = s.controller;
  let size = 1;
  if (c.size) {
    try {
      size = c.size(chunk);
    } catch (e) {
      failIfNeeded(c, e);
    }
  }
  if (w.stream !== s) throw new TypeError("The writer was released");
  if (s.state === "errored") throw s.stored;
  if (closes(s) || s.state === "closed") throw new TypeError("The stream is closing or closed");
  if (s.state === "erroring") throw s.stored;
  const written = request();
  s.requests.push(written);
  try {
    c.queue.push(chunk, size);
  } catch (e) {
    failIfNeeded(c, e);
    return written.promise;
  }
  if (!closes(s) && s.state === "writable") setFull(s, desired(c) <= 0);
  advance(c);
  return written.promise;
}

// The controller.

class WritableStreamDefaultController {
  #c;
  constructor() {
    if (!makingController) throw illegal("WritableStreamDefaultController");
    this.#c = makingController;
    makingController = undefined;
  }
  get signal() {
    const c = this.#c;
    if (!c.abortController) {
      c.abortController = new AbortController();
      if (c.abortReason) c.abortController.abort(c.abortReason.reason);
    }
    return c.abortController.signal;
  }
  error(reason = undefined) {
    if (this.#c.stream.state === "writable") fail(this.#c, reason);
  }
}
expose(WritableStreamDefaultController);

const desired = (c) => c.mark - c.queue.total;
function clear(c) { c.write = c.close = c.abort = c.size = undefined; }
function fail(c, reason) {
  clear(c);
  startErroring(c.stream, reason);
}
function failIfNeeded(c, reason) { if (c.stream.state === "writable") fail(c, reason); }

function setUp(s, algorithms, mark, size) {
  const c = { stream: s, queue: new SizedQueue(), started: false, mark, size, write: algorithms.write, close: algorithms.close, abort: algorithms.abort, abortController: undefined, abortReason: undefined };
  makingController = c;
  c.object = new WritableStreamDefaultController();
  s.controller = c;
  setFull(s, desired(c) <= 0);
  begin(() => algorithms.start(c.object), () => {
    c.started = true;
    advance(c);
  }, (e) => {
    c.started = true;
    dealWithRejection(s, e);
  });
}

function advance(c) {
  const s = c.stream;
  if (!c.started || s.flying) return;
  if (s.state === "erroring") {
    finishErroring(s);
    return;
  }
  if (c.queue.length === 0) return;
  const item = c.queue.first();
  if (item === closing) runClose(c);
  else runWrite(c, item);
}

function runClose(c) {
  const s = c.stream;
  s.closeFlying = s.closeRequest;
  s.closeRequest = undefined;
  c.queue.shift();
  const closed = c.close();
  clear(c);
  react(closed, () => finishClose(s), (e) => {
    s.closeFlying.reject(e);
    s.closeFlying = undefined;
    if (s.aborting) {
      s.aborting.done.reject(e);
      s.aborting = undefined;
    }
    dealWithRejection(s, e);
  });
}

function runWrite(c, chunk) {
  const s = c.stream;
  s.flying = s.requests.shift();
  react(c.write(chunk), () => {
    s.flying.resolve();
    s.flying = undefined;
    c.queue.shift();
    if (!closes(s) && s.state === "writable") setFull(s, desired(c) <= 0);
    advance(c);
  }, (e) => {
    if (s.state === "writable") clear(c);
    s.flying.reject(e);
    s.flying = undefined;
    dealWithRejection(s, e);
  });
}

// closeOrFollow is WritableStreamDefaultWriterCloseWithErrorPropagation.
function closeOrFollow(w) {
  const s = w.stream;
  if (closes(s) || s.state === "closed") return resolved(undefined);
  return s.state === "errored" ? rejected(s.stored) : close(s);
}

module.exports = {
  WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController,
  stateOf, isWritable, create, acquire, release, write, abort, closes, closeOrFollow, ended, desiredOf, failIfNeeded,
};
