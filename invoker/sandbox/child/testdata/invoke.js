import { check, rejects } from "./check.js";
export default async function () {
  check("result", await cs.invoke("echo", { n: [1] }, { version: 3 }), { head: { function: "echo", version: 3 }, event: { n: [1] } });
  check("alias", await cs.invoke("ns1/echo", 0, { alias: "beta" }), { head: { function: "ns1/echo", alias: "beta" }, event: 0 });
  check("no event", await cs.invoke("echo"), { head: { function: "echo" }, event: null });
  check("undefined", await cs.invoke("nothing", 1, null), undefined);
  const e = await rejects("failure", cs.invoke("fails"), "fails failed");
  check("error", [e instanceof Error, e.code, e.activationId, e.status, e.cause, Object.keys(e)], [true, "CS_RUNTIME_EXCEPTION", "a1", "error", { type: "Exception", message: "no" }, ["code", "activationId", "status", "cause"]]);
  await rejects("no function", cs.invoke(), "the function must be a string");
  await rejects("empty", cs.invoke(""), "the function must be a string");
  await rejects("options", cs.invoke("echo", 1, "prod"), "options must be an object");
  await rejects("typo", cs.invoke("echo", 1, { alais: "beta" }), "no option");
  await rejects("alias", cs.invoke("echo", 1, { alias: 5 }), "alias must be a string");
  await rejects("version", cs.invoke("echo", 1, { version: -1 }), "a number above 0");
  await rejects("half a version", cs.invoke("echo", 1, { version: 1.5 }), "a whole number");
  await rejects("event", cs.invoke("echo", () => 1), "must be JSON");
}
