// WebSocket and CloseEvent (https://websockets.spec.whatwg.org). The host has the socket; it
// ends with the activation that opened it.
const { expose, constants, dictionary, needs, react, handled, Queue } = require("internal/webidl");
const { Event, EventTarget, fire, handlerOf, setHandler } = require("internal/events");
const { MessageEvent } = require("internal/messaging");
const { ErrorEvent } = require("internal/reporting");
const { isBlob, bytesOf, blobOf, usv } = require("internal/web");
const { Buffer, isArrayBuffer } = require("internal/bytes");

const CONNECTING = 0, OPEN = 1, CLOSING = 2, CLOSED = 3;

class CloseEvent extends Event {
  #c;
  constructor(type, options = undefined) {
    needs(arguments.length, 1, "CloseEvent");
    super(type, options);
    const { code, reason, wasClean } = dictionary(options, "The options");
    this.#c = { code: code & 0xffff, reason: reason === undefined ? "" : `${reason}`, wasClean: !!wasClean };
  }
  get wasClean() { return this.#c.wasClean; }
  get code() { return this.#c.code; }
  get reason() { return this.#c.reason; }
}
expose(CloseEvent);

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const syntaxError = (message) => new DOMException(`WebSocket: ${message}`, "SyntaxError");

class WebSocket extends EventTarget {
  #s;
  constructor(url, protocols = []) {
    needs(arguments.length, 1, "WebSocket");
    super();
    const address = `${url}`, parsed = natives.parse(address);
    if (!parsed) throw syntaxError(`${JSON.stringify(address)} is no URL with the scheme ws, wss, http or https and without a fragment`);
    const wanted = protocolsOf(protocols);
    this.#s = {
      object: this, url: parsed[0], origin: parsed[1], state: CONNECTING, id: 0, protocol: "", binaryType: "blob",
      queue: new Queue(), buffered: 0, sending: false, closing: undefined,
    };
    open(this.#s, wanted);
  }
  get url() { return this.#s.url; }
  get readyState() { return this.#s.state; }
  get bufferedAmount() { return this.#s.buffered; }
  get extensions() { return this.#s && ""; }
  get protocol() { return this.#s.protocol; }
  get binaryType() { return this.#s.binaryType; }
  set binaryType(type) {
    const s = this.#s, value = `${type}`;
    if (value === "blob" || value === "arraybuffer") s.binaryType = value;
  }
  send(data) {
    const s = this.#s;
    needs(arguments.length, 1, "send");
    if (s.state === CONNECTING) throw new DOMException("send: the socket is not open yet", "InvalidStateError");
    const message = messageOf(data), size = typeof message === "string" ? Buffer.byteLength(message) : message.length;
    s.buffered += size;
    if (s.state !== OPEN) return;
    s.queue.push({ message, size });
    flush(s);
  }
  close(code = undefined, reason = undefined) {
    const s = this.#s, given = code === undefined ? 0 : clamped(code), text = reason === undefined ? "" : usv(reason);
    if (code !== undefined && given !== 1000 && (given < 3000 || given > 4999)) throw new DOMException(`close: the code ${given} is neither 1000 nor from 3000 to 4999`, "InvalidAccessError");
    if (Buffer.byteLength(text) > 123) throw syntaxError("the reason of a close has at most 123 bytes");
    if (s.state === CLOSING || s.state === CLOSED) return;
    const connecting = s.state === CONNECTING;
    s.state = CLOSING;
    s.closing = { code: code === undefined && text ? 1000 : given, text };
    if (!connecting) flush(s);
  }
}
for (const type of ["open", "error", "close", "message"]) {
  Object.defineProperty(WebSocket.prototype, "on" + type, {
    get() { return isSocket(this) && handlerOf(this, type); },
    set(f) { if (isSocket(this)) setHandler(this, type, f); },
    configurable: true,
  });
}
// isSocket throws a TypeError for an object that is none.
const isSocket = (o) => { readyState.call(o); return true; };
const readyState = Object.getOwnPropertyDescriptor(WebSocket.prototype, "readyState").get;
expose(WebSocket);
constants(WebSocket, { CONNECTING, OPEN, CLOSING, CLOSED });

function protocolsOf(protocols) {
  const list = typeof protocols === "object" && protocols !== null ? [...protocols].map((p) => `${p}`) : [`${protocols}`];
  for (const [i, p] of list.entries()) {
    if (!token.test(p)) throw syntaxError(`${JSON.stringify(p)} is no name of a protocol`);
    if (list.indexOf(p) !== i) throw syntaxError(`the protocol ${p} is there twice`);
  }
  return list;
}

// clamped converts to an unsigned short, as [Clamp] of Web IDL does.
function clamped(code) {
  const n = Number(code);
  if (!(n > 0)) return 0;
  return n > 65535 ? 65535 : Math.round(n);
}

// messageOf returns a text, or a copy of bytes.
function messageOf(data) {
  if (isBlob(data)) return bytesOf(data); // they never change
  if (ArrayBuffer.isView(data)) return Buffer.from(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  if (isArrayBuffer(data)) return Buffer.from(new Uint8Array(data));
  return usv(data);
}

function open(s, protocols) {
  handled(react(natives.open(s.url, protocols), ([id, protocol]) => {
    s.id = id;
    if (s.state !== CONNECTING) { // closed by the script meanwhile
      failed(s, new Error("WebSocket was closed before it was open"));
      return listen(s); // the host keeps the socket until its end was received
    }
    s.state = OPEN;
    s.protocol = protocol;
    fire(s.object, new Event("open"));
    return listen(s);
  }, (e) => ended(s, 1006, "", e)));
}

// listen waits for one message after the other: a server waits until a message was handled.
function listen(s) {
  handled(react(natives.receive(s.id), ([message, code, reason, error]) => {
    if (message === undefined) return ended(s, code, reason, error ? new Error(`WebSocket: ${error}`) : undefined);
    if (s.state === OPEN) fire(s.object, new MessageEvent("message", { data: dataOf(s, message), origin: s.origin }));
    return listen(s);
  }, (e) => failed(s, e)));
}

function dataOf(s, message) {
  if (typeof message === "string") return message;
  return s.binaryType === "blob" ? blobOf(message, "") : message.buffer;
}

// flush sends the next message, and the close behind the last one.
function flush(s) {
  if (s.sending || s.id === 0 || s.state === CLOSED) return;
  const next = s.queue.shift();
  if (!next) {
    if (!s.closing || s.closing.sent) return;
    s.closing.sent = true;
    handled(react(natives.close(s.id, s.closing.code, s.closing.text), undefined, (e) => ended(s, 1006, "", e)));
    return;
  }
  s.sending = true;
  handled(react(natives.send(s.id, next.message), () => {
    s.sending = false;
    s.buffered -= next.size;
    flush(s);
  }, (e) => failed(s, e)));
}

// failed closes a socket that cannot be used any more, and reports the error.
function failed(s, error) {
  if (s.state === CLOSED) return;
  handled(natives.close(s.id, 0, ""));
  ended(s, 1006, "", error);
}

// ended reports the end of the socket, once: an error if it was not in order, and the close.
function ended(s, code, reason, error) {
  if (s.state === CLOSED) return;
  s.state = CLOSED;
  s.queue.clear();
  if (error) fire(s.object, new ErrorEvent("error", { message: error.message, error }));
  fire(s.object, new CloseEvent("close", { code, reason, wasClean: !error }));
}

module.exports = { WebSocket, CloseEvent };
