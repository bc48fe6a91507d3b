// The server of node:http. It has no port: a function that exports a server gets its requests
// from the platform, one in an activation.
const { coded, invalidType, invalidValue, callback } = require("internal/errors");
const { Buffer } = require("internal/bytes");
const EventEmitter = require("events");
const { nextTick } = require("process");
const { STATUS_CODES, unprintable, Connection, IncomingMessage, version, OutgoingMessage, inherit, sink, attach, headerLines, headText } = require("internal/http");

const later = setImmediate;

function ServerResponse(req, options) {
  OutgoingMessage.call(this, options);
  this.req = req;
  this.sendDate = true;
  if (req.method === "HEAD") this._hasBody = false;
  if (req.httpVersionMajor < 1 || req.httpVersionMinor < 1) this.useChunkedEncodingByDefault = this.shouldKeepAlive = false;
}
inherit(ServerResponse, OutgoingMessage, {
  statusCode: 200,
  statusMessage: undefined,
  writeHead(status, reason, headers) {
    if (this._header) throw coded(Error, "ERR_HTTP_HEADERS_SENT", "Cannot write headers after they are sent to the client");
    const code = status | 0;
    if (code < 100 || code > 999) throw coded(RangeError, "ERR_HTTP_INVALID_STATUS_CODE", `Invalid status code: ${status}`);
    if (typeof reason === "string") this.statusMessage = reason;
    else {
      this.statusMessage ||= STATUS_CODES[code] || "unknown";
      headers = headers === undefined || headers === null ? reason : headers;
    }
    this.statusCode = code;
    if (unprintable(this.statusMessage)) throw coded(TypeError, "ERR_INVALID_CHAR", "Invalid character in statusMessage");
    if (Array.isArray(headers)) setList(this, headers);
    else if (headers) for (const name of Object.keys(headers)) if (name) this.setHeader(name, headers[name]);
    if (code === 204 || code === 304 || code < 200) this._hasBody = false;
    const first = `HTTP/1.1 ${code} ${this.statusMessage}`;
    this._header = this[sink] ? first + "\r\n\r\n" : headText(this, first);
    return this;
  },
  writeHeader(...args) { return this.writeHead(...args); },
  _implicitHeader() { this.writeHead(this.statusCode); },
  // Answers before the answer go to the client by no way that a function has.
  writeContinue(done) { if (done) nextTick(done); },
  writeProcessing(done) { if (done) nextTick(done); },
  writeEarlyHints(hints, done) { if (done) nextTick(done); },
  assignSocket(socket) {
    if (socket._httpMessage) throw coded(Error, "ERR_HTTP_SOCKET_ASSIGNED", "ServerResponse has an already assigned socket");
    socket._httpMessage = this;
    attach(this, socket);
  },
  detachSocket(socket) {
    socket._httpMessage = this.socket = null;
  },
});

// setList sets headers of a list, as pairs or flat. A name that comes twice has both values.
function setList(res, list) {
  const pairs = Array.isArray(list[0]) ? list : Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i], list[2 * i + 1]]);
  if (pairs === list ? false : list.length % 2 !== 0) throw invalidValue("headers", list);
  for (const [name] of pairs) if (name) res.removeHeader(name);
  for (const [name, value] of pairs) if (name) res.appendHeader(name, value);
}

function Server(options, listener) {
  if (!(this instanceof Server)) return new Server(options, listener);
  if (typeof options === "function") [options, listener] = [{}, options];
  options = options === undefined || options === null ? {} : options;
  if (typeof options !== "object") throw invalidType("options", "object", options);
  EventEmitter.call(this);
  this.listening = false;
  this.timeout = 0;
  this.headersTimeout = options.headersTimeout === undefined ? 60_000 : options.headersTimeout;
  this.requestTimeout = options.requestTimeout === undefined ? 300_000 : options.requestTimeout;
  this.keepAliveTimeout = options.keepAliveTimeout === undefined ? 5000 : options.keepAliveTimeout;
  this.maxHeadersCount = null;
  this.maxRequestsPerSocket = 0;
  this.maxConnections = this._connections = 0;
  this[messages] = [options.IncomingMessage || IncomingMessage, options.ServerResponse || ServerResponse];
  this[bound] = null;
  if (listener) this.on("request", listener);
}
const messages = Symbol("messages"), bound = Symbol("bound");
let lastPort = 49_151; // of those that listen on port 0

inherit(Server, EventEmitter, {
  // listen marks the server, and opens nothing: port, host, backlog and others are what
  // address returns.
  listen(...args) {
    const done = typeof args.at(-1) === "function" ? args.pop() : undefined;
    if (this.listening) throw coded(Error, "ERR_SERVER_ALREADY_LISTEN", "Listen method has been called more than once without closing.");
    const options = args[0] !== null && typeof args[0] === "object" ? args[0] : typeof args[0] === "string" && !/^\d+$/.test(args[0]) ? { path: args[0] } : { port: args[0], host: typeof args[1] === "string" ? args[1] : undefined };
    const { path, host = "::" } = options, port = options.port === undefined || options.port === null ? 0 : Number(options.port);
    if (path === undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
      throw coded(RangeError, "ERR_SOCKET_BAD_PORT", `options.port should be >= 0 and < 65536. Received ${typeof options.port} (${options.port}).`);
    }
    if (done) this.once("listening", done);
    this.listening = true;
    this[bound] = path !== undefined ? path : { address: host === "localhost" ? "127.0.0.1" : host, family: host.includes(":") ? "IPv6" : "IPv4", port: port || ++lastPort };
    nextTick(() => { if (this.listening) this.emit("listening"); });
    return this;
  },
  address() { return this[bound]; },
  close(done) {
    if (done !== undefined) callback(done);
    const error = this.listening ? undefined : coded(Error, "ERR_SERVER_NOT_RUNNING", "Server is not running.");
    if (done) {
      if (error) nextTick(done, error);
      else this.once("close", done);
    }
    this.listening = false;
    this[bound] = null;
    if (!error) nextTick(() => this.emit("close"));
    return this;
  },
  closeAllConnections() {},
  closeIdleConnections() {},
  getConnections(done) {
    nextTick(done, null, 0);
    return this;
  },
  setTimeout(ms, done) {
    this.timeout = ms;
    if (done) this.on("timeout", done);
    return this;
  },
  ref() { return this; },
  unref() { return this; },
});
if (Symbol.asyncDispose) Server.prototype[Symbol.asyncDispose] = function () { return new Promise((resolve, reject) => this.close((error) => (error ? reject(error) : resolve()))); };

// TLSServer is the server of node:https. The platform has the keys; those in options are not
// used.
function TLSServer(options, listener) {
  if (!(this instanceof TLSServer)) return new TLSServer(options, listener);
  Server.call(this, options, listener);
}
inherit(TLSServer, Server, { setSecureContext() {}, addContext() {}, getTicketKeys: () => Buffer.alloc(48), setTicketKeys() {} });
Object.defineProperty(TLSServer, "name", { value: "Server" });

// ServerConnection is the socket of a request. Its end is that of the request.
class ServerConnection extends Connection {
  #exchange;
  #timer;
  #idle = 0;
  constructor(properties, exchange) {
    super(properties);
    this.#exchange = exchange;
  }
  setTimeout(ms, done) {
    if (done) this.once("timeout", done);
    this.#idle = ms;
    this.active();
    return this;
  }
  // active restarts the time after which the connection is idle.
  active() {
    clearTimeout(this.#timer);
    if (this.#idle > 0 && !this.destroyed) this.#timer = setTimeout(() => { this.emit("timeout"); this.#exchange.idle(); }, this.#idle);
  }
  address() { return { address: this.localAddress, family: "IPv4", port: this.localPort }; }
  getPeerCertificate() { return {}; }
  destroy(error) {
    this.#exchange.destroy(error);
    return this;
  }
  end() {
    this.#exchange.res.end();
    return this;
  }
  close() {
    clearTimeout(this.#timer);
    this.readable = this.writable = false;
    this.destroyed = true;
    this.emit("close", false);
  }
}

// Exchange is a request and its answer. It is the sink of the answer: one that is written in
// the turn in which it begins is answered as a whole, another one is streamed.
class Exchange {
  #parts = []; // written, and not sent: [chunk, done]
  #size = 0;
  #write; // of the stream, once it has begun
  #sending = false;
  #waitsForTurn = false;
  #ending; // called when all is sent
  #over = false;
  constructor(server, event) {
    this.server = server;
    this.promise = new Promise((resolve, reject) => Object.assign(this, { resolve, reject }));
    this.socket = new ServerConnection({ server, encrypted: event.encrypted, remoteAddress: event.remoteAddress, remoteFamily: event.remoteAddress && event.remoteAddress.includes(":") ? "IPv6" : "IPv4", remotePort: 0, localAddress: "127.0.0.1", localPort: event.encrypted ? 443 : 80 }, this);
    const [Incoming, Response] = server[messages];
    const req = (this.req = Object.assign(new Incoming(this.socket), version));
    req.method = event.method;
    req.url = event.url;
    req.rawHeaders = event.headers;
    for (let i = 0; i < event.headers.length; i += 2) req.headers[event.headers[i]] = event.headers[i + 1];
    const end = () => {
      req.complete = true;
      if (event.body) req.push(event.body);
      req.push(null);
    };
    req._read = () => {
      req._read = () => {};
      // A body never comes in the turn of its request: a listener may still set headers.
      if (event.body) later(end);
      else end();
    };
    const res = (this.res = new Response(req));
    res[sink] = this;
    res.assignSocket(this.socket);
    // The platform tells a function that the caller leaves if it wants to know.
    const listening = (type) => {
      if (type !== "close" && type !== "aborted") return;
      for (const e of [req, res, this.socket]) e.removeListener("newListener", listening);
      if (!this.#over) natives.onLeft((reason) => this.left(reason));
    };
    for (const e of [req, res, this.socket]) e.on("newListener", listening);
  }

  write(chunk, done) {
    const fits = !this.#write && this.#size + chunk.length <= natives.maxWhole;
    this.socket.active();
    this.#parts.push([chunk, fits ? undefined : done]);
    this.#size += chunk.length;
    if (fits) {
      done(); // there is room until the turn ends
      this.flush();
    } else if (this.#write) this.#send();
    else this.#begin();
  }

  // flush begins the stream when the turn ends, unless the answer ends before.
  flush() {
    if (this.#write || this.#waitsForTurn) return;
    this.#waitsForTurn = true;
    nextTick(() => { if (!this.#write && !this.#over && !this.res.writableEnded) this.#begin(); });
  }

  #begin() {
    const { res } = this;
    try {
      this.#write = natives.begin(res.statusCode, headerLines(res), (reason) => this.left(reason));
      this.#send();
    } catch (error) {
      this.#fail(error);
    }
  }

  // send writes the parts one after another, as fast as the client takes them.
  async #send() {
    if (this.#sending) return;
    this.#sending = true;
    try {
      while (this.#parts.length > 0 && !this.#over) {
        const [chunk, done] = this.#parts.shift();
        for (let at = 0; at < chunk.length; at += natives.maxWrite) {
          const waits = this.#write(chunk.subarray(at, at + natives.maxWrite));
          if (waits) await waits;
        }
        if (done) done();
      }
      this.#sending = false;
      if (this.#ending && !this.#over) this.#finish(undefined);
    } catch (error) {
      this.#fail(error);
    }
  }

  end(done) {
    this.#ending = done;
    if (this.#sending) return;
    if (this.#write) {
      this.#finish(undefined);
      return;
    }
    const { res } = this;
    try {
      const chunks = this.#parts.map(([chunk]) => chunk);
      this.#finish(natives.answer(res.statusCode, headerLines(res), chunks.length > 1 ? Buffer.concat(chunks) : chunks[0]));
    } catch (error) {
      this.#fail(error);
    }
  }

  // finish ends the exchange after the events of the answer's end.
  #finish(value) {
    this.#over = true;
    this.#ending();
    nextTick(() => {
      const { req, res } = this, w = res._writableState;
      w.destroyed = w.closed = w.closeEmitted = true;
      res.emit("close");
      if (!req.readableEnded && !req.destroyed) req.resume();
      nextTick(() => {
        this.socket.close();
        this.resolve(value);
      });
    });
  }

  #fail(error) {
    if (this.#over) return;
    this.#over = true;
    this.#parts = [];
    this.reject(error);
  }

  // left is called when the caller has left, and destroy when the script cuts the connection.
  left(reason) {
    if (this.#over) return;
    this.#over = true;
    this.#cut(coded(Error, "ECONNRESET", "aborted"), undefined);
    nextTick(() => this.reject(reason));
  }
  destroy(error) {
    if (this.#over) return;
    this.#over = true;
    this.#cut(error || coded(Error, "ECONNRESET", "aborted"), error);
    nextTick(() => this.reject(error || coded(Error, "ECONNRESET", "the connection was destroyed before the answer ended")));
  }
  #cut(requestError, responseError) {
    this.#parts = [];
    if (!this.req.destroyed) this.req.destroy(requestError);
    if (!this.res.destroyed) this.res.destroy(responseError);
    this.socket.close();
  }

  idle() {
    const heard = [this.req, this.res, this.server].map((e) => e.emit("timeout", this.socket)).includes(true);
    if (!heard) this.socket.destroy();
  }
}

// serve answers an event of the platform: it resolves with the Response, or with undefined
// once the answer has been streamed.
function serve(event) {
  const exchange = new Exchange(this, event);
  if (!this.emit("request", exchange.req, exchange.res)) throw new Error("the http.Server that the function exports has no listener of the event request");
  return exchange.promise;
}

const isServer = (o) => o instanceof Server;

module.exports = { ServerResponse, Server, TLSServer, serve, isServer };
