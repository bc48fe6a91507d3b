// AbortSignal: https://dom.spec.whatwg.org/#interface-AbortSignal
import { check, throws } from "./check.js";
export default async function () {
  throws("DOM §3.2: no constructor", () => new AbortSignal(), "TypeError");
  // The static methods.
  const a = AbortSignal.abort();
  check("DOM §3.2 AbortSignal.abort(reason), step 2: an AbortError without a reason", [a.aborted, a.reason.name, a.reason.code, a.reason instanceof DOMException], [true, "AbortError", 20, true]);
  check("DOM §3.2 AbortSignal.abort(reason), step 2: the reason", [AbortSignal.abort(0).reason, AbortSignal.abort(null).reason], [0, null]);
  check("DOM §3.2 AbortSignal.abort(reason), step 1: a new signal", AbortSignal.abort(1) === AbortSignal.abort(1), false);
  throws("DOM §3.2 AbortSignal.timeout(): needs an argument", () => AbortSignal.timeout(), "TypeError");
  for (const ms of [-1, NaN, Infinity, "x", 2 ** 53]) throws("DOM §3.2 AbortSignal.timeout(): [EnforceRange] refuses " + ms, () => AbortSignal.timeout(ms), "TypeError");
  const t = AbortSignal.timeout(1);
  check("DOM §3.2 AbortSignal.timeout(), step 1: not aborted at first", [t.aborted, t.reason], [false, undefined]);
  const timedOut = await new Promise((r) => { t.onabort = r; });
  check("DOM §3.2 AbortSignal.timeout(), step 3: aborts with a TimeoutError", [t.aborted, t.reason.name, t.reason.code, timedOut.type, timedOut.isTrusted], [true, "TimeoutError", 23, "abort", true]);
  // any
  throws("DOM §3.2 AbortSignal.any(): needs an argument", () => AbortSignal.any(), "TypeError");
  for (const v of [1, null, {}, [1], [{}], [null]]) throws("DOM §3.2 AbortSignal.any(): refuses " + JSON.stringify(v), () => AbortSignal.any(v), "TypeError");
  check("DOM §3.2 AbortSignal.any(): of nothing never aborts", AbortSignal.any([]).aborted, false);
  check("DOM §3.2 create a dependent abort signal, step 2: the first that has aborted gives the reason", AbortSignal.any([new AbortController().signal, AbortSignal.abort("1"), AbortSignal.abort("2")]).reason, "1");
  const source = new AbortController(), one = AbortSignal.any([source.signal, source.signal]), two = AbortSignal.any([one]), seen = [];
  source.signal.onabort = () => seen.push("source", one.aborted, two.aborted);
  one.onabort = () => seen.push("one");
  two.onabort = () => seen.push("two");
  source.abort("why");
  check("DOM §3.2 signal abort, steps 3 to 6: dependents have their reason before any event, events go in order", seen, ["source", true, true, "one", "two"]);
  check("DOM §3.2 create a dependent abort signal, step 4: sources of a dependent are its sources", [one.reason, two.reason], ["why", "why"]);
  check("DOM §3.2 AbortSignal.any(): takes an iterable", AbortSignal.any(new Set([source.signal])).aborted, true);
  // throwIfAborted
  const c = new AbortController();
  check("DOM §3.2 throwIfAborted(): nothing if not aborted", c.signal.throwIfAborted(), undefined);
  c.abort(7);
  let thrown; try { c.signal.throwIfAborted(); } catch (e) { thrown = e; }
  check("DOM §3.2 throwIfAborted(): throws the reason itself", thrown, 7);
  throws("DOM §3.2 throwIfAborted(): the receiver is checked", () => AbortSignal.prototype.throwIfAborted.call({}), "TypeError");
  throws("DOM §3.2 aborted: read only", () => { c.signal.aborted = false; }, "TypeError");
  throws("DOM §3.2 reason: the receiver is checked", () => Object.getOwnPropertyDescriptor(AbortSignal.prototype, "reason").get.call(new EventTarget()), "TypeError");
  // the event
  const d = new AbortController(), log = [], gone = () => log.push("gone");
  d.signal.addEventListener("abort", (e) => log.push(e.type, e.bubbles, e.cancelable, e.isTrusted, e.target === d.signal, e.constructor === Event));
  d.signal.addEventListener("abort", gone); d.signal.removeEventListener("abort", gone);
  d.signal.onabort = function () { log.push(this === d.signal); };
  d.abort(); d.abort();
  check("DOM §3.2 run the abort steps, step 3: fire an event abort, once", log, ["abort", false, false, true, true, true, true]);
  const h = new AbortController().signal;
  check("HTML §8.1.8.1 onabort: null at first", h.onabort, null);
  h.onabort = gone; check("HTML §8.1.8.1 onabort: what was set", h.onabort === gone, true);
  h.onabort = "text"; check("HTML §8.1.8.1 onabort: anything but an object is null", h.onabort, null);
  const o = {}; h.onabort = o; check("HTML §8.1.8.1 onabort: an object that cannot be called is kept", h.onabort === o, true);
  check("HTML §8.1.8.1 onabort: such an object is not called", h.dispatchEvent(new Event("abort")), true);
  // Algorithms of listeners.
  const stop = new AbortController(), target = new EventTarget();
  target.addEventListener("x", () => log.push("x"), { signal: stop.signal }); stop.signal.addEventListener("abort", () => target.dispatchEvent(new Event("x")));
  log.length = 0; stop.abort();
  check("DOM §3.2 run the abort steps, step 1: algorithms run before the event", log, []);
  const bad = new AbortController(), errors = [];
  const onError = (e) => { errors.push(e.error.message); e.preventDefault(); };
  addEventListener("error", onError);
  bad.signal.addEventListener("abort", () => { throw new Error("thrown"); }); bad.signal.addEventListener("abort", () => log.push("next"));
  check("DOM §2.9 inner invoke, step 11: an exception is reported, abort() does not throw", [bad.abort(), errors, log], [undefined, ["thrown"], ["next"]]);
  removeEventListener("error", onError);
}
