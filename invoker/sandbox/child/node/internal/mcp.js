// cs.mcp: a client of the Model Context Protocol by streamable HTTP, over fetch and with its limits.
const { Buffer } = require("internal/bytes");
const { parse, stringify } = JSON;

// The versions of the protocol that this client speaks, the one that it proposes first.
const versions = ["2025-11-25", "2025-06-18", "2025-03-26"];

// The bytes that an answer, or an event of a streamed one, has at most, as a body of fetch that leaves
// the sandbox, and the messages of a streamed answer.
const most = 6 << 20;
const mostMessages = 10_000;

const contentTypes = "application/json, text/event-stream";
const methodNotFound = -32601;

class McpError extends Error {
  constructor(message, fields) {
    super(message);
    this.name = "McpError";
    Object.assign(this, fields);
  }
}

// eachPart calls each with the parts of a body, until it returns true or the body ends. The rest of the
// body is cancelled.
async function eachPart(response, each) {
  if (!response.body) return;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || each(value)) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// wholeText reads a body of at most limit bytes.
async function wholeText(response, limit) {
  const parts = [];
  let size = 0;
  await eachPart(response, (part) => {
    size += part.byteLength;
    if (size > limit) throw new McpError("the answer of the MCP server is too large", { code: "too_large" });
    parts[parts.length] = Buffer.from(part);
  });
  return Buffer.concat(parts).toString("utf8");
}

// Events takes server-sent events apart. A line ends with CR, LF or both, of which a part of the body may
// hold only the first.
class Events {
  #held = Buffer.alloc(0);
  #data = [];
  #size = 0;
  #skipLF = false;

  // take returns the data of the events that end in part.
  take(part) {
    const rest = this.#held.length > 0 ? Buffer.concat([this.#held, part]) : Buffer.from(part);
    const whole = [];
    const find = (c, from) => { const at = rest.indexOf(c, from); return at < 0 ? rest.length : at; };
    let begin = 0;
    if (this.#skipLF && rest.length > 0) {
      this.#skipLF = false;
      if (rest[0] === 10) begin = 1;
    }
    const from = Math.max(begin, this.#held.length); // what is held has no end of a line
    let lf = find(10, from), cr = find(13, from);
    while (lf < rest.length || cr < rest.length) {
      const end = Math.min(lf, cr);
      this.#line(rest.toString("utf8", begin, end), whole);
      begin = end + 1;
      if (end === cr) {
        if (begin === rest.length) this.#skipLF = true;
        else if (rest[begin] === 10) begin++;
        cr = find(13, begin);
      }
      if (lf < begin) lf = find(10, begin);
    }
    if (this.#size + rest.length - begin > most) tooLarge();
    this.#held = Buffer.from(rest.subarray(begin));
    return whole;
  }

  #line(line, whole) {
    if (line !== "") {
      if (!line.startsWith("data:")) return;
      this.#size += line.length;
      if (this.#size > most) tooLarge();
      this.#data[this.#data.length] = line.slice(line[5] === " " ? 6 : 5);
      return;
    }
    if (this.#data.length > 0) whole[whole.length] = this.#data.join("\n");
    this.#data = [];
    this.#size = 0;
  }
}

function tooLarge() {
  throw new McpError("a message of the MCP server exceeds 6 MiB", { code: "too_large" });
}

function message(text) {
  let m;
  try {
    m = parse(text);
  } catch {
    throw new McpError("the MCP server sent a message that is no JSON", { code: "bad_answer" });
  }
  if (typeof m !== "object" || m === null || Array.isArray(m)) {
    throw new McpError("the MCP server sent a message that is no object", { code: "bad_answer" });
  }
  return m;
}

class Client {
  #fetch;
  #url;
  #headers;
  #session = null;
  #version = null;
  #next = 1;
  #closed = false;
  constructor(url, headers, fetch) {
    this.#url = url;
    this.#headers = headers;
    this.#fetch = fetch;
  }

  async initialize(options) {
    const result = await this.request("initialize", {
      protocolVersion: versions[0], capabilities: {}, clientInfo: { name: "code-sous", version: "1" },
    }, options);
    if (!versions.includes(result.protocolVersion)) {
      throw new McpError(`the MCP server speaks version ${result.protocolVersion} of the protocol, which cs.mcp does not`, { code: "version" });
    }
    this.#version = result.protocolVersion;
    for (const [name, value] of [
      ["protocolVersion", result.protocolVersion], ["serverInfo", result.serverInfo],
      ["capabilities", result.capabilities ?? {}], ["instructions", result.instructions],
    ]) Object.defineProperty(this, name, { value, enumerable: true });
    await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" }, options.signal);
    return this;
  }

  listTools(params = {}, options) { return this.request("tools/list", params, options); }
  callTool(name, args = {}, options) { return this.request("tools/call", { name, arguments: args }, options); }
  listResources(params = {}, options) { return this.request("resources/list", params, options); }
  listResourceTemplates(params = {}, options) { return this.request("resources/templates/list", params, options); }
  readResource(uri, options) { return this.request("resources/read", { uri }, options); }
  listPrompts(params = {}, options) { return this.request("prompts/list", params, options); }
  getPrompt(name, args = {}, options) { return this.request("prompts/get", { name, arguments: args }, options); }
  ping(options) { return this.request("ping", {}, options); }

  // request sends a request and returns its result.
  async request(method, params = {}, { signal, onProgress } = {}) {
    if (this.#closed) throw new McpError("the connection is closed", { code: "closed" });
    const id = this.#next++;
    if (onProgress) params = { ...params, _meta: { ...params._meta, progressToken: id } };
    try {
      return await this.#answer(id, method, params, signal, onProgress);
    } catch (e) {
      if (signal?.aborted && method !== "initialize") {
        this.#post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } }).catch(() => {});
      }
      throw e;
    }
  }

  async #answer(id, method, params, signal, onProgress) {
    const response = await this.#post({ jsonrpc: "2.0", id, method, params }, signal);
    const session = response.headers.get("mcp-session-id");
    if (method === "initialize" && session) this.#session = session;
    if ((response.headers.get("content-type") ?? "").toLowerCase().startsWith("text/event-stream")) {
      return this.#streamed(id, response, onProgress);
    }
    const m = message(await wholeText(response, most));
    if (m.id !== id) throw new McpError("the MCP server answered another request", { code: "bad_answer" });
    return outcome(m);
  }

  // #streamed reads a streamed answer, up to the result.
  async #streamed(id, response, onProgress) {
    const events = new Events();
    let n = 0, answer;
    await eachPart(response, (part) => {
      for (const data of events.take(part)) {
        if (++n > mostMessages) throw new McpError(`the answer of the MCP server has more than ${mostMessages} messages`, { code: "too_large" });
        if (data === "") continue;
        const m = message(data);
        if (m.id === id && m.method === undefined) {
          answer = m;
          return true;
        }
        this.#incoming(m, id, onProgress);
      }
      return false;
    });
    if (!answer) throw new McpError("the MCP server ended its stream without an answer", { code: "no_answer" });
    return outcome(answer);
  }

  // #incoming takes a message of the server that comes before the answer. Its requests are refused, apart
  // from ping: this client has no capabilities.
  #incoming(m, id, onProgress) {
    if (m.method === "notifications/progress" && m.params?.progressToken === id) onProgress?.(m.params);
    if (m.method === undefined || m.id === undefined) return;
    const reply = m.method === "ping" ? { result: {} } : { error: { code: methodNotFound, message: "not supported" } };
    this.#post({ jsonrpc: "2.0", id: m.id, ...reply }).catch(() => {});
  }

  // #post sends a message. It returns the response if its status is one of success.
  async #post(m, signal) {
    const headers = new Headers(this.#headers);
    headers.set("content-type", "application/json");
    headers.set("accept", contentTypes);
    if (this.#session) headers.set("mcp-session-id", this.#session);
    if (this.#version) headers.set("mcp-protocol-version", this.#version);
    const response = await this.#fetch(this.#url, { method: "POST", headers, body: stringify(m), signal });
    if (response.ok) {
      if (m.id === undefined || m.method === undefined) response.body?.cancel().catch(() => {});
      return response;
    }
    const status = response.status;
    let text = "";
    try {
      text = await wholeText(response, 64 << 10);
      const answer = parse(text);
      if (answer.error?.code !== undefined) return outcome(answer, status);
      text = answer.detail ?? answer.message ?? text;
    } catch (e) {
      if (e instanceof McpError && typeof e.code === "number") throw e;
    }
    const gone = status === 404 && this.#session ? "; the session has ended" : "";
    throw new McpError(`the MCP server answered ${status}${gone}: ${String(text).slice(0, 500)}`, { code: "http", status });
  }

  // close ends the session.
  async close() {
    if (this.#closed) return;
    this.#closed = true;
    if (!this.#session) return;
    const headers = new Headers(this.#headers);
    headers.set("mcp-session-id", this.#session);
    if (this.#version) headers.set("mcp-protocol-version", this.#version);
    try {
      const response = await this.#fetch(this.#url, { method: "DELETE", headers });
      response.body?.cancel().catch(() => {});
    } catch {
      // Servers need not support it.
    }
  }
}

function outcome(m, status) {
  if (m.error) throw new McpError(`${m.error.message}`, { code: m.error.code, data: m.error.data, status });
  if (typeof m.result !== "object" || m.result === null) {
    throw new McpError("the MCP server sent an answer without a result", { code: "bad_answer" });
  }
  return m.result;
}

async function connect(url, options = {}, fetch, secret) {
  if (options === null || typeof options !== "object") throw new TypeError("cs.mcp.connect: the options must be an object");
  for (const name of Object.keys(options)) {
    if (name !== "headers" && name !== "secret" && name !== "signal") throw new TypeError(`cs.mcp.connect: unknown option ${name}`);
  }
  const headers = new Headers(options.headers);
  if (options.secret !== undefined) headers.set("authorization", "Bearer " + (await secret(options.secret)));
  return new Client(String(url), headers, fetch).initialize({ signal: options.signal });
}

module.exports = { connect };
