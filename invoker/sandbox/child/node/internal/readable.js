// ReadableStream and its readers (https://streams.spec.whatwg.org/#rs).
const { expose, react, resolved, rejected, attempt, promised, nothing, dictionary, callback, needs, handled, apply, asyncIterator } = require("internal/webidl");
const { markOf, strategyOf, sizeOf } = require("internal/queuing");
const streams = require("internal/readables");
const defaults = require("internal/readabledefault");
const bytes = require("internal/readablebytes");
const { viewOf, bytesIn, detached, enforceRange } = require("internal/views");

let making, stateOf, isReadable, readerOf, byobOf;

class ReadableStream {
  #s;
  static {
    stateOf = (o) => o.#s;
    isReadable = (o) => o !== null && typeof o === "object" && #s in o;
  }
  constructor(source = undefined, strategy = undefined) {
    if (making) {
      this.#s = making;
      making = undefined;
      return;
    }
    if (source === undefined) source = null;
    else if (source === null || typeof source !== "object" && typeof source !== "function") throw new TypeError("The source must be an object");
    const s = this.#s = streams.newReadable();
    s.object = this;
    setUp(s, source || nothing, strategyOf(strategy));
  }
  static from(items) {
    needs(arguments.length, 1, "ReadableStream.from");
    return fromIterable(items);
  }
  get locked() { return this.#s.reader !== undefined; }
  cancel(reason = undefined) {
    return promised(() => {
      const s = this.#s;
      if (s.reader) throw new TypeError("The stream is locked");
      return streams.cancel(s, reason);
    });
  }
  getReader(options = undefined) {
    const s = this.#s, { mode } = dictionary(options, "The options");
    if (mode === undefined) return new ReadableStreamDefaultReader(this);
    if (String(mode) !== "byob") throw new TypeError('The option mode must be "byob"');
    return s && new ReadableStreamBYOBReader(this);
  }
  pipeThrough(transform, options = undefined) {
    const s = this.#s;
    needs(arguments.length, 1, "pipeThrough");
    const { pipe, writableState, pipeOptions } = require("internal/piping");
    const pair = dictionary(transform, "The transform"), { readable } = pair;
    stateOf(readable);
    const to = writableState(pair.writable), given = pipeOptions(options);
    if (s.reader || to.writer) throw new TypeError("The stream is locked");
    handled(pipe(s, to, given));
    return readable;
  }
  pipeTo(destination, options = undefined) {
    return promised(() => {
      const s = this.#s;
      const { pipe, writableState, pipeOptions } = require("internal/piping");
      const to = writableState(destination), given = pipeOptions(options);
      if (s.reader || to.writer) throw new TypeError("The stream is locked");
      return pipe(s, to, given);
    });
  }
  tee() { return teeStates(this.#s).map((s) => s.object); }
  values(options = undefined) {
    const s = this.#s, { preventCancel } = dictionary(options, "The options");
    const it = Object.create(iteratorPrototype);
    iterating.set(it, { reader: streams.acquire(s, "default"), keep: !!preventCancel, over: false, last: undefined });
    return it;
  }
}
expose(ReadableStream);
Object.defineProperty(ReadableStream, "from", { enumerable: true });
Object.defineProperty(ReadableStream.prototype, asyncIterator, { value: ReadableStream.prototype.values, writable: true, configurable: true });

// wrap makes the object of a state.
function wrap(s) {
  making = s;
  return (s.object = new ReadableStream());
}

// create makes a stream of algorithms of the platform. bytes makes it a byte stream.
// The options are those of the project's own code: Object.prototype, which scripts may extend, has none.
function create(algorithms, options = nothing) {
  const { mark = 1, size = () => 1, bytes: asBytes = false } = { __proto__: null, ...options };
  const s = streams.newReadable();
  wrap(s);
  if (asBytes) bytes.setUp(s, { start() {}, ...algorithms }, mark);
  else defaults.setUp(s, { start() {}, ...algorithms }, mark, size);
  return s;
}

// setUp reads the dictionary UnderlyingSource, in the order of its members' names.
function setUp(s, source, strategy) {
  const allocate = source.autoAllocateChunkSize, size = allocate === undefined ? undefined : enforceRange(allocate, "autoAllocateChunkSize");
  const cancel = callback(source, "cancel"), pull = callback(source, "pull"), start = callback(source, "start"), type = source.type;
  if (type !== undefined && String(type) !== "bytes") throw new TypeError('The type of a source must be "bytes"');
  const algorithms = {
    start: (c) => (start ? start(c) : undefined),
    pull: () => attempt(() => (pull ? pull(s.controller.object) : undefined)),
    cancel: (reason) => attempt(() => (cancel ? cancel(reason) : undefined)),
  };
  if (type === undefined) {
    const measure = sizeOf(strategy);
    defaults.setUp(s, algorithms, markOf(strategy, 1), measure);
    return;
  }
  if (strategy.size !== undefined) throw new RangeError("A byte stream has no size function");
  const mark = markOf(strategy, 0);
  if (size === 0) throw new TypeError("autoAllocateChunkSize must be more than 0");
  bytes.setUp(s, algorithms, mark, size);
}

class ReadableStreamDefaultReader {
  #r;
  static { readerOf = (o) => o.#r; }
  constructor(stream) {
    needs(arguments.length, 1, "ReadableStreamDefaultReader");
    this.#r = streams.acquire(stateOf(stream), "default");
  }
  get closed() { return closedOf(() => this.#r); }
  cancel(reason = undefined) { return promised(() => streams.cancel(own(this.#r), reason)); }
  read() {
    return promised(() => {
      own(this.#r);
      return streams.next(this.#r);
    });
  }
  releaseLock() { streams.release(this.#r); }
}
expose(ReadableStreamDefaultReader);

function own(r) {
  if (!r.stream) throw new TypeError("The reader was released");
  return r.stream;
}

// closedOf returns the promise closed of a reader or writer; one of another object rejects.
function closedOf(get) {
  try {
    return get().closed.promise;
  } catch (e) {
    return rejected(e);
  }
}

class ReadableStreamBYOBReader {
  #r;
  static { byobOf = (o) => o.#r; }
  constructor(stream) {
    needs(arguments.length, 1, "ReadableStreamBYOBReader");
    const s = stateOf(stream);
    if (!s.reader && !s.controller.bytes) throw new TypeError("The stream is not a byte stream");
    this.#r = streams.acquire(s, "byob");
  }
  get closed() { return closedOf(() => this.#r); }
  cancel(reason = undefined) { return promised(() => streams.cancel(own(this.#r), reason)); }
  read(view, options = undefined) {
    const count = arguments.length;
    return promised(() => {
      const r = this.#r;
      needs(count, 1, "read");
      const given = viewOf(view), { min } = dictionary(options, "The options"), least = min === undefined ? 1 : enforceRange(min, "min");
      if (given.byteLength === 0) throw new TypeError("The view is empty");
      if (detached(given.buffer) || bytesIn(given.buffer) === 0) throw new TypeError("The buffer of the view is empty or detached");
      if (least === 0) throw new TypeError("min must be at least 1");
      if (least * given.size > given.byteLength) throw new RangeError("min is more than the view has room for");
      own(r);
      return readInto(r, given, least);
    });
  }
  releaseLock() { streams.release(this.#r); }
}
expose(ReadableStreamBYOBReader);

// pullInto asks a byte stream for bytes in the buffer of a view.
function pullInto(r, view, least, request) {
  const s = r.stream;
  s.disturbed = true;
  if (s.state === "errored") request.error(s.stored);
  else bytes.pullInto(s.controller, view, least, request);
}

function readInto(r, view, least) {
  return new Promise((resolve, reject) => {
    pullInto(r, view, least, {
      chunk: (value) => resolve({ value, done: false }),
      close: (value) => resolve({ value, done: true }),
      error: reject,
    });
  });
}

// Asynchronous iteration (WebIDL, asynchronous iterator prototype object): calls of next and
// return wait for those before them.

const iterating = new WeakMap();
const iteratorPrototype = {
  next() {
    return promised(() => {
      const it = iteratorState(this), step = () => nextOf(it);
      return (it.last = it.last ? react(it.last, step, step) : step());
    });
  },
  return(value) {
    return promised(() => {
      const it = iteratorState(this), step = () => returnOf(it, value);
      return (it.last = it.last ? react(it.last, step, step) : step());
    });
  },
};
Object.defineProperty(iteratorPrototype, asyncIterator, { value() { return this; }, writable: true, configurable: true });
Object.defineProperty(iteratorPrototype, Symbol.toStringTag, { value: "ReadableStream AsyncIterator", configurable: true });

function iteratorState(o) {
  const it = iterating.get(o);
  if (!it) throw new TypeError("Illegal invocation: the receiver is not an iterator of a ReadableStream");
  return it;
}

function nextOf(it) {
  if (it.over) return resolved({ value: undefined, done: true });
  const over = () => {
    it.over = true;
    streams.release(it.reader);
  };
  return react(streams.next(it.reader), (r) => {
    if (r.done) over();
    return r;
  }, (e) => {
    over();
    throw e;
  });
}

function returnOf(it, value) {
  if (it.over) return resolved({ value, done: true });
  it.over = true;
  const done = it.keep ? resolved(undefined) : streams.cancel(it.reader.stream, value);
  streams.release(it.reader);
  return react(done, () => ({ value, done: true }));
}

function fromIterable(items) {
  if (items === undefined || items === null) throw new TypeError("ReadableStream.from: the value is not iterable");
  let method = items[asyncIterator];
  const waits = method !== undefined && method !== null;
  if (!waits) method = items[Symbol.iterator];
  if (typeof method !== "function") throw new TypeError("ReadableStream.from: the value is not iterable");
  const it = apply(method, items, []);
  const checked = (r) => {
    if (r === null || typeof r !== "object" && typeof r !== "function") throw new TypeError("The result of an iterator must be an object");
    return r;
  };
  if (it === null || typeof it !== "object" && typeof it !== "function") throw new TypeError("The iterator must be an object");
  const { next } = it;
  const s = create({
    pull: () => react(attempt(() => apply(next, it, [])), (r) => {
      if (checked(r).done) return defaults.close(s.controller);
      return waits ? defaults.enqueue(s.controller, r.value) : react(resolved(r.value), (v) => defaults.enqueue(s.controller, v));
    }),
    cancel: (reason) => attempt(() => {
      const stop = it.return;
      if (stop === undefined || stop === null) return undefined;
      return react(resolved(apply(stop, it, [reason])), (r) => { checked(r); });
    }),
  }, { mark: 0 });
  return s.object;
}

// teeStates returns two states that have the chunks of one. With clones, the second one has copies.
function teeStates(s, clones = false) { return require("internal/teeing").tee(s, clones); }

module.exports = {
  ReadableStream, ReadableStreamDefaultReader, ReadableStreamBYOBReader, create, pullInto,
  stateOf, isReadable, readerOf, byobOf, teeStates,
};
