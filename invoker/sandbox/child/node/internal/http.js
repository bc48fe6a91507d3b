// The client of node:http, over fetch: a request is sent when it ends, and a response is
// whole when it comes.
const { coded, invalidType, unsupportedError, AbortError } = require("internal/errors");
const { Buffer } = require("internal/bytes");
const { Readable, Writable } = require("stream");
const EventEmitter = require("events");
const { nextTick } = require("process");

const METHODS = ["ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MOVE", "NOTIFY", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PURGE", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE"];
const STATUS_CODES = { 100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints", 200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content", 205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 208: "Already Reported", 226: "IM Used", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Payload Too Large", 414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed", 418: "I'm a Teapot", 421: "Misdirected Request", 422: "Unprocessable Entity", 423: "Locked", 424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates", 507: "Insufficient Storage", 508: "Loop Detected", 509: "Bandwidth Limit Exceeded", 510: "Not Extended", 511: "Network Authentication Required" };

function validateHeaderName(name, label = "Header name") {
  if (typeof name !== "string" || !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)) throw coded(TypeError, "ERR_INVALID_HTTP_TOKEN", `${label} must be a valid HTTP token ["${name}"]`);
}
function validateHeaderValue(name, value) {
  if (value === undefined) throw coded(TypeError, "ERR_HTTP_INVALID_HEADER_VALUE", `Invalid value "${value}" for header "${name}"`);
  if (/[^\t\x20-\x7e\x80-\xff]/.test(String(value))) throw coded(TypeError, "ERR_INVALID_CHAR", `Invalid character in header content ["${name}"]`);
}

class Agent extends EventEmitter {
  constructor(options = {}) {
    super();
    this.options = { ...options };
    this.keepAlive = !!options.keepAlive;
    this.maxSockets = options.maxSockets || Infinity;
    this.maxFreeSockets = options.maxFreeSockets || 256;
    this.defaultPort = 80;
    this.protocol = "http:";
    this.sockets = {};
    this.freeSockets = {};
    this.requests = {};
  }
  destroy() {}
  getName(o = {}) { return `${o.host || "localhost"}:${o.port || ""}:${o.localAddress || ""}`; }
}

// A socket that has no bytes: what requests and responses tell of their connection.
function connection(encrypted) {
  const s = new EventEmitter();
  return Object.assign(s, { encrypted, authorized: encrypted, remoteAddress: undefined, destroyed: false, writable: true, readable: true, setTimeout: () => s, setNoDelay: () => s, setKeepAlive: () => s, ref: () => s, unref: () => s, destroy: () => s, end: () => s });
}

class IncomingMessage extends Readable {
  constructor(socket) {
    super();
    this.socket = this.connection = socket || connection(false);
    this.httpVersion = "1.1";
    this.httpVersionMajor = this.httpVersionMinor = 1;
    this.complete = false;
    this.aborted = false;
    this.headers = {};
    this.rawHeaders = [];
    this.trailers = {};
    this.rawTrailers = [];
    this.statusCode = null;
    this.statusMessage = null;
    this.method = null;
    this.url = "";
  }
  get headersDistinct() {
    const out = Object.create(null);
    for (let i = 0; i < this.rawHeaders.length; i += 2) (out[this.rawHeaders[i].toLowerCase()] ||= []).push(this.rawHeaders[i + 1]);
    return out;
  }
  setTimeout() { return this; }
  _read() {}
}

class OutgoingMessage extends Writable {
  #headers = new Map();
  constructor(options) {
    super(options);
    this.headersSent = false;
    this.sendDate = false;
    this.finished = false;
  }
  setHeader(name, value) {
    if (this.headersSent) throw coded(Error, "ERR_HTTP_HEADERS_SENT", "Cannot set headers after they are sent to the client");
    validateHeaderName(name);
    for (const v of [].concat(value)) validateHeaderValue(name, v);
    this.#headers.set(name.toLowerCase(), [name, value]);
    return this;
  }
  appendHeader(name, value) {
    const before = this.getHeader(name);
    return this.setHeader(name, before === undefined ? value : [].concat(before, value));
  }
  setHeaders(headers) {
    for (const [k, v] of headers) this.setHeader(k, v);
    return this;
  }
  getHeader(name) { const h = this.#headers.get(String(name).toLowerCase()); return h && h[1]; }
  getHeaders() { const out = Object.create(null); for (const [k, [, v]] of this.#headers) out[k] = v; return out; }
  getHeaderNames() { return [...this.#headers.keys()]; }
  getRawHeaderNames() { return [...this.#headers.values()].map(([name]) => name); }
  hasHeader(name) { return this.#headers.has(String(name).toLowerCase()); }
  removeHeader(name) { this.#headers.delete(String(name).toLowerCase()); }
  flushHeaders() {}
  addTrailers() { throw unsupportedError("http", "addTrailers"); }
  setTimeout() { return this; }
}

class ClientRequest extends OutgoingMessage {
  #parts = [];
  #controller = new AbortController();
  #timer;
  constructor(input, options, done) {
    super({ autoDestroy: false });
    if (typeof input === "string") input = new URL(input);
    if (input instanceof URL) {
      const { urlToHttpOptions } = require("url");
      if (typeof options === "function") [options, done] = [{}, options];
      options = { ...urlToHttpOptions(input), ...options };
    } else {
      [options, done] = [{ ...input }, options];
    }
    const agent = options.agent || undefined;
    this.protocol = options.protocol || options.defaultProtocol || (agent && agent.protocol) || "http:";
    const expected = options.defaultProtocol;
    if (expected && this.protocol !== expected && !(agent && agent.protocol === this.protocol)) {
      throw coded(TypeError, "ERR_INVALID_PROTOCOL", `Protocol "${this.protocol}" not supported. Expected "${expected}"`);
    }
    if (options.socketPath) throw unsupportedError("http", "socketPath");
    this.agent = agent;
    this.method = (options.method || "GET").toUpperCase();
    validateHeaderName(this.method, "Method");
    this.path = options.path || "/";
    if (/[^\x21-\xff]/.test(this.path)) throw coded(TypeError, "ERR_UNESCAPED_CHARACTERS", "Request path contains unescaped characters");
    this.host = options.hostname || options.host || "localhost";
    const secure = this.protocol === "https:";
    const port = options.port || options.defaultPort || (secure ? 443 : 80);
    const name = this.host.includes(":") && !this.host.startsWith("[") ? `[${this.host}]` : this.host;
    this.target = `${this.protocol}//${name}${Number(port) === (secure ? 443 : 80) ? "" : `:${port}`}${this.path}`;
    if (Array.isArray(options.headers)) {
      const pairs = Array.isArray(options.headers[0]) ? options.headers : options.headers.reduce((out, v, i, all) => (i % 2 ? out : [...out, [v, all[i + 1]]]), []);
      for (const [k, v] of pairs) this.appendHeader(k, v);
    } else {
      for (const k of Object.keys(options.headers || {})) if (options.headers[k] !== undefined) this.setHeader(k, options.headers[k]);
    }
    if (options.auth && !this.hasHeader("authorization")) this.setHeader("Authorization", `Basic ${Buffer.from(options.auth).toString("base64")}`);
    this.socket = this.connection = connection(secure);
    this.reusedSocket = false;
    this.maxHeadersCount = null;
    this.aborted = false;
    this.res = null;
    if (options.timeout) this.setTimeout(options.timeout);
    if (options.signal) {
      const abort = () => this.destroy(new AbortError(undefined, { cause: options.signal.reason }));
      if (options.signal.aborted) nextTick(abort);
      else options.signal.addEventListener("abort", abort, { once: true });
    }
    if (done) this.once("response", done);
    nextTick(() => { if (!this.destroyed) this.emit("socket", this.socket); });
  }
  setNoDelay() {}
  setSocketKeepAlive() {}
  setTimeout(ms, done) {
    if (done) this.once("timeout", done);
    clearTimeout(this.#timer);
    if (ms > 0) this.#timer = setTimeout(() => { this.socket.emit("timeout"); this.emit("timeout"); }, ms);
    return this;
  }
  abort() {
    if (this.aborted) return;
    this.aborted = true;
    nextTick(() => this.emit("abort"));
    this.destroy();
  }
  _write(chunk, encoding, done) {
    this.#parts.push(typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk);
    done();
  }
  _destroy(error, done) {
    clearTimeout(this.#timer);
    this.#controller.abort();
    if (this.res && !this.res.complete) this.res.destroy(error);
    if (!error && !this.res) error = coded(Error, "ECONNRESET", "socket hang up");
    done(error);
  }
  _final(done) {
    this.finished = this.headersSent = true;
    this.#send();
    done();
  }
  async #send() {
    const headers = new Headers();
    const own = this.getHeaders();
    for (const k of Object.keys(own)) {
      if (["host", "connection", "content-length", "transfer-encoding", "keep-alive", "expect"].includes(k)) continue; // those of the host's own connection
      for (const v of [].concat(own[k])) headers.append(k, String(v));
    }
    const body = Buffer.concat(this.#parts);
    const bodyless = this.method === "GET" || this.method === "HEAD";
    if (bodyless && body.length > 0) {
      this.destroy(unsupportedError("http", `a body of a ${this.method} request`));
      return;
    }
    try {
      const answer = await fetch(this.target, { method: this.method, headers, redirect: "manual", signal: this.#controller.signal, body: bodyless || (body.length === 0 && !this.hasHeader("content-length") && this.method !== "POST" && this.method !== "PUT") ? undefined : body });
      const data = this.method === "HEAD" ? null : Buffer.from(await answer.arrayBuffer());
      if (!this.destroyed) this.#receive(answer, data);
    } catch (error) {
      if (this.destroyed) return;
      if (!error.code) error.code = "ECONNRESET";
      this.destroy(error);
    }
  }
  #receive(answer, data) {
    clearTimeout(this.#timer);
    const res = (this.res = new IncomingMessage(this.socket));
    res.req = this;
    res.statusCode = answer.status;
    res.statusMessage = answer.statusText || STATUS_CODES[answer.status] || "";
    res.url = "";
    for (const [k, v] of answer.headers) {
      if (k === "content-encoding") continue; // the body has been decoded
      if (k === "content-length" && answer.headers.has("content-encoding")) continue;
      res.rawHeaders.push(k, v);
      if (k === "set-cookie") (res.headers[k] ||= []).push(v);
      else res.headers[k] = v;
    }
    if (data && data.length > 0) res.push(data);
    res.push(null);
    res.complete = true;
    if (!this.emit("response", res)) res.resume();
    finishedLater(res, this);
  }
}

function finishedLater(res, req) {
  const close = () => { if (!req.destroyed) { req.res = res; req._writableState.destroyed = true; req._writableState.closed = true; req.emit("close"); } };
  res.once("end", () => nextTick(close));
  res.once("close", () => nextTick(close));
}

function client(name, protocol) {
  const secure = protocol === "https:";
  const Own = secure
    ? class extends Agent {
      constructor(options) {
        super(options);
        this.defaultPort = 443;
        this.protocol = "https:";
      }
    }
    : Agent;
  if (secure) Object.defineProperty(Own, "name", { value: "Agent" });
  const globalAgent = new Own();
  const request = (input, options, done) => {
    const extra = { defaultProtocol: protocol, defaultPort: secure ? 443 : 80 };
    if (typeof input === "string" || input instanceof URL) {
      if (typeof options === "function") [options, done] = [{}, options];
      return new ClientRequest(input, { ...options, ...extra }, done);
    }
    return new ClientRequest({ ...input, defaultProtocol: protocol }, options);
  };
  const get = (...args) => {
    const r = request(...args);
    r.end();
    return r;
  };
  return {
    METHODS, STATUS_CODES, Agent: Own, ClientRequest, IncomingMessage, OutgoingMessage, globalAgent, maxHeaderSize: 16384, request, get,
    validateHeaderName, validateHeaderValue, setMaxIdleHTTPParsers() {},
  };
}

module.exports = { client };
