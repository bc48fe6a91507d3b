import assert from "node:assert/strict";
import { test } from "node:test";

import { encode, maxSettleJobs, partsOf, truncate } from "../src/limits.js";
import { Backoff, bounded, Notice } from "../src/wait.js";

test("delays have full jitter between the floor and a bound that doubles", () => {
  const least = new Backoff(100, 500, 20, () => 0);
  const most = new Backoff(100, 500, 20, () => 1);
  assert.deepEqual([1, 2, 3].map(() => least.next()), [20, 20, 20]);
  assert.deepEqual([1, 2, 3, 4, 5].map(() => most.next()), [100, 200, 400, 500, 500]);
  most.reset();
  assert.equal(most.next(), 100);
});

test("a text is cut at a character", () => {
  assert.equal(truncate("aü😀", 3), "aü");
  assert.equal(truncate("aü😀", 6), "aü");
  assert.equal(truncate("aü😀", 7), "aü😀");
  assert.equal(truncate("a\ud800", 10), "a\ufffd");
});

test("values without JSON, and large ones, are refused", () => {
  assert.equal(encode("result", ["ü"], 6), '["ü"]');
  assert.throws(() => encode("result", ["ü"], 5), RangeError);
  assert.throws(() => encode("result", () => 1, 100), TypeError);
});

test("items are divided by their number and size", () => {
  const sizes = (items: number[], most: number) => [...partsOf(items, most, (n) => n)].map((part) => part.length);
  assert.deepEqual(sizes([], 1000), []);
  assert.deepEqual(sizes([100, 100, 5000, 100], 900), [2, 1, 1]);
  assert.deepEqual(sizes(new Array(maxSettleJobs + 1).fill(0), 1 << 30), [maxSettleJobs, 1]);
});

test("a notice before the wait is kept, and an aborted signal ends the wait", async () => {
  const notice = new Notice();
  const stop = new AbortController();
  notice.notify();
  await notice.wait(stop.signal);
  const waiting = notice.wait(stop.signal);
  stop.abort();
  await waiting;
});

test("a bounded call ends with its time and with its signal", async () => {
  const never = (signal: AbortSignal) => new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  await assert.rejects(bounded(1, undefined, never), { name: "TimeoutError" });
  const stop = new AbortController();
  const call = bounded(60_000, stop.signal, never);
  stop.abort(new Error("stopped"));
  await assert.rejects(call, /stopped/);
});
