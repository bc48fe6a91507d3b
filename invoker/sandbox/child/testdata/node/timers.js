import { check, rejects } from "./check.js";
import timers from "node:timers";
import { setTimeout as sleep, setImmediate as soon, setInterval as every, scheduler } from "node:timers/promises";
export default async function () {
  const t = setTimeout(() => {}, 1e6); // the script names unref, so that the global returns an object
  check("object", [typeof t, t.unref() === t, t.hasRef(), t.ref().hasRef(), typeof +t, setTimeout === timers.setTimeout], ["object", true, false, true, "number", true]); clearTimeout(t);
  const seen = []; clearTimeout(timers.setTimeout(() => seen.push("no"), 0)); clearInterval(undefined); timers.setTimeout((a, b) => seen.push(a + b), 0, 1, 2); const id = timers.setTimeout(() => seen.push("id"), 0); clearTimeout(Number(id));
  const iv = timers.setInterval(() => { seen.push("i"); iv.close() }, 1); await sleep(5); check("fired", seen, [3, "i"]);
  check("promises", [await sleep(1, "v"), await soon("i"), await scheduler.wait(1)], ["v", "i", undefined]);
  const ac = new AbortController(); const p = sleep(1e6, null, { signal: ac.signal }); ac.abort(); await rejects("aborted", p, "AbortError");
  const it = every(1, "n"); check("interval", [(await it.next()).value, (await it.next()).done], ["n", false]); await it.return();
  let n = 0; const r = timers.setTimeout(() => n++, 2); r.refresh(); await sleep(6); r.refresh(); await sleep(6); check("refresh", n, 2);
}
