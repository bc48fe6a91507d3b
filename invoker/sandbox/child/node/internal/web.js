// Classes of the web that libraries expect when they load, in the parts that they use.
const { Buffer, viewOf, isArrayBuffer } = require("internal/bytes");
const { coded, invalidType } = require("internal/errors");
const asyncIterator = Symbol.asyncIterator || Symbol.for("Symbol.asyncIterator");

class Event {
  #state = { target: null, prevented: false, stopped: false, now: 0 };
  constructor(type, options) {
    if (arguments.length === 0) throw new TypeError("Event: the type is missing");
    this.type = String(type);
    this.bubbles = !!(options && options.bubbles);
    this.cancelable = !!(options && options.cancelable);
    this.composed = !!(options && options.composed);
    this.timeStamp = 0;
    this.isTrusted = false;
  }
  get target() { return this.#state.target; }
  get currentTarget() { return this.#state.target; }
  get srcElement() { return this.#state.target; }
  get defaultPrevented() { return this.#state.prevented; }
  get returnValue() { return !this.#state.prevented; }
  get eventPhase() { return this.#state.now; }
  get cancelBubble() { return this.#state.stopped; }
  composedPath() { return this.#state.now ? [this.#state.target] : []; }
  preventDefault() { if (this.cancelable) this.#state.prevented = true; }
  stopPropagation() {}
  stopImmediatePropagation() { this.#state.stopped = true; }
  static dispatch(event, target, phase) {
    event.#state.target = target;
    event.#state.now = phase;
    return event.#state;
  }
}
const dispatch = Event.dispatch;
delete Event.dispatch;
for (const [name, value] of [["NONE", 0], ["CAPTURING_PHASE", 1], ["AT_TARGET", 2], ["BUBBLING_PHASE", 3]]) Event[name] = Event.prototype[name] = value;

class CustomEvent extends Event {
  constructor(type, options) {
    super(type, options);
    this.detail = options && options.detail !== undefined ? options.detail : null;
  }
}

class EventTarget {
  #listeners = new Map();
  addEventListener(type, listener, options) {
    if (listener == null) return;
    const capture = typeof options === "boolean" ? options : !!(options && options.capture);
    const once = !!(options && options.once), signal = options && options.signal;
    if (signal && signal.aborted) return;
    let list = this.#listeners.get(String(type));
    if (!list) this.#listeners.set(String(type), (list = []));
    if (list.some((l) => l.listener === listener && l.capture === capture)) return;
    list.push({ listener, capture, once });
    if (signal) signal.addEventListener("abort", () => this.removeEventListener(type, listener, options));
  }
  removeEventListener(type, listener, options) {
    const capture = typeof options === "boolean" ? options : !!(options && options.capture);
    const list = this.#listeners.get(String(type));
    if (list) this.#listeners.set(String(type), list.filter((l) => l.listener !== listener || l.capture !== capture));
  }
  dispatchEvent(event) {
    if (!(event instanceof Event)) throw invalidType("event", "Event", event);
    const state = dispatch(event, this, 2);
    for (const l of (this.#listeners.get(event.type) || []).slice()) {
      if (state.stopped) break;
      if (l.once) this.removeEventListener(event.type, l.listener, l.capture);
      if (typeof l.listener === "function") l.listener.call(this, event);
      else l.listener.handleEvent(event);
    }
    dispatch(event, this, 0);
    return !event.defaultPrevented;
  }
}

class Blob {
  #bytes;
  #type;
  constructor(parts = [], options = {}) {
    if (parts === null || typeof parts !== "object" || typeof parts[Symbol.iterator] !== "function") throw new TypeError("Blob: the parts must be a sequence");
    this.#bytes = Buffer.concat(Array.from(parts, (part) => {
      if (part instanceof Blob) return part.#bytes;
      if (ArrayBuffer.isView(part)) return Buffer.from(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
      if (isArrayBuffer(part)) return Buffer.from(new Uint8Array(part));
      return Buffer.from(String(part));
    }));
    const type = options && options.type !== undefined ? String(options.type) : "";
    this.#type = /[^\x20-\x7e]/.test(type) ? "" : type.toLowerCase();
  }
  get size() { return this.#bytes.length; }
  get type() { return this.#type; }
  slice(start, end, type = "") {
    const out = new Blob([], { type });
    out.#bytes = this.#bytes.subarray(start, end);
    return out;
  }
  async text() { return new TextDecoder().decode(this.#bytes); }
  async arrayBuffer() { return new Uint8Array(this.#bytes).buffer; }
  async bytes() { return new Uint8Array(this.#bytes); }
  stream() { return require("internal/webstreams").streamOfWhole(this.#bytes); }
  get [Symbol.toStringTag]() { return "Blob"; }
  static bytesOf(blob) { return blob.#bytes; }
}
const bytesOf = Blob.bytesOf;
delete Blob.bytesOf;

class File extends Blob {
  #name;
  #modified;
  constructor(parts, name, options = {}) {
    if (arguments.length < 2) throw new TypeError("File: the name is missing");
    super(parts, options);
    this.#name = String(name);
    this.#modified = options && options.lastModified !== undefined ? Number(options.lastModified) : Date.now();
  }
  get name() { return this.#name; }
  get lastModified() { return this.#modified; }
  get webkitRelativePath() { return ""; }
  get [Symbol.toStringTag]() { return "File"; }
}

class FormData {
  #entries = [];
  constructor(form) {
    if (form !== undefined) throw new TypeError("FormData: there are no forms");
  }
  #value(value, filename) {
    if (!(value instanceof Blob)) return String(value);
    if (value instanceof File && filename === undefined) return value;
    return new File([value], filename === undefined ? "blob" : String(filename), { type: value.type });
  }
  append(name, value, filename) { this.#entries.push([String(name), this.#value(value, filename)]); }
  set(name, value, filename) {
    name = String(name);
    const at = this.#entries.findIndex((e) => e[0] === name), entry = [name, this.#value(value, filename)];
    this.#entries = this.#entries.filter((e, i) => e[0] !== name || i === at);
    if (at < 0) this.#entries.push(entry);
    else this.#entries[this.#entries.findIndex((e) => e[0] === name)] = entry;
  }
  get(name) { const e = this.#entries.find((x) => x[0] === String(name)); return e ? e[1] : null; }
  getAll(name) { return this.#entries.filter((e) => e[0] === String(name)).map((e) => e[1]); }
  has(name) { return this.#entries.some((e) => e[0] === String(name)); }
  delete(name) { this.#entries = this.#entries.filter((e) => e[0] !== String(name)); }
  forEach(f, self) { for (const [k, v] of this.#entries) f.call(self, v, k, this); }
  entries() { return this.#entries.map((e) => e.slice())[Symbol.iterator](); }
  keys() { return this.#entries.map((e) => e[0])[Symbol.iterator](); }
  values() { return this.#entries.map((e) => e[1])[Symbol.iterator](); }
  [Symbol.iterator]() { return this.entries(); }
  get [Symbol.toStringTag]() { return "FormData"; }
}

// bodyOf returns what is the body of a message for an object: its bytes or a stream of them,
// and its content type. It is undefined for objects that are text.
function bodyOf(value) {
  if (value instanceof Blob) return { bytes: bytesOf(value), type: value.type };
  if (!(value instanceof FormData)) {
    const streams = require("internal/webstreams");
    if (streams.isReadable(value)) return streams.bodyOfStream(value);
    if (typeof value[asyncIterator] === "function") return { stream: streams.streamOfBytes(value), type: "" };
    return undefined;
  }
  const boundary = "----sous" + crypto.randomUUID().replace(/-/g, "");
  const quoted = (s) => s.replace(/\r\n|\r|\n/g, "%0D%0A").replace(/"/g, "%22");
  const parts = [];
  for (const [name, v] of value) {
    let head = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(name)}"`;
    if (v instanceof Blob) head += `; filename="${quoted(v.name)}"\r\nContent-Type: ${v.type || "application/octet-stream"}`;
    parts.push(Buffer.from(head + "\r\n\r\n"), v instanceof Blob ? bytesOf(v) : Buffer.from(v.replace(/\r\n|\r|\n/g, "\r\n")), Buffer.from("\r\n"));
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`));
  return { bytes: Buffer.concat(parts), type: `multipart/form-data; boundary=${boundary}` };
}

// formOf reads a body as a form of its content type.
function formOf(bytes, contentType) {
  const form = new FormData(), essence = contentType.split(";")[0].trim().toLowerCase();
  if (essence === "application/x-www-form-urlencoded") {
    for (const [name, value] of new URLSearchParams(new TextDecoder().decode(bytes))) form.append(name, value);
    return form;
  }
  const boundary = /;\s*boundary=(?:"([^"]*)"|([^;\s]*))/i.exec(contentType);
  if (essence !== "multipart/form-data" || !boundary) throw new TypeError(`formData: the content type ${JSON.stringify(contentType)} is not that of a form`);
  const malformed = () => new TypeError("formData: the body is not a form of its content type");
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), mark = Buffer.from("--" + (boundary[1] || boundary[2] || ""));
  let at = body.indexOf(mark);
  if (at < 0) throw malformed();
  for (;;) {
    at += mark.length;
    if (body[at] === 0x2d && body[at + 1] === 0x2d) return form; // "--"
    if (body[at] !== 13 || body[at + 1] !== 10) throw malformed();
    const start = body.indexOf("\r\n\r\n", at), end = body.indexOf(Buffer.concat([Buffer.from("\r\n"), mark]), at + 2);
    if (start < 0 || end < 0 || start > end) throw malformed();
    const head = {};
    for (const line of body.toString("utf8", at + 2, start).split("\r\n")) head[line.slice(0, line.indexOf(":")).toLowerCase()] = line.slice(line.indexOf(":") + 1).trim();
    const disposition = head["content-disposition"] || "", named = /;\s*name="([^"]*)"/i.exec(disposition), file = /;\s*filename="([^"]*)"/i.exec(disposition);
    if (!named || !disposition.startsWith("form-data")) throw malformed();
    const plain = (s) => s.replace(/%0D/gi, "\r").replace(/%0A/gi, "\n").replace(/%22/g, '"');
    const content = body.subarray(Math.min(start + 4, end), end);
    if (!file) form.append(plain(named[1]), content.toString());
    else form.append(plain(named[1]), new File([content], plain(file[1]), { type: head["content-type"] || "text/plain" }));
    at = end + 2;
  }
}

// A WebSocket cannot be opened. Libraries that only keep the class load.
class WebSocket extends EventTarget {
  constructor() {
    super();
    throw coded(Error, "ERR_CS_UNSUPPORTED", "WebSocket is not available in functions");
  }
}
for (const [name, value] of [["CONNECTING", 0], ["OPEN", 1], ["CLOSING", 2], ["CLOSED", 3]]) WebSocket[name] = WebSocket.prototype[name] = value;

module.exports = { WebSocket, blobOf: (bytes, type) => new Blob([bytes], { type }), formOf, Event, CustomEvent, EventTarget, Blob, File, FormData, bodyOf };
