import { check, rejects, throws } from "./check.js";
export default async function () {
  check("env", [cs.env.REGION, cs.env.__proto__, cs.env.none, Object.keys(cs.env), Object.isFrozen(cs.env)], ["eu", "x", undefined, ["REGION", "__proto__"], true]);
  throws("env is frozen", () => { cs.env.REGION = "us" }, "TypeError");
  check("get", [await cs.kv.get("there"), await cs.kv.get("gone")], [{ n: [1] }, undefined]);
  check("set", await cs.kv.set("k", { a: 1 }, { ttlSeconds: 60 }), undefined);
  check("del", await cs.kv.del("k"), true);
  const e = await rejects("key", cs.kv.get(5), "the key must be a string");
  check("code", e.code, "CS_RUNTIME_INVALID_ARGUMENT");
  await rejects("empty key", cs.kv.get(""), "the key must be a string");
  await rejects("function", cs.kv.set("k", () => 1), "must be JSON");
  await rejects("undefined", cs.kv.set("k"), "must be JSON");
  await rejects("BigInt", cs.kv.set("k", 1n), "BigInt");
  const a = []; a.push(a); await rejects("cycle", cs.kv.set("k", a), "contains itself");
  await rejects("throws", cs.kv.set("k", { toJSON() { throw new RangeError("mine") } }), "RangeError: mine");
  await rejects("ttl in another name", cs.kv.set("k", 1, { ttl: 60 }), "no option");
  for (const ttlSeconds of [0, -1, 1.5, NaN, 1e12]) await rejects("ttl " + ttlSeconds, cs.kv.set("k", 1, { ttlSeconds }), "ttlSeconds");
  await rejects("longest ttl reaches the host", cs.kv.set("k", 1, { ttlSeconds: 315360000 }), '"ttl_seconds":315360000');
  const long = await rejects("ttl over the limit", cs.kv.set("k", 1, { ttlSeconds: 315360001 }), "ttlSeconds is 1 to 315360000");
  check("ttl over the limit", long.code, "CS_RUNTIME_INVALID_ARGUMENT");
  await rejects("options", cs.kv.set("k", 1, 60), "options must be an object");
  check("members", [Object.keys(cs), Object.keys(cs.kv)], [["log", "env", "kv", "storage", "http", "queue", "invoke", "respond", "job", "step", "sleep", "waitForEvent", "waitForApproval", "cadence", "secrets", "ai", "mcp"], ["get", "set", "del"]]);
  check("no leftovers", [typeof window, typeof Deno, "fetch" in globalThis, "nope" in globalThis], ["undefined", "undefined", true, false]);
  const original = fetch; globalThis.fetch = 1; check("replaced", fetch, 1); delete globalThis.fetch; check("deleted", typeof fetch, "undefined"); globalThis.fetch = original;
}
