// navigator: https://html.spec.whatwg.org/#the-navigator-object
import { check, throws } from "./check.js";
export default function () {
  check("ECMA-429, navigator.userAgent: a text that is not empty", [typeof navigator.userAgent, navigator.userAgent.length > 0, /^[\x21-\x7e]+$/.test(navigator.userAgent)], ["string", true, true]); check("HTML §8.10.1: one object", [navigator === navigator, String(navigator), navigator instanceof Navigator], [true, "[object Navigator]", true]); throws("HTML §8.10.1: no constructor", () => new Navigator(), "TypeError"); throws("HTML §8.10.1.1 userAgent: read only", () => { navigator.userAgent = "x"; }, "TypeError"); throws("HTML §8.10.1.1 userAgent: the receiver is checked", () => Object.getOwnPropertyDescriptor(Navigator.prototype, "userAgent").get.call({}), "TypeError");
}
