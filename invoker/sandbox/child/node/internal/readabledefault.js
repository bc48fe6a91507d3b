// ReadableStreamDefaultController (https://streams.spec.whatwg.org/#rs-default-controller-class).
const { expose, illegal, react } = require("internal/webidl");
const { SizedQueue } = require("internal/queuing");
const { close: closeStream, fail: failStream, fulfill, waiting, begin } = require("internal/readables");

let making;
class ReadableStreamDefaultController {
  #c;
  constructor() {
    if (!making) throw illegal("ReadableStreamDefaultController");
    this.#c = making;
    making = undefined;
  }
  get desiredSize() { return desired(this.#c); }
  close() {
    if (!writable(this.#c)) throw new TypeError("The stream is not in a state that permits close");
    close(this.#c);
  }
  enqueue(chunk = undefined) {
    if (!writable(this.#c)) throw new TypeError("The stream is not in a state that permits enqueue");
    enqueue(this.#c, chunk);
  }
  error(reason = undefined) { fail(this.#c, reason); }
}
expose(ReadableStreamDefaultController);

function desired(c) {
  const { state } = c.stream;
  return state === "errored" ? null : state === "closed" ? 0 : c.mark - c.queue.total;
}
const writable = (c) => !c.closing && c.stream.state === "readable";

function clear(c) { c.pull = c.cancel = c.size = undefined; }

function shouldPull(c) {
  if (!writable(c) || !c.started) return false;
  return waiting(c.stream, "default") > 0 || desired(c) > 0;
}

function pull(c) {
  if (!shouldPull(c)) return;
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

function close(c) {
  if (!writable(c)) return;
  c.closing = true;
  if (c.queue.length > 0) return;
  clear(c);
  closeStream(c.stream);
}

function enqueue(c, chunk) {
  if (!writable(c)) return;
  if (waiting(c.stream, "default") > 0) {
    fulfill(c.stream, chunk, false);
  } else {
    try {
      c.queue.push(chunk, c.size(chunk));
    } catch (e) {
      fail(c, e);
      throw e;
    }
  }
  pull(c);
}

function fail(c, reason) {
  if (c.stream.state !== "readable") return;
  c.queue.clear();
  clear(c);
  failStream(c.stream, reason);
}

function pullSteps(c, request) {
  if (c.queue.length === 0) {
    c.stream.reader.requests.push(request);
    pull(c);
    return;
  }
  const chunk = c.queue.shift();
  if (c.closing && c.queue.length === 0) {
    clear(c);
    closeStream(c.stream);
  } else {
    pull(c);
  }
  request.chunk(chunk);
}

// setUp makes the controller of a stream. algorithms are start, which returns a value, and
// pull and cancel, which return promises.
function setUp(stream, algorithms, mark, size) {
  const c = { stream, bytes: false, queue: new SizedQueue(), started: false, closing: false, pulling: false, again: false, mark, size, pull: algorithms.pull, cancel: algorithms.cancel };
  c.pullSteps = (request) => pullSteps(c, request);
  c.cancelSteps = (reason) => {
    c.queue.clear();
    const result = c.cancel(reason);
    clear(c);
    return result;
  };
  c.releaseSteps = () => {};
  making = c;
  c.object = new ReadableStreamDefaultController();
  stream.controller = c;
  begin(() => algorithms.start(c.object), () => {
    c.started = true;
    pull(c);
  }, (e) => fail(c, e));
  return c;
}

module.exports = { ReadableStreamDefaultController, setUp, enqueue, close, fail, desired, writable, wants: shouldPull };
