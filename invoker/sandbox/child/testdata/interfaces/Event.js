// Event: https://dom.spec.whatwg.org/#interface-event
import { check, throws } from "./check.js";
export default function () {
  throws("DOM §2.2: needs new", () => Event("x"), "TypeError");
  throws("DOM §2.5 constructor: needs a type", () => new Event(), "TypeError");
  throws("DOM §2.5 constructor: the type is a string", () => new Event(Symbol()), "TypeError");
  for (const v of [1, "a", true, Symbol()]) throws("Web IDL §3.2.17: the options are no " + typeof v, () => new Event("x", v), "TypeError");
  check("Web IDL §3.2.17: null and undefined are no options", [new Event("x", null).bubbles, new Event("x", undefined).bubbles], [false, false]);
  const order = [];
  new Event({ toString() { order.push("type"); return "x"; } }, { get composed() { order.push("composed"); }, get cancelable() { order.push("cancelable"); }, get bubbles() { order.push("bubbles"); } });
  check("Web IDL §3.2.17: members are read in the order of their names, behind the type", order, ["type", "bubbles", "cancelable", "composed"]);
  const e = new Event("x");
  check("DOM §2.5 inner event creation steps: the initial values", [e.type, e.target, e.srcElement, e.currentTarget, e.composedPath(), e.eventPhase, e.bubbles, e.cancelable, e.composed, e.defaultPrevented, e.returnValue, e.cancelBubble, e.isTrusted],
    ["x", null, null, null, [], 0, false, false, false, false, true, false, false]);
  check("DOM §2.5 constructor, step 3: members of the dictionary", ((f) => [f.bubbles, f.cancelable, f.composed])(new Event("", { bubbles: 1, cancelable: "a", composed: {} })), [true, true, true]);
  check("DOM §2.5 inner event creation steps, step 3: the time is that of performance.now", Math.abs(performance.now() - new Event("x").timeStamp) < 1000, true);
  check("Web IDL §3.7.3 [LegacyUnforgeable]: isTrusted is an own accessor that cannot be changed", ((d) => [typeof d.get, d.set, d.enumerable, d.configurable])(Object.getOwnPropertyDescriptor(e, "isTrusted")), ["function", undefined, true, false]);
  check("Web IDL §3.7.3 [LegacyUnforgeable]: one getter for all", Object.getOwnPropertyDescriptor(e, "isTrusted").get === Object.getOwnPropertyDescriptor(new Event("y"), "isTrusted").get, true);
  for (const name of ["type", "target", "bubbles", "timeStamp"]) throws("DOM §2.2 " + name + ": read only", () => { e[name] = 1; }, "TypeError");
  for (const name of ["type", "cancelBubble", "returnValue"]) throws("DOM §2.2 " + name + ": the receiver is checked", () => Object.getOwnPropertyDescriptor(Event.prototype, name).get.call({}), "TypeError");
  throws("DOM §2.2 preventDefault(): the receiver is checked", () => Event.prototype.preventDefault.call({}), "TypeError");
  // flags
  e.preventDefault(); check("DOM §2.2 set the canceled flag: not if it is not cancelable", [e.defaultPrevented, e.returnValue], [false, true]);
  const c = new Event("x", { cancelable: true });
  c.returnValue = true; check("DOM §2.2 returnValue: true does nothing", c.defaultPrevented, false);
  c.returnValue = false; check("DOM §2.2 returnValue: false sets the canceled flag", [c.defaultPrevented, c.returnValue], [true, false]);
  c.returnValue = true; check("DOM §2.2 returnValue: true does not unset it", c.returnValue, false);
  c.cancelBubble = false; check("DOM §2.2 cancelBubble: false does nothing", c.cancelBubble, false);
  c.stopPropagation(); check("DOM §2.2 stopPropagation(): sets the flag", c.cancelBubble, true);
  c.cancelBubble = false; check("DOM §2.2 cancelBubble: false does not unset it", c.cancelBubble, true);
  const s = new Event("x"); s.stopImmediatePropagation(); check("DOM §2.2 stopImmediatePropagation(): sets the stop propagation flag, too", s.cancelBubble, true);
  const b = new Event("x"); b.cancelBubble = true; check("DOM §2.2 cancelBubble: true sets the flag", b.cancelBubble, true);
  const t = new EventTarget(), seen = [];
  t.addEventListener("x", () => seen.push(1)); t.dispatchEvent(b);
  check("DOM §2.9 invoke, step 1: an event that is stopped before reaches no listener", [seen, b.cancelBubble], [[], false]);
  // while it is dispatched
  const d = new Event("d", { cancelable: true });
  t.addEventListener("d", (ev) => { ev.initEvent("other", true, true); seen.push(ev.type, ev.target === t, ev.currentTarget === t, ev.srcElement === t, ev.eventPhase, ev.composedPath().map((p) => p === t)); ev.preventDefault(); });
  check("DOM §2.9 dispatch: returns false if canceled", t.dispatchEvent(d), false);
  check("DOM §2.2 initEvent(), step 1: nothing while it is dispatched", seen, ["d", true, true, true, 2, [true]]);
  check("DOM §2.9 dispatch, steps 6 to 9: afterwards no phase, no current target, no path", [d.eventPhase, d.currentTarget, d.composedPath(), d.target === t, d.defaultPrevented], [0, null, [], true, true]);
  // initEvent
  throws("DOM §2.2 initEvent(): needs a type", () => d.initEvent(), "TypeError");
  d.initEvent("y", true);
  check("DOM §2.2 initialize: type, bubbles, cancelable; no target, not canceled, not trusted", [d.type, d.bubbles, d.cancelable, d.target, d.defaultPrevented, d.isTrusted], ["y", true, false, null, false, false]);
  check("DOM §2.2: constants", ["NONE", "CAPTURING_PHASE", "AT_TARGET", "BUBBLING_PHASE"].map((n) => [Event[n], e[n]]), [[0, 0], [1, 1], [2, 2], [3, 3]]);
  class Mine extends Event { constructor() { super("mine"); this.n = 1; } }
  check("DOM §2.5: a class of the script", ((m) => [m.type, m.n, m instanceof Event, String(m)])(new Mine()), ["mine", 1, true, "[object Event]"]);
}
