// Readable byte streams (https://streams.spec.whatwg.org/#rbs-controller-class): the
// controller, and the request through which a source writes into the buffer of a reader.
const { expose, illegal, react, needs, Queue } = require("internal/webidl");
const streams = require("internal/readables");
const { fulfill, waiting } = streams;
const { viewOf, bytesIn, transfer, detached, copy, enforceRange } = require("internal/views");

let makingController, makingRequest;

class ReadableByteStreamController {
  #c;
  constructor() {
    if (!makingController) throw illegal("ReadableByteStreamController");
    this.#c = makingController;
    makingController = undefined;
  }
  get byobRequest() { return requestOf(this.#c); }
  get desiredSize() { return desired(this.#c); }
  close() {
    if (!writable(this.#c)) throw new TypeError("The stream is not in a state that permits close");
    close(this.#c);
  }
  enqueue(chunk) {
    const c = this.#c;
    needs(arguments.length, 1, "enqueue");
    const view = viewOf(chunk);
    if (view.byteLength === 0) throw new TypeError("The chunk is empty");
    if (bytesIn(view.buffer) === 0) throw new TypeError("The buffer of the chunk is empty or detached");
    if (!writable(c)) throw new TypeError("The stream is not in a state that permits enqueue");
    enqueue(c, view);
  }
  error(reason = undefined) { fail(this.#c, reason); }
}
expose(ReadableByteStreamController);

class ReadableStreamBYOBRequest {
  #q;
  constructor() {
    if (!makingRequest) throw illegal("ReadableStreamBYOBRequest");
    this.#q = makingRequest;
    makingRequest = undefined;
  }
  get view() { return this.#q.view; }
  respond(written) {
    const q = this.#q;
    needs(arguments.length, 1, "respond");
    written = enforceRange(written, "bytesWritten");
    if (!q.controller) throw new TypeError("The request has been answered");
    if (detached(viewOf(q.view).buffer)) throw new TypeError("The buffer of the request is detached");
    respond(q.controller, written);
  }
  respondWithNewView(view) {
    const q = this.#q;
    needs(arguments.length, 1, "respondWithNewView");
    const given = viewOf(view);
    if (!q.controller) throw new TypeError("The request has been answered");
    if (detached(given.buffer)) throw new TypeError("The buffer of the view is detached");
    respondWithView(q.controller, given);
  }
}
expose(ReadableStreamBYOBRequest);

const writable = (c) => !c.closing && c.stream.state === "readable";
function desired(c) {
  const { state } = c.stream;
  return state === "errored" ? null : state === "closed" ? 0 : c.mark - c.total;
}
function clear(c) { c.pull = c.cancel = undefined; }

function requestOf(c) {
  if (!c.request && c.pending.length > 0) {
    const d = c.pending[0];
    c.request = makingRequest = { controller: c, view: new Uint8Array(d.buffer, d.offset + d.filled, d.length - d.filled) };
    c.request.object = new ReadableStreamBYOBRequest();
  }
  return c.request ? c.request.object : null;
}

function invalidate(c) {
  if (!c.request) return;
  c.request.controller = undefined;
  c.request.view = null;
  c.request = undefined;
}

function pull(c) {
  if (!writable(c) || !c.started) return;
  if (waiting(c.stream, "default") === 0 && waiting(c.stream, "byob") === 0 && desired(c) <= 0) return;
  if (c.pulling) {
    c.again = true;
    return;
  }
  c.pulling = true;
  react(c.pull(), () => {
    c.pulling = false;
    if (c.again) {
      c.again = false;
      pull(c);
    }
  }, (e) => fail(c, e));
}

function fail(c, reason) {
  if (c.stream.state !== "readable") return;
  invalidate(c);
  c.pending = [];
  c.queue.clear();
  c.total = 0;
  clear(c);
  streams.fail(c.stream, reason);
}

function close(c) {
  if (!writable(c)) return;
  if (c.total > 0) {
    c.closing = true;
    return;
  }
  const d = c.pending[0];
  if (d && d.filled % d.size !== 0) {
    const e = new TypeError("The stream ends in the middle of an element of the view");
    fail(c, e);
    throw e;
  }
  clear(c);
  streams.close(c.stream);
}

function push(c, buffer, offset, length) {
  c.queue.push({ buffer, offset, length });
  c.total += length;
}

function pushCopy(c, buffer, offset, length) {
  const bytes = new Uint8Array(length);
  copy(bytes, 0, buffer, offset, length);
  push(c, viewOf(bytes).buffer, 0, length);
}

function enqueue(c, view) {
  if (!writable(c)) return;
  const buffer = transfer(view.buffer), { byteOffset, byteLength } = view, first = c.pending[0];
  if (first) {
    if (detached(first.buffer)) throw new TypeError("The buffer of the reader is detached");
    invalidate(c);
    first.buffer = transfer(first.buffer);
    if (first.reader === "none") pushDetached(c, first);
  }
  if (c.stream.reader && c.stream.reader.kind === "default") {
    const { reader } = c.stream;
    while (reader.requests.length > 0 && c.total > 0) takeInto(c, reader.requests.shift());
    if (reader.requests.length === 0) {
      push(c, buffer, byteOffset, byteLength);
    } else {
      if (c.pending.length > 0) shift(c);
      fulfill(c.stream, new Uint8Array(buffer, byteOffset, byteLength), false);
    }
  } else {
    push(c, buffer, byteOffset, byteLength);
    if (c.stream.reader) for (const d of fillPending(c)) commit(c.stream, d);
  }
  pull(c);
}

function shift(c) {
  invalidate(c);
  return c.pending.shift();
}

function pushDetached(c, d) {
  if (d.filled > 0) pushCopy(c, d.buffer, d.offset, d.filled);
  shift(c);
}

function convert(d) {
  return new d.Type(transfer(d.buffer), d.offset, d.filled / d.size);
}

function commit(s, d) { fulfill(s, convert(d), s.state === "closed"); }

// fill copies from the queue into a reader's buffer and reports whether that has enough.
function fill(c, d) {
  const most = Math.min(c.total, d.length - d.filled), aligned = d.filled + most - ((d.filled + most) % d.size);
  const ready = aligned >= d.least;
  let left = ready ? aligned - d.filled : most;
  while (left > 0) {
    const head = c.queue.first(), n = Math.min(left, head.length);
    copy(new Uint8Array(d.buffer), d.offset + d.filled, head.buffer, head.offset, n);
    if (head.length === n) {
      c.queue.shift();
    } else {
      head.offset += n;
      head.length -= n;
    }
    c.total -= n;
    d.filled += n;
    left -= n;
  }
  return ready;
}

function fillPending(c) {
  const filled = [];
  while (c.pending.length > 0 && c.total > 0) {
    const d = c.pending[0];
    if (!fill(c, d)) break;
    shift(c);
    filled.push(d);
  }
  return filled;
}

function drained(c) {
  if (c.total === 0 && c.closing) {
    clear(c);
    streams.close(c.stream);
  } else {
    pull(c);
  }
}

function takeInto(c, request) {
  const head = c.queue.shift();
  c.total -= head.length;
  drained(c);
  request.chunk(new Uint8Array(head.buffer, head.offset, head.length));
}

function pullSteps(c, request) {
  if (c.total > 0) {
    takeInto(c, request);
    return;
  }
  if (c.allocate !== undefined) {
    let buffer;
    try {
      buffer = new ArrayBuffer(c.allocate);
    } catch (e) {
      request.error(e);
      return;
    }
    c.pending.push({ buffer, whole: c.allocate, offset: 0, length: c.allocate, filled: 0, least: 1, size: 1, Type: Uint8Array, reader: "default" });
  }
  c.stream.reader.requests.push(request);
  pull(c);
}

// pullInto reads into a view: at least the given number of its elements.
function pullInto(c, view, least, request) {
  const { stream } = c;
  let buffer;
  try {
    buffer = transfer(view.buffer);
  } catch (e) {
    request.error(e);
    return;
  }
  const d = { buffer, whole: bytesIn(buffer), offset: view.byteOffset, length: view.byteLength, filled: 0, least: least * view.size, size: view.size, Type: view.Type, reader: "byob" };
  if (c.pending.length === 0) {
    if (stream.state === "closed") {
      request.close(new d.Type(d.buffer, d.offset, 0));
      return;
    }
    if (c.total > 0) {
      if (fill(c, d)) {
        const chunk = convert(d);
        drained(c);
        request.chunk(chunk);
        return;
      }
      if (c.closing) {
        const e = new TypeError("The stream ends before the view has an element");
        fail(c, e);
        request.error(e);
        return;
      }
    }
  }
  const alone = c.pending.length === 0;
  c.pending.push(d);
  stream.reader.requests.push(request);
  if (alone) pull(c);
}

function respond(c, written) {
  const first = c.pending[0];
  if (c.stream.state === "closed") {
    if (written !== 0) throw new TypeError("The stream is closed: bytesWritten must be 0");
  } else {
    if (written === 0) throw new TypeError("bytesWritten is 0, and the stream is not closed");
    if (first.filled + written > first.length) throw new RangeError("bytesWritten is more than the view has room for");
  }
  first.buffer = transfer(first.buffer);
  answered(c, written);
}

function respondWithView(c, view) {
  const first = c.pending[0];
  if (c.stream.state === "closed" ? view.byteLength !== 0 : view.byteLength === 0) throw new TypeError("The view must be empty exactly if the stream is closed");
  if (first.offset + first.filled !== view.byteOffset) throw new RangeError("The view begins at another offset than the request");
  if (first.whole !== bytesIn(view.buffer)) throw new RangeError("The buffer of the view has another length than that of the request");
  if (first.filled + view.byteLength > first.length) throw new RangeError("The view is longer than the request");
  first.buffer = transfer(view.buffer);
  answered(c, view.byteLength);
}

function answered(c, written) {
  const first = c.pending[0], s = c.stream;
  invalidate(c);
  if (s.state === "closed") {
    if (first.reader === "none") shift(c);
    const filled = [];
    while (filled.length < waiting(s, "byob")) filled.push(shift(c));
    for (const d of filled) commit(s, d);
  } else {
    first.filled += written;
    if (first.reader === "none") {
      pushDetached(c, first);
      for (const d of fillPending(c)) commit(s, d);
    } else if (first.filled >= first.least) {
      shift(c);
      const rest = first.filled % first.size;
      if (rest > 0) pushCopy(c, first.buffer, first.offset + first.filled - rest, rest);
      first.filled -= rest;
      const filled = fillPending(c);
      commit(s, first);
      for (const d of filled) commit(s, d);
    }
  }
  pull(c);
}

function setUp(stream, algorithms, mark, allocate) {
  const c = { stream, queue: new Queue(), total: 0, pending: [], request: undefined, started: false, closing: false, pulling: false, again: false, mark, allocate, pull: algorithms.pull, cancel: algorithms.cancel };
  c.bytes = true;
  c.pullSteps = (request) => pullSteps(c, request);
  c.cancelSteps = (reason) => {
    invalidate(c);
    c.pending = [];
    c.queue.clear();
    c.total = 0;
    const result = c.cancel(reason);
    clear(c);
    return result;
  };
  c.releaseSteps = () => {
    const first = c.pending[0];
    if (!first) return;
    first.reader = "none";
    c.pending = [first];
  };
  makingController = c;
  c.object = new ReadableByteStreamController();
  stream.controller = c;
  streams.begin(() => algorithms.start(c.object), () => {
    c.started = true;
    pull(c);
  }, (e) => fail(c, e));
  return c;
}

module.exports = { ReadableByteStreamController, ReadableStreamBYOBRequest, setUp, enqueue, close, fail, requestOf, respond, respondWithView, pullInto, writable };
