// MessageEvent, MessageChannel and MessagePort (https://html.spec.whatwg.org/#web-messaging).
// A message is delivered by a task of the loop, in the activation that sent it.
const { expose, dictionary, needs, illegal, Queue } = require("internal/webidl");
const { Event, EventTarget, initialize, fire, handlerOf, setHandler } = require("internal/events");

class MessageEvent extends Event {
  #m;
  constructor(type, options = undefined) {
    needs(arguments.length, 1, "MessageEvent");
    super(type, options);
    const { data, lastEventId, origin, ports, source } = dictionary(options, "The options");
    this.#m = {
      data: data === undefined ? null : data, origin: origin === undefined ? "" : `${origin}`, lastEventId: lastEventId === undefined ? "" : `${lastEventId}`,
      source: sourceOf(source), ports: portsOf(ports),
    };
  }
  get data() { return this.#m.data; }
  get origin() { return this.#m.origin; }
  get lastEventId() { return this.#m.lastEventId; }
  get source() { return this.#m.source; }
  get ports() { return this.#m.ports; }
  initMessageEvent(type, bubbles = false, cancelable = false, data = null, origin = "", lastEventId = "", source = null, ports = []) {
    this.#m;
    needs(arguments.length, 1, "initMessageEvent");
    const m = { data, origin: `${origin}`, lastEventId: `${lastEventId}`, source: sourceOf(source), ports: portsOf(ports) };
    if (initialize(this, `${type}`, bubbles, cancelable)) this.#m = m;
  }
}
expose(MessageEvent);

function sourceOf(source) {
  if (source === undefined || source === null) return null;
  if (!isPort(source)) throw new TypeError("The source of a message must be a MessagePort");
  return source;
}

function portsOf(ports) {
  const list = ports === undefined ? [] : [...ports];
  for (const p of list) if (!isPort(p)) throw new TypeError("The ports of a message must be of the class MessagePort");
  return Object.freeze(list);
}

let making, stateOf, isPort;

class MessagePort extends EventTarget {
  #p;
  static {
    stateOf = (port) => port.#p;
    isPort = (o) => o !== null && typeof o === "object" && #p in o;
  }
  constructor() {
    if (!making) throw illegal("MessagePort");
    super();
    this.#p = { ...making, object: this };
    making = undefined;
  }
  postMessage(message, options = undefined) {
    const p = this.#p;
    needs(arguments.length, 1, "postMessage");
    post(p, message, transferOf(options));
  }
  start() { begin(this.#p); }
  close() { close(this.#p); }
  get onmessage() { return this.#p && handlerOf(this, "message"); }
  set onmessage(f) {
    this.#p;
    setHandler(this, "message", f);
    begin(this.#p);
  }
  get onmessageerror() { return this.#p && handlerOf(this, "messageerror"); }
  set onmessageerror(f) { this.#p; setHandler(this, "messageerror", f); }
  get onclose() { return this.#p && handlerOf(this, "close"); }
  set onclose(f) { this.#p; setHandler(this, "close", f); }
}
expose(MessagePort);

function begin(p) {
  if (p.started || p.detached) return;
  p.started = true;
  for (let i = p.queue.length; i > 0; i--) schedule(p);
}

function newPort() {
  making = { peer: undefined, queue: new Queue(), started: false, detached: false, closed: false };
  return new MessagePort();
}

// transferOf reads the second argument of postMessage: a sequence or a dictionary.
function transferOf(options) {
  if (options === undefined || options === null) return [];
  if (typeof options !== "object" && typeof options !== "function") throw new TypeError("postMessage: the options must be an object");
  const list = typeof options[Symbol.iterator] === "function" ? options : options.transfer;
  const transfer = list === undefined ? [] : [...list];
  for (const item of transfer) if (item === null || typeof item !== "object" && typeof item !== "function") throw new TypeError("postMessage: a value of transfer is no object");
  return transfer;
}

function post(p, message, transfer) {
  if (transfer.includes(p.object)) throw new DOMException("A port cannot transfer itself", "DataCloneError");
  const target = p.peer, doomed = !!target && transfer.includes(target.object);
  const [data, ports] = natives.clone(message, transfer);
  if (!target || target.closed || p.detached || doomed) return;
  target.queue.push({ data, ports, of: natives.activation() });
  if (target.started) schedule(target);
}

// schedule delivers the next message of a port, if it has one then. Messages of an activation
// that has ended are dropped: their tasks ended with it.
function schedule(p) {
  natives.task(() => {
    if (p.closed || p.detached || !p.started) return;
    const m = next(p);
    if (m) fire(p.object, new MessageEvent("message", { data: m.data, ports: m.ports }));
  });
}

// next takes the next message that this activation sent, undefined if there is none.
function next(p) {
  while (p.queue.length > 0) {
    const m = p.queue.shift();
    if (m.of === natives.activation()) return m;
  }
  return undefined;
}

function close(p) {
  if (p.closed || p.detached) return;
  p.closed = true;
  p.queue.clear();
  const { peer } = p;
  p.peer = undefined;
  if (!peer) return;
  // What was sent before is still delivered.
  peer.peer = undefined;
  natives.task(() => { if (!peer.detached && !peer.closed) fire(peer.object, new Event("close")); });
}

// transfer moves the state of a port to another object, for a message or a clone.
function transfer(port, fresh) {
  const from = stateOf(port), to = stateOf(fresh);
  Object.assign(to, { peer: from.peer, queue: from.queue, closed: from.closed });
  if (to.peer) to.peer.peer = to;
  Object.assign(from, { peer: undefined, queue: new Queue(), detached: true });
}

class MessageChannel {
  #one;
  #two;
  constructor() {
    this.#one = newPort();
    this.#two = newPort();
    stateOf(this.#one).peer = stateOf(this.#two);
    stateOf(this.#two).peer = stateOf(this.#one);
  }
  get port1() { return this.#one; }
  get port2() { return this.#two; }
}
expose(MessageChannel);

module.exports = {
  MessageEvent, MessageChannel, MessagePort, isPort, newPort, transfer,
  transferable: (port) => !stateOf(port).detached && !stateOf(port).closed,
  receive(port) {
    const m = next(stateOf(port));
    return m && { message: m.data };
  },
};
