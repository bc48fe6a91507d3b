// CustomEvent: https://dom.spec.whatwg.org/#interface-customevent
import { check, throws } from "./check.js";
export default function () {
  throws("DOM §2.4 constructor: needs a type", () => new CustomEvent(), "TypeError");
  throws("DOM §2.4 constructor: needs new", () => CustomEvent("x"), "TypeError");
  throws("DOM §2.4 constructor: the options are an object", () => new CustomEvent("x", 1), "TypeError");
  const e = new CustomEvent("x"), detail = { a: 1 };
  check("DOM §2.4 detail: null without one", [e.detail, e.type, e.bubbles, e instanceof Event], [null, "x", false, true]);
  check("DOM §2.4 detail: undefined means its default", new CustomEvent("x", { detail: undefined }).detail, null);
  check("DOM §2.4 detail: the value itself", new CustomEvent("x", { detail }).detail === detail, true);
  for (const v of [0, "", false]) check("DOM §2.4 detail: " + JSON.stringify(v), new CustomEvent("x", { detail: v }).detail, v);
  const order = [];
  new CustomEvent("x", { get detail() { order.push("detail"); }, get composed() { order.push("composed"); }, get bubbles() { order.push("bubbles"); } });
  check("Web IDL §3.2.17: members of the inherited dictionary are read first", order, ["bubbles", "composed", "detail"]);
  throws("DOM §2.4 detail: read only", () => { e.detail = 1; }, "TypeError");
  throws("DOM §2.4 detail: the receiver is checked", () => Object.getOwnPropertyDescriptor(CustomEvent.prototype, "detail").get.call(new Event("x")), "TypeError");
  throws("DOM §2.4 initCustomEvent(): needs a type", () => e.initCustomEvent(), "TypeError");
  e.initCustomEvent("y", true, true, detail);
  check("DOM §2.4 initCustomEvent(), steps 2 and 3: initialize, then the detail", [e.type, e.bubbles, e.cancelable, e.detail === detail], ["y", true, true, true]);
  e.initCustomEvent("z");
  check("DOM §2.4 initCustomEvent(): the defaults", [e.type, e.bubbles, e.cancelable, e.detail], ["z", false, false, null]);
  const t = new EventTarget(); let inside;
  t.addEventListener("z", (ev) => { ev.initCustomEvent("other", true, true, 5); inside = [ev.type, ev.detail]; });
  t.dispatchEvent(e);
  check("DOM §2.4 initCustomEvent(), step 1: nothing while it is dispatched", inside, ["z", null]);
  throws("DOM §2.4 initCustomEvent(): the receiver is checked", () => CustomEvent.prototype.initCustomEvent.call(new Event("x"), "y"), "TypeError");
  check("DOM §2.4: the class string", String(e), "[object CustomEvent]");
}
