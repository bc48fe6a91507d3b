// Event, CustomEvent, EventTarget, AbortSignal: https://dom.spec.whatwg.org, sections 2.2, 2.4, 2.7, 3.2.
import { check, throws } from "./check.js";
export default async function () {
  throws("no type", () => new Event(), "TypeError"); throws("options", () => new Event("x", 1), "TypeError"); throws("without new", () => Event("x"), "TypeError");
  const e = new Event("x", { bubbles: 1, cancelable: true });
  check("event", [e.type, e.bubbles, e.cancelable, e.composed, e.target, e.currentTarget, e.srcElement, e.eventPhase, e.composedPath(), e.defaultPrevented, e.returnValue, e.isTrusted, typeof e.timeStamp, String(e)], ["x", true, true, false, null, null, null, 0, [], false, true, false, "number", "[object Event]"]);
  check("constants", [Event.AT_TARGET, e.BUBBLING_PHASE, Object.getOwnPropertyDescriptor(Event, "NONE").writable], [2, 3, false]);
  check("isTrusted is own", [Object.hasOwn(e, "isTrusted"), Object.getOwnPropertyDescriptor(e, "isTrusted").configurable], [true, false]);
  throws("type is read only", () => { e.type = "y" }, "TypeError"); throws("receiver", () => Object.getOwnPropertyDescriptor(Event.prototype, "type").get.call({}), "TypeError");
  const t = new EventTarget(), seen = [];
  // 2.7 order: capturing first, a listener once, handleEvent, null
  t.addEventListener("x", () => seen.push("bubble")); t.addEventListener("x", { handleEvent(ev) { seen.push("object", this !== undefined, ev.eventPhase, ev.currentTarget === t); } }); t.addEventListener("x", function () { seen.push("capture", this === t); }, true);
  const once = () => seen.push("once"); t.addEventListener("x", once, { once: true }); t.addEventListener("x", once, { once: true }); t.addEventListener("x", null); t.removeEventListener("x", null);
  check("dispatch", [t.dispatchEvent(e), seen.splice(0), e.target === t, e.currentTarget, e.eventPhase], [true, ["capture", true, "bubble", "object", true, 2, true, "once"], true, null, 0]);
  t.dispatchEvent(e); check("again", seen.includes("once"), false);
  throws("a listener that is no object", () => t.addEventListener("x", 3), "TypeError"); throws("too few", () => t.addEventListener("x"), "TypeError"); throws("no event", () => t.dispatchEvent({ type: "x" }), "TypeError"); throws("receiver", () => EventTarget.prototype.addEventListener.call({}, "x", once), "TypeError"); throws("signal", () => t.addEventListener("x", once, { signal: {} }), "TypeError");
  const p = new EventTarget(), prevent = new Event("p", { cancelable: true }); p.addEventListener("p", (ev) => ev.preventDefault(), { passive: true }); check("passive", p.dispatchEvent(prevent), true);
  p.addEventListener("p", (ev) => { ev.preventDefault(); ev.stopImmediatePropagation(); }); p.addEventListener("p", () => seen.push("not reached")); seen.length = 0; check("stopped", [p.dispatchEvent(prevent), prevent.defaultPrevented, prevent.returnValue, seen], [false, true, false, []]);
  p.addEventListener("re", (ev) => { try { p.dispatchEvent(ev) } catch (x) { seen.push(x.name, x.code) } }); p.dispatchEvent(new Event("re")); check("while it is dispatched", seen.splice(0), ["InvalidStateError", 11]);
  const l = new EventTarget(), b = () => seen.push("b"); l.addEventListener("x", () => { l.removeEventListener("x", b); l.addEventListener("x", () => seen.push("late")); }, { once: true }); l.addEventListener("x", b); l.dispatchEvent(new Event("x")); check("removed and added meanwhile", seen.splice(0), []);
  const stop = new AbortController(), s = new EventTarget(); s.addEventListener("x", () => seen.push("s"), { signal: stop.signal }); s.dispatchEvent(new Event("x")); stop.abort(); s.dispatchEvent(new Event("x")); s.addEventListener("x", () => seen.push("t"), { signal: stop.signal }); s.dispatchEvent(new Event("x")); check("signal", seen.splice(0), ["s"]);
  class Mine extends EventTarget { constructor() { super(); this.n = 1 } } const m = new Mine(); m.addEventListener("x", (ev) => seen.push(ev.target.n)); m.dispatchEvent(new Event("x")); check("a class of the script", seen.splice(0), [1]);
  const c = new CustomEvent("c", { detail: { a: 1 } }); check("custom", [c.detail, c instanceof Event, new CustomEvent("c").detail], [{ a: 1 }, true, null]); c.initCustomEvent("d", true, true, 5); check("initCustomEvent", [c.type, c.detail, c.cancelable], ["d", 5, true]);
  const i = new Event("i", { cancelable: true }); i.preventDefault(); i.initEvent("j"); check("initEvent", [i.type, i.cancelable, i.defaultPrevented], ["j", false, false]); i.cancelBubble = true; check("cancelBubble", i.cancelBubble, true);
  // 3.2 AbortSignal is an EventTarget
  const a = new AbortController(); a.signal.addEventListener("abort", (ev) => seen.push(ev.isTrusted, ev.target === a.signal, ev instanceof Event), { once: true }); a.signal.addEventListener("other", () => seen.push("other")); a.signal.dispatchEvent(new Event("other")); a.abort(); a.abort(); check("signal events", [seen.splice(0), a.signal instanceof EventTarget], [["other", true, true, true], true]);
  const h = new AbortController(), f = () => seen.push("handler"); h.signal.onabort = f; check("onabort", h.signal.onabort === f, true); h.signal.onabort = 3; check("onabort null", h.signal.onabort, null); h.abort(); check("no handler", seen, []);
  // an exception of a listener is reported, and the next one is called
  const bad = new EventTarget(), errors = []; const onError = (ev) => { errors.push(ev.message, ev.error.message, ev instanceof ErrorEvent, ev.lineno > 0, ev.filename !== "", ev.target === globalThis); ev.preventDefault(); };
  addEventListener("error", onError); bad.addEventListener("x", () => { throw new Error("thrown") }); bad.addEventListener("x", () => seen.push("next")); check("dispatch of a listener that throws", bad.dispatchEvent(new Event("x")), true); check("reported", [errors.splice(0), seen.splice(0)], [["Uncaught thrown", "thrown", true, true, true, true], ["next"]]);
  bad.addEventListener("o", {}); bad.dispatchEvent(new Event("o")); check("no handleEvent", errors.splice(0).slice(2, 3), [true]); removeEventListener("error", onError);
  check("the global object", [globalThis instanceof EventTarget, self.addEventListener === EventTarget.prototype.addEventListener], [true, true]); addEventListener("g", (ev) => seen.push(ev.target === self)); dispatchEvent(new Event("g")); check("global event", seen, [true]);
  const ee = new ErrorEvent("e", { message: 1, filename: "f", lineno: 2, colno: 3, error: 4 }); check("ErrorEvent", [ee.message, ee.filename, ee.lineno, ee.colno, ee.error, new ErrorEvent("e").error, new ErrorEvent("e").message], ["1", "f", 2, 3, 4, undefined, ""]); throws("PromiseRejectionEvent", () => new PromiseRejectionEvent("x", {}), "TypeError"); throws("PromiseRejectionEvent", () => new PromiseRejectionEvent("x"), "TypeError");
  const pr = new PromiseRejectionEvent("x", { promise: Promise.resolve(1), reason: 2 }); check("PromiseRejectionEvent", [await pr.promise, pr.reason], [1, 2]);
  // many listeners, once each
  const many = new EventTarget(), counting = () => calls++, ending = new AbortController(); let calls = 0;
  for (let i = 0; i < 5000; i++) many.addEventListener("x", () => calls++, { signal: ending.signal });
  many.addEventListener("x", counting); many.addEventListener("x", counting, false); many.addEventListener("x", counting, true); many.dispatchEvent(new Event("x")); check("listeners that are told apart by capture", calls, 5002);
  many.removeEventListener("x", counting, true); many.addEventListener("x", counting); ending.abort(); calls = 0; many.dispatchEvent(new Event("x")); check("after a removal", calls, 1);
  many.removeEventListener("x", counting); many.addEventListener("x", counting, { once: true }); calls = 0; many.dispatchEvent(new Event("x")); many.dispatchEvent(new Event("x")); many.addEventListener("x", counting); many.dispatchEvent(new Event("x")); check("added again", calls, 2);
  Object.prototype.bubbles = true; Object.prototype.start = 1; try { check("members of Object.prototype", [new Event("x").bubbles, typeof new ReadableStream(), typeof new TransformStream()], [false, "object", "object"]); } finally { delete Object.prototype.bubbles; delete Object.prototype.start; }
}
