// ErrorEvent: https://html.spec.whatwg.org/#errorevent
import { check, throws } from "./check.js";
export default function () {
  throws("HTML §8.1.4.6 constructor: needs a type", () => new ErrorEvent(), "TypeError");
  throws("HTML §8.1.4.6 constructor: the options are an object", () => new ErrorEvent("x", 1), "TypeError");
  throws("HTML §8.1.4.6 constructor: needs new", () => ErrorEvent("x"), "TypeError");
  const e = new ErrorEvent("x");
  check("HTML §8.1.4.6 ErrorEventInit: the defaults", [e.type, e.message, e.filename, e.lineno, e.colno, e.error, e.bubbles, e instanceof Event], ["x", "", "", 0, 0, undefined, false, true]);
  const f = new ErrorEvent("x", { message: 1, filename: null, lineno: 2 ** 32 + 3, colno: -1, error: null, cancelable: true });
  check("HTML §8.1.4.6 ErrorEventInit: strings, unsigned long, any", [f.message, f.filename, f.lineno, f.colno, f.error, f.cancelable], ["1", "null", 3, 4294967295, null, true]);
  const order = []; new ErrorEvent("x", new Proxy({}, { get(_, n) { order.push(n); } }));
  check("Web IDL §3.2.17: inherited members first, each group by name", order, ["bubbles", "cancelable", "composed", "colno", "error", "filename", "lineno", "message"]);
  for (const name of ["message", "filename", "lineno", "colno", "error"]) throws("HTML §8.1.4.6 " + name + ": read only, and the receiver is checked", () => Object.getOwnPropertyDescriptor(ErrorEvent.prototype, name).get.call(new Event("x")), "TypeError");
  throws("HTML §8.1.4.6 message: a symbol is no string", () => new ErrorEvent("x", { message: Symbol() }), "TypeError");
  check("HTML §8.1.4.6: the class string", String(e), "[object ErrorEvent]");
}
