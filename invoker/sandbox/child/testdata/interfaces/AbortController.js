// AbortController: https://dom.spec.whatwg.org/#interface-abortcontroller
import { check, throws } from "./check.js";
export default function () {
  throws("DOM §3.1 constructor: needs new", () => AbortController(), "TypeError");
  const c = new AbortController();
  check("DOM §3.1 constructor, steps 1 and 2: a new signal that has not aborted", [c.signal instanceof AbortSignal, c.signal.aborted, c.signal.reason], [true, false, undefined]);
  check("DOM §3.1 constructor: each controller has its own signal", new AbortController().signal === c.signal, false);
  check("DOM §3.1 signal: always the same object", c.signal === c.signal, true);
  throws("DOM §3.1 signal: read only", () => { c.signal = 1; }, "TypeError");
  throws("DOM §3.1 signal: the receiver is checked", () => Object.getOwnPropertyDescriptor(AbortController.prototype, "signal").get.call({}), "TypeError");
  check("DOM §3.1 abort(reason): returns undefined", c.abort("why"), undefined);
  check("DOM §3.1 abort(reason): signal abort with the reason", [c.signal.aborted, c.signal.reason], [true, "why"]);
  c.abort("again");
  check("DOM §3.2 signal abort, step 1: the first reason stays", c.signal.reason, "why");
  for (const [name, args] of [["none", []], ["undefined", [undefined]]]) {
    const d = new AbortController();
    d.abort(...args);
    check("DOM §3.2 signal abort, step 2: reason " + name + " becomes an AbortError", [d.signal.reason instanceof DOMException, d.signal.reason.name, d.signal.reason.code], [true, "AbortError", 20]);
  }
  for (const reason of [null, 0, "", false]) {
    const d = new AbortController();
    d.abort(reason);
    check("DOM §3.2 signal abort, step 2: the reason " + JSON.stringify(reason) + " is kept", d.signal.reason, reason);
  }
  throws("DOM §3.1 abort(reason): the receiver is checked", () => AbortController.prototype.abort.call({}), "TypeError");
  check("DOM §3.1: the class string", String(c), "[object AbortController]");
}
