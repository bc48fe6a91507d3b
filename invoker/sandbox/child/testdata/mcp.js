import { check, rejects } from "./check.js";
const at = (kind) => "https://a.example/mcp/" + kind;
const failure = (promise) => promise.then(() => "no failure", (e) => [e.name, e.code, e.message.slice(0, 60)]);
export default async function () {
  check("members", Object.keys(cs.mcp), ["connect"]);
  const c = await cs.mcp.connect(at("echo"), { headers: { "x-one": "1" } });
  check("server", [c.protocolVersion, c.serverInfo.name, c.capabilities, c.instructions], ["2025-06-18", "fake", { tools: {} }, "be kind"]);
  const said = await c.callTool("add", { n: 1 });
  check("callTool", [said.method, said.params], ["tools/call", { name: "add", arguments: { n: 1 } }]);
  const headers = Object.fromEntries(said.headers.map(([name, value]) => [name.toLowerCase(), value]));
  check("headers", [headers["x-one"], headers["mcp-session-id"], headers["mcp-protocol-version"], headers.accept, headers["content-type"]],
    ["1", "s1", "2025-06-18", "application/json, text/event-stream", "application/json"]);
  check("listTools", (await c.listTools({ cursor: "x" })).params, { cursor: "x" });
  check("readResource", (await c.readResource("a://b")).params, { uri: "a://b" });
  check("getPrompt", (await c.getPrompt("p", { a: "1" })).params, { name: "p", arguments: { a: "1" } });
  for (const name of ["listResources", "listResourceTemplates", "listPrompts", "ping"]) check(name, typeof (await c[name]()).method, "string");
  check("request", (await c.request("x/y", { z: 1 })).method, "x/y");
  await c.close();
  await rejects("closed", c.ping(), "the connection is closed");

  const globalFetch = globalThis.fetch;
  globalThis.fetch = () => { throw new Error("the global fetch was called"); };
  const e = await cs.mcp.connect(at("events"));
  globalThis.fetch = globalFetch;
  const progress = [];
  check("events", await e.callTool("t", {}, { onProgress: (p) => progress.push(p.progress) }), { text: "grüß" });
  check("progress", progress, [1]);

  const s = await cs.mcp.connect(at("echo"), { secret: "stripe" }).catch((e) => e.message);
  check("a secret that is no value of a header", typeof s, "string");
  await rejects("no secret", cs.mcp.connect(at("echo"), { secret: "none" }), "secret does not exist");
  await rejects("an option", cs.mcp.connect(at("echo"), { key: 1 }), "unknown option key");
  await rejects("a host", cs.mcp.connect("https://a.example/denied"), "declare http.allowHosts");
  check("version", await failure(cs.mcp.connect(at("old"))), ["McpError", "version", "the MCP server speaks version 2024-11-05 of the protocol, wh"]);
  check("refused", await failure(cs.mcp.connect(at("refuses"))), ["McpError", "http", "the MCP server answered 401: no key"]);
  for (const [kind, code] of [["fails", -32602], ["cut", "no_answer"], ["none", "bad_answer"], ["huge", "too_large"], ["gone", "http"]]) {
    const broken = await cs.mcp.connect(at(kind));
    check(kind, (await failure(broken.ping()))[1], code);
  }
  check("aborted", await (await cs.mcp.connect(at("echo"))).ping({ signal: AbortSignal.abort("why") }).catch((e) => e), "why");
}
