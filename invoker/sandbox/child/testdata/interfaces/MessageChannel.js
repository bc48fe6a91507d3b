// MessageChannel: https://html.spec.whatwg.org/#message-channels
import { check, throws } from "./check.js";
export default async function () {
  throws("HTML §9.4.2 constructor: needs new", () => MessageChannel(), "TypeError");
  const c = new MessageChannel();
  check("HTML §9.4.2 constructor, steps 1 and 2: two new ports", [c.port1 instanceof MessagePort, c.port2 instanceof MessagePort, c.port1 === c.port2, c.port1 === new MessageChannel().port1], [true, true, false, false]);
  check("HTML §9.4.2 port1 and port2: the same objects", [c.port1 === c.port1, c.port2 === c.port2], [true, true]);
  const heard = (port) => new Promise((r) => { port.onmessage = (e) => r(e.data); });
  c.port1.postMessage("a"); c.port2.postMessage("b");
  check("HTML §9.4.2 constructor, step 3: the ports are entangled", [await heard(c.port2), await heard(c.port1)], ["a", "b"]);
  for (const name of ["port1", "port2"]) {
    throws("HTML §9.4.2 " + name + ": read only", () => { c[name] = 1; }, "TypeError");
    throws("HTML §9.4.2 " + name + ": the receiver is checked", () => Object.getOwnPropertyDescriptor(MessageChannel.prototype, name).get.call({}), "TypeError");
  }
  throws("HTML §2.7.3: a channel cannot be cloned", () => structuredClone(c), "DataCloneError");
  check("HTML §9.4.2: the class string", String(c), "[object MessageChannel]");
  c.port1.close();
}
