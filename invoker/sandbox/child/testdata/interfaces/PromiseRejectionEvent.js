// PromiseRejectionEvent: https://html.spec.whatwg.org/#promiserejectionevent
import { check, throws } from "./check.js";
export default async function () {
  throws("HTML §8.1.4.7 constructor: needs a type and options", () => new PromiseRejectionEvent("x"), "TypeError");
  throws("HTML §8.1.4.7 PromiseRejectionEventInit: promise is required", () => new PromiseRejectionEvent("x", {}), "TypeError");
  throws("HTML §8.1.4.7 constructor: the options are an object", () => new PromiseRejectionEvent("x", 1), "TypeError");
  throws("HTML §8.1.4.7 constructor: null has no promise", () => new PromiseRejectionEvent("x", null), "TypeError");
  const promise = Promise.resolve(1), e = new PromiseRejectionEvent("x", { promise, reason: 2, cancelable: true });
  check("HTML §8.1.4.7 constructor: the members", [e.promise === promise, e.reason, e.type, e.cancelable, e instanceof Event], [true, 2, "x", true, true]);
  check("HTML §8.1.4.7 PromiseRejectionEventInit: no reason", new PromiseRejectionEvent("x", { promise }).reason, undefined);
  for (const name of ["promise", "reason"]) throws("HTML §8.1.4.7 " + name + ": the receiver is checked", () => Object.getOwnPropertyDescriptor(PromiseRejectionEvent.prototype, name).get.call(new Event("x")), "TypeError");
  // The events of the platform.
  const seen = [], log = (ev) => { seen.push([ev.type, ev instanceof PromiseRejectionEvent, ev.cancelable, ev.isTrusted, ev.reason]); ev.preventDefault(); };
  addEventListener("unhandledrejection", log); addEventListener("rejectionhandled", log);
  const lost = Promise.reject("lost"), caught = Promise.reject("caught"); caught.catch(() => {});
  await new Promise((r) => setTimeout(r, 2));
  check("HTML §8.1.4.7 notify about rejected promises: fire unhandledrejection, cancelable", seen.splice(0), [["unhandledrejection", true, true, true, "lost"]]);
  lost.catch(() => {});
  await new Promise((r) => setTimeout(r, 2));
  check("HTML §8.1.7.2 HostPromiseRejectionTracker, handle: fire rejectionhandled", seen.splice(0), [["rejectionhandled", true, false, true, "lost"]]);
  removeEventListener("unhandledrejection", log); removeEventListener("rejectionhandled", log);
  check("HTML §8.1.4.7: the class string", String(e), "[object PromiseRejectionEvent]");
}
