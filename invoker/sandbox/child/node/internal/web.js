// Classes of the web that libraries expect when they load, in the parts that they use.
const { Buffer, viewOf, isArrayBuffer } = require("internal/bytes");
const { usv } = require("internal/views"); // converts to a text without lone surrogates
const { invalidType } = require("internal/errors");
const { Event, CustomEvent, EventTarget } = require("internal/events");
const { apply, expose, dictionary, needs } = require("internal/webidl");
let isBlob, fileOf;
const asyncIterator = Symbol.asyncIterator || Symbol.for("Symbol.asyncIterator");

// listOf reads the parts of a Blob: what has no bytes is a text.
function listOf(parts) {
  const start = parts !== null && (typeof parts === "object" || typeof parts === "function") ? parts[Symbol.iterator] : undefined;
  if (typeof start !== "function") throw new TypeError("Blob: the parts must be a sequence");
  return Array.from({ [Symbol.iterator]: () => apply(start, parts, []) }, (part) => (isBlob(part) || ArrayBuffer.isView(part) || isArrayBuffer(part) ? part : usv(part)));
}

class Blob {
  #bytes;
  #type;
  static { isBlob = (o) => o !== null && typeof o === "object" && #bytes in o; }
  constructor(parts = [], options = undefined) {
    const list = listOf(parts);
    const { endings, type: given } = dictionary(options, "The options");
    if (endings !== undefined && !["transparent", "native"].includes(`${endings}`)) throw new TypeError('Blob: the option endings must be "transparent" or "native"');
    this.#bytes = Buffer.concat(list.map((part) => {
      if (isBlob(part)) return part.#bytes;
      if (ArrayBuffer.isView(part)) return Buffer.from(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
      if (isArrayBuffer(part)) return Buffer.from(new Uint8Array(part));
      return Buffer.from(endings !== undefined && `${endings}` === "native" ? part.replace(/\r\n|\r/g, "\n") : part);
    }));
    const type = given !== undefined ? `${given}` : "";
    this.#type = /[^\x20-\x7e]/.test(type) ? "" : type.toLowerCase();
  }
  get size() { return this.#bytes.length; }
  get type() { return this.#type; }
  slice(start = undefined, end = undefined, type = "") {
    const out = new Blob([], { type });
    out.#bytes = this.#bytes.subarray(start, end);
    return out;
  }
  async text() { return new TextDecoder().decode(this.#bytes); }
  async arrayBuffer() { return new Uint8Array(this.#bytes).buffer; }
  async bytes() { return new Uint8Array(this.#bytes); }
  stream() { return require("internal/webstreams").streamOfWhole(this.#bytes); }
  static bytesOf(blob) { return blob.#bytes; }
}
const bytesOf = Blob.bytesOf;
const typeOf = (blob) => typeGetter.call(blob);
const typeGetter = Object.getOwnPropertyDescriptor(Blob.prototype, "type").get;
delete Blob.bytesOf;
expose(Blob);

class File extends Blob {
  #name;
  #modified;
  static { fileOf = (o) => (#name in o ? { name: o.#name, lastModified: o.#modified } : undefined); }
  constructor(parts, name, options = undefined) {
    needs(arguments.length, 2, "File");
    const list = listOf(parts);
    name = usv(name);
    super(list, options);
    this.#name = name;
    const { lastModified } = dictionary(options, "The options"), time = Math.trunc(Number(lastModified));
    this.#modified = lastModified === undefined ? Date.now() : Number.isFinite(time) ? time : 0;
  }
  get name() { return this.#name; }
  get lastModified() { return this.#modified; }
  get webkitRelativePath() { return ""; }
}
expose(File);

// copyOf returns a copy of a Blob or a File, which shares its bytes: they never change. It is
// undefined for other objects.
function copyOf(o) {
  if (!isBlob(o)) return undefined;
  const file = fileOf(o), type = { type: typeOf(o) };
  return file ? new File([o], file.name, { ...type, lastModified: file.lastModified }) : new Blob([o], type);
}

// FormIterator iterates over the entries of a form. It counts, so that it follows changes.
class FormIterator {
  #entries;
  #of;
  #at = 0;
  constructor(entries, of) { this.#entries = entries; this.#of = of; }
  next() {
    const list = this.#entries();
    return this.#at < list.length ? { value: this.#of(list[this.#at++]), done: false } : { value: undefined, done: true };
  }
}
expose(FormIterator, "FormData Iterator");
delete FormIterator.prototype.constructor;
Object.setPrototypeOf(FormIterator.prototype, Object.getPrototypeOf(Object.getPrototypeOf([].values())));

class FormData {
  #entries = [];
  constructor(form = undefined) {
    if (form !== undefined) throw new TypeError("FormData: there are no forms");
  }
  #value(value, filename) {
    if (!isBlob(value)) return usv(value);
    if (fileOf(value) && filename === undefined) return value;
    const file = fileOf(value), lastModified = file ? file.lastModified : undefined;
    return new File([value], filename === undefined ? "blob" : usv(filename), { type: typeOf(value), lastModified });
  }
  #checked(count, what, value) {
    needs(count, 2, what);
    if (count > 2 && !isBlob(value)) throw new TypeError(`${what}: a value with a filename must be a Blob`);
  }
  append(name, value, filename = undefined) {
    this.#checked(arguments.length, "append", value);
    this.#entries.push([usv(name), this.#value(value, filename)]);
  }
  set(name, value, filename = undefined) {
    this.#checked(arguments.length, "set", value);
    name = usv(name);
    const at = this.#entries.findIndex((e) => e[0] === name), entry = [name, this.#value(value, filename)];
    this.#entries = this.#entries.filter((e, i) => e[0] !== name || i === at);
    if (at < 0) this.#entries.push(entry);
    else this.#entries[this.#entries.findIndex((e) => e[0] === name)] = entry;
  }
  #named(count, what, name) {
    needs(count, 1, what);
    name = usv(name);
    return (e) => e[0] === name;
  }
  get(name) { const e = this.#entries.find(this.#named(arguments.length, "get", name)); return e ? e[1] : null; }
  getAll(name) { return this.#entries.filter(this.#named(arguments.length, "getAll", name)).map((e) => e[1]); }
  has(name) { return this.#entries.some(this.#named(arguments.length, "has", name)); }
  delete(name) {
    const named = this.#named(arguments.length, "delete", name);
    this.#entries = this.#entries.filter((e) => !named(e));
  }
  forEach(f, self = undefined) {
    if (typeof f !== "function") throw new TypeError("forEach: the callback must be a function");
    for (let i = 0; i < this.#entries.length; i++) apply(f, self, [this.#entries[i][1], this.#entries[i][0], this]);
  }
  entries() { this.#entries; return new FormIterator(() => this.#entries, (e) => [e[0], e[1]]); }
  keys() { this.#entries; return new FormIterator(() => this.#entries, (e) => e[0]); }
  values() { this.#entries; return new FormIterator(() => this.#entries, (e) => e[1]); }
}
expose(FormData);
Object.defineProperty(FormData.prototype, Symbol.iterator, { value: FormData.prototype.entries, writable: true, configurable: true });

// bodyOf returns what is the body of a message for an object: its bytes or a stream of them,
// and its content type. It is undefined for objects that are text.
function bodyOf(value) {
  if (isBlob(value)) return { bytes: bytesOf(value), type: typeOf(value) };
  if (!(value instanceof FormData)) {
    const streams = require("internal/webstreams");
    if (streams.isReadable(value)) return streams.bodyOfStream(value);
    if (typeof value[asyncIterator] === "function") return { stream: streams.streamOfBytes(value), type: "" };
    return undefined;
  }
  const boundary = "----sous" + crypto.randomUUID().replace(/-/g, "");
  const quoted = (s) => s.replace(/\r/g, "%0D").replace(/\n/g, "%0A").replace(/"/g, "%22"), lines = (s) => s.replace(/\r\n|\r|\n/g, "\r\n");
  const parts = [];
  for (const [name, v] of value) {
    let head = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(lines(name))}"`;
    if (v instanceof Blob) head += `; filename="${quoted(v.name)}"\r\nContent-Type: ${v.type || "application/octet-stream"}`;
    parts.push(Buffer.from(head + "\r\n\r\n"), v instanceof Blob ? bytesOf(v) : Buffer.from(lines(v)), Buffer.from("\r\n"));
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`));
  return { bytes: Buffer.concat(parts), type: `multipart/form-data; boundary=${boundary}` };
}

// formOf reads a body as a form of its content type.
function formOf(bytes, contentType) {
  const form = new FormData(), essence = contentType.split(";")[0].trim().toLowerCase();
  if (essence === "application/x-www-form-urlencoded") {
    for (const [name, value] of new URLSearchParams(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes))) form.append(name, value);
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

module.exports = { usv, isBlob, bytesOf, copyOf, blobOf: (bytes, type) => new Blob([bytes], { type }), formOf, Event, CustomEvent, EventTarget, Blob, File, FormData, bodyOf };
