import { check, rejects } from "./check.js";
export default async function () {
  check("members", Object.keys(cs.cadence), ["heartbeat", "lastHeartbeat", "start", "signal"]);
  check("last heartbeat", cs.cadence.lastHeartbeat(), { page: 3 });
  check("heartbeat", await cs.cadence.heartbeat({ page: 4 }), undefined);
  check("heartbeat of nothing", await cs.cadence.heartbeat(), undefined);
  await rejects("heartbeat of a function", cs.cadence.heartbeat(() => 1), "must be JSON");
  await rejects("heartbeat of a BigInt", cs.cadence.heartbeat(1n), "BigInt");
  const run = await cs.cadence.start("W", { domain: "d", tasklist: "l", workflowId: "id", input: { a: 1 }, executionTimeoutSeconds: 60, idReuse: "reject" });
  check("start", run, { workflowId: "id", runId: "run" });
  check("signal", await cs.cadence.signal("W", { domain: "d", workflowId: "id", runId: "r", signal: "go", input: [1] }), undefined);
  await rejects("type", cs.cadence.start(5, {}), "the workflow type must be a string");
  await rejects("options", cs.cadence.start("W"), "the options must be an object");
  await rejects("domain", cs.cadence.start("W", { tasklist: "l" }), "options.domain is missing");
  await rejects("tasklist", cs.cadence.start("W", { domain: "d" }), "options.tasklist is missing");
  await rejects("timeout", cs.cadence.start("W", { domain: "d", tasklist: "l", executionTimeoutSeconds: -1 }), "a number above 0");
  await rejects("workflowId", cs.cadence.signal("W", { domain: "d", signal: "go" }), "options.workflowId is missing");
  const e = await rejects("signal's name", cs.cadence.signal("W", { domain: "d", workflowId: "id", signal: 5 }), "must be a string");
  check("code", e.code, "CS_RUNTIME_INVALID_ARGUMENT");
}
