import { check, rejects, throws } from "./check.js";
export default async function () {
  const r = new Response("hi", { status: 404, statusText: "No", headers: { a: "b" } });
  check("members", [r.status, r.ok, r.statusText, r.headers.get("a"), r.headers.get("content-type"), r.type], [404, false, "No", "b", "text/plain;charset=UTF-8", "default"]);
  const c = r.clone();
  check("text", [await r.text(), await c.text()], ["hi", "hi"]);
  throws("clone used", () => r.clone(), "TypeError");
  check("empty", [new Response().status, await new Response().text(), new Response(null).headers.get("content-type")], [200, "", null]);
  const j = Response.json({ a: 1 }, { status: 201 });
  check("json", [j.status, j.headers.get("content-type"), await j.json()], [201, "application/json", { a: 1 }]);
  throws("json of undefined", () => Response.json(undefined), "TypeError");
  const invalid = new Uint8Array([34, 97, 0xe2, 0x82, 0xff, 0xff, 98, 34]);
  check("invalid UTF-8", [await new Response(invalid).text(), await new Response(invalid).json()], ['"a\ufffd\ufffd\ufffdb"', "a\ufffd\ufffd\ufffdb"]);
  await rejects("bad json", new Response("{").json(), "SyntaxError");
  check("arrayBuffer", [...new Uint8Array(await new Response("ab").arrayBuffer())], [97, 98]);
  check("bytes", [...await new Response(new Uint8Array([1, 2]).buffer).bytes()], [1, 2]);
  check("redirect", [Response.redirect("http://h/", 301).status, Response.redirect("http://h/").headers.get("location")], [301, "http://h/"]);
  throws("status", () => new Response("", { status: 99 }), "RangeError");
  check("error", [Response.error().type, Response.error().status], ["error", 0]);
  check("same headers", r.headers === r.headers, true);
  const q = new Request("http://h/a", { method: "POST", body: "x", headers: { b: "c" } });
  check("Request", [q.url, q.method, q.headers.get("b"), q.redirect, await q.clone().text(), await q.text(), q.signal.aborted], ["http://h/a", "POST", "c", "follow", "x", "x", false]);
}
