import { check, rejects } from "./check.js";
export default async function () {
  check("members", Object.keys(cs.queue), ["enqueue"]);
  check("enqueue", await cs.queue.enqueue("q", { a: 1 }, { priority: "high", delaySeconds: 5 }), { id: '{"queue":"q","options":{"priority":"high","delaySeconds":5}}{"a":1}', state: "pending", duplicate: false });
  check("no options", (await cs.queue.enqueue("q", [])).id, '{"queue":"q","options":{}}[]');
  check("no payload", (await cs.queue.enqueue("q")).id, '{"queue":"q","options":{}}');
  await rejects("queue", cs.queue.enqueue(5), "the queue must be a string");
  await rejects("options", cs.queue.enqueue("q", 1, 5), "options must be an object");
  await rejects("payload", cs.queue.enqueue("q", 1n), "BigInt");
  const e = await rejects("code", cs.queue.enqueue("q", () => 1), "must be JSON");
  check("code", e.code, "CS_RUNTIME_INVALID_ARGUMENT");
}
