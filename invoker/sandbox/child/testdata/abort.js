import { check, throws } from "./check.js";
export default async function () {
  const c = new AbortController(), seen = [];
  c.signal.addEventListener("abort", (e) => seen.push(e.type, e.target === c.signal));
  const f = () => seen.push("removed"); c.signal.addEventListener("abort", f); c.signal.removeEventListener("abort", f);
  c.signal.onabort = () => seen.push("on");
  check("before", [c.signal.aborted, c.signal.reason], [false, undefined]);
  c.signal.throwIfAborted();
  c.abort(); c.abort("again");
  check("events", seen, ["abort", true, "on"]);
  check("reason", [c.signal.aborted, c.signal.reason.name, c.signal.reason.code, c.signal.reason instanceof DOMException, c.signal.reason instanceof Error], [true, "AbortError", 20, true, true]);
  throws("throwIfAborted", () => c.signal.throwIfAborted(), "AbortError: This operation was aborted");
  check("abort with reason", AbortSignal.abort(5).reason, 5);
  const t = AbortSignal.timeout(2);
  await new Promise((r) => t.addEventListener("abort", r));
  check("timeout", t.reason.name, "TimeoutError");
  const d = new AbortController(), any = AbortSignal.any([d.signal, new AbortController().signal]);
  d.abort("why"); check("any", [any.aborted, any.reason, AbortSignal.any([d.signal]).reason], [true, "why", "why"]);
  throws("new AbortSignal", () => new AbortSignal(), "Illegal constructor");
  const e = new DOMException("m", "DataCloneError");
  check("DOMException", [e.message, e.name, e.code, String(e), typeof e.stack], ["m", "DataCloneError", 25, "DataCloneError: m", "string"]);
  const source = new AbortController(), dependent = AbortSignal.any([source.signal]), order = [];
  dependent.onabort = () => order.push("dependent"); source.signal.onabort = () => order.push(dependent.aborted); source.abort();
  check("a signal is notified before those that depend on it", order, [true, "dependent"]);
}
