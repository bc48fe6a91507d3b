const { coded, invalidType, outOfRange, callback, AbortError } = require("internal/errors");
const asyncIterator = Symbol.asyncIterator || Symbol.for("Symbol.asyncIterator");
const errorMonitor = Symbol("events.errorMonitor");
const captureRejectionSymbol = Symbol.for("nodejs.rejection");
const captures = Symbol("kCapture");
let defaultMaxListeners = 10;

function EventEmitter(options) {
  EventEmitter.init.call(this, options);
}

EventEmitter.init = function (options) {
  if (this._events === undefined || this._events === Object.getPrototypeOf(this)._events) {
    this._events = Object.create(null);
    this._eventsCount = 0;
  }
  this._maxListeners = this._maxListeners || undefined;
  if (options && options.captureRejections) this[captures] = true;
};

const proto = EventEmitter.prototype;
proto._events = undefined;
proto._eventsCount = 0;
proto._maxListeners = undefined;

proto.setMaxListeners = function setMaxListeners(n) {
  if (typeof n !== "number" || n < 0 || n !== n) throw outOfRange("n", "a non-negative number", n);
  this._maxListeners = n;
  return this;
};

proto.getMaxListeners = function getMaxListeners() {
  return this._maxListeners === undefined ? defaultMaxListeners : this._maxListeners;
};

function captured(emitter, result, type, args) {
  if (!emitter[captures] || result == null || typeof result.then !== "function") return;
  result.then(undefined, (error) => {
    process().nextTick(() => {
      if (typeof emitter[captureRejectionSymbol] === "function") emitter[captureRejectionSymbol](error, type, ...args);
      else emitter.emit("error", error);
    });
  });
}

function process() { return require("process"); }

proto.emit = function emit(type, ...args) {
  const events = this._events;
  if (type === "error") {
    if (events !== undefined && events[errorMonitor] !== undefined) this.emit(errorMonitor, ...args);
    if (events === undefined || events.error === undefined) {
      const error = args[0];
      if (error instanceof Error) throw error;
      let shown;
      try { shown = require("util").inspect(error); } catch { shown = String(error); }
      const e = coded(Error, "ERR_UNHANDLED_ERROR", `Unhandled error. (${shown})`);
      e.context = error;
      throw e;
    }
  }
  const handler = events === undefined ? undefined : events[type];
  if (handler === undefined) return false;
  if (typeof handler === "function") {
    captured(this, handler.apply(this, args), type, args);
  } else {
    const listeners = handler.slice();
    for (let i = 0; i < listeners.length; i++) captured(this, listeners[i].apply(this, args), type, args);
  }
  return true;
};

function add(target, type, listener, first) {
  callback(listener, "listener");
  let events = target._events;
  if (events === undefined) {
    events = target._events = Object.create(null);
    target._eventsCount = 0;
  } else if (events.newListener !== undefined) {
    target.emit("newListener", type, listener.listener || listener);
    events = target._events;
  }
  const existing = events[type];
  if (existing === undefined) {
    events[type] = listener;
    target._eventsCount++;
    return target;
  }
  let list = existing;
  if (typeof existing === "function") list = events[type] = first ? [listener, existing] : [existing, listener];
  else if (first) existing.unshift(listener);
  else existing.push(listener);
  const most = target.getMaxListeners ? target.getMaxListeners() : defaultMaxListeners;
  if (most > 0 && list.length > most && !list.warned) {
    list.warned = true;
    const name = target.constructor && target.constructor.name;
    const warning = new Error(`Possible EventEmitter memory leak detected. ${list.length} ${String(type)} listeners added to ${name}. MaxListeners is ${most}. Use emitter.setMaxListeners() to increase limit`);
    warning.name = "MaxListenersExceededWarning";
    process().emitWarning(warning);
  }
  return target;
}

proto.on = proto.addListener = function addListener(type, listener) { return add(this, type, listener, false); };
proto.prependListener = function prependListener(type, listener) { return add(this, type, listener, true); };

function wrapped(target, type, listener) {
  callback(listener, "listener");
  const once = function (...args) {
    if (once.fired) return undefined;
    target.removeListener(type, once);
    once.fired = true;
    return listener.apply(target, args);
  };
  once.listener = listener;
  return once;
}

proto.once = function once(type, listener) { return this.on(type, wrapped(this, type, listener)); };
proto.prependOnceListener = function prependOnceListener(type, listener) { return this.prependListener(type, wrapped(this, type, listener)); };

proto.off = proto.removeListener = function removeListener(type, listener) {
  callback(listener, "listener");
  const events = this._events;
  const list = events === undefined ? undefined : events[type];
  if (list === undefined) return this;
  let removed;
  if (list === listener || list.listener === listener) {
    removed = list;
    this._eventsCount--;
    delete events[type];
  } else if (typeof list !== "function") {
    let at = list.length - 1;
    while (at >= 0 && list[at] !== listener && list[at].listener !== listener) at--;
    if (at < 0) return this;
    removed = list[at];
    list.splice(at, 1);
    if (list.length === 1) events[type] = list[0];
  } else {
    return this;
  }
  if (events.removeListener !== undefined) this.emit("removeListener", type, removed.listener || removed);
  return this;
};

proto.removeAllListeners = function removeAllListeners(...which) {
  const events = this._events;
  if (events === undefined) return this;
  if (which.length === 0) {
    if (events.removeListener !== undefined) {
      for (const key of Reflect.ownKeys(events)) if (key !== "removeListener") this.removeAllListeners(key);
    }
    this._events = Object.create(null);
    this._eventsCount = 0;
    return this;
  }
  const type = which[0], list = events[type];
  if (list === undefined) return this;
  if (events.removeListener === undefined) {
    delete events[type];
    this._eventsCount--;
    return this;
  }
  for (const f of [].concat(list).reverse()) this.removeListener(type, f);
  return this;
};

function listenersOf(target, type, unwrap) {
  const list = target._events === undefined ? undefined : target._events[type];
  if (list === undefined) return [];
  return [].concat(list).map((f) => (unwrap ? f.listener || f : f));
}

proto.listeners = function listeners(type) { return listenersOf(this, type, true); };
proto.rawListeners = function rawListeners(type) { return listenersOf(this, type, false); };
proto.listenerCount = function listenerCount(type, listener) {
  const list = listenersOf(this, type, false);
  return listener ? list.filter((f) => f === listener || f.listener === listener).length : list.length;
};
proto.eventNames = function eventNames() { return this._eventsCount > 0 ? Reflect.ownKeys(this._events) : []; };

function once(emitter, name, options) {
  return new Promise((resolve, reject) => {
    const signal = options && options.signal;
    if (signal && signal.aborted) throw new AbortError(undefined, { cause: signal.reason });
    const done = () => {
      off(emitter, name, got);
      if (emitter.removeListener && name !== "error") emitter.removeListener("error", failed);
      if (signal) signal.removeEventListener("abort", aborted);
    };
    const got = (...args) => { done(); resolve(args); };
    const failed = (error) => { done(); reject(error); };
    const aborted = () => { done(); reject(new AbortError(undefined, { cause: signal.reason })); };
    listen(emitter, name, got);
    if (emitter.on && name !== "error") emitter.once("error", failed);
    if (signal) signal.addEventListener("abort", aborted, { once: true });
  });
}

function listen(emitter, name, f) {
  if (typeof emitter.on === "function") emitter.on(name, f);
  else if (typeof emitter.addEventListener === "function") emitter.addEventListener(name, f);
  else throw invalidType("emitter", "EventEmitter", emitter);
}

function off(emitter, name, f) {
  if (typeof emitter.removeListener === "function") emitter.removeListener(name, f);
  else emitter.removeEventListener(name, f);
}

function on(emitter, name, options = {}) {
  const { signal } = options;
  if (signal && signal.aborted) throw new AbortError(undefined, { cause: signal.reason });
  const events = [], waiting = [];
  let error, finished = false;
  const got = (...args) => { if (waiting.length) waiting.shift().resolve({ value: args, done: false }); else events.push(args); };
  const failed = (e) => { if (waiting.length) waiting.shift().reject(e); else error = e; finish(); };
  const aborted = () => failed(new AbortError(undefined, { cause: signal.reason }));
  const finish = () => {
    finished = true;
    off(emitter, name, got);
    if (emitter.removeListener) emitter.removeListener("error", failed);
    for (const type of options.close || []) off(emitter, type, finish);
    if (signal) signal.removeEventListener("abort", aborted);
    for (const w of waiting.splice(0)) w.resolve({ value: undefined, done: true });
  };
  listen(emitter, name, got);
  if (name !== "error" && emitter.on) emitter.on("error", failed);
  for (const type of options.close || []) listen(emitter, type, finish);
  if (signal) signal.addEventListener("abort", aborted, { once: true });
  return {
    next() {
      if (events.length) return Promise.resolve({ value: events.shift(), done: false });
      if (error) {
        const e = error;
        error = undefined;
        return Promise.reject(e);
      }
      if (finished) return Promise.resolve({ value: undefined, done: true });
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
    return() { finish(); return Promise.resolve({ value: undefined, done: true }); },
    throw(e) { failed(e); return Promise.resolve({ value: undefined, done: true }); },
    [asyncIterator]() { return this; },
  };
}

function EventEmitterAsyncResource(options) {
  EventEmitter.call(this, options);
  const { AsyncResource } = require("async_hooks");
  this.asyncResource = new AsyncResource((options && options.name) || "EventEmitterAsyncResource");
}
Object.setPrototypeOf(EventEmitterAsyncResource.prototype, proto);
Object.setPrototypeOf(EventEmitterAsyncResource, EventEmitter);
EventEmitterAsyncResource.prototype.emit = function emit(...args) {
  return this.asyncResource.runInAsyncScope(proto.emit, this, ...args);
};

module.exports = Object.assign(EventEmitter, {
  EventEmitter, EventEmitterAsyncResource, once, on, errorMonitor, captureRejectionSymbol, captureRejections: false, usingDomains: false,
  kMaxEventTargetListeners: Symbol("events.maxEventTargetListeners"),
  kMaxEventTargetListenersWarned: Symbol("events.maxEventTargetListenersWarned"),
  listenerCount: (emitter, type) => emitter.listenerCount(type),
  getEventListeners: (emitter, type) => (emitter.listeners ? emitter.listeners(type) : []),
  getMaxListeners: (emitter) => (emitter.getMaxListeners ? emitter.getMaxListeners() : defaultMaxListeners),
  setMaxListeners(n = defaultMaxListeners, ...targets) {
    if (targets.length === 0) defaultMaxListeners = n;
    for (const t of targets) if (t.setMaxListeners) t.setMaxListeners(n);
  },
  addAbortListener(signal, listener) {
    if (signal.aborted) queueMicrotask(() => listener());
    else signal.addEventListener("abort", listener, { once: true });
    const remove = () => signal.removeEventListener("abort", listener);
    return Symbol.dispose ? { [Symbol.dispose]: remove } : {};
  },
});
Object.defineProperty(EventEmitter, "defaultMaxListeners", {
  enumerable: true,
  get: () => defaultMaxListeners,
  set(n) {
    if (typeof n !== "number" || n < 0 || n !== n) throw outOfRange("defaultMaxListeners", "a non-negative number", n);
    defaultMaxListeners = n;
  },
});
