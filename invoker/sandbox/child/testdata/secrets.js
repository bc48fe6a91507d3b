import { check, rejects } from "./check.js";
export default async function () {
  check("members", Object.keys(cs.secrets), ["get"]);
  const p = cs.secrets.get("stripe");
  check("a promise", p instanceof Promise, true);
  check("get", await p, "sk_live \"ü\"\n€");
  for (const name of [undefined, null, 5, "", {}, ["stripe"], new String("stripe"), Symbol("stripe")]) {
    const e = await rejects("get " + String(typeof name), cs.secrets.get(name), "the name must be a string");
    check("code", e.code, "CS_RUNTIME_INVALID_ARGUMENT");
  }
  const e = await rejects("gone", cs.secrets.get("gone"), "does not exist");
  check("code", e.code, "CS_RUNTIME_SECRET_NOT_FOUND");
}
