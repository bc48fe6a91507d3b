import { check, rejects } from "./check.js";
export default async function () {
  check("members", Object.keys(cs.job), ["id", "queue", "attempt", "maxAttempts", "progress", "checkpoint", "lastCheckpoint"]);
  check("job", [cs.job.id, cs.job.queue, cs.job.attempt, cs.job.maxAttempts], ["j1", "fn.f", 2, 4]);
  check("last checkpoint", cs.job.lastCheckpoint(), { page: 2 });
  check("share", await cs.job.progress(12.5), undefined);
  check("count", await cs.job.progress({ current: 3, total: 9, message: "m" }), undefined);
  check("checkpoint", await cs.job.checkpoint({ page: 4 }), undefined);
  check("checkpoint of nothing", await cs.job.checkpoint(), undefined);
  for (const n of [-1, 101, NaN, "5", undefined, null]) await rejects("share " + n, cs.job.progress(n), "a share must be a number from 0 to 100");
  await rejects("current", cs.job.progress({}), "current must be a number");
  await rejects("total", cs.job.progress({ current: 1, total: -1 }), "total must be a number");
  await rejects("message", cs.job.progress({ current: 1, message: 5 }), "message must be a string");
  const e = await rejects("function", cs.job.checkpoint(() => 1), "must be JSON");
  check("code", e.code, "CS_RUNTIME_INVALID_ARGUMENT");
}
