// MessagePort: https://html.spec.whatwg.org/#message-ports
import { check, throws } from "./check.js";
const later = () => new Promise((r) => setTimeout(r, 1));
export default async function () {
  throws("HTML §9.4.4: no constructor", () => new MessagePort(), "TypeError");
  const { port1, port2 } = new MessageChannel(), seen = [];
  // postMessage
  throws("HTML §9.4.4 postMessage(): needs a message", () => port1.postMessage(), "TypeError");
  for (const v of [1, "a", true]) throws("HTML §9.4.4 postMessage(): the options are no " + typeof v, () => port1.postMessage(0, v), "TypeError");
  throws("HTML §9.4.4 postMessage(): transfer is a sequence of objects", () => port1.postMessage(0, [1]), "TypeError");
  throws("HTML §9.4.4 message port post message steps, step 3: the port itself", () => port1.postMessage(0, [port1]), "DataCloneError");
  throws("HTML §9.4.4 message port post message steps, step 5: exceptions of the copy", () => port1.postMessage(() => {}), "DataCloneError");
  check("HTML §9.4.4 postMessage(): returns undefined", port1.postMessage({ a: 1 }), undefined);
  port1.postMessage(2, []); port1.postMessage(3, { transfer: [] }); port1.postMessage(4, null); port1.postMessage(5, {});
  port2.addEventListener("message", (e) => seen.push(e.data)); await later();
  check("HTML §9.4.4: messages wait until the port is started", seen, []);
  check("HTML §9.4.4 start(): returns undefined", port2.start(), undefined); port2.start(); await later();
  check("HTML §9.4.4 start(), step 1: the queue is enabled, messages come in order", seen.splice(0), [{ a: 1 }, 2, 3, 4, 5]);
  const value = { a: 1 }; port1.postMessage(value); value.a = 2; await later();
  check("HTML §9.4.4 message port post message steps, step 5: the copy is made at once", seen.splice(0), [{ a: 1 }]);
  // the event
  let event; port2.onmessage = (e) => { event = e; seen.push("on"); }; port1.postMessage("x"); await later();
  check("HTML §9.4.4 step 7.6: fire message with data and ports", [event instanceof MessageEvent, event.isTrusted, event.data, event.origin, event.source, event.ports, event.target === port2, event.cancelable], [true, true, "x", "", null, [], true, false]);
  check("HTML §8.1.8.1: the handler is called in its place", seen.splice(0), ["x", "on"]);
  // The setter of onmessage starts the port.
  const own = new MessageChannel(); own.port1.postMessage(1); own.port2.onmessage = (e) => seen.push(e.data); await later();
  check("HTML §9.4.4 onmessage: its first setting enables the queue, as start() does", seen.splice(0), [1]);
  check("HTML §8.1.8.1 onmessage, onmessageerror, onclose: null at first", [own.port1.onmessage, own.port1.onmessageerror, own.port1.onclose], [null, null, null]);
  own.port1.onclose = 1; check("HTML §8.1.8.1 onclose: no object is null", own.port1.onclose, null);
  // order among tasks
  own.port2.onmessage = () => seen.push("message"); own.port1.postMessage(0); Promise.resolve().then(() => seen.push("microtask")); seen.push("sync"); await later();
  check("HTML §9.4.4 step 7: a task, behind microtasks", seen.splice(0), ["sync", "microtask", "message"]);
  // transfer
  const buffer = new ArrayBuffer(3); own.port2.onmessage = (e) => { event = e; }; own.port1.postMessage(buffer, [buffer]); await later();
  check("HTML §2.7.7: a buffer moves", [buffer.detached, event.data.byteLength], [true, 3]);
  const moved = new MessageChannel(); moved.port1.postMessage("waiting"); own.port1.postMessage({ p: moved.port2 }, { transfer: [moved.port2] }); await later();
  check("HTML §9.4.4 step 7.5: moved ports are the event's ports", [event.ports.length, event.ports[0] === event.data.p, event.ports[0] !== moved.port2], [1, true, true]);
  event.ports[0].onmessage = (e) => seen.push(e.data); await later();
  check("HTML §9.4.4 transfer-receiving steps: waiting messages move with the port", seen.splice(0), ["waiting"]);
  throws("HTML §2.7.7 step 2: a port moves once", () => own.port1.postMessage(0, [moved.port2]), "DataCloneError");
  throws("HTML §2.7.7 step 2: not twice in a list", () => { const { port1: p } = new MessageChannel(); own.port1.postMessage(0, [p, p]); }, "DataCloneError");
  throws("HTML §2.7.3: a port that is not in the list has no copy", () => own.port1.postMessage(new MessageChannel().port1), "DataCloneError");
  moved.port1.close();
  // close
  const c = new MessageChannel(), log = []; c.port2.onmessage = (e) => log.push(e.data); c.port2.onclose = (e) => log.push(e.type, e.isTrusted); c.port1.onclose = () => log.push("own close");
  c.port1.postMessage("before"); check("HTML §9.4.4 close(): returns undefined", c.port1.close(), undefined); c.port1.postMessage("after"); c.port2.postMessage("back"); await later(); await later();
  check("HTML §9.4.4 close() and disentangle, step 4: the other port gets what was sent before, then close", log, ["before", "close", true]);
  check("HTML §9.4.4 close(): again", c.port1.close(), undefined);
  for (const name of ["postMessage", "start", "close"]) throws("HTML §9.4.4 " + name + "(): the receiver is checked", () => MessagePort.prototype[name].call({}, 1), "TypeError");
  port1.close(); own.port1.close();
  const shut = new MessageChannel(), open = new MessageChannel(); shut.port1.close(); throws("HTML §9.4.4 close(), step 1: the port is detached", () => open.port1.postMessage(null, [shut.port1]), "DataCloneError"); check("HTML §9.4.4 close(): the other port is not", open.port1.postMessage(null, [shut.port2]), undefined); open.port1.close();
}
