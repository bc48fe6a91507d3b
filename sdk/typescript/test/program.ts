// A worker for the tests in Go (sdk/sdk_test.go). It prints its events as lines of JSON.
import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, Fatal, ProviderError, RetryAfter, Snooze, Worker } from "../src/index.js";

const { values } = parseArgs({
  options: {
    url: { type: "string" },
    tenant: { type: "string" },
    transport: { type: "string", default: "stream" },
    concurrency: { type: "string", default: "10" },
    lease: { type: "string", default: "30000" },
  },
});

function say(event: string, fields: Record<string, unknown>): void {
  console.log(JSON.stringify({ event, ...fields }));
}

/** The payload of a job: its `kind` selects the behaviour. */
interface Order {
  kind: string;
  ms?: number;
}

const client = new Client({ url: values.url!, tenant: values.tenant! });
const worker = new Worker(client, {
  concurrency: Number(values.concurrency),
  leaseMs: Number(values.lease),
  transport: values.transport as "stream" | "http",
});
worker.on("started", (job) => say("started", { id: job.id, attempt: job.attempt }));
worker.on("dropped", (job, reason) => say("dropped", { id: job.id, reason }));
worker.on("returned", (job) => say("returned", { id: job.id }));
worker.on("connected", () => say("connected", {}));
worker.on("warning", (error) => say("warning", { text: error.message }));

worker.handle<Order>("orders", async (job, { signal, progress, checkpoint, continue: goOn, hold }) => {
  const { kind, ms = 0 } = job.payload;
  switch (kind) {
    case "slow":
      progress(1, 2, "half-way \u{1f600}");
      await sleep(ms, undefined, { signal });
      return { slept: ms };
    case "flaky":
      if (job.attempt === 1) {
        throw new RetryAfter(10, "the first attempt fails");
      }
      return { attempt: job.attempt };
    case "throws":
      throw new TypeError("always fails");
    case "fatal":
      throw new Fatal("no such address");
    case "checkpoint": {
      if (job.attempt === 1) {
        checkpoint({ page: 7 });
        throw new RetryAfter(10, "stopped at page 7");
      }
      return job.checkpoint;
    }
    case "snooze":
      if (job.tags["snoozed"] === undefined && job.checkpoint === undefined) {
        checkpoint("snoozed");
        throw new Snooze(10);
      }
      return { attempt: job.attempt };
    case "provider":
      if (job.provider === "main") {
        throw new ProviderError("overloaded", "529", 60_000);
      }
      return { provider: job.provider, model: job.model, attempt: job.attempt };
    case "continue": {
      const part = (job.checkpoint as number | undefined) ?? 0;
      if (part < 2) {
        checkpoint(part + 1);
        goOn();
        return;
      }
      return { parts: part };
    }
    case "hold":
      if (job.checkpoint === undefined) {
        checkpoint("asked");
        hold("needs a look");
        return;
      }
      return { approved: true };
    case "enqueue":
      return client.enqueue("orders", { kind: "echo" }, { tags: { by: job.id }, uniqueKey: job.id });
    default:
      await sleep(ms);
      return job.payload;
  }
});

try {
  await worker.run({ signals: ["SIGTERM", "SIGINT"] });
  say("stopped", {});
} catch (error) {
  say("failed", { text: String(error) });
  process.exitCode = 1;
}
