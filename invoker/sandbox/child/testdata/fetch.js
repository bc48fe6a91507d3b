import { check, rejects, throws } from "./check.js";
export default async function () {
  const r = await fetch("https://A.example/json");
  check("answer", [r.status, r.ok, r.statusText, r.url, r.redirected, r.headers.get("x-two"), r.headers.getSetCookie(), r instanceof Response, r.bodyUsed],
    [201, true, "Created", "https://a.example/final", true, "1, 2", ["a=1", "b=2"], true, false]);
  check("json", await r.json(), { a: [1] });
  check("used", r.bodyUsed, true);
  await rejects("twice", r.text(), "TypeError: Body is unusable");
  const echo = async (...args) => (await fetch(...args)).json();
  check("plain", await echo("http://h/p?q=ü#f"), { head: { url: "http://h/p?q=%C3%BC#f", method: "GET", headers: [], redirect: "follow" }, body: "" });
  check("post", await echo("http://h", { method: "post", body: "é", headers: { "X-A": "1" }, redirect: "manual" }),
    { head: { url: "http://h/", method: "POST", headers: [["x-a", "1"], ["content-type", "text/plain;charset=UTF-8"]], redirect: "manual" }, body: "é" });
  check("form", (await echo("http://h", { method: "POST", body: new URLSearchParams({ a: "b c" }) })), { head: { url: "http://h/", method: "POST", headers: [["content-type", "application/x-www-form-urlencoded;charset=UTF-8"]], redirect: "follow" }, body: "a=b+c" });
  check("bytes", (await echo("http://h", { method: "PUT", body: new Uint8Array([65, 66, 67]).subarray(1) })).body, "BC");
  check("own type", (await echo("http://h", { method: "PUT", body: "{}", headers: { "Content-Type": "application/json" } })).head.headers, [["content-type", "application/json"]]);
  check("Request", (await echo(new Request("http://h/x", { method: "DELETE" }), { headers: { a: "b" } })).head, { url: "http://h/x", method: "DELETE", headers: [["a", "b"]], redirect: "follow" });
  check("URL", (await echo(new URL("http://h/u"))).head.url, "http://h/u");
  const e = await rejects("denied", fetch("http://h/denied"), "declare http.allowHosts");
  check("code", e.code, "CS_RUNTIME_CAPABILITY_DENIED");
  await rejects("invalid URL", fetch("/relative"), "TypeError: Failed to parse URL");
  await rejects("scheme", fetch("file:///etc/passwd"), "not supported");
  await rejects("credentials", fetch("http://u:p@h/"), "credentials");
  await rejects("GET with body", fetch("http://h", { body: "x" }), "GET/HEAD");
  await rejects("method", fetch("http://h", { method: "A B" }), "not a method");
  await rejects("TRACE", fetch("http://h", { method: "trace" }), "not allowed");
  await rejects("redirect", fetch("http://h", { redirect: "x" }), "redirect must be");
  await rejects("aborted", fetch("http://h", { signal: AbortSignal.abort() }), "AbortError");
  const c = new AbortController();
  const p = fetch("http://h/never", { signal: c.signal });
  setTimeout(() => c.abort(new Error("enough")), 1);
  await rejects("abort", p, "Error: enough");
  await rejects("timeout", fetch("http://h/never", { signal: AbortSignal.timeout(1) }), "TimeoutError");
  const ten = await Promise.all(Array.from({ length: 10 }, (_, i) => echo("http://h/" + i)));
  check("parallel", ten.map((x) => x.head.url), ten.map((_, i) => "http://h/" + i));
  check("cs.http.fetch", (await cs.http.fetch("http://h/json")).status, 201);
}
