import { check, rejects } from "./check.js";
export default async function () {
  let ran = 0;
  const recorded = cs.step("recorded", () => ran++);
  const failed = await rejects("a recorded failure", cs.step("failed", () => ran++), "no");
  check("recorded", await recorded, { n: 1 });
  check("failure", [failed.name, failed.code, failed.step, failed.attempts, failed.causeCode], ["TypeError", "CS_RUNTIME_STEP_FAILED", "failed", 2, "E"]);
  check("not run", ran, 0);
  check("a new step", await cs.step("recorded", ({ attempt }) => ({ attempt, at: new Date(0), no: undefined })), { attempt: 1, at: "1970-01-01T00:00:00.000Z" });
  check("nothing", await cs.step("nothing", async () => {}), undefined);
  check("retried", await cs.step("retried", ({ attempt }) => { if (attempt < 3) throw attempt; return attempt; }, { retry: { backoffMs: 1 } }), 3);
  check("sleep", [await cs.sleep(1), await cs.sleep("1ms"), await cs.sleep("0.001s")], [undefined, undefined, undefined]);
  check("event", await cs.waitForEvent("paid"), { m: 1 });
  check("no event", await cs.waitForEvent("late", { timeout: "2s" }), null);
  check("approval", await cs.waitForApproval({ message: "Pay?" }), { approved: true, by: "key_1", comment: "ok" });
  check("no approval", await cs.waitForApproval({ name: "second", timeout: 5000, default: true }), { approved: true, timedOut: true });
  const order = [];
  await Promise.all([cs.step("p", async () => { await cs.sleep(5); }).then(() => order.push("p")), cs.step("q", () => 1).then(() => order.push("q"))]);
  check("order of ends", order, ["q", "p"]);
  for (const name of [5, "", "a\nb", "x".repeat(129), undefined]) await rejects("name " + name, cs.step(name, () => 1), "the name must be");
  await rejects("function", cs.step("a", 1), "must be a function");
  for (const d of [-1, NaN, "5", "m", "5 m", "366d", null, undefined, {}]) await rejects("duration " + d, cs.sleep(d), "the duration");
  await rejects("option", cs.step("a", () => 1, { retries: 1 }), 'there is no option "retries"');
  for (const n of [0, 101, 1.5, "1"]) await rejects("attempts " + n, cs.step("a", () => 1, { retry: { maxAttempts: n } }), "a whole number from 1 to 100");
  await rejects("message", cs.waitForApproval({ message: "x".repeat(1025) }), "at most 1 KiB");
}
