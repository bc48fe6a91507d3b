// The messages of node:http, which its client and its server share. They have no connection
// under them: what is written goes to a sink of the platform, or as text of the protocol to a
// socket that a script has assigned.
const { coded, invalidType, checkString } = require("internal/errors");
const { Buffer } = require("internal/bytes");
const { Readable, Writable } = require("stream");
const EventEmitter = require("events");
const { nextTick } = require("process");

const METHODS = ["ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MOVE", "NOTIFY", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PURGE", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE"];
const STATUS_CODES = { 100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints", 200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content", 205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 208: "Already Reported", 226: "IM Used", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Payload Too Large", 414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed", 418: "I'm a Teapot", 421: "Misdirected Request", 422: "Unprocessable Entity", 423: "Locked", 424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates", 507: "Insufficient Storage", 508: "Loop Detected", 509: "Bandwidth Limit Exceeded", 510: "Not Extended", 511: "Network Authentication Required" };

function validateHeaderName(name, label = "Header name") {
  if (typeof name !== "string" || !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)) throw coded(TypeError, "ERR_INVALID_HTTP_TOKEN", `${label} must be a valid HTTP token ["${name}"]`);
}

// unprintable reports whether a value has a character that a header cannot carry. One of a
// line break would begin another header.
const unprintable = (value) => /[^\t\x20-\x7e\x80-\xff]/.test(value);

function validateHeaderValue(name, value) {
  for (const v of Array.isArray(value) ? value : [value]) {
    if (v === undefined) throw coded(TypeError, "ERR_HTTP_INVALID_HEADER_VALUE", `Invalid value "${v}" for header "${name}"`);
    if (unprintable(v)) throw coded(TypeError, "ERR_INVALID_CHAR", `Invalid character in header content ["${name}"]`);
  }
}

// Connection is the socket of a message. It has no bytes.
class Connection extends EventEmitter {
  constructor(properties) {
    super();
    Object.assign(this, { encrypted: false, authorized: false, remoteAddress: undefined, destroyed: false, connecting: false, readable: true, writable: true, bytesRead: 0, bytesWritten: 0 }, properties);
  }
  setTimeout() { return this; }
  setNoDelay() { return this; }
  setKeepAlive() { return this; }
  ref() { return this; }
  unref() { return this; }
  cork() {}
  uncork() {}
  pause() { return this; }
  resume() { return this; }
  address() { return {}; }
  destroy() { return this; }
  destroySoon() { this.destroy(); }
  end() { return this; }
}

// IncomingMessage is a function, as in Node: libraries call it without new.
function IncomingMessage(socket) {
  if (!(this instanceof IncomingMessage)) return new IncomingMessage(socket);
  Readable.call(this);
  this.socket = socket || new Connection();
  this.httpVersion = this.httpVersionMajor = this.httpVersionMinor = null;
  this.complete = false;
  this.aborted = false;
  this.headers = {};
  this.rawHeaders = [];
  this.trailers = {};
  this.rawTrailers = [];
  this.upgrade = false;
  this.url = "";
  this.method = null;
  this.statusCode = null;
  this.statusMessage = null;
}
inherit(IncomingMessage, Readable, {
  setTimeout(ms, done) {
    if (done) this.on("timeout", done);
    this.socket.setTimeout(ms);
    return this;
  },
  _read() {},
  // _destroy emits an error only to listeners: a request that is cut off is no failure of the
  // script.
  _destroy(error, done) {
    if (!this.readableEnded || !this.complete) {
      this.aborted = true;
      this.emit("aborted");
    }
    done(this.listenerCount("error") > 0 ? error : null);
  },
  get connection() { return this.socket; },
  set connection(socket) { this.socket = socket; },
  get headersDistinct() { return distinct(this.rawHeaders); },
  get trailersDistinct() { return distinct(this.rawTrailers); },
});

// version is that of a message of the platform.
const version = { httpVersion: "1.1", httpVersionMajor: 1, httpVersionMinor: 1 };

function distinct(raw) {
  const out = Object.create(null);
  for (let i = 0; i < raw.length; i += 2) (out[raw[i].toLowerCase()] ||= []).push(raw[i + 1]);
  return out;
}

// inherit makes a function the subclass of another, with the members of an object.
function inherit(Child, Parent, members) {
  Object.setPrototypeOf(Child.prototype, Parent.prototype);
  Object.setPrototypeOf(Child, Parent);
  const own = Object.getOwnPropertyDescriptors(members);
  for (const name of Reflect.ownKeys(own)) Object.defineProperty(Child.prototype, name, own[name]);
}

const fields = Symbol("fields"); // of a message: by lower-case names, [name, value]
const sink = Symbol("sink"); // the platform's end of a message
const waiting = Symbol("waiting"); // what is sent once there is a socket

function OutgoingMessage(options) {
  Writable.call(this, { autoDestroy: false, highWaterMark: options && options.highWaterMark });
  this[fields] = new Map();
  this[sink] = this[waiting] = null;
  this._header = null;
  this._contentLength = null;
  this._hasBody = true;
  this._trailer = "";
  this._last = false;
  this._keepAliveTimeout = 0;
  this.socket = null;
  this.finished = false;
  this.sendDate = false;
  this.chunkedEncoding = false;
  this.shouldKeepAlive = true;
  this.useChunkedEncodingByDefault = true;
}

const sent = (what) => coded(Error, "ERR_HTTP_HEADERS_SENT", `Cannot ${what} headers after they are sent to the client`);

inherit(OutgoingMessage, Writable, {
  get headersSent() { return !!this._header; },
  get connection() { return this.socket; },
  set connection(socket) { this.socket = socket; },

  setHeader(name, value) {
    if (this._header) throw sent("set");
    validateHeaderName(name);
    validateHeaderValue(name, value);
    this[fields].set(name.toLowerCase(), [name, value]);
    return this;
  },
  appendHeader(name, value) {
    if (this._header) throw sent("append");
    validateHeaderName(name);
    validateHeaderValue(name, value);
    const before = this[fields].get(name.toLowerCase());
    if (before === undefined) this[fields].set(name.toLowerCase(), [name, value]);
    else if (before.appended) before[1].push(...[].concat(value));
    else { // the list is the script's own until here
      before[1] = [].concat(before[1], value);
      before.appended = true;
    }
    return this;
  },
  setHeaders(headers) {
    if (this._header) throw sent("set");
    if (!(headers instanceof Headers) && !(headers instanceof Map)) throw invalidType("headers", ["Headers", "Map"], headers);
    const cookies = headers instanceof Headers ? headers.getSetCookie() : [];
    for (const [name, value] of headers) if (cookies.length === 0 || name !== "set-cookie") this.setHeader(name, value);
    if (cookies.length > 0) this.setHeader("set-cookie", cookies);
    return this;
  },
  getHeader(name) {
    checkString(name, "name");
    const field = this[fields].get(name.toLowerCase());
    return field && field[1];
  },
  getHeaders() {
    const out = Object.create(null);
    for (const [name, field] of this[fields]) out[name] = field[1];
    return out;
  },
  getHeaderNames() { return [...this[fields].keys()]; },
  getRawHeaderNames() { return Array.from(this[fields].values(), (field) => field[0]); },
  hasHeader(name) {
    checkString(name, "name");
    return this[fields].has(name.toLowerCase());
  },
  removeHeader(name) {
    checkString(name, "name");
    if (this._header) throw sent("remove");
    this[fields].delete(name.toLowerCase());
  },
  addTrailers(trailers) {
    for (const [name, value] of Array.isArray(trailers) ? trailers : Object.entries(trailers)) {
      validateHeaderName(name, "Trailer name");
      if (unprintable(value)) throw coded(TypeError, "ERR_INVALID_CHAR", `Invalid character in trailer content ["${name}"]`);
      this._trailer += `${name}: ${value}\r\n`;
    }
  },
  flushHeaders() {
    if (!this._header) this._implicitHeader();
    if (this[sink]) this[sink].flush();
  },
  setTimeout(ms, done) {
    if (done) this.on("timeout", done);
    if (this.socket) this.socket.setTimeout(ms);
    else this.once("socket", (socket) => socket.setTimeout(ms));
    return this;
  },
  _implicitHeader() { throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The _implicitHeader() method is not implemented"); },

  write(chunk, encoding, done) {
    if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
    if (this.writableEnded || this.destroyed) {
      checkChunk(chunk);
      late(this, done);
      return false;
    }
    checkChunk(chunk);
    if (!this._header) this._implicitHeader();
    if (this._hasBody) return Writable.prototype.write.call(this, chunk, encoding, done);
    if (done) nextTick(done);
    return true;
  },
  end(chunk, encoding, done) {
    if (typeof chunk === "function") [chunk, encoding, done] = [undefined, undefined, chunk];
    else if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
    if (chunk) checkChunk(chunk);
    else chunk = undefined;
    if (chunk && this.writableEnded) {
      late(this, done);
      return this;
    }
    if (!this._header && !this.writableEnded && !this.destroyed) {
      this._contentLength = lengthOf(chunk, encoding);
      this._implicitHeader();
    }
    Writable.prototype.end.call(this, this._hasBody ? chunk : undefined, encoding, done);
    this.finished = true;
    return this;
  },
  _write(chunk, encoding, done) {
    if (this[sink]) this[sink].write(chunk, done);
    else onSocket(this, (socket) => {
      sendHead(this, socket);
      if (this.chunkedEncoding) socket.write(Buffer.concat([Buffer.from(chunk.length.toString(16) + "\r\n"), chunk, Buffer.from("\r\n")]));
      else socket.write(chunk);
      done();
    });
  },
  _final(done) {
    if (this[sink]) this[sink].end(done);
    else onSocket(this, (socket) => {
      sendHead(this, socket);
      const last = this._hasBody && this.chunkedEncoding ? `0\r\n${this._trailer}\r\n` : "";
      socket.write(last, "latin1", () => done());
    });
  },
  // _destroy keeps the error for those who look for it, and does not emit it.
  _destroy(error, done) {
    done(null);
    if (this[sink]) this[sink].destroy(error);
    else if (this.socket && typeof this.socket.destroy === "function") this.socket.destroy(error || undefined);
  },
});

// late answers a write behind the end: its callback, and a listener while the message is open.
function late(message, done) {
  const error = message.writableEnded ? coded(Error, "ERR_STREAM_WRITE_AFTER_END", "write after end") : coded(Error, "ERR_STREAM_DESTROYED", "Cannot call write after a stream was destroyed");
  const open = !message.destroyed;
  nextTick(() => {
    if (done) done(error);
    if (open && !message.destroyed) message.emit("error", error);
  });
}

function checkChunk(chunk) {
  if (chunk === null) throw coded(TypeError, "ERR_STREAM_NULL_VALUES", "May not write null values to stream");
  if (typeof chunk !== "string" && !(chunk instanceof Uint8Array)) throw invalidType("chunk", ["string", "Buffer", "Uint8Array"], chunk);
}

const lengthOf = (chunk, encoding) => (chunk === undefined ? 0 : typeof chunk === "string" ? Buffer.byteLength(chunk, encoding) : chunk.byteLength);

// onSocket calls f once the message has a socket.
function onSocket(message, f) {
  if (message.socket) f(message.socket);
  else message[waiting] = f;
}

// attach gives a message its socket.
function attach(message, socket) {
  message.socket = socket;
  message.emit("socket", socket);
  const f = message[waiting];
  message[waiting] = null;
  if (f) f(socket);
}

function sendHead(message, socket) {
  if (message._headerSent) return;
  message._headerSent = true;
  socket.write(message._header, "latin1");
}

// headerLines are the fields of a message as a list, a name and a value for each line.
function headerLines(message) {
  const out = [];
  for (const [name, value] of message[fields].values()) {
    if (Array.isArray(value)) for (const v of value) out.push(name, String(v));
    else out.push(name, String(value));
  }
  return out;
}

// headText is the head of a message as the protocol has it, and decides how its body is
// framed (RFC 9112, section 6).
function headText(message, first) {
  const own = message[fields], list = headerLines(message);
  let text = first + "\r\n";
  for (let i = 0; i < list.length; i += 2) text += `${list[i]}: ${list[i + 1]}\r\n`;
  if (message.sendDate && !own.has("date")) text += `Date: ${new Date().toUTCString()}\r\n`;
  const keep = message.shouldKeepAlive && (own.has("content-length") || message.useChunkedEncodingByDefault);
  if (!own.has("connection")) text += keep ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  message._last = !keep;
  const coding = own.get("transfer-encoding");
  if (coding) message.chunkedEncoding = /chunked/i.test(coding[1]);
  else if (own.has("content-length") || !message._hasBody) message.chunkedEncoding = false;
  else if (!message.useChunkedEncodingByDefault) message._last = true;
  else if (typeof message._contentLength === "number" && message._trailer === "" && !own.has("trailer")) text += `Content-Length: ${message._contentLength}\r\n`;
  else {
    text += "Transfer-Encoding: chunked\r\n";
    message.chunkedEncoding = true;
  }
  return text + "\r\n";
}

module.exports = { METHODS, STATUS_CODES, validateHeaderName, validateHeaderValue, unprintable, Connection, IncomingMessage, version, OutgoingMessage, inherit, sink, attach, headerLines, headText };
