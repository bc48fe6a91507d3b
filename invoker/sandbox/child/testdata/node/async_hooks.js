import { check, rejects } from "./check.js";
import { AsyncLocalStorage, AsyncResource, executionAsyncId } from "node:async_hooks";
import { EventEmitter } from "node:events";
const als = new AsyncLocalStorage(), other = new AsyncLocalStorage();
const wait = (ms) => new Promise((r) => setTimeout(r, ms));
const top = als.run("top", () => AsyncLocalStorage.snapshot());
export default async function () {
  check("outside", als.getStore(), undefined);
  check("run", [als.run(1, () => als.getStore()), als.run(1, (a, b) => a + b, 2, 3), als.getStore()], [1, 5, undefined]);
  check("nested", als.run(1, () => [als.getStore(), als.run(2, () => als.getStore()), other.run("o", () => [als.getStore(), other.getStore()]), als.getStore(), als.exit(() => als.getStore())]), [1, 2, [1, "o"], 1, undefined]);
  let thrown; try { als.run(1, () => { throw new Error("x") }) } catch (e) { thrown = e.message } check("throw", [thrown, als.getStore()], ["x", undefined]);
  check("await", await als.run({ id: 7 }, async () => { await null; const a = als.getStore().id; await wait(1); const b = als.getStore().id; await cs.kv.get("there"); return [a, b, als.getStore().id] }), [7, 7, 7]);
  check("after", als.getStore(), undefined);
  const both = await Promise.all([1, 2, 3].map((n) => als.run(n, async () => { await wait(4 - n); const first = als.getStore(); await fetch("https://a.example/json").then((r) => r.json()); return [n, first, als.getStore()] })));
  check("parallel", both, [[1, 1, 1], [2, 2, 2], [3, 3, 3]]);
  const seen = []; await als.run("t", () => new Promise((done) => {
    setTimeout(() => { seen.push(["timeout", als.getStore()]); setImmediate(() => { seen.push(["immediate", als.getStore()]); done() }) }, 1);
    queueMicrotask(() => seen.push(["micro", als.getStore()]));
    process.nextTick(() => seen.push(["tick", als.getStore()]));
    let n = 0; const every = setInterval(() => { seen.push(["interval", als.getStore()]); if (++n === 2) clearInterval(every) }, 1);
    Promise.reject(new Error()).catch(() => seen.push(["catch", als.getStore()])).finally(() => seen.push(["finally", als.getStore()]));
  }));
  check("sources", [...new Set(seen.map((s) => s[1])), new Set(seen.map((s) => s[0])).size >= 6], ["t", true]);
  const f = als.run("r", () => new AsyncResource("mine")), e = new EventEmitter(); check("resource", [f.runInAsyncScope((a) => [a, als.getStore()], null, 5), als.getStore()], [[5, "r"], undefined]);
  const bound = als.run("b", () => AsyncResource.bind((x) => [x, als.getStore()])); check("bind", bound(1), [1, "b"]);
  const snap = als.run("s", () => AsyncLocalStorage.snapshot()); check("snapshot", [snap(() => als.getStore()), als.getStore()], ["s", undefined]);
  check("snapshot of a module", top(() => als.getStore()), "top");
  check("effects in it", await top(async () => { await cs.kv.get("there"); console.log("mine"); return als.getStore() }), "top");
  await als.run("x", async () => { als.enterWith("y"); check("enterWith", als.getStore(), "y"); await null; check("enterWith later", als.getStore(), "y") });
  check("undefined store", als.run(undefined, () => als.getStore()), undefined);
  await rejects("rejection", als.run("q", async () => { await null; throw new Error(als.getStore()) }), "q");
  const it = als.run("gen", () => (function* () { yield als.getStore(); yield als.getStore() })()); check("generator", [it.next().value, it.next().value], [undefined, undefined]);
  check("ids", typeof executionAsyncId(), "number");
  als.enterWith("leak");
}
