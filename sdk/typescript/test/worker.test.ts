import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";

import { Aborted, ApiError, Fatal, RetryAfter, Snooze, Worker, type Handler, type WorkerOptions } from "../src/index.js";
import { FakeSource } from "./fake.js";

/** Runs a worker until `until` is resolved, and stops it. */
async function running(source: FakeSource, options: WorkerOptions, handler: Handler, until: (worker: Worker) => Promise<unknown>): Promise<void> {
  const worker = new Worker(source, options).handle("q", handler);
  const ended = worker.run();
  await until(worker);
  await worker.stop();
  await ended;
  assert.equal(source.closed, true);
}

/** Resolves when a worker has emitted an event n times. */
function times(worker: Worker, n: number, event: "completed" | "failed" | "warning" | "dropped" | "started"): Promise<void> {
  return new Promise((resolve) => worker.on(event, () => --n === 0 && resolve()));
}

test("results and errors settle jobs", async () => {
  const source = new FakeSource();
  source.add("value", "nothing", "fatal", "retry", "snooze", "throws", "circular");
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const handler: Handler = (job) => {
    switch (job.payload) {
      case "value":
        return { n: 1 };
      case "fatal":
        throw new Fatal("f");
      case "retry":
        throw new RetryAfter(-5, "r");
      case "snooze":
        throw new Snooze(1e15);
      case "throws":
        throw new TypeError("t".repeat(70_000));
      case "circular":
        return circular;
    }
    return undefined;
  };
  await running(source, {}, handler, (worker) => times(worker, 4, "failed"));
  assert.deepEqual(source.acks.flat().map(({ id, result }) => [id, result]), [["value", '{"n":1}'], ["nothing", undefined]]);
  const fails = new Map(source.fails.flat().map((f) => [f.id, f]));
  assert.equal(fails.get("fatal")?.fatal, true);
  assert.equal(fails.get("retry")?.retryAfterMs, 0);
  assert.equal(fails.get("snooze")?.snoozeMs, 30 * 24 * 60 * 60 * 1000);
  assert.equal(fails.get("throws")?.error.length, 64 << 10);
  assert.ok((fails.get("throws")?.stack?.length ?? 0) <= 8 << 10);
  assert.match(fails.get("circular")?.error ?? "", /circular/);
});

test("jobs that end during a call are settled in one group", async () => {
  const source = new FakeSource();
  source.add(...Array.from({ length: 50 }, (_, i) => i));
  await running(source, { concurrency: 50 }, () => undefined, (worker) => times(worker, 50, "completed"));
  assert.equal(source.acks.flat().length, 50);
  assert.ok(source.acks.length < 10, `got ${source.acks.length} calls, want few`);
});

test("no more handlers run at once than concurrency, and no more jobs are fetched than fit", async () => {
  const source = new FakeSource();
  source.add(...Array.from({ length: 20 }, (_, i) => i));
  let now = 0;
  let most = 0;
  const handler: Handler = async () => {
    most = Math.max(most, ++now);
    await new Promise((resolve) => setImmediate(resolve));
    now--;
  };
  await running(source, { concurrency: 3, ahead: 2 }, handler, (worker) => times(worker, 20, "completed"));
  assert.equal(most, 3);
  assert.ok(source.requests.every((r) => r.count <= 5));
});

test("a call without an answer is repeated", async () => {
  const source = new FakeSource();
  source.add("a");
  let calls = 0;
  source.answer = (verb) => {
    if (verb === "ack" && ++calls < 3) {
      throw new Error("no answer");
    }
    return {};
  };
  await running(source, {}, () => undefined, (worker) => times(worker, 2, "warning"));
  assert.equal(calls, 3);
  assert.equal(source.acks.length, 1);
});

test("an attempt whose result is refused fails", async () => {
  const source = new FakeSource();
  source.add("a");
  source.answer = (verb) => (verb === "ack" ? { ok: false, code: "CS_VALIDATION_JOB_RESULT", message: "no match" } : {});
  await running(source, {}, () => 1, (worker) => times(worker, 1, "completed"));
  assert.match(source.fails.flat()[0]?.error ?? "", /CS_VALIDATION_JOB_RESULT.*no match/);
});

test("a lost lease aborts the handler and drops its result", async () => {
  const source = new FakeSource();
  source.add("a");
  source.answer = (verb) => (verb === "heartbeat" ? { ok: false, code: "CS_JOB_LEASE_LOST" } : {});
  let reason: unknown;
  const handler: Handler = async (_, { signal, heartbeat }) => {
    await assert.rejects(heartbeat, Aborted);
    reason = (signal.reason as Aborted).reason;
    return "late";
  };
  await running(source, {}, handler, (worker) => times(worker, 1, "dropped"));
  assert.equal(reason, "lease lost");
  assert.deepEqual([source.acks, source.fails], [[], []]);
});

test("a job that arrives again has its earlier handler aborted", async () => {
  const source = new FakeSource();
  source.offer({ id: "a", leaseEpoch: 1 });
  const handler: Handler = async (job, { signal }) => {
    if (job.leaseEpoch === 1) {
      source.offer({ id: "a", leaseEpoch: 2 });
      await once(signal, "abort");
    }
  };
  await running(source, {}, handler, (worker) => Promise.all([times(worker, 1, "dropped"), times(worker, 1, "completed")]));
  assert.deepEqual(source.acks.flat().map((a) => a.leaseEpoch), [2]);
});

test("a stop returns jobs that have not begun, and those that break off, with their checkpoints", async () => {
  const source = new FakeSource();
  source.add("a", "b");
  const handler: Handler = async (_, { signal, checkpoint }) => {
    checkpoint({ page: 2 });
    await once(signal, "abort");
    throw signal.reason;
  };
  await running(source, { concurrency: 1, stopTimeoutMs: 0 }, handler, (worker) => times(worker, 1, "started"));
  assert.deepEqual(source.fails.flat().map(({ id, snoozeMs }) => [id, snoozeMs]).sort(), [["a", 0], ["b", 0]]);
  assert.deepEqual(source.beats.map(({ id, checkpoint }) => [id, checkpoint]), [["a", '{"page":2}']]);
});

test("a key that is refused ends the worker", async () => {
  const source = new FakeSource();
  source.answer = () => {
    throw new ApiError("CS_AUTHN_INVALID", "the key is unknown", 401);
  };
  const worker = new Worker(source).handle("q", () => undefined);
  await assert.rejects(worker.run(), { name: "ApiError", code: "CS_AUTHN_INVALID" });
  await worker.stop();
});

test("await using stops the worker", async () => {
  const source = new FakeSource();
  const worker = new Worker(source).handle("q", () => undefined);
  const ended = worker.run();
  await worker[Symbol.asyncDispose]();
  await ended;
  assert.equal(source.closed, true);
});

test("bad settings are refused", () => {
  const source = new FakeSource();
  assert.throws(() => new Worker(source, { concurrency: 0 }), RangeError);
  assert.throws(() => new Worker(source, { leaseMs: 999 }), RangeError);
  assert.throws(() => new Worker(source, { waitMs: 60_001 }), RangeError);
  assert.throws(() => new Worker(source).handle("fn.hello", () => undefined), /served by the platform/);
  assert.throws(() => new Worker(source).run(), /want 1 to 64/);
});
