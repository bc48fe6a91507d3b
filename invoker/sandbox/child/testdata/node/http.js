import { check, throws, rejects } from "./check.js";
import http, { METHODS, STATUS_CODES, IncomingMessage, Agent } from "node:http";
import https from "node:https";
const call = (lib, ...args) => new Promise((resolve, reject) => { const req = lib.request(...args, (res) => { let body = ""; res.setEncoding("utf8"); res.on("data", (c) => { body += c }); res.on("end", () => resolve({ req, res, body })) }); req.on("error", reject); call.req = req });
export default async function () {
  const p = call(https, "https://a.example/json", { method: "POST", headers: { "X-One": "1", "Content-Type": "text/plain" } }); call.req.write("part "); call.req.end("end");
  const { res, body } = await p; check("response", [res.statusCode, res.statusMessage, res.headers["x-two"], res.headers["set-cookie"], body, res instanceof IncomingMessage, res.complete], [201, "Created", "1, 2", ["a=1", "b=2"], '{"a":[1]}', true, true]);
  const q = call(http, { hostname: "a.example", port: 8080, path: "/x?y=1", method: "PUT", headers: { a: ["1", "2"] }, auth: "u:p" }); call.req.end("body"); const sent = JSON.parse((await q).body);
  check("request", [sent.head.url, sent.head.method, sent.body, sent.head.redirect], ["http://a.example:8080/x?y=1", "PUT", "body", "manual"]);
  check("headers", sent.head.headers.some(([k, v]) => k === "authorization" && v === "Basic dTpw"), true);
  check("get", await new Promise((r, f) => https.get("https://a.example/json", (x) => { x.resume(); x.on("end", () => r(x.statusCode)) }).on("error", f)), 201);
  check("iterate", await new Promise((r) => https.get(new URL("https://a.example/json"), async (x) => { let n = 0; for await (const c of x) n += c.length; r(n) })), 9);
  await rejects("denied", new Promise((r, f) => https.get("https://a.example/denied", r).on("error", f)), "allowHosts");
  await rejects("timeout", new Promise((r, f) => { const x = https.get("https://a.example/never", { timeout: 2 }, r).on("error", f); x.on("timeout", () => x.destroy(new Error("timed out"))) }), "timed out");
  await rejects("abort", new Promise((r, f) => { const ac = new AbortController(); https.get("https://a.example/never", { signal: ac.signal }, r).on("error", f); ac.abort() }), "AbortError");
  await rejects("destroyed", new Promise((r, f) => { https.get("https://a.example/never", r).on("error", f).destroy() }), "socket hang up");
  throws("protocol", () => http.get("https://a.example"), 'Protocol "https:" not supported. Expected "http:"');
  check("tables", [METHODS.includes("GET"), STATUS_CODES[404], http.globalAgent instanceof Agent, https.globalAgent instanceof https.Agent, https.globalAgent.protocol, new https.Agent({ keepAlive: true }).keepAlive], [true, "Not Found", true, true, "https:", true]);
  const r = http.request("http://a.example/"); r.setHeader("X-A", "b"); check("setHeader", [r.getHeader("x-a"), r.hasHeader("X-A"), r.getHeaders()["x-a"], r.getHeaderNames()], ["b", true, "b", ["x-a"]]); throws("header", () => r.setHeader("a b", "1"), "valid HTTP token"); r.on("error", () => {}); r.destroy();
}
