// EventTarget: https://dom.spec.whatwg.org/#interface-eventtarget
import { check, throws } from "./check.js";
export default function () {
  throws("DOM §2.7 constructor: needs new", () => EventTarget(), "TypeError");
  const t = new EventTarget(), seen = [], fire = (type, target = t) => { seen.length = 0; target.dispatchEvent(new Event(type)); return seen.slice(); };
  // addEventListener
  throws("DOM §2.7 addEventListener(): needs two arguments", () => t.addEventListener("x"), "TypeError");
  for (const v of [1, "f", true, Symbol()]) throws("DOM §2.7 addEventListener(): a callback is no " + typeof v, () => t.addEventListener("x", v), "TypeError");
  check("DOM §2.7 add an event listener, step 3: null and undefined add nothing", [t.addEventListener("x", null), t.addEventListener("x", undefined), fire("x")], [undefined, undefined, []]);
  const f = () => seen.push("f");
  t.addEventListener("x", f); t.addEventListener("x", f); t.addEventListener("x", f, { once: true, passive: true });
  check("DOM §2.7 add an event listener, step 5: the same callback and capture are added once", fire("x"), ["f"]);
  t.addEventListener("x", f, true);
  check("DOM §2.7 add an event listener, step 5: another capture is another listener", fire("x"), ["f", "f"]);
  t.removeEventListener("x", f, { capture: true }); check("DOM §2.7 removeEventListener(), step 2: capture of the options", fire("x"), ["f"]);
  t.removeEventListener("x", f, { capture: true }); t.removeEventListener("y", f); t.removeEventListener("x", () => {}); check("DOM §2.7 removeEventListener(): what is no listener stays out", fire("x"), ["f"]);
  t.removeEventListener("x", f, { once: true, passive: true }); check("DOM §2.7 removeEventListener(): other options do not matter", fire("x"), []);
  check("DOM §2.7 removeEventListener(): null", t.removeEventListener("x", null), undefined);
  throws("DOM §2.7 removeEventListener(): needs two arguments", () => t.removeEventListener("x"), "TypeError");
  throws("DOM §2.7 removeEventListener(): a callback is an object", () => t.removeEventListener("x", 1), "TypeError");
  // options
  const reads = []; t.addEventListener("x", null, { get signal() { reads.push("signal"); }, get passive() { reads.push("passive"); }, get once() { reads.push("once"); }, get capture() { reads.push("capture"); } });
  check("DOM §2.7 flatten more: the members that are read", reads, ["capture", "once", "passive", "signal"]);
  for (const signal of [null, 1, {}, new EventTarget()]) throws("DOM §2.7 addEventListener(): signal is an AbortSignal", () => t.addEventListener("x", f, { signal }), "TypeError");
  t.addEventListener("a", f, { signal: AbortSignal.abort() }); check("DOM §2.7 add an event listener, step 2: a signal that has aborted", fire("a"), []);
  const stop = new AbortController(); t.addEventListener("a", f, { signal: stop.signal }); stop.abort(); check("DOM §2.7 add an event listener, step 6: removed by its signal", fire("a"), []);
  t.addEventListener("o", f, { once: true }); check("DOM §2.9 inner invoke, step 5: once", [fire("o"), fire("o")], [["f"], []]);
  const again = new EventTarget(); again.addEventListener("o", () => { seen.push(1); if (seen.length < 5) again.dispatchEvent(new Event("o")); }, { once: true }); check("DOM §2.9 inner invoke, step 5: removed before it is called", fire("o", again), [1]);
  const passive = new EventTarget(), p = new Event("p", { cancelable: true }); passive.addEventListener("p", (e) => { e.preventDefault(); e.returnValue = false; }, { passive: true });
  check("DOM §2.9 inner invoke, step 9: a passive listener prevents nothing", [passive.dispatchEvent(p), p.defaultPrevented], [true, false]);
  // dispatchEvent
  throws("DOM §2.7 dispatchEvent(): needs an event", () => t.dispatchEvent(), "TypeError"); for (const v of [null, {}, { type: "x" }]) throws("DOM §2.7 dispatchEvent(): the argument is an Event", () => t.dispatchEvent(v), "TypeError");
  let inner; t.addEventListener("re", (e) => { try { t.dispatchEvent(e); } catch (x) { inner = [x instanceof DOMException, x.name, x.code]; } }); fire("re"); check("DOM §2.7 dispatchEvent(), step 1: not while it is dispatched", inner, [true, "InvalidStateError", 11]);
  let trusted; const abort = new AbortController(); abort.signal.addEventListener("abort", (e) => { trusted = e; }); abort.abort(); const was = trusted.isTrusted; t.dispatchEvent(trusted); check("DOM §2.7 dispatchEvent(), step 2: isTrusted becomes false", [was, trusted.isTrusted], [true, false]);
  // order
  const o = new EventTarget();
  o.addEventListener("x", () => seen.push("1")); o.addEventListener("x", (e) => seen.push("capture", e.eventPhase), true); o.addEventListener("x", () => seen.push("2"));
  check("DOM §2.9 dispatch, step 5.13 and 5.14: capturing listeners first, both at the target", fire("x", o), ["capture", 2, "1", "2"]);
  const s = new EventTarget(); s.addEventListener("x", () => seen.push("later")); s.addEventListener("x", (e) => { seen.push("first"); e.stopPropagation(); }, true); s.addEventListener("x", () => seen.push("same"), true);
  check("DOM §2.9 invoke, step 1: stopPropagation in the capturing ones", fire("x", s), ["first", "same"]);
  const i = new EventTarget(); i.addEventListener("x", (e) => { seen.push("first"); e.stopImmediatePropagation(); }); i.addEventListener("x", () => seen.push("second"));
  check("DOM §2.9 inner invoke, step 14: stopImmediatePropagation", fire("x", i), ["first"]);
  const m = new EventTarget(), gone = () => seen.push("gone"); m.addEventListener("x", () => { seen.push("first"); m.removeEventListener("x", gone); m.addEventListener("x", gone2); }); const gone2 = () => seen.push("late"); m.addEventListener("x", gone);
  check("DOM §2.9 invoke, step 6: the list is copied; inner invoke, step 2: removed ones are not called", [fire("x", m), fire("x", m)], [["first"], ["first", "late"]]);
  // callbacks
  const c = new EventTarget(); let got; c.addEventListener("x", function (e) { got = [this === c, arguments.length, e.target === c]; }); c.dispatchEvent(new Event("x")); check("DOM §2.9 inner invoke, step 10: this and the arguments", got, [true, 1, true]);
  const handler = { handleEvent(e) { got = [this === handler, e.type]; } }; c.addEventListener("h", handler); c.dispatchEvent(new Event("h")); check("Web IDL §3.12 call a user object's operation: handleEvent", got, [true, "h"]);
  handler.handleEvent = () => { got = "replaced"; }; c.dispatchEvent(new Event("h")); check("Web IDL §3.12: handleEvent is read for each call", got, "replaced");
  const errors = [], onError = (e) => { errors.push(e.error instanceof TypeError ? "TypeError" : e.error.message); e.preventDefault(); }; addEventListener("error", onError);
  c.addEventListener("bad", { handleEvent: 1 }); c.addEventListener("bad", { get handleEvent() { throw new Error("getter"); } }); c.addEventListener("bad", () => { throw new Error("thrown"); }); c.addEventListener("bad", () => seen.push("next"));
  check("DOM §2.9 inner invoke, step 11: exceptions are reported, the next is called, dispatch returns true", [fire("bad", c), c.dispatchEvent(new Event("none")), errors], [["next"], true, ["TypeError", "getter", "thrown"]]); removeEventListener("error", onError);
  // receivers
  throws("DOM §2.7: the receiver is checked", () => EventTarget.prototype.addEventListener.call({}, "x", f), "TypeError");
  const free = EventTarget.prototype.addEventListener; free.call(undefined, "free", f); check("Web IDL §3.7.7: without a receiver it is the global object", fire("free", globalThis), ["f"]); globalThis.removeEventListener("free", f);
  t.addEventListener(null, f); t.addEventListener("", f); check("DOM §2.7: types are strings", [fire("null"), fire("")], [["f"], ["f"]]);
}
