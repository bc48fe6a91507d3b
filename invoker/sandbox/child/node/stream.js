// Streams (https://nodejs.org/api/stream.html): the behaviour that libraries rely on,
// with one queue for each direction.
const EventEmitter = require("events");
const { Buffer } = require("internal/bytes");
const { coded, invalidType, invalidValue, callback, AbortError } = require("internal/errors");
const { nextTick } = require("process");
const asyncIterator = Symbol.asyncIterator || Symbol.for("Symbol.asyncIterator");

const marks = { bytes: 64 * 1024, objects: 16 };
const constructed = Symbol("constructed");

function extend(Child, Parent) {
  Object.setPrototypeOf(Child.prototype, Parent.prototype);
  Object.setPrototypeOf(Child, Parent);
}

// Stream is the base of all, and of streams from before there were Readable and Writable.
function Stream(options) { EventEmitter.call(this, options); }
extend(Stream, EventEmitter);

Stream.prototype.pipe = function (to, options) {
  const data = (chunk) => { if (to.writable !== false && to.write(chunk) === false && this.pause) this.pause(); };
  const drain = () => { if (this.readable && this.resume) this.resume(); };
  const end = () => { cleanup(); if (!options || options.end !== false) to.end(); };
  const failed = function (error) { cleanup(); if (EventEmitter.listenerCount(this, "error") === 0) this.emit("error", error); };
  const cleanup = () => {
    this.removeListener("data", data);
    to.removeListener("drain", drain);
    for (const s of [this, to]) s.removeListener("error", failed);
    this.removeListener("end", end);
  };
  this.on("data", data);
  to.on("drain", drain);
  this.on("end", end);
  this.on("error", failed);
  to.on("error", failed);
  to.emit("pipe", this);
  return to;
};

// What both directions share.

function highWaterMark(options, side, duplex, objects) {
  const own = options.highWaterMark != null ? options.highWaterMark : duplex ? options[`${side}HighWaterMark`] : undefined;
  if (own == null) return objects ? marks.objects : marks.bytes;
  if (!Number.isInteger(own) || own < 0) throw invalidValue("options.highWaterMark", own);
  return own;
}

function common(options, side, duplex) {
  const objectMode = !!(options.objectMode || (duplex && options[`${side}ObjectMode`]));
  return {
    objectMode, highWaterMark: highWaterMark(options, side, duplex, objectMode), length: 0, ended: false,
    destroyed: false, errored: null, errorEmitted: false, closed: false, closeEmitted: false, constructed: true,
    emitClose: options.emitClose !== false, autoDestroy: options.autoDestroy !== false,
    defaultEncoding: options.defaultEncoding || "utf8",
  };
}

function begin(stream, options) {
  for (const name of ["read", "write", "writev", "final", "destroy", "construct", "transform", "flush"]) {
    if (typeof options[name] === "function") stream[`_${name}`] = options[name];
  }
  if (options.signal) addAbortSignal(options.signal, stream);
  if (typeof stream._construct !== "function") return;
  const states = statesOf(stream);
  for (const s of states) s.constructed = false;
  nextTick(() => {
    const done = (error) => {
      for (const s of states) s.constructed = true;
      if (error) stream.destroy(error);
      stream.emit(constructed);
    };
    try {
      stream._construct(done);
    } catch (error) {
      done(error);
    }
  });
}

const statesOf = (stream) => [stream._readableState, stream._writableState].filter(Boolean);

function destroy(error, done) {
  const states = statesOf(this);
  if (states.some((s) => s.destroyed)) {
    if (typeof done === "function") done();
    return this;
  }
  for (const s of states) {
    s.destroyed = true;
    if (error && !s.errored) s.errored = error;
  }
  const w = this._writableState;
  if (w && !w.ended && !w.finished) w.aborted = true;
  const run = () => {
    let called = false;
    const finish = (failure) => {
      if (called) return;
      called = true;
      for (const s of states) {
        if (failure && !s.errored) s.errored = failure;
        s.closed = true;
      }
      if (typeof done === "function") done(failure);
      if (w) fail(w, failure || coded(Error, "ERR_STREAM_DESTROYED", "Cannot call write after a stream was destroyed"));
      nextTick(() => {
        if (failure && !states.some((s) => s.errorEmitted)) {
          for (const s of states) s.errorEmitted = true;
          this.emit("error", failure);
        }
        for (const s of states) s.closeEmitted = true;
        if (states.some((s) => s.emitClose)) this.emit("close");
      });
    };
    try {
      const p = this._destroy(error || null, finish);
      if (p && typeof p.then === "function") p.then(() => nextTick(finish, null), (e) => nextTick(finish, e));
    } catch (e) {
      finish(e);
    }
  };
  if (states.every((s) => s.constructed)) run();
  else this.once(constructed, run);
  return this;
}

// broken ends a stream with an error.
function broken(stream, error) {
  const states = statesOf(stream);
  if (states.some((s) => s.destroyed)) return;
  if (states.some((s) => s.autoDestroy)) {
    stream.destroy(error);
    return;
  }
  for (const s of states) if (!s.errored) s.errored = error;
  nextTick(() => {
    if (states.some((s) => s.errorEmitted)) return;
    for (const s of states) s.errorEmitted = true;
    stream.emit("error", error);
  });
}

function disposed() {
  const error = this.destroyed ? null : new AbortError();
  if (error) this.destroy(error);
  return new Promise((resolve, reject) => finished(this, (e) => (e && e !== error ? reject(e) : resolve(null))));
}

// Readable.

function Readable(options) {
  if (!(this instanceof Readable)) return new Readable(options);
  const duplex = this instanceof Duplex;
  options = options || {};
  this._readableState = {
    ...common(options, "readable", duplex), buffer: [], flowing: null, reading: false, endEmitted: false, ending: false, calling: false,
    scheduled: false, readableListening: false, announced: false, pipes: [], waiting: new Set(), decoder: null, encoding: null, readable: true, dataEmitted: false,
  };
  Stream.call(this, options);
  if (options.encoding) this.setEncoding(options.encoding);
  if (!duplex) begin(this, options);
  if (!this._readableState.constructed) this.once(constructed, () => { if (this._readableState.wanted) this.read(0); });
  return this;
}
extend(Readable, Stream);
const readable = Readable.prototype;

readable.destroy = destroy;
readable._destroy = function (error, done) { done(error); };
readable._read = function () { throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The _read() method is not implemented"); };
readable[EventEmitter.captureRejectionSymbol] = function (error) { this.destroy(error); };

readable.push = function (chunk, encoding) { return put(this, chunk, encoding, false); };
readable.unshift = function (chunk, encoding) { return put(this, chunk, encoding, true); };

function put(stream, chunk, encoding, front) {
  const s = stream._readableState;
  if (chunk === null) {
    s.reading = false;
    if (!s.ended) {
      s.ended = true;
      const rest = s.decoder ? s.decoder.end() : "";
      if (rest) enqueue(s, rest, false);
      wake(stream);
    }
    return false;
  }
  if (!s.objectMode) {
    if (typeof chunk === "string") {
      encoding = encoding || s.defaultEncoding;
      if (s.encoding !== encoding) chunk = Buffer.from(chunk, encoding);
    } else if (chunk instanceof Uint8Array) {
      if (!(chunk instanceof Buffer)) chunk = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    } else if (chunk !== undefined) {
      broken(stream, invalidType("chunk", ["string", "Buffer", "TypedArray", "DataView"], chunk));
      return false;
    }
    if (chunk === undefined || chunk.length === 0) {
      if (!front) {
        s.reading = false;
        more(stream);
      }
      return !s.ended && s.length < s.highWaterMark;
    }
  }
  if (front) {
    if (s.endEmitted) broken(stream, coded(Error, "ERR_STREAM_UNSHIFT_AFTER_END_EVENT", "stream.unshift() after end event"));
    else if (!s.destroyed && !s.errored) {
      if (s.decoder && typeof chunk !== "string") chunk = s.decoder.write(chunk);
      enqueue(s, chunk, true);
      wake(stream);
    }
  } else if (s.ended) {
    broken(stream, coded(Error, "ERR_STREAM_PUSH_AFTER_EOF", "stream.push() after EOF"));
  } else if (s.destroyed || s.errored) {
    return false;
  } else {
    s.reading = false;
    if (s.decoder && typeof chunk !== "string") chunk = s.decoder.write(chunk);
    if (s.objectMode || chunk.length > 0) {
      if (s.flowing && s.length === 0 && !s.calling && !s.scheduled && !s.readableListening && stream.listenerCount("data") > 0) {
        s.dataEmitted = true;
        stream.emit("data", chunk); // as in Node, a chunk that comes by itself flows through
      } else {
        enqueue(s, chunk, false);
        wake(stream);
      }
    }
    more(stream);
  }
  return !s.ended && (s.length < s.highWaterMark || s.length === 0);
}

function enqueue(s, chunk, front) {
  if (front) s.buffer.unshift(chunk);
  else s.buffer.push(chunk);
  s.length += s.objectMode ? 1 : chunk.length;
}

// wake lets the stream go on with what it has, later.
function wake(stream) {
  const s = stream._readableState;
  s.announced = false;
  if (s.scheduled) return;
  s.scheduled = true;
  nextTick(step, stream);
}

function step(stream) {
  const s = stream._readableState;
  s.scheduled = false;
  if (s.destroyed || s.errored) return;
  if (s.readableListening && !s.announced && (s.length > 0 || s.ended)) {
    s.announced = true;
    stream.emit("readable");
  }
  if (s.flowing && !s.readableListening) while (s.flowing && stream.read() !== null);
  if (s.ended && s.length === 0 && (s.flowing || s.announced)) finishReading(stream);
  else if (s.readableListening || s.flowing) more(stream);
}

// more asks for data while there is room, later.
function more(stream) {
  const s = stream._readableState;
  if (s.asked || s.reading || s.ended || s.destroyed) return;
  s.asked = true;
  nextTick(() => {
    s.asked = false;
    if (s.length < s.highWaterMark || (s.flowing && s.length === 0)) pull(stream);
  });
}

function pull(stream) {
  const s = stream._readableState;
  if (s.reading || s.ended || s.destroyed || s.errored) return;
  if (!s.constructed) {
    s.wanted = true;
    return;
  }
  s.reading = s.calling = true;
  try {
    const p = stream._read(s.highWaterMark);
    if (p && typeof p.then === "function") p.then(undefined, (e) => broken(stream, e));
  } catch (error) {
    broken(stream, error);
  }
  s.calling = false;
}

readable.read = function read(n) {
  const s = this._readableState;
  if (n !== undefined) n = Number.isInteger(n) ? n : parseInt(n, 10);
  if (n === 0) {
    if (s.ended && s.length === 0) finishReading(this);
    else if (s.length >= s.highWaterMark && s.length > 0 || s.ended) wake(this);
    else pull(this);
    return null;
  }
  if (n > s.highWaterMark && !s.objectMode) s.highWaterMark = n;
  if (!s.ended && (s.length === 0 || s.length - (n || s.length) < s.highWaterMark)) pull(this);
  const chunk = s.destroyed || s.errored ? null : take(s, n);
  if (s.length === 0) s.announced = false;
  if (chunk === null) {
    if (s.ended && s.length === 0) finishReading(this);
    return null;
  }
  if (s.ended && s.length === 0 && !s.flowing) finishReading(this);
  s.dataEmitted = true;
  this.emit("data", chunk);
  return chunk;
};

// take removes n units of the queue: all but of objects without n, one of the queue's chunks
// while the stream flows.
function take(s, n) {
  if (s.length === 0) return null;
  if (s.objectMode) {
    s.length--;
    return s.buffer.shift();
  }
  if (n === undefined || n !== n) n = s.flowing && !s.readableListening ? s.buffer[0].length : s.length;
  if (n > s.length) {
    if (!s.ended) return null;
    n = s.length;
  }
  s.length -= n;
  if (s.buffer[0].length === n) return s.buffer.shift();
  const parts = [];
  for (let left = n; left > 0;) {
    const first = s.buffer[0];
    if (first.length <= left) {
      parts.push(s.buffer.shift());
      left -= first.length;
    } else {
      parts.push(first.slice(0, left));
      s.buffer[0] = first.slice(left);
      left = 0;
    }
  }
  return typeof parts[0] === "string" ? parts.join("") : Buffer.concat(parts);
}

function finishReading(stream) {
  const s = stream._readableState;
  if (s.ending) return;
  s.ending = true;
  nextTick(() => {
    if (s.errored || s.destroyed || s.length > 0) {
      s.ending = false;
      return;
    }
    s.endEmitted = true;
    s.readable = false;
    stream.emit("end");
    const w = stream._writableState;
    if (w && stream.allowHalfOpen === false) {
      nextTick(() => { if (stream.writable && !w.ended) stream.end(); });
    } else if (s.autoDestroy && (!w || (w.autoDestroy && (w.finished || w.writable === false)))) {
      stream.destroy();
    }
  });
}

readable.on = readable.addListener = function (type, listener) {
  Stream.prototype.on.call(this, type, listener);
  const s = this._readableState;
  if (type === "data") {
    s.readableListening = this.listenerCount("readable") > 0;
    if (s.flowing !== false) this.resume();
  } else if (type === "readable" && !s.endEmitted && !s.readableListening) {
    s.readableListening = true;
    s.flowing = false;
    if (s.length > 0 || s.ended) wake(this);
    else if (!s.reading) nextTick(() => this.read(0));
  }
  return this;
};

readable.off = readable.removeListener = function (type, listener) {
  Stream.prototype.removeListener.call(this, type, listener);
  if (type === "readable") nextTick(heard, this);
  return this;
};

readable.removeAllListeners = function (...types) {
  Stream.prototype.removeAllListeners.apply(this, types);
  if (types.length === 0 || types[0] === "readable") nextTick(heard, this);
  return this;
};

function heard(stream) {
  const s = stream._readableState;
  s.readableListening = stream.listenerCount("readable") > 0;
  if (s.readableListening) return;
  if (s.resumed) s.flowing = true;
  if (stream.listenerCount("data") > 0) stream.resume();
}

readable.resume = function () {
  const s = this._readableState;
  s.resumed = true;
  if (!s.flowing) {
    s.flowing = !s.readableListening;
    nextTick(() => {
      this.emit("resume");
      if (!s.reading && s.length === 0 && !s.ended) pull(this);
      step(this);
    });
  }
  s.paused = false;
  return this;
};

readable.pause = function () {
  const s = this._readableState;
  s.resumed = false;
  if (s.flowing !== false) {
    s.flowing = false;
    this.emit("pause");
  }
  s.paused = true;
  return this;
};

readable.isPaused = function () {
  const s = this._readableState;
  return s.paused === true || s.flowing === false;
};

readable.setEncoding = function (encoding) {
  const { StringDecoder } = require("string_decoder");
  const s = this._readableState;
  s.decoder = new StringDecoder(encoding);
  s.encoding = s.decoder.encoding;
  const text = s.buffer.map((b) => (typeof b === "string" ? b : s.decoder.write(b))).join("");
  s.buffer = text ? [text] : [];
  s.length = text.length;
  return this;
};

readable.pipe = function (to, options) {
  const from = this, s = this._readableState;
  const last = !options || options.end !== false;
  let draining = false;
  const data = (chunk) => {
    if (to.write(chunk) === false && !draining) {
      draining = true;
      s.waiting.add(to);
      from.pause();
      to.on("drain", drained);
    }
  };
  const drained = () => {
    if (!draining) return;
    draining = false;
    s.waiting.delete(to);
    to.removeListener("drain", drained);
    if (s.waiting.size === 0 && from.listenerCount("data") > 0) {
      s.paused = false;
      from.resume();
    }
  };
  const end = () => { if (last && to !== require("process").stdout && to !== require("process").stderr) to.end(); };
  const failed = (error) => {
    from.unpipe(to);
    to.removeListener("error", failed);
    if (to.listenerCount("error") === 0) {
      const w = to._writableState || to._readableState;
      if (w && !w.errorEmitted) broken(to, error);
      else to.emit("error", error);
    }
  };
  const left = () => from.unpipe(to);
  const unpiped = (source, info) => {
    if (source !== from || (info && info.done)) return;
    if (info) info.done = true;
    from.removeListener("data", data);
    from.removeListener("end", end);
    to.removeListener("unpipe", unpiped);
    to.removeListener("error", failed);
    to.removeListener("close", left);
    to.removeListener("finish", left);
    if (draining) drained();
  };
  s.pipes.push(to);
  to.on("unpipe", unpiped);
  to.prependListener("error", failed);
  to.once("close", left);
  to.once("finish", left);
  if (s.endEmitted) nextTick(end);
  else from.once("end", end);
  from.on("data", data);
  to.emit("pipe", from);
  if (to.writableNeedDrain === true) {
    draining = true;
    s.waiting.add(to);
    from.pause();
    to.on("drain", drained);
  } else if (!s.flowing) {
    from.resume();
  }
  return to;
};

readable.unpipe = function (to) {
  const s = this._readableState;
  const gone = to ? s.pipes.filter((p) => p === to) : s.pipes;
  if (gone.length === 0) return this;
  s.pipes = to ? s.pipes.filter((p) => p !== to) : [];
  if (s.pipes.length === 0) this.pause();
  for (const p of gone) p.emit("unpipe", this, { done: false });
  return this;
};

readable.wrap = function (old) {
  old.on("data", (chunk) => { if (!this.push(chunk) && old.pause) old.pause(); });
  old.on("end", () => this.push(null));
  old.on("error", (e) => broken(this, e));
  old.on("close", () => this.destroy());
  old.on("destroy", () => this.destroy());
  this._read = () => { if (old.resume) old.resume(); };
  return this;
};

readable[asyncIterator] = function () { return this.iterator(); };
readable.iterator = function (options) {
  const stream = this, keep = options && options.destroyOnReturn === false;
  let failure, over = false, waiting = null;
  const wakeUp = () => {
    if (waiting) {
      const w = waiting;
      waiting = null;
      w();
    }
  };
  stream.on("readable", wakeUp);
  const stop = finished(stream, { writable: false }, (error) => {
    failure = error || null;
    over = true;
    wakeUp();
  });
  const next = async () => {
    for (;;) {
      const chunk = stream.destroyed ? null : stream.read();
      if (chunk !== null) return { value: chunk, done: false };
      if (failure) {
        const e = failure;
        failure = null;
        throw e;
      }
      if (over) return { value: undefined, done: true };
      await new Promise((resolve) => { waiting = resolve; });
    }
  };
  let queue = Promise.resolve();
  return {
    next() { return (queue = queue.then(next, next)); },
    async return(value) {
      over = true;
      stop();
      stream.removeListener("readable", wakeUp);
      if (!keep) stream.destroy();
      wakeUp();
      return { value, done: true };
    },
    async throw(error) { stream.destroy(error); throw error; },
    [asyncIterator]() { return this; },
  };
};

// The helpers of iterators, on streams of values.
async function each(stream, f) {
  const it = stream[asyncIterator]();
  for (let i = 0, r; !(r = await it.next()).done; i++) {
    if ((await f(r.value, i)) === false) {
      await it.return();
      return;
    }
  }
}
function derive(stream, make) {
  return Readable.from({
    [asyncIterator]() {
      const it = stream[asyncIterator](), queue = [];
      let over = false, i = 0;
      return {
        async next() {
          while (queue.length === 0 && !over) {
            const r = await it.next();
            if (r.done) break;
            if ((await make(r.value, (v) => queue.push(v), i++)) === false) {
              over = true;
              await it.return();
            }
          }
          return queue.length ? { value: queue.shift(), done: false } : { value: undefined, done: true };
        },
        async return(value) { await it.return(); return { value, done: true }; },
      };
    },
  });
}
Object.assign(readable, {
  map(f) { return derive(this, async (v, put) => { put(await f(v, {})); }); },
  filter(f) { return derive(this, async (v, put) => { if (await f(v, {})) put(v); }); },
  flatMap(f) { return derive(this, async (v, put) => { const inner = await f(v, {}); await each(Readable.from(inner), (x) => { put(x); }); }); },
  take(n) { return derive(this, (v, put, i) => { if (i < n) put(v); return i + 1 < n; }); },
  drop(n) { return derive(this, (v, put, i) => { if (i >= n) put(v); }); },
  async toArray() { const out = []; await each(this, (v) => { out.push(v); }); return out; },
  async forEach(f) { await each(this, async (v) => { await f(v, {}); }); },
  async some(f) { let found = false; await each(this, async (v) => { found = !!(await f(v, {})); return !found; }); return found; },
  async every(f) { return !(await this.some(async (v) => !(await f(v, {})))); },
  async find(f) { let found; await each(this, async (v) => { if (await f(v, {})) { found = v; return false; } return true; }); return found; },
  async reduce(f, ...initial) {
    let value = initial[0], empty = initial.length === 0;
    await each(this, async (v) => { value = empty ? v : await f(value, v, {}); empty = false; });
    if (empty) throw new TypeError("Reduce of an empty stream requires an initial value");
    return value;
  },
});

function properties(proto, of, table) {
  for (const name of Object.keys(table)) {
    Object.defineProperty(proto, name, { configurable: true, enumerable: false, get() { return this[of] ? table[name].call(this, this[of]) : undefined; } });
  }
}
function settable(proto, name, get, set) { Object.defineProperty(proto, name, { configurable: true, enumerable: false, get, set }); }

properties(readable, "_readableState", {
  readableLength: (s) => s.length, readableHighWaterMark: (s) => s.highWaterMark, readableObjectMode: (s) => s.objectMode, readableEncoding: (s) => s.encoding,
  readableEnded: (s) => s.endEmitted, readableAborted: (s) => (s.destroyed || s.errored !== null) && !s.endEmitted, readableDidRead: (s) => s.dataEmitted,
  readableBuffer: (s) => s.buffer, errored: (s) => s.errored, closed: (s) => s.closed,
});
settable(readable, "readable", function () {
  const s = this._readableState;
  return !!s && s.readable !== false && !s.destroyed && !s.endEmitted && !s.errorEmitted;
}, function (v) { if (this._readableState) this._readableState.readable = !!v; });
settable(readable, "readableFlowing", function () { return this._readableState.flowing; }, function (v) { this._readableState.flowing = v; });
settable(readable, "destroyed", function () { return statesOf(this).some((s) => s.destroyed); }, function (v) { for (const s of statesOf(this)) s.destroyed = v; });
if (Symbol.asyncDispose) readable[Symbol.asyncDispose] = disposed;

Readable.from = function (source, options) {
  if (typeof source === "string" || source instanceof Uint8Array) {
    return new Readable({ objectMode: true, ...options, read() { this.push(source); this.push(null); } });
  }
  const method = source && (source[asyncIterator] || source[Symbol.iterator]);
  if (typeof method !== "function") throw invalidType("iterable", "Iterable", source);
  const it = method.call(source);
  let running = false;
  const stream = new Readable({
    objectMode: true, highWaterMark: 1, ...options,
    read() { if (!running) { running = true; run(); } },
    destroy(error, done) {
      const back = (e) => done(error || e || null);
      if (typeof it.return === "function" && !it.finished) Promise.resolve(error && it.throw ? undefined : it.return()).then(() => back(), back);
      else back();
    },
  });
  async function run() {
    try {
      for (;;) {
        const r = await it.next();
        if (r.done) {
          it.finished = true;
          stream.push(null);
          return;
        }
        const value = r.value && typeof r.value.then === "function" ? await r.value : r.value;
        if (value === null) throw coded(TypeError, "ERR_STREAM_NULL_VALUES", "May not write null values to stream");
        if (!stream.push(value)) {
          running = false;
          return;
        }
      }
    } catch (error) {
      stream.destroy(error);
    }
  }
  return stream;
};
Readable.fromWeb = function (web, options) {
  const reader = web.getReader();
  return new Readable({
    ...options,
    read() {
      reader.read().then(({ value, done }) => this.push(done ? null : value), (e) => this.destroy(e));
    },
    destroy(error, done) { Promise.resolve(reader.cancel(error)).then(() => done(error), () => done(error)); },
  });
};
Readable.toWeb = function (stream) {
  const it = stream[asyncIterator]();
  return new (require("stream/web").ReadableStream)({
    async pull(controller) {
      const r = await it.next();
      if (r.done) controller.close();
      else controller.enqueue(Buffer.isBuffer(r.value) ? new Uint8Array(r.value) : r.value);
    },
    cancel(reason) { stream.destroy(reason); },
  });
};
Readable.wrap = (old, options) => new Readable({ objectMode: old.readableObjectMode !== false, ...options }).wrap(old);

// Writable.

function Writable(options) {
  if (!(this instanceof Writable) && !(this instanceof Duplex)) return new Writable(options);
  const duplex = this instanceof Duplex;
  options = options || {};
  this._writableState = {
    ...common(options, "writable", duplex), decodeStrings: options.decodeStrings !== false, buffered: [], writing: false, calling: false, corked: 0,
    needDrain: false, ending: false, finished: false, finalCalled: false, prefinished: false, pendingcb: 0, writable: true, aborted: false, ends: [],
    getBuffer() { return this.buffered; },
  };
  if (!duplex) {
    Stream.call(this, options);
    begin(this, options);
  }
  if (!this._writableState.constructed) this.once(constructed, () => { flush(this); finishWriting(this); });
  return this;
}
extend(Writable, Stream);
Object.defineProperty(Writable, Symbol.hasInstance, {
  value(o) { return Function.prototype[Symbol.hasInstance].call(this, o) || (this === Writable && !!o && o._writableState !== undefined && o instanceof Duplex); },
});

const writing = {
  _destroy(error, done) { done(error); },
  _write(chunk, encoding, done) {
    if (this._writev) this._writev([{ chunk, encoding }], done);
    else throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The _write() method is not implemented");
  },
  write(chunk, encoding, done) {
    if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
    return add(this, chunk, encoding, done) === true;
  },
  cork() { this._writableState.corked++; },
  uncork() {
    const s = this._writableState;
    if (s.corked > 0) {
      s.corked--;
      if (!s.writing) flush(this);
    }
  },
  setDefaultEncoding(encoding) {
    if (!Buffer.isEncoding(encoding)) throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
    this._writableState.defaultEncoding = encoding;
    return this;
  },
  end(chunk, encoding, done) {
    const s = this._writableState;
    if (typeof chunk === "function") [chunk, encoding, done] = [undefined, undefined, chunk];
    else if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
    let error;
    if (chunk != null) {
      const r = add(this, chunk, encoding);
      if (r instanceof Error) error = r;
    }
    s.corked = 0;
    if (!error && !s.errored && !s.ending) {
      s.ending = true;
      flush(this);
      finishWriting(this);
      s.ended = true;
    } else if (!error && s.finished) {
      error = coded(Error, "ERR_STREAM_ALREADY_FINISHED", "Cannot call end after a stream was finished");
    } else if (!error && s.destroyed) {
      error = coded(Error, "ERR_STREAM_DESTROYED", "Cannot call end after a stream was destroyed");
    }
    if (typeof done === "function") {
      if (error) nextTick(done, error);
      else if (s.finished) nextTick(done);
      else s.ends.push(done);
    }
    return this;
  },
  destroySoon() { this.end(); },
};

function add(stream, chunk, encoding, done) {
  const s = stream._writableState;
  if (chunk === null) throw coded(TypeError, "ERR_STREAM_NULL_VALUES", "May not write null values to stream");
  if (!encoding) encoding = s.defaultEncoding;
  if (!s.objectMode) {
    if (typeof chunk === "string") {
      if (encoding !== "buffer" && !Buffer.isEncoding(encoding)) throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
      if (s.decodeStrings) [chunk, encoding] = [Buffer.from(chunk, encoding), "buffer"];
    } else if (ArrayBuffer.isView(chunk)) {
      if (!(chunk instanceof Buffer)) chunk = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      encoding = "buffer";
    } else {
      throw invalidType("chunk", ["string", "Buffer", "TypedArray", "DataView"], chunk);
    }
  }
  let error;
  if (s.ending) error = coded(Error, "ERR_STREAM_WRITE_AFTER_END", "write after end");
  else if (s.destroyed) error = coded(Error, "ERR_STREAM_DESTROYED", "Cannot call write after a stream was destroyed");
  if (error) {
    if (done) nextTick(done, error);
    broken(stream, error);
    return error;
  }
  s.pendingcb++;
  s.length += s.objectMode ? 1 : chunk.length;
  s.buffered.push({ chunk, encoding, callback: done });
  if (!s.writing && !s.corked && s.constructed && !s.errored) flush(stream);
  const room = s.length < s.highWaterMark;
  if (!room) s.needDrain = true;
  return room && !s.errored && !s.destroyed;
}

// flush passes the queue on, one chunk at a time or, with _writev, several.
function flush(stream) {
  const s = stream._writableState;
  if (s.writing || s.corked || !s.constructed || s.errored || s.destroyed) return;
  if (s.flushing) return;
  s.flushing = true;
  while (s.buffered.length > 0 && !s.writing && !s.errored && !s.destroyed) {
    if (stream._writev && s.buffered.length > 1) {
      const all = s.buffered;
      s.buffered = [];
      const chunks = all.map(({ chunk, encoding }) => ({ chunk, encoding }));
      chunks.allBuffers = all.every((e) => e.encoding === "buffer");
      start(stream, all, (done) => stream._writev(chunks, done));
    } else {
      const e = s.buffered.shift();
      start(stream, [e], (done) => stream._write(e.chunk, e.encoding, done));
    }
  }
  s.flushing = false;
}

function start(stream, entries, run) {
  const s = stream._writableState;
  s.writing = s.calling = true;
  let called = false;
  const done = (error) => {
    if (called) {
      broken(stream, coded(Error, "ERR_MULTIPLE_CALLBACK", "Callback called multiple times"));
      return;
    }
    called = true;
    s.writing = false;
    for (const e of entries) s.length -= s.objectMode ? 1 : e.chunk.length;
    if (error) {
      if (!s.errored) s.errored = error;
      const sync = s.calling;
      const report = () => {
        s.pendingcb -= entries.length;
        for (const e of entries) if (e.callback) e.callback(error);
        fail(s, error);
        s.errored = s.errored === error ? null : s.errored;
        broken(stream, error);
        s.errored = s.errored || error;
      };
      if (sync) nextTick(report);
      else report();
      return;
    }
    const after = () => {
      if (s.needDrain && s.length === 0 && !s.ending && !s.destroyed) {
        s.needDrain = false;
        stream.emit("drain");
      }
      for (const e of entries) {
        s.pendingcb--;
        if (e.callback) e.callback(s.errored || null);
      }
      if (s.destroyed) fail(s, coded(Error, "ERR_STREAM_DESTROYED", "Cannot call write after a stream was destroyed"));
      finishWriting(stream);
    };
    if (s.calling) nextTick(after);
    else {
      flush(stream);
      after();
    }
  };
  try {
    const p = run(done);
    if (p && typeof p.then === "function") p.then(undefined, (e) => broken(stream, e));
  } catch (error) {
    s.calling = false;
    s.flushing = false;
    throw error;
  }
  s.calling = false;
}

// fail answers all callbacks that still wait.
function fail(s, error) {
  if (s.writing) return;
  for (const e of s.buffered.splice(0)) {
    s.length -= s.objectMode ? 1 : e.chunk.length;
    s.pendingcb--;
    if (e.callback) nextTick(e.callback, error);
  }
  for (const f of s.ends.splice(0)) nextTick(f, s.errored || error);
}

function finishWriting(stream) {
  const s = stream._writableState;
  const ready = () => s.ending && !s.destroyed && s.constructed && s.length === 0 && !s.errored && s.buffered.length === 0 && !s.finished && !s.writing;
  if (!ready()) return;
  if (!s.prefinished) {
    if (typeof stream._final === "function" && !s.destroyed) {
      if (s.finalCalled) return;
      s.finalCalled = true;
      s.pendingcb++;
      nextTick(() => {
        let called = false;
        const done = (error) => {
          if (called) return;
          called = true;
          s.pendingcb--;
          if (error) {
            for (const f of s.ends.splice(0)) f(error);
            broken(stream, error);
            return;
          }
          s.prefinished = true;
          stream.emit("prefinish");
          s.pendingcb++;
          nextTick(finish, stream);
        };
        try {
          const p = stream._final(done);
          if (p && typeof p.then === "function") p.then(() => done(), done);
        } catch (error) {
          done(error);
        }
      });
      return;
    }
    s.prefinished = true;
    stream.emit("prefinish");
  }
  if (s.pendingcb === 0) {
    s.pendingcb++;
    nextTick(() => {
      if (ready()) finish(stream);
      else s.pendingcb--;
    });
  }
}

function finish(stream) {
  const s = stream._writableState;
  s.pendingcb--;
  s.finished = true;
  for (const f of s.ends.splice(0)) f();
  stream.emit("finish");
  const r = stream._readableState;
  if (s.autoDestroy && (!r || (r.autoDestroy && (r.endEmitted || r.readable === false)))) stream.destroy();
}

function addWriting(proto, all) {
  for (const name of Object.keys(writing)) {
    if (all || !(name in proto) || name === "write" || name === "end") Object.defineProperty(proto, name, { value: writing[name], writable: true, configurable: true, enumerable: false });
  }
  properties(proto, "_writableState", {
    writableLength: (s) => s.length, writableHighWaterMark: (s) => s.highWaterMark, writableObjectMode: (s) => s.objectMode, writableFinished: (s) => s.finished,
    writableEnded: (s) => s.ending, writableCorked: (s) => s.corked, writableNeedDrain: (s) => !s.destroyed && !s.ending && s.needDrain,
    writableAborted: (s) => s.writable !== false && (s.destroyed || s.errored !== null) && !s.finished, writableBuffer: (s) => s.buffered,
  });
  settable(proto, "writable", function () {
    const s = this._writableState;
    return !!s && s.writable !== false && !s.destroyed && !s.errored && !s.ending && !s.ended;
  }, function (v) { if (this._writableState) this._writableState.writable = !!v; });
}
addWriting(Writable.prototype, true);
Writable.prototype.destroy = destroy;
Writable.prototype[EventEmitter.captureRejectionSymbol] = function (error) { this.destroy(error); };
Writable.prototype.pipe = function () { broken(this, coded(Error, "ERR_STREAM_CANNOT_PIPE", "Cannot pipe, not readable")); };
properties(Writable.prototype, "_writableState", { errored: (s) => s.errored, closed: (s) => s.closed });
settable(Writable.prototype, "destroyed", function () { return !!this._writableState && this._writableState.destroyed; }, function (v) { if (this._writableState) this._writableState.destroyed = v; });
if (Symbol.asyncDispose) Writable.prototype[Symbol.asyncDispose] = disposed;

// Duplex and Transform.

function Duplex(options) {
  if (!(this instanceof Duplex)) return new Duplex(options);
  options = options || {};
  Readable.call(this, options);
  Writable.call(this, options);
  this.allowHalfOpen = options.allowHalfOpen !== false;
  if (options.readable === false) Object.assign(this._readableState, { readable: false, ended: true, endEmitted: true });
  if (options.writable === false) Object.assign(this._writableState, { writable: false, ending: true, ended: true, finished: true });
  begin(this, options);
  return this;
}
extend(Duplex, Readable);
addWriting(Duplex.prototype, false);
Duplex.from = function (body) {
  if (body instanceof Duplex) return body;
  if (body instanceof Readable || (body && (body[asyncIterator] || body[Symbol.iterator]))) {
    const source = body instanceof Readable ? body : Readable.from(body);
    const d = new Duplex({ objectMode: true, writable: false, read() { source.resume(); } });
    source.on("data", (chunk) => { if (!d.push(chunk)) source.pause(); });
    source.on("end", () => d.push(null));
    source.on("error", (e) => d.destroy(e));
    source.pause();
    return d;
  }
  if (body && (body.readable || body.writable)) {
    const { readable: source, writable: target } = body;
    const d = new Duplex({
      readableObjectMode: !source || source.readableObjectMode, writableObjectMode: !target || target.writableObjectMode, readable: !!source, writable: !!target,
      read() { source.resume(); }, write(chunk, encoding, done) { target.write(chunk, encoding, done); }, final(done) { target.end(done); },
    });
    if (source) {
      source.on("data", (chunk) => { if (!d.push(chunk)) source.pause(); });
      source.on("end", () => d.push(null));
      source.pause();
    }
    for (const s of [source, target]) if (s) s.on("error", (e) => d.destroy(e));
    return d;
  }
  throw invalidType("body", ["Stream", "Iterable", "AsyncIterable", "Object"], body);
};

function Transform(options) {
  if (!(this instanceof Transform)) return new Transform(options);
  this._transforming = null; // the callback that waits for room
  Duplex.call(this, options);
  return this;
}
extend(Transform, Duplex);
Transform.prototype._transform = function () { throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The _transform() method is not implemented"); };
Transform.prototype._write = function (chunk, encoding, done) {
  const r = this._readableState, before = r.length;
  const answer = (error, value) => {
    if (error) {
      done(error);
      return;
    }
    if (value != null) this.push(value);
    if (r.ended || before === r.length || r.length < r.highWaterMark) done();
    else this._transforming = done;
  };
  const p = this._transform(chunk, encoding, answer);
  if (p && typeof p.then === "function") p.then(undefined, (e) => this.destroy(e));
};
Transform.prototype._read = function () {
  const done = this._transforming;
  if (done) {
    this._transforming = null;
    done();
  }
};
Transform.prototype._final = function (done) {
  if (typeof this._flush !== "function" || this.destroyed) {
    this.push(null);
    done();
    return;
  }
  const answer = (error, value) => {
    if (error) {
      done(error);
      return;
    }
    if (value != null) this.push(value);
    this.push(null);
    done();
  };
  const p = this._flush(answer);
  if (p && typeof p.then === "function") p.then(undefined, (e) => this.destroy(e));
};

function PassThrough(options) {
  if (!(this instanceof PassThrough)) return new PassThrough(options);
  Transform.call(this, options);
  return this;
}
extend(PassThrough, Transform);
PassThrough.prototype._transform = function (chunk, encoding, done) { done(null, chunk); };

// Whole streams.

const isStream = (s) => s !== null && typeof s === "object" && typeof s.on === "function" && (typeof s.pipe === "function" || typeof s.write === "function" || !!s._readableState || !!s._writableState);
const premature = () => coded(Error, "ERR_STREAM_PREMATURE_CLOSE", "Premature close");

// finished calls back once when a stream has ended, or failed.
function finished(stream, options, done) {
  if (typeof options === "function") [options, done] = [{}, options];
  options = options || {};
  if (!isStream(stream)) {
    const web = webState(stream);
    if (web) return finishedWeb(stream, web, options, done);
    throw invalidType("stream", ["ReadableStream", "WritableStream", "Stream"], stream);
  }
  callback(done);
  const hooks = require("async_hooks").AsyncResource;
  done = hooks.bind(done);
  const r = stream._readableState, w = stream._writableState;
  const wantsRead = options.readable !== undefined ? options.readable : !!(r ? r.readable !== false || r.endEmitted : stream.readable);
  const wantsWrite = options.writable !== undefined ? options.writable : !!(w ? w.writable !== false || w.finished : !r && stream.writable);
  let readDone = !wantsRead || !!(r && r.endEmitted) || (!r && wantsRead && stream.readable === false);
  let writeDone = !wantsWrite || !!(w && w.finished);
  let called = false;
  const once = (error) => {
    if (called) return;
    called = true;
    if (options.cleanup) cleanup();
    done.call(stream, error);
  };
  const check = () => { if (readDone && writeDone) once(); };
  const onEnd = () => { readDone = true; if (stream.destroyed) return; check(); };
  const onFinish = () => { writeDone = true; if (stream.destroyed && !stream.writableFinished) return; check(); };
  const onError = (error) => once(error);
  const onClose = () => {
    const error = (r && r.errored) || (w && w.errored);
    if (error && typeof error !== "boolean") once(error);
    else if ((wantsRead && !readDone && r && !r.endEmitted) || (wantsWrite && !writeDone && w && !w.finished)) once(premature());
    else once();
  };
  const onAborted = () => once(coded(Error, "ERR_STREAM_PREMATURE_CLOSE", "Premature close"));
  const cleanup = () => {
    done = () => {};
    stream.removeListener("end", onEnd);
    stream.removeListener("finish", onFinish);
    stream.removeListener("error", onError);
    stream.removeListener("close", onClose);
    stream.removeListener("aborted", onAborted);
    if (options.signal) options.signal.removeEventListener("abort", onSignal);
  };
  const onSignal = () => once(new AbortError(undefined, { cause: options.signal.reason }));
  if (wantsRead) stream.on("end", onEnd);
  if (wantsWrite) stream.on("finish", onFinish);
  if (options.error !== false) stream.on("error", onError);
  stream.on("close", onClose);
  stream.on("aborted", onAborted);
  const state = r || w;
  if (state && (state.closed || state.closeEmitted)) nextTick(onClose);
  else if (state && state.errorEmitted) nextTick(onError, state.errored);
  else if (wantsRead | wantsWrite && readDone && writeDone) nextTick(() => once());
  if (options.signal) {
    if (options.signal.aborted) nextTick(onSignal);
    else options.signal.addEventListener("abort", onSignal, { once: true });
  }
  return cleanup;
}

const isWeb = (s, state) => { const web = webState(s); return !!web && web.state === state; };
// webState returns the state of a stream of the web, undefined for other values.
const webState = (s) => {
  const readable = require("internal/readable"), writable = require("internal/writable");
  return readable.isReadable(s) ? readable.stateOf(s) : writable.isWritable(s) ? writable.stateOf(s) : undefined;
};

function finishedWeb(stream, state, options, done) {
  callback(done);
  let over = false;
  done = require("async_hooks").AsyncResource.bind(done);
  const once = (error) => {
    if (over) return;
    over = true;
    nextTick(() => done.call(stream, error));
  };
  const { signal } = options, aborted = () => once(new AbortError(undefined, { cause: signal.reason }));
  if (signal) {
    if (signal.aborted) aborted();
    else signal.addEventListener("abort", aborted, { once: true });
  }
  require(state.kind === "readable" ? "internal/readables" : "internal/writable").ended(state).then(() => once(), once);
  return () => {};
}

// pipeline joins streams, iterables and functions that make iterables of iterables.
function pipeline(...parts) {
  const done = parts.pop();
  callback(done, "streams[stream.length - 1]");
  if (parts.length === 1 && Array.isArray(parts[0])) parts = parts[0];
  return join(parts, done, {});
}

function join(parts, done, options) {
  if (parts.length < 2) throw coded(TypeError, "ERR_MISSING_ARGS", 'The "streams" argument must be specified');
  const streams = [];
  let failure, value, left = 0, ended = false;
  const end = (error) => {
    if (error && (!failure || failure.code === "ERR_STREAM_PREMATURE_CLOSE")) failure = error;
    if (error) for (const s of streams) if (!s.destroyed && s.destroy) s.destroy(error.code === "ERR_STREAM_PREMATURE_CLOSE" && failure !== error ? undefined : failure);
    if (--left > 0 || ended) return;
    ended = true;
    if (options.signal) options.signal.removeEventListener("abort", abort);
    nextTick(done, failure, value);
  };
  const abort = () => {
    left++;
    end(new AbortError(undefined, { cause: options.signal.reason }));
  };
  const watch = (s, sides) => {
    streams.push(s);
    left++;
    s.on("error", () => {}); // a later error is not the script's: it knows the first
    finished(s, sides, (error) => end(error));
  };
  let current;
  parts.forEach((part, i) => {
    const first = i === 0, final = i === parts.length - 1;
    if (typeof part === "function") {
      const made = first ? part({ signal: options.signal }) : part(iterable(current), { signal: options.signal });
      if (made && (made[asyncIterator] || (typeof made !== "string" && made[Symbol.iterator])) && !final) {
        current = Readable.from(made);
        watch(current, { readable: true, writable: false });
      } else if (final) {
        left++;
        Promise.resolve(made && made[asyncIterator] ? drain(made) : made).then((v) => { value = v; end(); }, end);
        current = made;
      } else {
        throw coded(TypeError, "ERR_INVALID_RETURN_VALUE", "Expected Iterable, AsyncIterable or Stream to be returned from a function of a pipeline");
      }
      return;
    }
    if (!isStream(part)) {
      if (!first || part == null || !(part[asyncIterator] || part[Symbol.iterator])) throw invalidType(`streams[${i}]`, ["Stream", "Iterable", "AsyncIterable"], part);
      part = Readable.from(part);
    }
    watch(part, { readable: !final, writable: !first });
    if (!first) {
      const source = isStream(current) ? current : Readable.from(current);
      source.pipe(part, { end: options.end !== false || !final });
    }
    current = part;
  });
  if (options.signal) {
    if (options.signal.aborted) abort();
    else options.signal.addEventListener("abort", abort, { once: true });
  }
  return current;
}

const iterable = (s) => (isStream(s) && !s[asyncIterator] ? new Readable().wrap(s) : s);
async function drain(source) {
  const it = source[asyncIterator]();
  while (!(await it.next()).done);
}

function addAbortSignal(signal, stream) {
  if (!signal || typeof signal !== "object" || !("aborted" in signal)) throw invalidType("signal", "AbortSignal", signal);
  const abort = () => stream.destroy(new AbortError(undefined, { cause: signal.reason }));
  if (signal.aborted) abort();
  else {
    signal.addEventListener("abort", abort, { once: true });
    finished(stream, () => signal.removeEventListener("abort", abort));
  }
  return stream;
}

function compose(...parts) {
  const head = parts[0], tail = parts[parts.length - 1];
  if (!parts.every((p) => isStream(p))) throw require("internal/errors").unsupportedError("stream", "compose of functions");
  join(parts, (e) => { if (e) d.destroy(e); }, {});
  const d = Duplex.from({ readable: tail, writable: head });
  return d;
}

const promises = {
  pipeline(...parts) {
    const last = parts[parts.length - 1];
    const options = last && typeof last === "object" && !isStream(last) && !last[asyncIterator] && !last[Symbol.iterator] ? parts.pop() : {};
    return new Promise((resolve, reject) => join(parts, (error, value) => (error ? reject(error) : resolve(value)), options));
  },
  finished: (stream, options) => new Promise((resolve, reject) => finished(stream, options || {}, (error) => (error ? reject(error) : resolve()))),
};
const custom = Symbol.for("nodejs.util.promisify.custom");
Object.defineProperty(pipeline, custom, { enumerable: true, get: () => promises.pipeline });
Object.defineProperty(finished, custom, { enumerable: true, get: () => promises.finished });

module.exports = Object.assign(Stream, {
  Stream, Readable, Writable, Duplex, Transform, PassThrough, finished, pipeline, addAbortSignal, compose, promises,
  destroy(stream, error) { if (stream.destroy) stream.destroy(error); else stream.emit("close"); return stream; },
  duplexPair(options) {
    const pair = [0, 1].map((i) => new Duplex({
      ...options, read() {},
      write(chunk, encoding, done) { pair[1 - i].push(chunk); nextTick(done); },
      final(done) { pair[1 - i].push(null); done(); },
    }));
    return pair;
  },
  isReadable: (s) => !!s && (s.readable === true || isWeb(s, "readable")), isWritable: (s) => !!s && (s.writable === true || isWeb(s, "writable")), isErrored: (s) => !!s && (isWeb(s, "errored") || statesOf(s).some((x) => x.errored !== null)), isDestroyed: (s) => !!s && !!s.destroyed,
  isDisturbed: (s) => !!s && !!(s.readableDidRead || s.readableAborted || (webState(s) && webState(s).disturbed)),
  getDefaultHighWaterMark: (objects) => (objects ? marks.objects : marks.bytes),
  setDefaultHighWaterMark(objects, n) { marks[objects ? "objects" : "bytes"] = n; },
  _isUint8Array: (v) => v instanceof Uint8Array, _isArrayBufferView: (v) => ArrayBuffer.isView(v), _uint8ArrayToBuffer: (v) => Buffer.from(v.buffer, v.byteOffset, v.byteLength),
});
