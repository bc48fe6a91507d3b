// The client of node:http, over fetch: a request is sent when it ends, and a response is
// whole when it comes.
const { coded, unsupportedError, AbortError } = require("internal/errors");
const { Buffer } = require("internal/bytes");
const EventEmitter = require("events");
const { nextTick } = require("process");
const { STATUS_CODES, Connection, IncomingMessage, version, OutgoingMessage, validateHeaderName } = require("internal/http");

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
    this.socket = new Connection({ encrypted: secure, authorized: secure });
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
  _implicitHeader() {} // the headers are sent with the body
  addTrailers() { throw unsupportedError("http", "addTrailers"); }
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
    this._header = `${this.method} ${this.path} HTTP/1.1\r\n\r\n`;
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
    const res = (this.res = Object.assign(new IncomingMessage(this.socket), version));
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
  return { Agent: Own, globalAgent, request, get };
}

module.exports = { client, ClientRequest };
