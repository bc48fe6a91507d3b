// Event, CustomEvent and EventTarget (https://dom.spec.whatwg.org/#events), for objects that
// are in no tree. The global object and signals are targets, too: their listeners are kept
// beside them.
const { expose, constants, dictionary, needs, apply } = require("internal/webidl");
const { aborted, isSignal, onAbort } = require("internal/signals");

let stateOf, isEvent;

class Event {
  #e;
  static {
    stateOf = (event) => event.#e;
    isEvent = (o) => o !== null && typeof o === "object" && #e in o;
  }
  constructor(type, options = undefined) {
    needs(arguments.length, 1, "Event");
    type = `${type}`;
    const { bubbles, cancelable, composed } = dictionary(options, "The options");
    this.#e = {
      type, bubbles: !!bubbles, cancelable: !!cancelable, composed: !!composed, target: null, current: null, phase: 0, time: natives.now(),
      ready: true, running: false, stopped: false, halted: false, prevented: false, passive: false, trusted: false,
    };
    Object.defineProperty(this, "isTrusted", { get: isTrusted, enumerable: true });
  }
  get type() { return this.#e.type; }
  get target() { return this.#e.target; }
  get srcElement() { return this.#e.target; }
  get currentTarget() { return this.#e.current; }
  composedPath() { return this.#e.current === null ? [] : [this.#e.current]; }
  get eventPhase() { return this.#e.phase; }
  stopPropagation() { this.#e.stopped = true; }
  get cancelBubble() { return this.#e.stopped; }
  set cancelBubble(v) { if (v) this.#e.stopped = true; else this.#e; }
  stopImmediatePropagation() { this.#e.stopped = this.#e.halted = true; }
  get bubbles() { return this.#e.bubbles; }
  get cancelable() { return this.#e.cancelable; }
  get returnValue() { return !this.#e.prevented; }
  set returnValue(v) { if (!v) prevent(this.#e); else this.#e; }
  preventDefault() { prevent(this.#e); }
  get defaultPrevented() { return this.#e.prevented; }
  get composed() { return this.#e.composed; }
  get timeStamp() { return this.#e.time; }
  initEvent(type, bubbles = false, cancelable = false) {
    needs(arguments.length, 1, "initEvent");
    initialize(this, `${type}`, bubbles, cancelable);
  }
}
expose(Event);
constants(Event, { NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 });
const isTrusted = Object.getOwnPropertyDescriptor({ get isTrusted() { return stateOf(this).trusted; } }, "isTrusted").get;

function prevent(e) { if (e.cancelable && !e.passive) e.prevented = true; }

// initialize is the algorithm of initEvent. It reports whether the event is not being
// dispatched, and was changed.
function initialize(event, type, bubbles, cancelable) {
  const e = stateOf(event);
  if (e.running) return false;
  Object.assign(e, { ready: true, stopped: false, halted: false, prevented: false, trusted: false, target: null, type, bubbles: !!bubbles, cancelable: !!cancelable });
  return true;
}

class CustomEvent extends Event {
  #detail;
  constructor(type, options = undefined) {
    needs(arguments.length, 1, "CustomEvent");
    super(type, options);
    const { detail } = dictionary(options, "The options");
    this.#detail = detail === undefined ? null : detail;
  }
  get detail() { return this.#detail; }
  initCustomEvent(type, bubbles = false, cancelable = false, detail = null) {
    this.#detail;
    needs(arguments.length, 1, "initCustomEvent");
    if (initialize(this, `${type}`, bubbles, cancelable)) this.#detail = detail;
  }
}
expose(CustomEvent);

const targets = new WeakMap(); // of targets: their listeners by type

class EventTarget {
  constructor() { targets.set(this, new Map()); }
  addEventListener(type, callback, options = undefined) {
    const target = targetOf(this);
    needs(arguments.length, 2, "addEventListener");
    add(target, `${type}`, listenerOf(callback), addOptions(options));
  }
  removeEventListener(type, callback, options = undefined) {
    const list = listenersOf(targetOf(this)).get(`${type}`);
    needs(arguments.length, 2, "removeEventListener");
    listenerOf(callback);
    const capture = captureOf(options), found = list && list.find((l) => l.callback === callback && l.capture === capture);
    if (found) remove(list, found);
  }
  dispatchEvent(event) {
    const target = targetOf(this);
    needs(arguments.length, 1, "dispatchEvent");
    if (!isEvent(event)) throw new TypeError("dispatchEvent: the argument must be an Event");
    const e = stateOf(event);
    if (e.running || !e.ready) throw new DOMException("The event is being dispatched", "InvalidStateError");
    e.trusted = false;
    return dispatch(event, target);
  }
}
expose(EventTarget);

// targetOf returns the target of a method's receiver: without one it is the global object.
function targetOf(o) {
  if (o === undefined || o === null) return globalThis;
  if (targets.has(o) || o === globalThis || isSignal(o)) return o;
  throw new TypeError("Illegal invocation: the receiver is not an EventTarget");
}

// A list has the listeners of a type. Its member known has a bit for each callback that is a
// listener: to look through the list would make many listeners slow.
const bitOf = (capture) => (capture ? 2 : 1);

function newList() {
  const list = [];
  list.known = new Map();
  return list;
}

function listenersOf(target) {
  let all = targets.get(target);
  if (!all) targets.set(target, (all = new Map()));
  return all;
}

const isObject = (v) => v !== null && (typeof v === "object" || typeof v === "function");

function listenerOf(callback) {
  if (callback !== null && callback !== undefined && !isObject(callback)) throw new TypeError("A listener must be a function or an object");
  return callback;
}

const captureOf = (options) => (isObject(options) ? !!options.capture : !!options);

function addOptions(options) {
  if (!isObject(options)) return { capture: !!options };
  const { capture, once, passive, signal } = options;
  if (signal !== undefined && !isSignal(signal)) throw new TypeError("The option signal must be an AbortSignal");
  return { capture: !!capture, once: !!once, passive: !!passive, signal };
}

function add(target, type, callback, { capture, once, passive, signal }) {
  if (signal && aborted(signal) || callback === null || callback === undefined) return;
  const all = listenersOf(target);
  let list = all.get(type);
  if (!list) all.set(type, (list = newList()));
  const bits = list.known.get(callback) || 0;
  if (bits & bitOf(capture)) return;
  list.known.set(callback, bits | bitOf(capture));
  const l = { callback, capture, once, passive, removed: false };
  list.push(l);
  if (signal) onAbort(signal, () => remove(list, l));
}

function remove(list, l) {
  const at = list.indexOf(l);
  l.removed = true;
  if (at < 0) return;
  list.splice(at, 1);
  const bits = list.known.get(l.callback) & ~bitOf(l.capture);
  if (bits) list.known.set(l.callback, bits);
  else list.known.delete(l.callback);
}

// dispatch calls the listeners, those that capture first, and reports whether none of them
// prevented the default.
function dispatch(event, target) {
  const e = stateOf(event), list = listenersOf(target).get(e.type);
  e.running = true;
  e.target = e.current = target;
  e.phase = 2;
  if (list) {
    const before = list.slice();
    for (const capture of [true, false]) if (!e.stopped) invoke(event, e, before.filter((l) => l.capture === capture), list);
  }
  e.phase = 0;
  e.current = null;
  e.running = e.stopped = e.halted = false;
  return !e.prevented;
}

function invoke(event, e, some, list) {
  for (const l of some) {
    if (l.removed) continue;
    if (l.once) remove(list, l);
    e.passive = l.passive;
    try {
      call(l, event, e);
    } catch (error) {
      e.passive = false;
      require("internal/reporting").report(error);
    }
    e.passive = false;
    if (e.halted) return;
  }
}

function call(l, event, e) {
  if (l.handler) {
    handle(l, event, e);
    return;
  }
  if (typeof l.callback === "function") {
    apply(l.callback, e.current, [event]);
    return;
  }
  const f = l.callback.handleEvent;
  if (typeof f !== "function") throw new TypeError("The listener has no method handleEvent");
  apply(f, l.callback, [event]);
}

// handle runs an event handler (https://html.spec.whatwg.org/#the-event-handler-processing-algorithm).
function handle(l, event, e) {
  if (typeof l.handler !== "function") return; // an object is kept as it is
  const special = e.current === globalThis && e.type === "error" && require("internal/reporting").isErrorEvent(event);
  const args = special ? [event.message, event.filename, event.lineno, event.colno, event.error] : [event];
  const result = apply(l.handler, e.current, args);
  if (special ? result === true : result === false) prevent(e);
}

// handlerOf and setHandler are the getter and the setter of an attribute such as onmessage: a
// handler is called where it stood when it was first set.
function handlerOf(target, type) {
  const list = listenersOf(target).get(type), l = list && list.find((x) => x.handler);
  return l ? l.handler : null;
}

function setHandler(target, type, handler) {
  const list = listenersOf(target).get(type), l = list && list.find((x) => x.handler);
  if (!isObject(handler)) {
    if (l) remove(list, l);
    return;
  }
  if (l) {
    l.handler = handler;
    return;
  }
  add(target, type, {}, { capture: false });
  listenersOf(target).get(type).at(-1).handler = handler;
}

// fire dispatches an event of the platform.
function fire(target, event) {
  stateOf(event).trusted = true;
  return dispatch(event, target);
}

// listens reports whether a target has listeners of a type.
const listens = (target, type) => (listenersOf(target).get(type) || []).length > 0;

const fireAbort = (signal) => { fire(signal, new Event("abort")); };

module.exports = { Event, CustomEvent, EventTarget, isEvent, initialize, add, fire, fireAbort, listens, handlerOf, setHandler };
